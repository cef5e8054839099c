//! The place of ranges, shapes and addresses in the space of floats, for trees that search it.
use crate::Value;
use crate::geometry::{Circle, Geometry, Point, Rectangle};
use crate::network::{Family, Network};
use crate::range::{Edge, RangeKind, RangeValue};
use crate::range_bounds::NUMBER_SCALE;

/// The most dimensions of an extent.
pub const EXTENT_DIMENSIONS_MAX: usize = 4;

/// The least interval or box of floats that holds a value: never smaller than the value, a float larger where a bound is none.
///
/// Bounds that are NaN are where a tree must look always: they go on without end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Extent {
    /// 1 of a range, 2 of a shape or an address, more of what a tree makes of texts
    pub dimensions: usize,
    /// the lower bound of each dimension; 0 of those that there are not
    pub low: [f64; EXTENT_DIMENSIONS_MAX],
    /// the upper bound of each dimension; 0 of those that there are not
    pub high: [f64; EXTENT_DIMENSIONS_MAX],
}

/// The share of a circle's numbers by which the results of a few steps of floats may be off.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

impl Extent {
    /// From one number to another one.
    pub fn line(low: f64, high: f64) -> Extent {
        Extent { dimensions: 1, low: [low, 0.0, 0.0, 0.0], high: [high, 0.0, 0.0, 0.0] }
    }

    /// Everything, in so many dimensions.
    pub fn open(dimensions: usize) -> Extent {
        let (low, high) = ([f64::NEG_INFINITY; EXTENT_DIMENSIONS_MAX], [f64::INFINITY; EXTENT_DIMENSIONS_MAX]);
        Extent { dimensions, low, high }
    }

    fn plane(low: Point, high: Point) -> Extent {
        let at = |number: f64, otherwise: f64| if number.is_nan() { otherwise } else { number };
        Extent {
            dimensions: 2,
            low: [at(low.x, f64::NEG_INFINITY), at(low.y, f64::NEG_INFINITY), 0.0, 0.0],
            high: [at(high.x, f64::INFINITY), at(high.y, f64::INFINITY), 0.0, 0.0],
        }
    }
}

impl Value {
    /// Where a range, a shape or an address lies; `None` of an empty range, of NULL, and of values of other types.
    pub fn extent(&self) -> Option<Extent> {
        match self {
            Value::Range(range) => range.extent(),
            Value::Geometry(shape) => Some(shape.extent()),
            Value::Network(address) => Some(address.extent()),
            _ => None,
        }
    }
}

impl RangeKind {
    /// A bound as the next float that is not greater, or not less: [`RangeKind::number_of`] as integers, a `numeric` as it is.
    fn float(self, number: i128, is_low: bool) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "what is lost is made good")]
        let near = number as f64;
        let is_exact = number.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS;
        let (near, is_exact) = match self {
            RangeKind::Num => (near / 10f64.powi(NUMBER_SCALE.into()), number == 0),
            _ => (near, is_exact),
        };
        match (is_exact, is_low) {
            (true, _) => near,
            // A division rounds, too.
            (false, true) => near.next_down().next_down(),
            (false, false) => near.next_up().next_up(),
        }
    }

    /// Where a value of the type of the bounds lies.
    pub fn extent_of(self, number: i128) -> Extent {
        Extent::line(self.float(number, true), self.float(number, false))
    }
}

impl RangeValue {
    /// Where it lies; `None` if it is empty.
    pub fn extent(&self) -> Option<Extent> {
        let (lower, upper) = self.edges()?;
        let at = |edge: Edge, is_low: bool| match edge {
            Edge::Lowest => f64::NEG_INFINITY,
            Edge::At(number, _) => self.kind().float(number, is_low),
            Edge::Highest => f64::INFINITY,
        };
        Some(Extent::line(at(lower, true), at(upper, false)))
    }
}

impl Geometry {
    /// Where it lies.
    pub fn extent(&self) -> Extent {
        match self {
            Geometry::Point(point) => Extent::plane(*point, *point),
            Geometry::Box(Rectangle { high, low }) => Extent::plane(*low, *high),
            Geometry::Circle(Circle { center, radius }) => {
                // Operators compare sums and distances of these numbers, each of which is rounded.
                let beyond = |at: f64| (at.abs() + radius.abs()) * ROUNDING;
                let low = Point::new(center.x - radius - beyond(center.x), center.y - radius - beyond(center.y));
                let high = Point::new(center.x + radius + beyond(center.x), center.y + radius + beyond(center.y));
                Extent::plane(low, high)
            }
        }
    }
}

/// Bits of an address of version 6 that make its first number; what is behind them makes the second.
const FIRST_BITS: u32 = 52;
const SECOND_BITS: u32 = u128::BITS - FIRST_BITS;

impl Network {
    /// Where its network lies. Networks are parts of each other or apart, and so are their extents: one that is all of the first bits
    /// and some behind them is a point in the first dimension, and any other one is everything in the second. Both ends are rounded
    /// down, which keeps their order, so that what overlaps does so here, and neighbours are apart.
    pub fn extent(&self) -> Extent {
        let (first, last) = self.ends();
        #[expect(clippy::cast_precision_loss, reason = "what is lost is made good")]
        let float = |number: u128| number as f64;
        let above_v4 = float(1 << Family::V4.bits());
        match self.family() {
            Family::V4 => Extent::plane(Point::new(float(first), 0.0), Point::new(float(last), 0.0)),
            Family::V6 => {
                let ends = |number: u128| (number >> SECOND_BITS, number & ((1 << SECOND_BITS) - 1));
                let (low, high) = (ends(first), ends(last));
                let down = |number: u128| {
                    let rest = (u128::BITS - number.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
                    float(number >> rest << rest)
                };
                let at = |(first, second): (u128, u128)| Point::new(above_v4 + float(first), down(second));
                Extent::plane(at(low), at(high))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::GeometryKind;

    #[test]
    fn extents_hold_their_values() {
        let range = |kind, lower, upper| RangeValue::new(kind, lower, upper).unwrap().extent();
        assert_eq!(range(RangeKind::Int4, Some((1, true)), Some((5, false))), Some(Extent::line(1.0, 5.0)));
        assert_eq!(range(RangeKind::Int8, None, Some((7, false))), Some(Extent::line(f64::NEG_INFINITY, 7.0)));
        assert_eq!(RangeValue::empty(RangeKind::Ts).extent(), None);
        let last = i128::from(i64::MAX) - 1;
        for number in [last, -last, 1 << 53, (1 << 53) + 1] {
            let around = range(RangeKind::Int8, Some((number, true)), Some((number, true))).unwrap();
            assert!(around.low[0] as i128 <= number && number <= around.high[0] as i128, "{number}");
        }
        let tenth = RangeKind::Num.extent_of(1_000_000_000);
        assert!(tenth.low[0] < 0.1 && 0.1 < tenth.high[0]);
        let shape = |kind, text| Geometry::parse(kind, text).unwrap().extent();
        let point = shape(GeometryKind::Point, "(1,NaN)");
        assert_eq!(point.low, [1.0, f64::NEG_INFINITY, 0.0, 0.0]);
        assert_eq!(point.high, [1.0, f64::INFINITY, 0.0, 0.0]);
        let round = shape(GeometryKind::Circle, "<(0.1,0.2),0.3>");
        assert!(round.low[0] < 0.1 - 0.3 && round.high[1] > 0.2 + 0.3 && round.dimensions == 2);
        let large = shape(GeometryKind::Circle, "<(1e17,3),1e17>");
        assert!(large.low[0] < -100.0 && large.high[1] > 1e17 && large.high[0] > 2e17);
        assert_eq!((Value::Null.extent(), Value::BigInt(1).extent()), (None, None));
    }

    #[test]
    fn extents_of_networks_overlap_where_these_do() {
        let texts = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.1.2.3",
            "10.1.2.0/24",
            "10.1.3.0/24",
            "255.255.255.255",
            "::/0",
            "2001:db8::/32",
            "2001:db8:0:1::/64",
            "2001:db8:0:2::/64",
            "2001:db8:0:1::5",
            "2001:db8:0:1::1:6",
            "2001:db8:0:1:8000::/65",
            "ffff::/16",
        ];
        let networks = texts.map(|text| Network::parse(crate::NetworkKind::Inet, text).unwrap());
        for one in networks {
            for other in networks {
                let (low, high) = (one.extent(), other.extent());
                let meets = |at: usize| low.low[at] <= high.high[at] && high.low[at] <= low.high[at];
                assert_eq!(one.overlaps(other), meets(0) && meets(1), "{one} {other}");
            }
        }
    }
}
