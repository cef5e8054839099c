//! Tests of `jsonb`: `@>`, `<@`, and whether there are keys: `?`, `?|`, `?&`.
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::json::Jsonb;

use crate::functions::row_wise::{Cell, Kind, Variant, function, list, octets, text};

use Kind::{Boolean, Text, Texts};

const KEPT: Kind = Kind::Jsonb;

const CONTAINS: &[Variant] = &[Variant::strict(&[KEPT, KEPT], Boolean, |row| {
    Ok(Some(Cell::Boolean(Jsonb::contains(octets(row.first()), octets(row.get(1))))))
})];
const CONTAINED: &[Variant] = &[Variant::strict(&[KEPT, KEPT], Boolean, |row| {
    Ok(Some(Cell::Boolean(Jsonb::contains(octets(row.get(1)), octets(row.first())))))
})];
const EXISTS: &[Variant] = &[Variant::strict(&[KEPT, Text], Boolean, |row| {
    Ok(Some(Cell::Boolean(Jsonb::has_key(octets(row.first()), text(row.get(1))))))
})];
const EXISTS_ANY: &[Variant] = &[Variant::strict(&[KEPT, Texts], Boolean, |row| {
    let whole = octets(row.first());
    Ok(Some(Cell::Boolean(keys(list(row.get(1))).any(|key| Jsonb::has_key(whole, key)))))
})];
const EXISTS_ALL: &[Variant] = &[Variant::strict(&[KEPT, Texts], Boolean, |row| {
    let whole = octets(row.first());
    Ok(Some(Cell::Boolean(keys(list(row.get(1))).all(|key| Jsonb::has_key(whole, key)))))
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
