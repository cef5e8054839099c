//! How many cache lines a lookup in the Delta Storage Index touches, original against tuned: tsx-index, sections 5.1.1
//! and 5.1.2, which find 93 against 47 on average (213 against 53 at worst) with 20 million even numbers.
//!
//! `cargo run --release -p index --example delta_footprint -- 20000000`
//!
//! Lines are counted from the addresses that a lookup reads, each once. The paper's bound counts nodes as a whole (6 lines
//! for an inner node, 3 for a leaf) and a line for each id; so there is a column for the average by that rule as well.
use index::{DeltaForm, DeltaIndex, NodeSearch};
use sync::SpinLatch;

/// Lines of an inner node and of a leaf in the paper's formula.
const INNER_LINES: usize = 6;
const LEAF_LINES: usize = 3;

/// In which order the numbers are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Ascending,
    Shuffled,
}

/// What many lookups have touched.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Lines {
    nodes: f64,
    dictionary: f64,
    lines: f64,
    lines_max: usize,
    /// With nodes as a whole.
    by_formula: f64,
}

/// An index of the even numbers below twice `count`.
fn index_of(count: u64, load: Load, form: DeltaForm) -> DeltaIndex<u64, SpinLatch> {
    let index = DeltaIndex::new(form);
    for at in 0..count {
        let number = if load == Load::Ascending { at } else { scrambled(at, count) };
        index.encode(2 * number).expect("there are ids left");
    }
    index
}

/// The numbers below `count` in an order without locality: a bijection on the next power of two, walked until it is below.
fn scrambled(index: u64, count: u64) -> u64 {
    let bits = (u64::BITS - (count - 1).leading_zeros()).max(2);
    let mask = (1u64 << bits) - 1;
    let mut number = index;
    loop {
        for multiplier in [0x9E37_79B9_7F4A_7C15u64, 0xBF58_476D_1CE4_E5B9] {
            number = number.wrapping_mul(multiplier) & mask;
            number ^= number >> (bits / 2);
        }
        if number < count {
            return number;
        }
    }
}

fn count_lines(index: &DeltaIndex<u64, SpinLatch>, count: u64, lookups: u64) -> Lines {
    let whole_nodes = INNER_LINES * (index.height() - 1) + LEAF_LINES;
    let mut sum = Lines::default();
    for at in 0..lookups {
        let number = scrambled(at * (count / lookups).max(1) % count, count);
        let (found, footprint) = index.footprint(2 * number);
        assert_eq!(found.and_then(|id| index.value(id)), Some(2 * number));
        sum.nodes += footprint.node_lines as f64;
        sum.dictionary += footprint.dictionary_lines as f64;
        sum.lines += footprint.lines() as f64;
        sum.lines_max = sum.lines_max.max(footprint.lines());
        sum.by_formula += (whole_nodes + footprint.dictionary_lines) as f64;
    }
    let mean = |sum: f64| sum / lookups as f64;
    Lines {
        nodes: mean(sum.nodes),
        dictionary: mean(sum.dictionary),
        lines: mean(sum.lines),
        by_formula: mean(sum.by_formula),
        ..sum
    }
}

fn table(count: u64, lookups: u64) -> Vec<String> {
    let mut rows = vec![
        "| values | loaded | search | height | node lines | dictionary lines | all | most | whole nodes |".to_string(),
        "|---|---|---|---|---|---|---|---|---|".to_string(),
    ];
    for load in [Load::Ascending, Load::Shuffled] {
        for search in [NodeSearch::Linear, NodeSearch::Binary] {
            let index = index_of(count, load, DeltaForm { search, dictionary_count: 1 });
            let lines = count_lines(&index, count, lookups);
            rows.push(format!(
                "| {count} | {load:?} | {search:?} | {} | {:.1} | {:.1} | {:.1} | {} | {:.1} |",
                index.height(),
                lines.nodes,
                lines.dictionary,
                lines.lines,
                lines.lines_max,
                lines.by_formula
            ));
        }
    }
    rows
}

fn main() {
    let count = std::env::args().nth(1).map_or(1_000_000, |count| count.parse().expect("a number of values"));
    table(count, 20_000.min(count)).iter().for_each(|row| println!("{row}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_without_locality_has_every_number_once() {
        for count in [1, 2, 3, 1_000, 4_097] {
            let mut numbers: Vec<u64> = (0..count).map(|index| scrambled(index, count)).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count), "{count}");
        }
    }

    #[test]
    fn the_tuned_search_touches_fewer_lines_than_the_original_however_the_index_was_loaded() {
        for load in [Load::Ascending, Load::Shuffled] {
            let lines_with = |search| {
                let index = index_of(20_000, load, DeltaForm { search, dictionary_count: 1 });
                count_lines(&index, 20_000, 500)
            };
            let (original, tuned) = (lines_with(NodeSearch::Linear), lines_with(NodeSearch::Binary));
            assert!(tuned.lines < 0.75 * original.lines, "{load:?}: {tuned:?} {original:?}");
            assert!(tuned.lines_max < original.lines_max && original.lines <= original.by_formula);
        }
    }
}
