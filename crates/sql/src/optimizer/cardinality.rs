//! How many rows the join of some relations of a region has, whatever the order in which they are joined.
//!
//! ```text
//! rows of all relations  x  share of pairs with equal keys, by class  x  shares of conditions  x  shares that reducers leave
//! ```
//!
//! A class of `k` equal columns with domains `d1 <= ... <= dk` lets `1 / (d2 * ... * dk)` of all combinations pass. Two relations
//! with several classes in common are joined by a key of several columns, which has no more values than each of them has rows.
use super::estimate::share_of_pairs;
use super::region::{Region, Set};

/// Estimates of the joins of a region.
pub(super) struct Cardinality<'r> {
    region: &'r Region,
    /// by class: its relations, each with the domain of its column
    classes: Vec<Vec<(usize, f64)>>,
    /// pairs of relations with several classes in common, and by how much more rows than by each class alone they have
    wider: Vec<(Set, f64)>,
}

impl<'r> Cardinality<'r> {
    pub(super) fn of(region: &'r Region) -> Cardinality<'r> {
        let mut classes: Vec<Vec<(usize, f64)>> = vec![Vec::new(); region.is_transitive.len()];
        for equal in &region.equals {
            for side in &equal.sides {
                let class = &mut classes[equal.class];
                if !class.iter().any(|(relation, _)| *relation == side.relation) {
                    class.push((side.relation, side.domain));
                }
            }
        }
        classes.iter_mut().for_each(|class| class.sort_by(|one, other| one.1.total_cmp(&other.1)));
        let mut cardinality = Cardinality { region, classes, wider: Vec::new() };
        let count = region.relations.len();
        let pairs = (0..count).flat_map(|left| (left + 1..count).map(move |right| (left, right)));
        let wider = pairs.filter_map(|(left, right)| cardinality.wider_pair(left, right)).collect();
        cardinality.wider = wider;
        cardinality
    }

    fn wider_pair(&self, left: usize, right: usize) -> Option<(Set, f64)> {
        let domain = |class: &[(usize, f64)], of: usize| class.iter().find(|(at, _)| *at == of).map(|(_, all)| *all);
        let shared: Vec<(f64, f64)> =
            self.classes.iter().filter_map(|class| domain(class, left).zip(domain(class, right))).collect();
        if shared.len() < 2 {
            return None;
        }
        let (of_left, of_right): (Vec<f64>, Vec<f64>) = shared.iter().copied().unzip();
        let (left_side, right_side) = (&self.region.relations[left].estimate, &self.region.relations[right].estimate);
        let together = share_of_pairs((left_side, &of_left), (right_side, &of_right));
        let apart: f64 = shared.iter().map(|(left, right)| 1.0 / left.max(*right)).product();
        Some((1 << left | 1 << right, (together / apart).max(1.0)))
    }

    /// About how many rows the join of these relations has.
    pub(super) fn rows(&self, set: Set) -> f64 {
        let mut rows = 1.0;
        for (at, relation) in self.region.relations.iter().enumerate() {
            if set & (1 << at) != 0 {
                rows *= relation.reducer.as_ref().map_or(relation.estimate.rows, |reducer| reducer.share);
            }
        }
        for class in &self.classes {
            // The first of those that are there has the smallest domain.
            let there = class.iter().filter(|(relation, _)| set & (1 << relation) != 0).skip(1);
            there.for_each(|(_, domain)| rows /= domain);
        }
        for (pair, factor) in &self.wider {
            if set & pair == *pair {
                rows *= factor;
            }
        }
        for condition in &self.region.conditions {
            if condition.needs & set == condition.needs {
                rows *= condition.share;
            }
        }
        rows.max(1.0)
    }
}
