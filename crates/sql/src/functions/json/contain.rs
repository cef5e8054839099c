//! Tests of `jsonb`: `@>`, `<@`, and whether there are keys: `?`, `?|`, `?&`.
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::json::Json;

use super::cells::tree;
use crate::functions::row_wise::{Cell, Kind, Variant, function, list, text};

use Kind::{Boolean, Jsonb as Kept, Text, Texts};

const CONTAINS: &[Variant] = &[Variant::strict(&[Kept, Kept], Boolean, |row| {
    Ok(Some(Cell::Boolean(contains(&tree(row.first()), &tree(row.get(1))))))
})];
const CONTAINED: &[Variant] = &[Variant::strict(&[Kept, Kept], Boolean, |row| {
    Ok(Some(Cell::Boolean(contains(&tree(row.get(1)), &tree(row.first())))))
})];
const EXISTS: &[Variant] = &[Variant::strict(&[Kept, Text], Boolean, |row| {
    Ok(Some(Cell::Boolean(has_key(&tree(row.first()), text(row.get(1))))))
})];
const EXISTS_ANY: &[Variant] = &[Variant::strict(&[Kept, Texts], Boolean, |row| {
    let whole = tree(row.first());
    Ok(Some(Cell::Boolean(keys(list(row.get(1))).any(|key| has_key(&whole, key)))))
})];
const EXISTS_ALL: &[Variant] = &[Variant::strict(&[Kept, Texts], Boolean, |row| {
    let whole = tree(row.first());
    Ok(Some(Cell::Boolean(keys(list(row.get(1))).all(|key| has_key(&whole, key)))))
})];

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named: [(&'static str, &'static [Variant]); 5] = [
        ("jsonb_contains", CONTAINS),
        ("jsonb_contained", CONTAINED),
        ("jsonb_exists", EXISTS),
        ("jsonb_exists_any", EXISTS_ANY),
        ("jsonb_exists_all", EXISTS_ALL),
    ];
    named.into_iter().map(|(name, variants)| function(name, variants))
}

/// The function of one of these operators.
pub(super) fn operator(op: &BinaryOperator) -> Option<ScalarUDF> {
    Some(match op {
        BinaryOperator::AtArrow => function("jsonb_contains", CONTAINS),
        BinaryOperator::ArrowAt => function("jsonb_contained", CONTAINED),
        BinaryOperator::Question => function("jsonb_exists", EXISTS),
        BinaryOperator::QuestionPipe => function("jsonb_exists_any", EXISTS_ANY),
        BinaryOperator::QuestionAnd => function("jsonb_exists_all", EXISTS_ALL),
        _ => return None,
    })
}

/// The keys of an array; those that are NULL are none.
fn keys(items: &[Option<Cell>]) -> impl Iterator<Item = &str> {
    items.iter().filter(|item| item.is_some()).map(|item| text(Some(item)))
}

/// Whether a text is a key of an object, an item of an array, or the value itself.
fn has_key(json: &Json, key: &str) -> bool {
    let is_key = |item: &Json| matches!(item, Json::Text(text) if text == key);
    match json {
        Json::Object(_) => json.field(key).is_some(),
        Json::Array(items) => items.iter().any(is_key),
        plain => is_key(plain),
    }
}

/// Whether two values without parts are equal.
fn are_equal(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => left.compare(right).is_eq(),
        (left, right) => left == right,
    }
}

/// Whether a value has all of another one. An array has what is one of its items, if that has no parts.
fn contains(whole: &Json, part: &Json) -> bool {
    match (whole, part) {
        (Json::Array(_), Json::Array(_) | Json::Object(_)) => has_parts(whole, part),
        (Json::Array(items), plain) => items.iter().any(|item| are_equal(item, plain)),
        _ => has_parts(whole, part),
    }
}

fn has_parts(whole: &Json, part: &Json) -> bool {
    match (whole, part) {
        (Json::Object(_), Json::Object(members)) => {
            members.iter().all(|(key, value)| whole.field(key).is_some_and(|own| has_parts(own, value)))
        }
        (Json::Array(items), Json::Array(wanted)) => {
            wanted.iter().all(|wanted| items.iter().any(|item| has_parts(item, wanted)))
        }
        (left, right) => are_equal(left, right),
    }
}
