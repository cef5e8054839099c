//! Delegation to a server on each socket, beside TLE (tle-multisocket, section 4, which describes it without a figure).

use std::cell::Cell;

use super::figure::{Claim, Figure, Series};
use super::plan::{Entry, Line, Scale, Structure, run};
use crate::delegation::Mailboxes;
use crate::machine::{Aborted, Core, MachineConfig, Pinning};
use crate::memory::Memory;
use crate::random::Random;
use crate::simulation::{SimulatedThread, Simulation, complete};
use crate::structures::{AvlTree, Pool, Set};

pub(super) const ENTRIES: &[Entry] =
    &[Entry { name: "tle-delegation", about: "Delegation to a server on each socket", make: delegation }];

const KEYS: u64 = 2_048;
const SERVERS: u64 = 2;

/// Million operations a second of so many threads, two of which serve: each the half of the keys that its tree has.
fn rate(scale: &Scale, threads: usize) -> f64 {
    let config = MachineConfig::X5_2;
    let simulation = Simulation::new(config, scale.seed);
    let clients = threads as u64 - SERVERS;
    let boxes = Mailboxes::at(simulation.allocate(Mailboxes::words(SERVERS, clients)), clients);
    let trees = [(); SERVERS as usize].map(|()| AvlTree::at(simulation.allocate(AvlTree::WORDS)));
    let pools = [(); SERVERS as usize].map(|()| Pool::of(&simulation, AvlTree::NODE_WORDS));
    let mut keys: Vec<u64> = (0..KEYS).collect();
    Random::new(scale.seed).shuffle(&mut keys);
    for key in &keys[..KEYS as usize / 2] {
        let half = (key * SERVERS / KEYS) as usize;
        let added = complete(trees[half].insert(&simulation.unclocked(), *key, &pools[half]));
        debug_assert_eq!(added, Ok(true), "keys differ, and nothing aborts");
        pools[half].settle();
    }
    let (begin, end) = (config.cycles(20_000), config.cycles((20 + scale.measured_us) * 1_000));
    let done = Cell::new(0u64);
    simulation.run(&places(&config, threads), |thread| {
        let (trees, pools, done) = (&trees, &pools, &done);
        async move {
            let number = thread.number() as u64;
            if number < SERVERS {
                let (tree, pool) = (&trees[number as usize], &pools[number as usize]);
                return boxes.serve(&thread, number, async |request| serve(&thread, tree, pool, request).await).await;
            }
            while thread.now() < end {
                let key = thread.below(KEYS);
                let request = key * 2 + thread.below(2) + 1;
                boxes.ask(&thread, key * SERVERS / KEYS, number - SERVERS, request).await?;
                if (begin..end).contains(&thread.now()) {
                    done.set(done.get() + 1);
                }
                thread.compute(30).await?;
            }
            boxes.end(&thread, SERVERS).await
        }
    });
    done.get() as f64 / scale.measured_us as f64
}

/// A server on each socket, then clients on both in turn.
fn places(config: &MachineConfig, threads: usize) -> Vec<Core> {
    Pinning::Alternate.cores(config, threads)
}

/// An update that a client asked for.
async fn serve(thread: &SimulatedThread, tree: &AvlTree, pool: &Pool, request: u64) -> Result<u64, Aborted> {
    let key = (request - 1) / 2;
    let has_changed = match (request - 1) % 2 {
        0 => tree.insert(thread, key, pool).await?,
        _ => tree.remove(thread, key, pool).await?,
    };
    pool.settle();
    Ok(u64::from(has_changed))
}

fn delegation(scale: &Scale) -> Figure {
    let threads: &[usize] = if scale.is_small { &[8, 36] } else { &[4, 8, 18, 36, 54, 72] };
    let delegated = threads.iter().map(|&threads| (threads as f64, rate(scale, threads))).collect();
    let elided =
        |threads: usize| (threads as f64, run(Structure::Avl, &Line::avl(KEYS, 100).workload(scale, threads)).rate());
    let series = vec![
        Series::of("delegation", delegated),
        Series::of("TLE", threads.iter().map(|&threads| elided(threads)).collect()),
    ];
    let (most, one_socket) = (series[0].max(), series[1].at(36.0));
    let claims = vec![Claim::new(
        "the overhead of coordination is too high: delegation does not reach what elision has on one socket",
        format!("{most:.1} M/s at best, TLE {one_socket:.1} with the 36 threads of one socket"),
        most < one_socket,
    )];
    let title = "tle-multisocket, section 4: delegation, AVL tree, 100% updates, keys below 2048".to_owned();
    Figure { title, x: "threads", y: "million operations a second", series, claims }
}
