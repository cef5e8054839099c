//! The functions and operators of ranges.
use engine::range::{RangeFault, RangeKind, RangeValue};
use engine::{DataType, Value};

use super::form::{Compute, Form, strict};
use crate::error::SqlError;
use crate::values::space_input::fault_of_range;

type Answer = Result<Value, SqlError>;

/// The functions under their names in SQL.
pub(super) fn named() -> Vec<(&'static str, Vec<Form>)> {
    let mut named: Vec<(&'static str, Vec<Form>)> = RangeKind::ALL.map(|kind| (kind.name(), made(kind))).into();
    named.extend([
        ("lower", bounds(|range| range.lower())),
        ("upper", bounds(|range| range.upper())),
        ("isempty", truths(RangeValue::is_empty)),
        ("lower_inc", truths(|range| range.lower().is_some_and(|(_, holds)| holds))),
        ("upper_inc", truths(|range| range.upper().is_some_and(|(_, holds)| holds))),
        ("lower_inf", truths(RangeValue::is_lower_infinite)),
        ("upper_inf", truths(RangeValue::is_upper_infinite)),
        ("range_merge", joined(RangeValue::merge)),
    ]);
    named.extend(functions_of_operators());
    named
}

/// The names that PostgreSQL gives the functions of operators.
fn functions_of_operators() -> Vec<(&'static str, Vec<Form>)> {
    vec![
        ("range_contains", compared(RangeValue::contains)),
        ("range_contained_by", compared(|left, right| right.contains(left))),
        ("range_contains_elem", holding()),
        ("elem_contained_by_range", held()),
        ("range_overlaps", compared(RangeValue::overlaps)),
        ("range_before", compared(RangeValue::is_before)),
        ("range_after", compared(RangeValue::is_after)),
        ("range_overleft", compared(RangeValue::ends_within)),
        ("range_overright", compared(RangeValue::begins_within)),
        ("range_adjacent", compared(RangeValue::is_adjacent)),
        ("range_union", joined(RangeValue::union)),
        ("range_intersect", joined(RangeValue::intersection)),
        ("range_minus", joined(RangeValue::difference)),
    ]
}

/// The operators under their names in SQL.
pub(super) fn operators() -> Vec<(&'static str, Vec<Form>)> {
    let mut contains = compared(RangeValue::contains);
    contains.extend(holding());
    let mut within = compared(|left, right| right.contains(left));
    within.extend(held());
    vec![
        ("@>", contains),
        ("<@", within),
        ("&&", compared(RangeValue::overlaps)),
        ("<<", compared(RangeValue::is_before)),
        (">>", compared(RangeValue::is_after)),
        ("&<", compared(RangeValue::ends_within)),
        ("&>", compared(RangeValue::begins_within)),
        ("-|-", compared(RangeValue::is_adjacent)),
        ("+", joined(RangeValue::union)),
        ("*", joined(RangeValue::intersection)),
        ("-", joined(RangeValue::difference)),
    ]
}

fn range_in(value: Option<&Value>) -> Option<&RangeValue> {
    match value {
        Some(Value::Range(range)) => Some(range),
        _ => None,
    }
}

fn truth(value: Option<bool>) -> Value {
    value.map_or(Value::Null, Value::Boolean)
}

/// The constructors of a type: of two bounds, and of two bounds with what they hold.
fn made(kind: RangeKind) -> Vec<Form> {
    let (bound, gives) = (kind.bound_type(), DataType::Range(kind));
    let form = |takes: Vec<DataType>, compute: Compute| Form { takes, gives, sees_null: true, compute };
    vec![
        form(vec![bound, bound], Box::new(move |row| make(kind, row.first(), row.get(1), "[)"))),
        form(
            vec![bound, bound, DataType::TEXT],
            Box::new(move |row| match row.get(2) {
                Some(Value::Text(flags)) => make(kind, row.first(), row.get(1), flags),
                _ => Err(SqlError::new("22000", "range constructor flags argument must not be null")),
            }),
        ),
    ]
}

fn make(kind: RangeKind, lower: Option<&Value>, upper: Option<&Value>, flags: &str) -> Answer {
    let (holds_lower, holds_upper) = match flags {
        "[]" => (true, true),
        "[)" => (true, false),
        "(]" => (false, true),
        "()" => (false, false),
        _ => {
            let error = SqlError::new("42601", "invalid range bound flags");
            return Err(error.hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\"."));
        }
    };
    let bound = |value: Option<&Value>, holds: bool| match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match kind.number_of(value) {
            Some(number) => Ok(Some((number, holds))),
            None => Err(SqlError::new("22003", "numeric field overflow")),
        },
    };
    let made = RangeValue::new(kind, bound(lower, holds_lower)?, bound(upper, holds_upper)?);
    made.map(Value::from).map_err(|fault| fault_of_range(fault, kind))
}

/// What gives a bound of a range.
fn bounds(of: fn(&RangeValue) -> Option<(i128, bool)>) -> Vec<Form> {
    let form = |kind: RangeKind| {
        strict([DataType::Range(kind)], kind.bound_type(), move |row| {
            let number = range_in(row.first()).and_then(of).map(|(number, _)| number);
            Ok(match (number, kind.bound_type()) {
                (None, _) => Value::Null,
                // With all the digits of its type.
                (Some(number), DataType::Decimal { scale, .. }) => Value::decimal(number, scale),
                (Some(number), _) => kind.bound_of(number),
            })
        })
    };
    RangeKind::ALL.map(form).into()
}

/// What is asked of a range.
fn truths(ask: fn(&RangeValue) -> bool) -> Vec<Form> {
    let form =
        |kind| strict([DataType::Range(kind)], DataType::Boolean, move |row| Ok(truth(range_in(row.first()).map(ask))));
    RangeKind::ALL.map(form).into()
}

/// What is asked of two ranges.
fn compared(ask: fn(&RangeValue, &RangeValue) -> bool) -> Vec<Form> {
    let form = |kind| {
        strict([DataType::Range(kind), DataType::Range(kind)], DataType::Boolean, move |row| {
            let pair = range_in(row.first()).zip(range_in(row.get(1)));
            Ok(truth(pair.map(|(left, right)| ask(left, right))))
        })
    };
    RangeKind::ALL.map(form).into()
}

/// Whether a range holds a value.
fn holding() -> Vec<Form> {
    let form = |kind: RangeKind| {
        strict([DataType::Range(kind), kind.bound_type()], DataType::Boolean, move |row| {
            Ok(holds(kind, row.first(), row.get(1)))
        })
    };
    RangeKind::ALL.map(form).into()
}

/// Whether a value is held by a range.
fn held() -> Vec<Form> {
    let form = |kind: RangeKind| {
        strict([kind.bound_type(), DataType::Range(kind)], DataType::Boolean, move |row| {
            Ok(holds(kind, row.get(1), row.first()))
        })
    };
    RangeKind::ALL.map(form).into()
}

/// What makes one range of two.
fn joined(join: fn(&RangeValue, &RangeValue) -> Result<RangeValue, RangeFault>) -> Vec<Form> {
    let form = |kind| {
        strict([DataType::Range(kind), DataType::Range(kind)], DataType::Range(kind), move |row| {
            match range_in(row.first()).zip(range_in(row.get(1))) {
                Some((left, right)) => join(left, right).map(Value::from).map_err(|fault| fault_of_range(fault, kind)),
                None => Ok(Value::Null),
            }
        })
    };
    RangeKind::ALL.map(form).into()
}

/// Whether a range holds a value.
fn holds(kind: RangeKind, range: Option<&Value>, value: Option<&Value>) -> Value {
    let pair = range_in(range).zip(value.and_then(|value| kind.number_of(value)));
    truth(pair.map(|(range, value)| range.contains_value(value)))
}
