//! How many cache lines a lookup in the Delta Storage Index touches, original against tuned: tsx-index, sections 5.1.1 and
//! 5.1.2, which find 93 against 47 on average (213 against 53 at worst) with 20 million even numbers.
//!
//! Lines are counted from the addresses that a lookup reads, each once. The paper's bound counts nodes as a whole (6 lines
//! for an inner node, 3 for a leaf) and a line for each id; so there is a figure by that rule as well.
use index::{DeltaForm, DeltaIndex, NodeSearch};
use sync::SpinLatch;

use super::{Bench, count_name};
use crate::LabError;
use crate::figures::Figure;
use crate::workload::{Order, PickedKeys, Random};

/// Lines of an inner node and of a leaf in the paper's formula.
const INNER_LINES: usize = 6;
const LEAF_LINES: usize = 3;

/// Lookups that have their cache lines counted.
const LOOKUPS: usize = 20_000;

/// The cache lines that many lookups have touched.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Lines {
    nodes: f64,
    dictionary: f64,
    all: f64,
    most: f64,
    /// With nodes as a whole.
    by_formula: f64,
}

impl Lines {
    fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("lines", self.all),
            ("of nodes", self.nodes),
            ("of dictionaries", self.dictionary),
            ("most lines", self.most),
            ("lines, nodes as a whole", self.by_formula),
        ]
    }
}

/// Counts the lines of both forms, loaded in ascending order and in none.
pub(super) fn lines(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    for &count in &bench.args.keys.clone() {
        for is_shuffled in [false, true] {
            let order = if is_shuffled { "at random" } else { "in order" };
            let what = format!("delta index, {} values loaded {order}", count_name(count));
            bench.progress.start(&what, 2);
            let of_form = |search| {
                let index = index_of(count, is_shuffled, search)?;
                let lines = count_lines(&index, count, LOOKUPS.min(count as usize));
                bench.progress.advance(1);
                lines
            };
            let (original, tuned) = (of_form(NodeSearch::Linear)?, of_form(NodeSearch::Binary)?);
            bench.progress.finish(&what);
            for ((metric, tuned), (_, original)) in tuned.named().into_iter().zip(original.named()) {
                let figure = Figure::amount(&what, metric, "a lookup", &[tuned]);
                bench.report.push(figure.beside("original form", &[original]))?;
            }
        }
    }
    Ok(())
}

/// An index of the first even numbers.
fn index_of(count: u32, is_shuffled: bool, search: NodeSearch) -> Result<DeltaIndex<u64, SpinLatch>, LabError> {
    let index = DeltaIndex::new(DeltaForm { search, dictionary_count: 1 });
    let mut numbers: Vec<u32> = (0..count).collect();
    if is_shuffled {
        let mut random = Random::new(1);
        (1..count).rev().for_each(|at| numbers.swap(at as usize, random.below(at + 1) as usize));
    }
    for number in numbers {
        index.encode(2 * u64::from(number)).map_err(|error| LabError::Failed(error.to_string()))?;
    }
    Ok(index)
}

fn count_lines(index: &DeltaIndex<u64, SpinLatch>, count: u32, lookups: usize) -> Result<Lines, LabError> {
    let whole_nodes = INNER_LINES * (index.height() - 1) + LEAF_LINES;
    let mut sum = Lines::default();
    for number in PickedKeys::new(Order::Dense, count, lookups, 1).keys {
        let (found, footprint) = index.footprint(2 * number);
        if found.and_then(|id| index.value(id)) != Some(2 * number) {
            return Err(LabError::Failed(format!("the delta index has lost {}", 2 * number)));
        }
        sum.nodes += footprint.node_lines as f64;
        sum.dictionary += footprint.dictionary_lines as f64;
        sum.all += footprint.lines() as f64;
        sum.most = sum.most.max(footprint.lines() as f64);
        sum.by_formula += (whole_nodes + footprint.dictionary_lines) as f64;
    }
    let mean = |sum: f64| sum / lookups as f64;
    Ok(Lines {
        nodes: mean(sum.nodes),
        dictionary: mean(sum.dictionary),
        all: mean(sum.all),
        by_formula: mean(sum.by_formula),
        ..sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tuned_search_touches_fewer_lines_than_the_original_however_the_index_was_loaded() {
        for is_shuffled in [false, true] {
            let lines_with =
                |search| count_lines(&index_of(20_000, is_shuffled, search).unwrap(), 20_000, 500).unwrap();
            let (original, tuned) = (lines_with(NodeSearch::Linear), lines_with(NodeSearch::Binary));
            assert!(tuned.all < 0.75 * original.all, "{tuned:?} {original:?}");
            assert!(tuned.most < original.most && original.all <= original.by_formula);
        }
    }
}
