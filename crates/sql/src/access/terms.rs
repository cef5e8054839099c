//! What conditions say of the terms of rows, for an inverted index (`gin`).
//!
//! | condition on a part of the key | class of the part |
//! |---|---|
//! | `part @> value`, `part <@ value`, `part && value`, `part = value`, `value = ANY (part)` | `array_ops` |
//! | `part @> value`, `part ? key`, `part ?| keys`, `part ?& keys` | `jsonb_ops` |
//! | `part @> value` | `jsonb_path_ops` |
//! | `part LIKE pattern`, `part ILIKE pattern`, `part = value` | `gin_trgm_ops` |
//!
//! Each is also said the other way round, as `value <@ part`. All of them are asked again of each row that is found.
use std::borrow::Cow;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Like};
use engine::json::Jsonb;
use engine::{ArrayItem, Comparison, DataType, Index, IndexPart, IndexWindow, TermRelation, Test, Value};

use crate::access::overlaps::ColumnOverlap;
use crate::values::single::value_of_scalar;

/// How a part stands to a value by a function of the plan, with the part as its first operand or as its second.
fn relation_of(function: &str, is_reversed: bool) -> Option<TermRelation> {
    Some(match (function, is_reversed) {
        ("array_contains_all" | "jsonb_contains", false) | ("jsonb_contained", true) => TermRelation::Contains,
        ("array_contains_all", true) => TermRelation::Within,
        ("array_overlaps", _) => TermRelation::Overlaps,
        ("\0any =", true) => TermRelation::HasItem,
        ("jsonb_exists", false) => TermRelation::HasKey,
        ("jsonb_exists_any", false) => TermRelation::HasAnyKey,
        ("jsonb_exists_all", false) => TermRelation::HasAllKeys,
        _ => return None,
    })
}

/// What a condition says of the terms of a part of an index's keys that `find` finds.
pub(crate) fn said(
    index: &Index,
    condition: &Expr,
    find: &dyn Fn(&Expr) -> Option<(usize, DataType)>,
) -> Option<IndexWindow> {
    if let Expr::Like(like) = condition {
        return like_of(index, like, find);
    }
    let Expr::ScalarFunction(call) = condition else { return None };
    let [left, right] = &call.args[..] else { return None };
    let (part, literal, is_reversed) = match (left, right) {
        (part, Expr::Literal(literal, _)) => (part, literal, false),
        (Expr::Literal(literal, _), part) => (part, literal, true),
        _ => return None,
    };
    let (part, data_type) = find(part)?;
    having(index, (part, data_type), (call.name(), is_reversed), literal)
}

/// What a pattern says. One that has another sign for escapes is left alone.
fn like_of(index: &Index, like: &Like, find: &dyn Fn(&Expr) -> Option<(usize, DataType)>) -> Option<IndexWindow> {
    let Like { negated: false, expr, pattern, escape_char: None, .. } = like else { return None };
    let Expr::Literal(pattern, _) = &**pattern else { return None };
    let (part, _) = find(expr)?;
    IndexWindow::having(index, part, TermRelation::Like, &value_of(pattern, DataType::TEXT)?)
}

/// What a condition on a column says of the terms of an index's keys.
pub(crate) fn said_of_column(index: &Index, condition: &ColumnOverlap<'_>) -> Option<IndexWindow> {
    let part = index.definition().parts.iter().position(|part| *part == IndexPart::Column(condition.column))?;
    let data_type = index.key_columns()[part].data_type;
    having(index, (part, data_type), (condition.operator, condition.is_reversed), &condition.value)
}

/// Whether a function may say something of terms, with the part as its first operand or as its second.
pub(crate) fn is_known(function: &str, is_reversed: bool) -> bool {
    relation_of(function, is_reversed).is_some()
}

fn having(
    index: &Index,
    (part, data_type): (usize, DataType),
    (function, is_reversed): (&str, bool),
    literal: &ScalarValue,
) -> Option<IndexWindow> {
    let relation = relation_of(function, is_reversed)?;
    let of_value = match (relation, data_type) {
        (TermRelation::HasItem, DataType::Array(item)) => item.data_type(),
        (TermRelation::HasKey, _) => DataType::TEXT,
        (TermRelation::HasAnyKey | TermRelation::HasAllKeys, _) => DataType::Array(ArrayItem::TEXT),
        (_, data_type) => data_type,
    };
    IndexWindow::having(index, part, relation, &value_of(literal, of_value)?)
}

/// A literal as a value of a type; `None` if it is NULL. One without a type is what its text says.
fn value_of(literal: &ScalarValue, data_type: DataType) -> Option<Value> {
    match (literal.try_as_str().flatten(), data_type) {
        (Some(text), DataType::Jsonb) => Jsonb::parse(text).ok().map(Value::Jsonb),
        (Some(text), DataType::Text { .. }) => Some(Value::from(text)),
        (None, DataType::Array(ArrayItem::Text { .. })) => {
            value_of_scalar(&literal.cast_to(&data_type.to_arrow()).ok()?, data_type)
        }
        _ => value_of_scalar(literal, data_type).filter(|value| !value.is_null()),
    }
}

/// What these conditions and tests of the parts of an index's keys, by their numbers, say of terms; `None` if that is nothing.
pub(crate) fn window(
    index: &Index,
    tests: &[(usize, Cow<'_, Test>)],
    said: impl IntoIterator<Item = IndexWindow>,
) -> Option<IndexWindow> {
    let equal = |(part, test): &(usize, Cow<'_, Test>)| match test.as_ref() {
        Test::Compare(Comparison::Eq, value @ (Value::Array(_) | Value::Text(_))) => {
            IndexWindow::having(index, *part, TermRelation::Equals, value)
        }
        Test::Prefix(prefix) => {
            let pattern = format!("{}%", std::str::from_utf8(prefix).ok()?);
            IndexWindow::having(index, *part, TermRelation::Like, &Value::from(pattern))
        }
        _ => None,
    };
    let mut all = Vec::new();
    for window in tests.iter().filter_map(equal).chain(said) {
        if let IndexWindow::Having(groups) = window {
            all.extend(groups);
        }
    }
    (!all.is_empty()).then_some(IndexWindow::Having(all))
}
