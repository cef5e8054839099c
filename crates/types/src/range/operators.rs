//! What is asked of two ranges of one type, as PostgreSQL answers it. Both must be of one kind.
use std::cmp::{max, min};

use super::{Edge, RangeFault, RangeValue, Side};

impl RangeValue {
    /// `@>`: whether it has all values of the other one.
    pub fn contains(&self, other: &RangeValue) -> bool {
        match (self.edges(), other.edges()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(others)) => own.0 <= others.0 && others.1 <= own.1,
        }
    }

    /// `@>` of a value: whether it is one of the range's.
    pub fn contains_value(&self, value: i128) -> bool {
        self.edges().is_some_and(|(lower, upper)| (lower..=upper).contains(&Edge::At(value, Side::On)))
    }

    /// `&&`: whether they have a value in common.
    pub fn overlaps(&self, other: &RangeValue) -> bool {
        both(self, other, |own, others| own.0 <= others.1 && others.0 <= own.1)
    }

    /// `<<`: whether all its values are less than those of the other one.
    pub fn is_before(&self, other: &RangeValue) -> bool {
        both(self, other, |own, others| own.1 < others.0)
    }

    /// `>>`: whether all its values are greater than those of the other one.
    pub fn is_after(&self, other: &RangeValue) -> bool {
        other.is_before(self)
    }

    /// `&<`: whether it ends where the other one does, or before.
    pub fn ends_within(&self, other: &RangeValue) -> bool {
        both(self, other, |own, others| own.1 <= others.1)
    }

    /// `&>`: whether it begins where the other one does, or behind.
    pub fn begins_within(&self, other: &RangeValue) -> bool {
        both(self, other, |own, others| own.0 >= others.0)
    }

    /// `-|-`: whether one ends where the other begins, with nothing between them and nothing in both.
    pub fn is_adjacent(&self, other: &RangeValue) -> bool {
        both(self, other, |own, others| meet(own.1, others.0) || meet(others.1, own.0))
    }

    /// `+`: the values of both.
    ///
    /// # Errors
    /// [`RangeFault::UnionGap`] if values between them are of neither.
    pub fn union(&self, other: &RangeValue) -> Result<RangeValue, RangeFault> {
        let has_gap = !self.is_empty() && !other.is_empty() && !self.overlaps(other) && !self.is_adjacent(other);
        if has_gap { Err(RangeFault::UnionGap) } else { self.merge(other) }
    }

    /// The smallest range that has the values of both.
    ///
    /// # Errors
    /// None for ranges that are in their one form.
    pub fn merge(&self, other: &RangeValue) -> Result<RangeValue, RangeFault> {
        match (self.edges(), other.edges()) {
            (_, None) => Ok(*self),
            (None, _) => Ok(*other),
            (Some(own), Some(others)) => RangeValue::between(self.kind(), min(own.0, others.0), max(own.1, others.1)),
        }
    }

    /// `*`: the values that both have.
    ///
    /// # Errors
    /// None for ranges that are in their one form.
    pub fn intersection(&self, other: &RangeValue) -> Result<RangeValue, RangeFault> {
        match (self.edges(), other.edges()) {
            (Some(own), Some(others)) => RangeValue::between(self.kind(), max(own.0, others.0), min(own.1, others.1)),
            _ => Ok(RangeValue::empty(self.kind())),
        }
    }

    /// `-`: the values that the other one has not.
    ///
    /// # Errors
    /// [`RangeFault::DifferenceGap`] if the other one is in the midst of it.
    pub fn difference(&self, other: &RangeValue) -> Result<RangeValue, RangeFault> {
        let (Some((lower, upper)), Some((from, to))) = (self.edges(), other.edges()) else { return Ok(*self) };
        if lower < from && upper > to {
            return Err(RangeFault::DifferenceGap);
        }
        if !self.overlaps(other) {
            return Ok(*self);
        }
        match (lower < from, upper > to) {
            (true, _) => RangeValue::between(self.kind(), lower, ending_before(from)),
            (false, true) => RangeValue::between(self.kind(), beginning_behind(to), upper),
            (false, false) => Ok(RangeValue::empty(self.kind())),
        }
    }
}

/// What is asked of two ranges that have values; false of an empty one.
fn both(left: &RangeValue, right: &RangeValue, ask: impl Fn((Edge, Edge), (Edge, Edge)) -> bool) -> bool {
    match (left.edges(), right.edges()) {
        (Some(left), Some(right)) => ask(left, right),
        _ => false,
    }
}

/// Whether an upper edge and a lower one leave nothing between them, and share nothing.
fn meet(upper: Edge, lower: Edge) -> bool {
    match (upper, lower) {
        (Edge::At(end, side), Edge::At(start, other)) => {
            end == start && matches!((side, other), (Side::On, Side::Behind) | (Side::Before, Side::On))
        }
        _ => false,
    }
}

/// The upper edge of what is before a lower one.
fn ending_before(lower: Edge) -> Edge {
    match lower {
        Edge::At(value, Side::On) => Edge::At(value, Side::Before),
        Edge::At(value, _) => Edge::At(value, Side::On),
        other => other,
    }
}

/// The lower edge of what is behind an upper one.
fn beginning_behind(upper: Edge) -> Edge {
    match upper {
        Edge::At(value, Side::On) => Edge::At(value, Side::Behind),
        Edge::At(value, _) => Edge::At(value, Side::On),
        other => other,
    }
}
