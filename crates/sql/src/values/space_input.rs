//! PostgreSQL's input syntax of ranges, shapes and addresses.
use engine::geometry::{Geometry, GeometryFault, GeometryKind};
use engine::network::{Network, NetworkKind, NetworkTextFault};
use engine::range::{RangeFault, RangeKind, RangeText, RangeValue};

use super::{Misfit, datetime, input};
use crate::error::SqlError;

/// A range.
pub(crate) fn range(text: &str, kind: RangeKind) -> Result<RangeValue, Misfit> {
    match RangeText::parse(text).map_err(Misfit::RangeText)? {
        RangeText::Empty => Ok(RangeValue::empty(kind)),
        RangeText::Bounds(lower, upper) => {
            let read = |bound: Option<(String, bool)>| {
                bound.map(|(text, holds)| number(&text, kind).map(|number| (number, holds))).transpose()
            };
            RangeValue::new(kind, read(lower)?, read(upper)?).map_err(Misfit::Bounds)
        }
    }
}

/// The number that the text of a bound stands for.
fn number(text: &str, kind: RangeKind) -> Result<i128, Misfit> {
    Ok(match kind {
        RangeKind::Int4 => input::integer::<i32>(text)?.into(),
        RangeKind::Int8 => input::integer::<i64>(text)?.into(),
        RangeKind::Num => match kind.bound_type() {
            engine::DataType::Decimal { precision, scale } => input::decimal(text, precision, scale)?,
            _ => return Err(Misfit::Kind),
        },
        RangeKind::Date => datetime::parse_date(text)?.into(),
        RangeKind::Ts => datetime::parse_timestamp(text, false)?.into(),
        RangeKind::TsTz => datetime::parse_timestamp(text, true)?.into(),
    })
}

/// The first bound of a text that is none, and why.
pub(super) fn wrong_bound(text: &str, kind: RangeKind) -> Option<(String, Misfit)> {
    let Ok(RangeText::Bounds(lower, upper)) = RangeText::parse(text) else { return None };
    [lower, upper].into_iter().flatten().find_map(|(text, _)| number(&text, kind).err().map(|misfit| (text, misfit)))
}

/// A point, a box or a circle.
pub(crate) fn geometry(text: &str, kind: GeometryKind) -> Result<Geometry, Misfit> {
    Geometry::parse(kind, text)
        .map_err(|fault| if fault == GeometryFault::Syntax { Misfit::Syntax } else { Misfit::Range })
}

/// An address or a network.
pub(crate) fn network(text: &str, kind: NetworkKind) -> Result<Network, Misfit> {
    Network::parse(kind, text).map_err(|fault| match fault {
        NetworkTextFault::Syntax => Misfit::Syntax,
        NetworkTextFault::Host => Misfit::Host,
    })
}

/// PostgreSQL's error for bounds of a range, or for two ranges.
pub(crate) fn fault_of_range(fault: RangeFault, kind: RangeKind) -> SqlError {
    match fault {
        RangeFault::Order => {
            SqlError::new("22000", "range lower bound must be less than or equal to range upper bound")
        }
        RangeFault::Overflow => match kind {
            RangeKind::Int4 => SqlError::new("22003", "integer out of range"),
            RangeKind::Date => SqlError::new("22008", "date out of range"),
            _ => SqlError::new("22003", "bigint out of range"),
        },
        RangeFault::UnionGap => SqlError::new("22000", "result of range union would not be contiguous"),
        RangeFault::DifferenceGap => SqlError::new("22000", "result of range difference would not be contiguous"),
    }
}

/// PostgreSQL's error for what is computed of shapes, or for a number of a text.
pub(crate) fn fault_of_geometry(fault: &GeometryFault) -> SqlError {
    match fault {
        GeometryFault::Syntax => SqlError::new("22P02", "invalid input syntax for a geometric type"),
        GeometryFault::Number(text) => {
            SqlError::new("22003", format!("\"{text}\" is out of range for type double precision"))
        }
        GeometryFault::Overflow => SqlError::new("22003", "value out of range: overflow"),
        GeometryFault::Underflow => SqlError::new("22003", "value out of range: underflow"),
        GeometryFault::DivisionByZero => SqlError::new("22012", "division by zero"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_in_the_syntax_of_their_bounds() {
        let show = |text, kind| range(text, kind).map(|range| range.to_string());
        let shown = [
            ("[1,5]", RangeKind::Int4, "[1,6)"),
            ("( 1 , 5 )", RangeKind::Int8, "[2,5)"),
            ("[1.50,2.25]", RangeKind::Num, "[1.5,2.25]"),
            ("[2020-01-31,]", RangeKind::Date, "[2020-01-31,)"),
            ("[2020-01-31,infinity]", RangeKind::Date, "[2020-01-31,infinity]"),
            ("[\"2020-01-31 10:00\",infinity)", RangeKind::Ts, "[\"2020-01-31 10:00:00\",infinity)"),
            ("(,2020-01-31 10:00+01)", RangeKind::TsTz, "(,\"2020-01-31 09:00:00+00\")"),
            ("(3,4)", RangeKind::Int4, "empty"),
        ];
        for (text, kind, expected) in shown {
            assert_eq!(show(text, kind).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(show("[5,1]", RangeKind::Int4), Err(Misfit::Bounds(RangeFault::Order)));
        assert_eq!(show("[1,2147483647]", RangeKind::Int4), Err(Misfit::Bounds(RangeFault::Overflow)));
        assert_eq!(wrong_bound("[1,x]", RangeKind::Int4), Some(("x".to_owned(), Misfit::Syntax)));
        assert_eq!(wrong_bound("[1,99999999999]", RangeKind::Int4), Some(("99999999999".to_owned(), Misfit::Range)));
    }
}
