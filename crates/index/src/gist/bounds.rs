//! Boxes of one to four dimensions, and what can be asked about them.
//!
//! Coordinates are numbers of 64 bits, floating or not, or integers of 32 or 128 bits. As in PostgreSQL, a box has its edges,
//! infinite coordinates are numbers like others, and 0 equals -0; a NaN is refused, as nothing contains it.
//!
//! A question becomes two windows, one for leaves and one for inner nodes. A window bounds the low and the high ends of a key in
//! each dimension from both sides, so that every question is the same few comparisons:
//!
//! | question about key `k` and box `q` | on leaves | on inner nodes |
//! |---|---|---|
//! | overlaps: `k && q` | k.low <= q.high, k.high >= q.low | likewise |
//! | contains: `k @> q` | k.low <= q.low, k.high >= q.high | likewise |
//! | within: `k <@ q` | k.low >= q.low, k.high <= q.high | overlaps |
//! | equals: `k ~= q` | k.low = q.low, k.high = q.high | contains |
//! | before, in dimension d: `k << q` | k.high < q.low | k.low < q.low |
//! | after, in dimension d: `k >> q` | k.low > q.high | k.high > q.high |
use std::fmt;

/// A number that a box has as coordinate.
pub trait Coordinate: Copy + PartialOrd + Send + Sync + fmt::Debug + 'static {
    /// No number is below.
    const LOWEST: Self;
    /// No number is above.
    const HIGHEST: Self;

    /// Whether it has a place in the order of numbers.
    fn is_number(self) -> bool;
    /// The number as a float; of two numbers the greater one's is not less.
    fn to_f64(self) -> f64;
    /// A number in the middle of two, as nearly as it matters for sorting.
    fn middle(low: Self, high: Self) -> Self;
    /// An order of all values.
    fn order(self, other: Self) -> std::cmp::Ordering;
    /// The next number below.
    fn below(self) -> Option<Self>;
    /// The next number above.
    fn above(self) -> Option<Self>;
}

macro_rules! integer {
    ($($t:ty),*) => {
        $(impl Coordinate for $t {
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            #[inline]
            fn is_number(self) -> bool {
                true
            }
            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline]
            fn middle(low: Self, high: Self) -> Self {
                (low >> 1) + (high >> 1)
            }
            #[inline]
            fn order(self, other: Self) -> std::cmp::Ordering {
                self.cmp(&other)
            }
            #[inline]
            fn below(self) -> Option<Self> {
                self.checked_sub(1)
            }
            #[inline]
            fn above(self) -> Option<Self> {
                self.checked_add(1)
            }
        })*
    };
}
integer!(i32, i64, i128);

impl Coordinate for f64 {
    const LOWEST: Self = f64::NEG_INFINITY;
    const HIGHEST: Self = f64::INFINITY;

    #[inline]
    fn is_number(self) -> bool {
        !self.is_nan()
    }
    #[inline]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline]
    fn middle(low: Self, high: Self) -> Self {
        low * 0.5 + high * 0.5
    }
    #[inline]
    fn order(self, other: Self) -> std::cmp::Ordering {
        self.total_cmp(&other)
    }
    #[inline]
    fn below(self) -> Option<Self> {
        (self > f64::NEG_INFINITY).then(|| self.next_down())
    }
    #[inline]
    fn above(self) -> Option<Self> {
        (self < f64::INFINITY).then(|| self.next_up())
    }
}

/// Why coordinates are no box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundsError {
    /// A coordinate of this dimension, counted from 0, is NaN.
    NotANumber {
        /// The dimension.
        dimension: usize,
    },
    /// The low end of this dimension, counted from 0, is above its high end.
    Inverted {
        /// The dimension.
        dimension: usize,
    },
    /// There are other numbers of coordinates than the index has dimensions.
    Dimensions {
        /// How many low and high ends there are.
        given: (usize, usize),
        /// How many the index has.
        expected: usize,
    },
}

impl fmt::Display for BoundsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoundsError::NotANumber { dimension } => {
                write!(
                    f,
                    "a coordinate of dimension {dimension} is NaN; leave such a box out, as no search can find it"
                )
            }
            BoundsError::Inverted { dimension } => write!(
                f,
                "the low end of dimension {dimension} is above its high end; exchange them, or make the box of two corners"
            ),
            BoundsError::Dimensions { given: (low, high), expected } => write!(
                f,
                "a box has {low} low and {high} high ends, and the index {expected} dimensions; give one pair for each"
            ),
        }
    }
}

impl std::error::Error for BoundsError {}

/// A box with its edges: all points from `low` to `high` in each dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds<T, const D: usize> {
    pub(super) low: [T; D],
    pub(super) high: [T; D],
}

impl<T: Coordinate, const D: usize> Bounds<T, D> {
    /// The box from the low to the high ends.
    ///
    /// # Errors
    /// [`BoundsError`] if a coordinate is NaN, or a low end above its high end.
    pub fn new(low: [T; D], high: [T; D]) -> Result<Self, BoundsError> {
        for dimension in 0..D {
            if !low[dimension].is_number() || !high[dimension].is_number() {
                return Err(BoundsError::NotANumber { dimension });
            }
            if low[dimension] > high[dimension] {
                return Err(BoundsError::Inverted { dimension });
            }
        }
        Ok(Bounds { low, high })
    }

    /// The box between two opposite corners, in whatever order, as PostgreSQL's `box` is made.
    ///
    /// # Errors
    /// [`BoundsError::NotANumber`] if a coordinate is NaN.
    pub fn from_corners(one: [T; D], other: [T; D]) -> Result<Self, BoundsError> {
        let (mut low, mut high) = (one, other);
        for dimension in 0..D {
            if low[dimension] > high[dimension] {
                std::mem::swap(&mut low[dimension], &mut high[dimension]);
            }
        }
        Self::new(low, high)
    }

    /// The box of a point.
    ///
    /// # Errors
    /// [`BoundsError::NotANumber`] if a coordinate is NaN.
    pub fn point(at: [T; D]) -> Result<Self, BoundsError> {
        Self::new(at, at)
    }

    /// The box of coordinates whose number is known at run time only.
    ///
    /// # Errors
    /// [`BoundsError`] if there are not `D` of both, a coordinate is NaN, or a low end above its high end.
    pub fn from_slices(low: &[T], high: &[T]) -> Result<Self, BoundsError> {
        match (low.try_into(), high.try_into()) {
            (Ok(low), Ok(high)) => Self::new(low, high),
            _ => Err(BoundsError::Dimensions { given: (low.len(), high.len()), expected: D }),
        }
    }

    /// The low ends.
    pub fn low(&self) -> [T; D] {
        self.low
    }

    /// The high ends.
    pub fn high(&self) -> [T; D] {
        self.high
    }

    /// The smallest box around both.
    #[inline]
    pub(super) fn union(&self, other: &Self) -> Self {
        let mut both = *self;
        for dimension in 0..D {
            if other.low[dimension] < both.low[dimension] {
                both.low[dimension] = other.low[dimension];
            }
            if other.high[dimension] > both.high[dimension] {
                both.high[dimension] = other.high[dimension];
            }
        }
        both
    }

    /// Whether the other box lies within.
    #[inline]
    pub(super) fn covers(&self, other: &Self) -> bool {
        (0..D).all(|dimension| {
            self.low[dimension] <= other.low[dimension] && self.high[dimension] >= other.high[dimension]
        })
    }

    /// Volume, and the sum of the lengths of the sides. Infinite where a side is.
    #[inline]
    pub(super) fn size(&self) -> (f64, f64) {
        let side = |dimension: usize| {
            let side = self.high[dimension].to_f64() - self.low[dimension].to_f64();
            // A box at infinity has no length there.
            if side.is_nan() { 0.0 } else { side }
        };
        let volume = (0..D).map(side).product::<f64>();
        (if volume.is_nan() { 0.0 } else { volume }, (0..D).map(side).sum())
    }

    /// The volume in common with another box.
    pub(super) fn overlap(&self, other: &Self) -> f64 {
        let mut both = *self;
        for dimension in 0..D {
            if other.low[dimension] > both.low[dimension] {
                both.low[dimension] = other.low[dimension];
            }
            if other.high[dimension] < both.high[dimension] {
                both.high[dimension] = other.high[dimension];
            }
            if both.low[dimension] > both.high[dimension] {
                return 0.0;
            }
        }
        both.size().0
    }
}

/// Bounds of the ends of keys: what passes has each low end within `low` and each high end within `high`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<T, const D: usize> {
    pub(super) low: ([T; D], [T; D]),
    pub(super) high: ([T; D], [T; D]),
}

impl<T: Coordinate, const D: usize> Window<T, D> {
    /// What everything passes.
    fn open() -> Self {
        Window { low: ([T::LOWEST; D], [T::HIGHEST; D]), high: ([T::LOWEST; D], [T::HIGHEST; D]) }
    }

    /// What low ends up to `low` and high ends from `high` on pass.
    fn around(low: [T; D], high: [T; D]) -> Self {
        Window { low: ([T::LOWEST; D], low), high: (high, [T::HIGHEST; D]) }
    }

    /// Whether a key passes.
    pub(super) fn passes(&self, key: &Bounds<T, D>) -> bool {
        let within = |at: T, from: T, to: T| from <= at && at <= to;
        (0..D).all(|d| {
            within(key.low[d], self.low.0[d], self.low.1[d]) && within(key.high[d], self.high.0[d], self.high.1[d])
        })
    }
}

/// A question about boxes.
#[derive(Debug, Clone, Copy)]
pub struct BoundsQuery<T, const D: usize> {
    /// What keys of inner nodes have to pass; the outer bounds of this one let everything pass.
    pub(super) inner: Window<T, D>,
    /// What keys of leaves have to pass.
    pub(super) leaf: Window<T, D>,
    /// Whether the outer bounds of `leaf` let everything pass.
    pub(super) is_plain: bool,
    /// Whether no key can pass.
    pub(super) is_never: bool,
}

impl<T: Coordinate, const D: usize> BoundsQuery<T, D> {
    /// Boxes that have a point in common with this one: `&&`.
    pub fn overlaps(bounds: Bounds<T, D>) -> Self {
        let window = Window::around(bounds.high, bounds.low);
        BoundsQuery { inner: window, leaf: window, is_plain: true, is_never: false }
    }

    /// Boxes that contain this one: `@>`. With the box of a point, those that contain the point.
    pub fn contains(bounds: Bounds<T, D>) -> Self {
        let window = Window::around(bounds.low, bounds.high);
        BoundsQuery { inner: window, leaf: window, is_plain: true, is_never: false }
    }

    /// Boxes that lie within this one: `<@`.
    pub fn within(bounds: Bounds<T, D>) -> Self {
        let mut leaf = Window::open();
        leaf.low.0 = bounds.low;
        leaf.high.1 = bounds.high;
        BoundsQuery { leaf, is_plain: false, ..Self::overlaps(bounds) }
    }

    /// This box: `~=`.
    pub fn equals(bounds: Bounds<T, D>) -> Self {
        let leaf = Window { low: (bounds.low, bounds.low), high: (bounds.high, bounds.high) };
        BoundsQuery { leaf, is_plain: false, ..Self::contains(bounds) }
    }

    /// Boxes that end before this one begins, in a dimension counted from 0: `<<`, or with dimension 1 `<<|`. None in a
    /// dimension that there is not.
    pub fn before(bounds: Bounds<T, D>, dimension: usize) -> Self {
        let end = bounds.low.get(dimension).and_then(|low| low.below());
        let (mut inner, mut leaf) = (Window::open(), Window::open());
        if let Some(end) = end {
            inner.low.1[dimension] = end;
            leaf.high.1[dimension] = end;
        }
        BoundsQuery { inner, leaf, is_plain: false, is_never: end.is_none() }
    }

    /// Boxes that begin after this one ends, in a dimension counted from 0: `>>`, or with dimension 1 `|>>`. None in a
    /// dimension that there is not.
    pub fn after(bounds: Bounds<T, D>, dimension: usize) -> Self {
        let begin = bounds.high.get(dimension).and_then(|high| high.above());
        let (mut inner, mut leaf) = (Window::open(), Window::open());
        if let Some(begin) = begin {
            inner.high.0[dimension] = begin;
            leaf.low.0[dimension] = begin;
        }
        BoundsQuery { inner, leaf, is_plain: false, is_never: begin.is_none() }
    }
}
