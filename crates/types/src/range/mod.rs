//! Ranges: the values from one bound to another one, as PostgreSQL's range types have them.
//!
//! A bound is a place on one line, on which all comparisons of ranges are those of places:
//!
//! ```text
//!   lowest ... [5 and 5] at 5, (5 behind it, 5) before it ... highest
//!
//!      4       5)  [5  (5      6                [5,6) begins on 5 and ends before 6
//!   ---|-------|---|---|-------|-----           (5,6] begins behind 5 and ends on 6
//! ```
//!
//! A range without values is the empty one, whichever bounds it was made of. Ranges over whole numbers and days are kept with their
//! first value and the one behind their last, so that equal ranges have one form.
//!
//! A range is kept in bytes in the order of ranges, as many for each of one kind:
//!
//! ```text
//! 0 empty, 1 not | lower: 0 lowest, 1 at a value | value, sign turned over, the most significant first | 1 on it, 2 behind it
//!                | upper: 1 at a value, 2 highest | value                                              | 0 before it, 1 on it | zeros
//! ```
mod operators;
#[cfg(test)]
mod tests;
mod text;

use serde::{Deserialize, Serialize};

pub use text::{RangeText, RangeTextFault};

/// The most bytes that a range is kept in.
pub const RANGE_BYTES_MAX: usize = 37;

/// The range types.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum RangeKind {
    /// `int4range`, of `integer`
    Int4,
    /// `int8range`, of `bigint`
    Int8,
    /// `numrange`, of `numeric`
    Num,
    /// `daterange`, of `date`
    Date,
    /// `tsrange`, of `timestamp`
    Ts,
    /// `tstzrange`, of `timestamptz`
    TsTz,
}

/// What is wrong with the bounds of a range, or with two ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeFault {
    /// The lower bound is greater than the upper one.
    Order,
    /// The value behind the last one is none of the type.
    Overflow,
    /// The union would have a gap.
    UnionGap,
    /// The difference would have a gap.
    DifferenceGap,
}

/// A place on the line of values; see the module's drawing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Edge {
    /// Before all values.
    Lowest,
    /// At a value.
    At(i128, Side),
    /// Behind all values.
    Highest,
}

/// On which side of its value an edge is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Directly before it: an upper bound that leaves it out.
    Before,
    /// On it: a bound that holds it.
    On,
    /// Directly behind it: a lower bound that leaves it out.
    Behind,
}

/// A range. Its order is PostgreSQL's among the ranges of one kind: the empty one first, then by the lower bound, then by the upper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RangeValue {
    kind: RangeKind,
    edges: Option<(Edge, Edge)>,
}

impl RangeKind {
    /// All kinds.
    pub const ALL: [RangeKind; 6] =
        [RangeKind::Int4, RangeKind::Int8, RangeKind::Num, RangeKind::Date, RangeKind::Ts, RangeKind::TsTz];

    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            RangeKind::Int4 => "int4range",
            RangeKind::Int8 => "int8range",
            RangeKind::Num => "numrange",
            RangeKind::Date => "daterange",
            RangeKind::Ts => "tsrange",
            RangeKind::TsTz => "tstzrange",
        }
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<RangeKind> {
        RangeKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether each value has a next one.
    pub fn is_discrete(self) -> bool {
        matches!(self, RangeKind::Int4 | RangeKind::Int8 | RangeKind::Date)
    }

    /// The bytes of each range of this kind. No two kinds have as many: by them an Arrow type tells the kind.
    pub fn width(self) -> usize {
        match self {
            RangeKind::Int4 => 13,
            RangeKind::Date => 15,
            RangeKind::Int8 => 21,
            RangeKind::Ts => 23,
            RangeKind::TsTz => 27,
            RangeKind::Num => RANGE_BYTES_MAX,
        }
    }

    fn value_width(self) -> usize {
        match self {
            RangeKind::Int4 | RangeKind::Date => 4,
            RangeKind::Int8 | RangeKind::Ts | RangeKind::TsTz => 8,
            RangeKind::Num => 16,
        }
    }

    /// Whether a value is one behind which another one may come: the ends of time are none.
    fn has_next(self, number: i128) -> bool {
        self != RangeKind::Date || (number != i128::from(i32::MIN) && number != i128::from(i32::MAX))
    }

    /// The value behind one of a discrete kind.
    fn next(self, number: i128) -> Result<i128, RangeFault> {
        let last = match self {
            RangeKind::Int4 | RangeKind::Date => i128::from(i32::MAX),
            _ => i128::from(i64::MAX),
        };
        if number >= last { Err(RangeFault::Overflow) } else { Ok(number + 1) }
    }
}

impl RangeValue {
    /// The range without values.
    pub fn empty(kind: RangeKind) -> RangeValue {
        RangeValue { kind, edges: None }
    }

    /// The range between two bounds, each with whether it holds its value; `None` is no bound.
    ///
    /// # Errors
    /// [`RangeFault::Order`] if the lower bound is greater, [`RangeFault::Overflow`] if the one form of it has no upper bound.
    pub fn new(
        kind: RangeKind,
        lower: Option<(i128, bool)>,
        upper: Option<(i128, bool)>,
    ) -> Result<RangeValue, RangeFault> {
        let edge = |(value, holds): (i128, bool), out: Side| Edge::At(value, if holds { Side::On } else { out });
        let lower = lower.map_or(Edge::Lowest, |bound| edge(bound, Side::Behind));
        let upper = upper.map_or(Edge::Highest, |bound| edge(bound, Side::Before));
        if let (Edge::At(low, _), Edge::At(high, _)) = (lower, upper)
            && low > high
        {
            return Err(RangeFault::Order);
        }
        RangeValue::between(kind, lower, upper)
    }

    /// The range from one edge to another one, in its one form; the empty one if they cross.
    ///
    /// # Errors
    /// [`RangeFault::Overflow`].
    pub(crate) fn between(kind: RangeKind, lower: Edge, upper: Edge) -> Result<RangeValue, RangeFault> {
        if lower > upper {
            return Ok(RangeValue::empty(kind));
        }
        let (mut low, mut high) = (lower, upper);
        if kind.is_discrete() {
            if let Edge::At(value, Side::Behind) = lower
                && kind.has_next(value)
            {
                low = Edge::At(kind.next(value)?, Side::On);
            }
            if let Edge::At(value, Side::On) = upper
                && kind.has_next(value)
            {
                high = Edge::At(kind.next(value)?, Side::Before);
            }
        }
        Ok(RangeValue { kind, edges: (low <= high).then_some((low, high)) })
    }

    /// Its type.
    pub fn kind(&self) -> RangeKind {
        self.kind
    }

    /// Where it begins and ends; `None` if it is empty.
    pub fn edges(&self) -> Option<(Edge, Edge)> {
        self.edges
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.edges.is_none()
    }

    /// Its lower bound, and whether that is one of its values; `None` if it is empty or has none.
    pub fn lower(&self) -> Option<(i128, bool)> {
        self.edges.and_then(|(lower, _)| lower.bound())
    }

    /// Its upper bound, and whether that is one of its values; `None` if it is empty or has none.
    pub fn upper(&self) -> Option<(i128, bool)> {
        self.edges.and_then(|(_, upper)| upper.bound())
    }

    /// Whether it has values below any other one.
    pub fn is_lower_infinite(&self) -> bool {
        matches!(self.edges, Some((Edge::Lowest, _)))
    }

    /// Whether it has values above any other one.
    pub fn is_upper_infinite(&self) -> bool {
        matches!(self.edges, Some((_, Edge::Highest)))
    }

    /// The range as it is kept: [`RangeKind::width`] bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        self.write_bytes(&mut [0; RANGE_BYTES_MAX]).to_vec()
    }

    /// Writes the range as it is kept.
    ///
    /// # Panics
    /// If the room is less than [`RANGE_BYTES_MAX`] bytes.
    pub fn write_bytes<'a>(&self, room: &'a mut [u8]) -> &'a [u8] {
        let bytes = &mut room[..RANGE_BYTES_MAX][..self.kind.width()];
        bytes.fill(0);
        if let Some((lower, upper)) = self.edges {
            let edge_width = self.kind.value_width() + 2;
            bytes[0] = 1;
            lower.write(&mut bytes[1..][..edge_width]);
            upper.write(&mut bytes[1 + edge_width..][..edge_width]);
        }
        bytes
    }

    /// The range that is kept as these bytes; the empty one if they are none of the kind.
    pub fn from_bytes(kind: RangeKind, bytes: &[u8]) -> RangeValue {
        let edge_width = kind.value_width() + 2;
        let edges = match bytes {
            [1, edges @ ..] if bytes.len() == kind.width() => {
                Some((Edge::read(&edges[..edge_width]), Edge::read(&edges[edge_width..][..edge_width])))
            }
            _ => None,
        };
        RangeValue { kind, edges: edges.filter(|(lower, upper)| lower <= upper) }
    }
}

impl Edge {
    fn bound(self) -> Option<(i128, bool)> {
        match self {
            Edge::At(value, side) => Some((value, side == Side::On)),
            Edge::Lowest | Edge::Highest => None,
        }
    }

    fn write(self, bytes: &mut [u8]) {
        let last = bytes.len() - 1;
        match self {
            Edge::Lowest => bytes[0] = 0,
            Edge::Highest => bytes[0] = 2,
            Edge::At(value, side) => {
                bytes[0] = 1;
                let whole = value.to_be_bytes();
                bytes[1..last].copy_from_slice(&whole[whole.len() + 1 - last..]);
                bytes[1] ^= 1 << 7;
                bytes[last] = side as u8;
            }
        }
    }

    fn read(bytes: &[u8]) -> Edge {
        let last = bytes.len() - 1;
        match bytes[0] {
            0 => Edge::Lowest,
            1 => {
                let is_negative = bytes[1] & 1 << 7 == 0;
                let mut whole = [if is_negative { u8::MAX } else { 0 }; 16];
                let start = whole.len() + 1 - last;
                whole[start..].copy_from_slice(&bytes[1..last]);
                whole[start] ^= 1 << 7;
                let side = match bytes[last] {
                    0 => Side::Before,
                    1 => Side::On,
                    _ => Side::Behind,
                };
                Edge::At(i128::from_be_bytes(whole), side)
            }
            _ => Edge::Highest,
        }
    }
}
