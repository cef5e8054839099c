//! The place of ranges and shapes in the space of floats, for trees that search it.
use crate::Value;
use crate::geometry::{Circle, Geometry, Point, Rectangle};
use crate::range::{Edge, RangeKind, RangeValue};
use crate::range_bounds::NUMBER_SCALE;

/// The least interval or box of floats that holds a value: never smaller than the value, a float larger where a bound is none.
///
/// Bounds that are NaN are where a tree must look always: they go on without end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Extent {
    /// 1 of a range, 2 of a shape
    pub dimensions: usize,
    /// the lower bound of each dimension; 0 of those that there are not
    pub low: [f64; 2],
    /// the upper bound of each dimension; 0 of those that there are not
    pub high: [f64; 2],
}

/// The share of a circle's numbers by which the results of a few steps of floats may be off.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

impl Extent {
    /// From one number to another one.
    fn line(low: f64, high: f64) -> Extent {
        Extent { dimensions: 1, low: [low, 0.0], high: [high, 0.0] }
    }

    fn plane(low: Point, high: Point) -> Extent {
        let at = |number: f64, otherwise: f64| if number.is_nan() { otherwise } else { number };
        Extent {
            dimensions: 2,
            low: [at(low.x, f64::NEG_INFINITY), at(low.y, f64::NEG_INFINITY)],
            high: [at(high.x, f64::INFINITY), at(high.y, f64::INFINITY)],
        }
    }
}

impl Value {
    /// Where a range or a shape lies; `None` of an empty range, of NULL, and of values of other types.
    pub fn extent(&self) -> Option<Extent> {
        match self {
            Value::Range(range) => range.extent(),
            Value::Geometry(shape) => Some(shape.extent()),
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
        assert_eq!((point.low, point.high), ([1.0, f64::NEG_INFINITY], [1.0, f64::INFINITY]));
        let round = shape(GeometryKind::Circle, "<(0.1,0.2),0.3>");
        assert!(round.low[0] < 0.1 - 0.3 && round.high[1] > 0.2 + 0.3 && round.dimensions == 2);
        let large = shape(GeometryKind::Circle, "<(1e17,3),1e17>");
        assert!(large.low[0] < -100.0 && large.high[1] > 1e17 && large.high[0] > 2e17);
        assert_eq!((Value::Null.extent(), Value::BigInt(1).extent()), (None, None));
    }
}
