//! What the papers claim, at reduced sizes and from fixed seeds.

use sim::figures::{Figure, Scale, entries, entry};
use sim::machine::CacheShape;
use sim::{MachineConfig, Memory, Simulation};

fn made_in(name: &str, measured_us: u64) -> Figure {
    let entry = entry(name).unwrap_or_else(|| panic!("there is no figure {name}"));
    (entry.make)(&Scale { measured_us, ..Scale::SMALL })
}

fn made(name: &str) -> Figure {
    made_in(name, Scale::SMALL.measured_us)
}

/// All that the paper says of a figure holds.
fn agrees(figure: &Figure) {
    assert!(figure.claims.iter().all(|claim| claim.holds), "{figure}");
}

#[test]
fn a_second_socket_makes_a_small_tree_under_updates_collapse_and_a_small_machine_does_not() {
    let figure = made_in("tle-1", 120);
    let (large, small) = (figure.line("X5-2"), figure.line("i7-4770"));
    assert!(large.at(36.0) > 3.0 && large.at(37.0) < 0.95 * large.at(36.0), "{figure}");
    assert!(large.at(72.0) < 0.4 * large.at(36.0), "{figure}");
    assert!(small.at(8.0) > small.at(4.0) && small.at(4.0) > small.at(2.0), "{figure}");
}

#[test]
fn lookups_scale_over_both_sockets_and_few_updates_flatten_the_curve() {
    agrees(&made("tle-4"));
}

#[test]
fn aborts_rise_with_the_first_threads_of_the_second_socket_and_are_conflicts() {
    agrees(&made("tle-6"));
}

#[test]
fn the_leaf_oriented_tree_scales_better_than_the_balanced_one() {
    agrees(&made("tle-8"));
}

#[test]
fn throttling_keeps_the_performance_of_one_socket_where_two_are_slower() {
    agrees(&made_in("tle-11", 200));
}

/// What the paper says of a figure in a statement that contains some words holds.
fn holds(figure: &Figure, words: &str) {
    let claim = figure.claims.iter().find(|claim| claim.paper.contains(words));
    assert!(claim.is_some_and(|claim| claim.holds), "{words}: {figure}");
}

#[test]
fn the_table_of_conflicts_is_the_published_one_and_caches_overflow_as_published() {
    agrees(&made("tsx-table-1"));
    agrees(&made("tsx-7"));
}

#[test]
fn elision_is_better_than_the_reader_writer_latch_on_a_btree_over_the_whole_range() {
    holds(&made("tsx-5"), "elision is better");
}

#[test]
fn capacity_aborts_the_delta_index_under_a_shared_l1_and_no_longer_once_it_is_tuned() {
    let figure = made("tsx-9");
    holds(&figure, "capacity aborts under the shared L1 are gone");
    holds(&figure, "take the latch with inserts alone");
}

#[test]
fn readers_of_a_latch_do_not_scale_to_a_second_socket() {
    let figure = made("tsx-3");
    holds(&figure, "readers no longer scale");
}

#[test]
fn code_misses_are_of_capacity_and_no_policy_of_replacement_helps() {
    holds(&made("migration-3"), "most misses at 32 KB are of capacity");
    holds(&made("migration-5"), "less than 6%");
}

#[test]
fn threads_that_migrate_in_teams_miss_less_code_and_more_data() {
    let figure = made("migration-8");
    for mix in ["TPC-C-like, generated", "TPC-E-like, generated"] {
        let code = figure.line(&format!("{mix}, I-MPKI"));
        let (reads, writes) =
            (figure.line(&format!("{mix}, D-MPKI, reads")), figure.line(&format!("{mix}, D-MPKI, writes")));
        assert!(code.at(1.0) < 0.6 * code.at(0.0), "{figure}");
        assert!(reads.at(1.0) + writes.at(1.0) > 1.2 * (reads.at(0.0) + writes.at(0.0)), "{figure}");
    }
}

/// One figure of each kind: sets, delegation, chance alone, traces.
#[test]
fn a_figure_is_the_same_text_again_from_its_seed_and_another_one_from_another_seed() {
    for name in ["tle-6", "tle-delegation", "tsx-7", "migration-5"] {
        let text = |seed: u64| {
            let scale = Scale { measured_us: 20, seed, ..Scale::SMALL };
            entry(name).map(|entry| (entry.make)(&scale).to_string())
        };
        assert_eq!(text(1), text(1), "{name}");
        assert_ne!(text(1), text(2), "{name}");
    }
}

#[test]
fn figures_have_names_of_their_own() {
    let mut names: Vec<&str> = entries().map(|entry| entry.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// The experiment that rules out that misses abort (tle-multisocket, section 3.2): one thread reads every third line of an array
/// that no cache holds, each in a transaction of its own.
#[test]
fn a_miss_of_all_caches_aborts_no_transaction() {
    let mut config = MachineConfig::X5_2;
    config.l3 = CacheShape::kib(512, 16);
    let simulation = Simulation::new(config, 1);
    let reads = 20_000;
    let first = simulation.allocate(reads * 24);
    simulation.run(&[0], |thread| async move {
        for read in 0..reads {
            thread.begin().await?;
            // The interrupts that come to this thread too abort a few of them.
            if thread.load(first + read * 24).await.is_ok() {
                let _interrupted = thread.commit().await;
            }
        }
        Ok(())
    });
    let counters = simulation.counters();
    assert!(counters.memory >= reads && counters.aborts_in_all() < 20, "{counters:?}");
}
