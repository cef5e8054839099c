//! The cheapest order of joins.
//!
//! Up to [`EXACT_MAX`] relations all trees are looked at, bushy ones too, that join nothing without a condition: dynamic programming
//! over subsets (Moerkotte and Neumann, VLDB 2006, as DPsub), where a subset comes after all of its own subsets:
//!
//! ```text
//! best of {a, b, c}  =  the cheapest of   best {a}    joined with best {b, c}
//!                                         best {b}    joined with best {a, c}      where both are there, and joined
//!                                         best {c}    joined with best {a, b}
//! ```
//!
//! Of more relations the two are joined, again and again, whose join has the fewest rows. A relation that only takes rows away
//! (a semi or anti join) is joined by itself to a subset that has all that it asks for. What no condition ties together is
//! joined last, small parts first. The search goes by numbers alone: the same numbers give the same tree.
use std::collections::HashMap;

use costs::{CostModel, Side};

use super::region::Set;

/// So many relations are ordered exactly; one more takes three times as long.
const EXACT_MAX: usize = 11;

/// What is to be joined.
pub(super) struct Problem<'a> {
    /// by relation: those it is joined with by a condition
    pub(super) neighbours: &'a [Set],
    /// by relation: what it has to be joined to, if it only takes rows away from that
    pub(super) needs: &'a [Option<Set>],
    /// by relation: its rows
    pub(super) alone: &'a [f64],
    /// by relation: the bytes of a row
    pub(super) widths: &'a [f64],
    /// what a join costs
    pub(super) model: &'a CostModel,
    /// about how many rows a join has
    pub(super) rows: &'a dyn Fn(Set) -> f64,
}

/// An order of joins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Relation(usize),
    Join(Box<Tree>, Box<Tree>),
}

/// The best order of all relations, `None` if there is none.
pub(super) fn best_tree(problem: &Problem<'_>) -> Option<Tree> {
    let mut parts = Vec::new();
    for part in problem.parts() {
        let tree = match part.count_ones() as usize <= EXACT_MAX {
            true => problem.exact(part)?,
            false => problem.greedy(part)?,
        };
        parts.push(((problem.rows)(part), tree));
    }
    parts.sort_by(|one, other| one.0.total_cmp(&other.0));
    parts.into_iter().map(|(_, tree)| tree).reduce(joined)
}

fn joined(left: Tree, right: Tree) -> Tree {
    Tree::Join(Box::new(left), Box::new(right))
}

fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..Set::BITS as usize).filter(move |at| set & (1 << at) != 0)
}

/// The tree of a subset of these relations, put together from the left parts that the search has found.
fn tree_of(subset: usize, relations: &[usize], left_of: &dyn Fn(usize) -> Option<usize>) -> Option<Tree> {
    if subset.is_power_of_two() {
        return Some(Tree::Relation(relations[subset.trailing_zeros() as usize]));
    }
    let left = left_of(subset)?;
    Some(joined(tree_of(left, relations, left_of)?, tree_of(subset ^ left, relations, left_of)?))
}

impl Problem<'_> {
    /// The relations by what ties them together.
    fn parts(&self) -> Vec<Set> {
        let mut parts: Vec<Set> = Vec::new();
        for at in 0..self.neighbours.len() {
            let mut part = 1 << at | self.neighbours[at];
            parts.retain(|other| {
                let is_tied = other & part != 0;
                if is_tied {
                    part |= other;
                }
                !is_tied
            });
            parts.push(part);
        }
        parts
    }

    /// What a join costs beside its inputs; `None` if the two can't be joined.
    fn cost(&self, left: (Set, f64), right: (Set, f64), rows: f64) -> Option<f64> {
        let needs = |set: Set| if set.count_ones() == 1 { self.needs[set.trailing_zeros() as usize] } else { None };
        let is_allowed = match (needs(left.0), needs(right.0)) {
            (Some(_), Some(_)) => false,
            (Some(needs), None) => needs & right.0 == needs,
            (None, Some(needs)) => needs & left.0 == needs,
            (None, None) => members(left.0).any(|at| self.neighbours[at] & right.0 != 0),
        };
        is_allowed.then(|| {
            let side = |of: (Set, f64)| Side { rows: of.1, width: self.width(of.0) };
            let (inner, outer) = if left.1 <= right.1 { (left, right) } else { (right, left) };
            self.model.best_join(side(inner), side(outer), rows).0
        })
    }

    /// The bytes of a row of a join: relations that only take rows away add none.
    fn width(&self, set: Set) -> f64 {
        let adds = |at: &usize| set.count_ones() == 1 || self.needs[*at].is_none();
        members(set).filter(adds).map(|at| self.widths[at]).sum()
    }

    fn exact(&self, part: Set) -> Option<Tree> {
        let relations: Vec<usize> = members(part).collect();
        let spread = |packed: usize| -> Set {
            relations.iter().enumerate().filter(|(at, _)| packed & (1 << at) != 0).fold(0, |set, (_, of)| set | 1 << of)
        };
        /// The best tree of a subset: what it costs, its rows, and its left part.
        #[derive(Clone, Copy)]
        struct Best {
            set: Set,
            cost: f64,
            rows: f64,
            left: usize,
        }
        let whole = (1usize << relations.len()) - 1;
        let mut best: Vec<Option<Best>> = vec![None; whole + 1];
        for subset in 1..=whole {
            let set = spread(subset);
            if subset.is_power_of_two() {
                best[subset] = Some(Best { set, cost: 0.0, rows: self.alone[set.trailing_zeros() as usize], left: 0 });
                continue;
            }
            let rows = (self.rows)(set);
            let lowest = subset & subset.wrapping_neg();
            let mut found: Option<Best> = None;
            // Each split once: the left part has the lowest relation.
            let mut left = (subset - 1) & subset;
            while left > 0 {
                if left & lowest != 0
                    && let (Some(one), Some(other)) = (best[left], best[subset ^ left])
                    && let Some(cost) = self.cost((one.set, one.rows), (other.set, other.rows), rows)
                {
                    let cost = cost + one.cost + other.cost;
                    if found.is_none_or(|found| cost < found.cost) {
                        found = Some(Best { set, cost, rows, left });
                    }
                }
                left = (left - 1) & subset;
            }
            best[subset] = found;
        }
        tree_of(whole, &relations, &|subset| best[subset].map(|best| best.left))
    }

    fn greedy(&self, part: Set) -> Option<Tree> {
        let mut trees: Vec<(Set, f64, Tree)> =
            members(part).map(|at| (1 << at, self.alone[at], Tree::Relation(at))).collect();
        let mut known: HashMap<Set, f64> = HashMap::new();
        while trees.len() > 1 {
            let mut found: Option<(f64, usize, usize)> = None;
            for one in 0..trees.len() {
                for other in one + 1..trees.len() {
                    let set = trees[one].0 | trees[other].0;
                    let (left, right) = ((trees[one].0, trees[one].1), (trees[other].0, trees[other].1));
                    if self.cost(left, right, 0.0).is_none() {
                        continue;
                    }
                    let rows = *known.entry(set).or_insert_with(|| (self.rows)(set));
                    if found.is_none_or(|found| rows < found.0) {
                        found = Some((rows, one, other));
                    }
                }
            }
            let (rows, one, other) = found?;
            let right = trees.remove(other);
            let left = trees.remove(one);
            trees.push((left.0 | right.0, rows, joined(left.2, right.2)));
        }
        trees.pop().map(|(_, _, tree)| tree)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    impl Tree {
        fn set(&self) -> Set {
            match self {
                Tree::Relation(at) => 1 << at,
                Tree::Join(left, right) => left.set() | right.set(),
            }
        }
    }

    /// A random problem: rows of each relation, shares of its edges, relations that take rows away.
    struct Sample {
        neighbours: Vec<Set>,
        needs: Vec<Option<Set>>,
        alone: Vec<f64>,
        model: CostModel,
        edges: Vec<(Set, f64)>,
    }

    impl Sample {
        fn of(seed: u64, count: usize) -> Sample {
            let mut random = StdRng::seed_from_u64(seed);
            let (mut neighbours, mut needs, mut edges) = (vec![0; count], vec![None; count], Vec::new());
            let alone: Vec<f64> = (0..count).map(|_| f64::from(random.random_range(1..100_000))).collect();
            let reducers = random.random_range(0..=count / 3);
            for at in 1..count {
                let inner = at.min(count - reducers);
                let one = random.random_range(0..inner);
                let mut tied: Set = 1 << one;
                if random.random_range(0..3) == 0 {
                    tied |= 1 << random.random_range(0..inner);
                }
                if at >= count - reducers {
                    needs[at] = Some(tied);
                }
                neighbours[at] |= tied;
                members(tied).for_each(|of| neighbours[of] |= 1 << at);
                edges.push((tied | 1 << at, 10f64.powi(-random.random_range(0..6))));
            }
            // With little memory, and with any.
            let operator_pages = (seed.is_multiple_of(2)).then_some(20.0);
            Sample { neighbours, needs, alone, model: CostModel { operator_pages, ..CostModel::default() }, edges }
        }

        fn rows(&self, set: Set) -> f64 {
            let rows: f64 =
                members(set).map(|at| if self.needs[at].is_some() { 1.0 } else { self.alone[at] }).product();
            let shares = self.edges.iter().filter(|(edge, _)| edge & set == *edge).map(|(_, share)| share);
            (rows * shares.product::<f64>()).max(1.0)
        }

        fn solved<T>(&self, solve: impl Fn(&Problem<'_>) -> T) -> T {
            let rows = |set: Set| self.rows(set);
            let (widths, model) = (vec![16.0; self.alone.len()], self.model);
            let (neighbours, needs, alone) = (&self.neighbours, &self.needs, &self.alone);
            solve(&Problem { neighbours, needs, alone, widths: &widths, model: &model, rows: &rows })
        }

        /// What a tree costs, if it is allowed.
        fn cost(&self, problem: &Problem<'_>, tree: &Tree) -> Option<(f64, f64)> {
            let Tree::Join(left, right) = tree else {
                return Some((0.0, self.alone[tree.set().trailing_zeros() as usize]));
            };
            let (one, other) = (self.cost(problem, left)?, self.cost(problem, right)?);
            let rows = self.rows(tree.set());
            let own = problem.cost((left.set(), one.1), (right.set(), other.1), rows)?;
            Some((one.0 + other.0 + own, rows))
        }

        /// The least cost of all allowed trees over a set, by trying each.
        fn least(&self, problem: &Problem<'_>, set: Set) -> Option<(f64, f64)> {
            if set.count_ones() == 1 {
                return Some((0.0, self.alone[set.trailing_zeros() as usize]));
            }
            let (mut least, mut left) = (None::<(f64, f64)>, (set - 1) & set);
            let rows = self.rows(set);
            while left > 0 {
                let right = set ^ left;
                if let (Some(one), Some(other)) = (self.least(problem, left), self.least(problem, right))
                    && let Some(own) = problem.cost((left, one.1), (right, other.1), rows)
                    && least.is_none_or(|least| one.0 + other.0 + own < least.0)
                {
                    least = Some((one.0 + other.0 + own, rows));
                }
                left = (left - 1) & set;
            }
            least
        }
    }

    #[test]
    fn no_tree_is_cheaper_than_the_one_found() {
        for seed in 0..150 {
            let count = 2 + seed as usize % 5;
            let sample = Sample::of(seed, count);
            let whole = (1 << count) - 1;
            sample.solved(|problem| {
                let tree = best_tree(problem);
                let least = sample.least(problem, whole);
                let found = tree.as_ref().and_then(|tree| sample.cost(problem, tree));
                assert_eq!(found.is_some(), least.is_some(), "seed {seed}");
                let (Some(found), Some(least)) = (found, least) else { return };
                assert!(found.0 <= least.0 * (1.0 + 1e-9), "seed {seed}: {found:?}, not {least:?}");
                assert_eq!(tree.unwrap().set(), whole, "seed {seed}");
            });
        }
    }

    #[test]
    fn trees_of_many_relations_are_allowed_and_the_same_each_time() {
        for seed in 0..50 {
            let sample = Sample::of(seed, 40);
            let one = sample.solved(best_tree);
            assert_eq!(one, sample.solved(best_tree), "seed {seed}");
            let Some(tree) = one else { continue };
            assert_eq!(tree.set().count_ones(), 40);
            assert!(sample.solved(|problem| sample.cost(problem, &tree).is_some()), "seed {seed}");
        }
    }

    #[test]
    fn what_nothing_ties_together_is_joined_last() {
        let rows = |set: Set| members(set).map(|at| [1_000.0, 10.0, 100.0][at]).product::<f64>();
        let alone = [1_000.0, 10.0, 100.0];
        let (widths, model) = ([8.0; 3], CostModel::default());
        let neighbours = &[0b100, 0, 0b001];
        let problem =
            Problem { neighbours, needs: &[None; 3], alone: &alone, widths: &widths, model: &model, rows: &rows };
        let tree = best_tree(&problem).unwrap();
        let tied = joined(Tree::Relation(0), Tree::Relation(2));
        assert_eq!(tree, joined(Tree::Relation(1), tied));
    }
}
