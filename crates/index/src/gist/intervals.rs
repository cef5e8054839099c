//! Intervals: ranges with ends that are open, closed or infinite.
//!
//! Over numbers of which each has a next one, an open end is a closed one beside it, and an infinite end is the last number: an
//! interval is the box, of one dimension, from its first number to its last. That is exact as a set of numbers, and what
//! PostgreSQL does for `int8range` (which it brings into the form `[first, last + 1)`). For floats the set is that of the floats
//! between the ends.
//!
//! Refused are ends in the wrong order, as PostgreSQL does; a NaN; and intervals that hold no number. PostgreSQL has one value
//! `empty` for them, which overlaps nothing and lies within everything: a caller that has such values keeps them apart.
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

use super::bounds::{Bounds, BoundsQuery, Coordinate};
use super::extension::{Extension, SLOTS_MAX};
use super::rtree::{BoundsSlots, RTree};

/// An end of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End<T> {
    /// The number itself belongs to the interval.
    Closed(T),
    /// What is next to the number belongs to it.
    Open(T),
    /// There is no end on this side.
    Infinite,
}

/// Why two ends are no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalError {
    /// An end is NaN.
    NotANumber,
    /// The lower end is above the upper one.
    Inverted,
    /// No number lies between the ends.
    Empty,
}

impl fmt::Display for IntervalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IntervalError::NotANumber => "an end of a range is NaN; leave the range out, as no search can find it",
            IntervalError::Inverted => "range lower bound must be less than or equal to range upper bound",
            IntervalError::Empty => "the range is empty; keep empty ranges apart, as they overlap nothing",
        })
    }
}

impl std::error::Error for IntervalError {}

/// The numbers from a first to a last one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval<T>(Bounds<T, 1>);

impl<T: Coordinate> Interval<T> {
    /// The interval between two ends.
    ///
    /// # Errors
    /// [`IntervalError`] if an end is NaN, the lower end above the upper one, or no number between them.
    pub fn new(lower: End<T>, upper: End<T>) -> Result<Self, IntervalError> {
        let number = |end| match end {
            End::Closed(number) | End::Open(number) => Some(number),
            End::Infinite => None,
        };
        let ends = (number(lower), number(upper));
        if [ends.0, ends.1].into_iter().flatten().any(|number| !number.is_number()) {
            return Err(IntervalError::NotANumber);
        }
        if let (Some(low), Some(high)) = ends
            && low > high
        {
            return Err(IntervalError::Inverted);
        }
        let first = match lower {
            End::Closed(number) => Some(number),
            End::Open(number) => number.above(),
            End::Infinite => Some(T::LOWEST),
        };
        let last = match upper {
            End::Closed(number) => Some(number),
            End::Open(number) => number.below(),
            End::Infinite => Some(T::HIGHEST),
        };
        match (first, last) {
            (Some(first), Some(last)) if first <= last => Ok(Interval(Bounds { low: [first], high: [last] })),
            _ => Err(IntervalError::Empty),
        }
    }

    /// The interval of one number.
    ///
    /// # Errors
    /// [`IntervalError::NotANumber`] if it is NaN.
    pub fn of(number: T) -> Result<Self, IntervalError> {
        Self::new(End::Closed(number), End::Closed(number))
    }

    /// The first number.
    pub fn first(&self) -> T {
        self.0.low[0]
    }

    /// The last number.
    pub fn last(&self) -> T {
        self.0.high[0]
    }

    /// Intervals that have a number in common with this one: `&&`.
    pub fn overlapping(self) -> BoundsQuery<T, 1> {
        BoundsQuery::overlaps(self.0)
    }

    /// Intervals that contain this one: `@>`.
    pub fn containing(self) -> BoundsQuery<T, 1> {
        BoundsQuery::contains(self.0)
    }

    /// Intervals that lie within this one: `<@`.
    pub fn enclosing(self) -> BoundsQuery<T, 1> {
        BoundsQuery::within(self.0)
    }

    /// This interval: `=`.
    pub fn equal(self) -> BoundsQuery<T, 1> {
        BoundsQuery::equals(self.0)
    }

    /// Intervals that end before this one begins: `<<`.
    pub fn preceding(self) -> BoundsQuery<T, 1> {
        BoundsQuery::before(self.0, 0)
    }

    /// Intervals that begin after this one ends: `>>`.
    pub fn following(self) -> BoundsQuery<T, 1> {
        BoundsQuery::after(self.0, 0)
    }

    /// Intervals that end where this one begins, or begin where it ends, without a number between or in common: `-|-`. Two
    /// questions, as no interval answers both.
    pub fn adjacent(self) -> [BoundsQuery<T, 1>; 2] {
        let (mut before, mut after) = (self.preceding(), self.following());
        before.leaf.high.0 = before.leaf.high.1;
        before.inner.high.0 = before.leaf.high.1;
        after.leaf.low.1 = after.leaf.low.0;
        after.inner.low.1 = after.leaf.low.0;
        [before, after]
    }
}

/// The kind of keys that are intervals of numbers `T`: `i64`, `i128` (for numerics of one scale) or `f64`.
#[derive(Debug, Clone, Copy)]
pub struct Intervals<T>(PhantomData<T>);

impl<T: Coordinate> Extension for Intervals<T> {
    type Value = Interval<T>;
    type Key = Bounds<T, 1>;
    type Query = BoundsQuery<T, 1>;
    type Origin = [T; 1];
    type Slots = BoundsSlots<T, 1>;

    const DIMENSIONS: usize = 1;

    fn compress(value: &Interval<T>) -> Bounds<T, 1> {
        value.0
    }

    fn decompress(key: &Bounds<T, 1>) -> Interval<T> {
        Interval(*key)
    }

    fn consistent(key: &Bounds<T, 1>, query: &BoundsQuery<T, 1>, is_leaf: bool) -> bool {
        RTree::consistent(key, query, is_leaf)
    }

    fn union(left: &Bounds<T, 1>, right: &Bounds<T, 1>) -> Bounds<T, 1> {
        left.union(right)
    }

    fn covers(outer: &Bounds<T, 1>, inner: &Bounds<T, 1>) -> bool {
        outer.covers(inner)
    }

    fn penalty(key: &Bounds<T, 1>, new: &Bounds<T, 1>) -> (f64, f64) {
        RTree::penalty(key, new)
    }

    fn pick_split(keys: &[Bounds<T, 1>]) -> u64 {
        RTree::pick_split(keys)
    }

    fn distance(key: &Bounds<T, 1>, origin: &[T; 1]) -> f64 {
        RTree::distance(key, origin)
    }

    fn compare(dimension: usize, left: &Bounds<T, 1>, right: &Bounds<T, 1>) -> Ordering {
        RTree::compare(dimension, left, right)
    }

    fn matches(slots: &BoundsSlots<T, 1>, count: usize, query: &BoundsQuery<T, 1>, is_leaf: bool) -> u64 {
        RTree::matches(slots, count, query, is_leaf)
    }

    fn covering(slots: &BoundsSlots<T, 1>, count: usize, inner: &Bounds<T, 1>) -> u64 {
        RTree::covering(slots, count, inner)
    }

    fn choose(slots: &BoundsSlots<T, 1>, count: usize, new: &Bounds<T, 1>) -> usize {
        RTree::choose(slots, count, new)
    }

    fn distances(slots: &BoundsSlots<T, 1>, count: usize, origin: &[T; 1], distances: &mut [f64; SLOTS_MAX]) {
        RTree::distances(slots, count, origin, distances);
    }
}
