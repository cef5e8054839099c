//! Parts of JSON: `->`, `->>`, `#>`, `#>>`, `json_extract_path`; and the order of `jsonb`.
use std::ops::Range;

use arrow_schema::DataType as ArrowType;
use datafusion::logical_expr::{Expr, ScalarUDF, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::json::{Jsonb, JsonbKind, Members, members};

use super::cells::{Given, bytes_of, faulty};
use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, list, octets, text, whole};

use Kind::{Count, Json as TextJson, Jsonb as Kept, Text, Texts};

const FIELD: &[Variant] = &[
    Variant::strict(&[Kept, Text], Kept, |row| Ok(Jsonb::field(octets(row.first()), text(row.get(1))).map(bytes_of))),
    Variant::strict(&[Kept, Count], Kept, |row| Ok(Jsonb::item(octets(row.first()), whole(row.get(1))).map(bytes_of))),
    Variant::strict(&[TextJson, Text], TextJson, |row| part(row, &[step(row)], Wants::Field)),
    Variant::strict(&[TextJson, Count], TextJson, |row| part(row, &[step(row)], Wants::Field)),
];

const FIELD_TEXT: &[Variant] = &[
    Variant::strict(&[Kept, Text], Text, |row| Ok(shown(Jsonb::field(octets(row.first()), text(row.get(1)))))),
    Variant::strict(&[Kept, Count], Text, |row| Ok(shown(Jsonb::item(octets(row.first()), whole(row.get(1)))))),
    Variant::strict(&[TextJson, Text], Text, |row| part(row, &[step(row)], Wants::FieldText)),
    Variant::strict(&[TextJson, Count], Text, |row| part(row, &[step(row)], Wants::FieldText)),
];

const PATH: &[Variant] = &[
    Variant::strict(&[Kept, Texts], Kept, |row| Ok(at_path(row, list(row.get(1))).map(bytes_of))),
    Variant::strict(&[TextJson, Texts], TextJson, |row| part(row, &steps(list(row.get(1))), Wants::Path)),
];

const PATH_TEXT: &[Variant] = &[
    Variant::strict(&[Kept, Texts], Text, |row| Ok(shown(at_path(row, list(row.get(1)))))),
    Variant::strict(&[TextJson, Texts], Text, |row| part(row, &steps(list(row.get(1))), Wants::PathText)),
];

const KEPT_PATH: &[Variant] =
    &[Variant::variadic(&[Kept, Text], Kept, |row| Ok(at_path(row, row.get(1..).unwrap_or_default()).map(bytes_of)))];
const KEPT_PATH_TEXT: &[Variant] =
    &[Variant::variadic(&[Kept, Text], Text, |row| Ok(shown(at_path(row, row.get(1..).unwrap_or_default()))))];
const JSON_PATH: &[Variant] = &[Variant::variadic(&[TextJson, Text], TextJson, |row| {
    part(row, &steps(row.get(1..).unwrap_or_default()), Wants::Path)
})];
const JSON_PATH_TEXT: &[Variant] = &[Variant::variadic(&[TextJson, Text], Text, |row| {
    part(row, &steps(row.get(1..).unwrap_or_default()), Wants::PathText)
})];
const KEY: &[Variant] =
    &[Variant::strict(&[Kept], Kept, |row| Ok(Some(Cell::Bytes(Jsonb::key_of(octets(row.first())).to_vec()))))];

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named: [(&'static str, &'static [Variant]); 4] = [
        ("jsonb_extract_path", KEPT_PATH),
        ("jsonb_extract_path_text", KEPT_PATH_TEXT),
        ("json_extract_path", JSON_PATH),
        ("json_extract_path_text", JSON_PATH_TEXT),
    ];
    named.into_iter().map(|(name, variants)| function(name, variants))
}

/// The function of `->`, `->>`, `#>` or `#>>`.
pub(crate) fn operator(op: &BinaryOperator) -> Option<ScalarUDF> {
    Some(match op {
        BinaryOperator::Arrow => function("json_object_field", FIELD),
        BinaryOperator::LongArrow => function("json_object_field_text", FIELD_TEXT),
        BinaryOperator::HashArrow => function("json_extract_path_op", PATH),
        BinaryOperator::HashLongArrow => function("json_extract_path_text_op", PATH_TEXT),
        _ => {
            return super::change::operator(op)
                .or_else(|| super::contain::operator(op))
                .or_else(|| super::path::operator(op));
        }
    })
}

/// The part of a `jsonb` that a subscript names: a key, or the number of an item.
pub(crate) fn subscripted(json: Expr, place: Expr) -> Expr {
    function("jsonb_extract_path", KEPT_PATH).call(vec![json, cast(place, ArrowType::Utf8View)])
}

/// What `jsonb` is compared by: the bytes that equal values have in common.
pub(crate) fn key() -> ScalarUDF {
    function("jsonb_key", KEY)
}

fn shown(value: Option<Jsonb>) -> Option<Cell> {
    value.and_then(|value| Jsonb::text_of(value.as_bytes())).map(Cell::Text)
}

/// The value at the end of a path; `None` where it ends before.
fn at_path(row: &[Option<Cell>], path: &[Option<Cell>]) -> Option<Jsonb> {
    let Some(Some(Cell::Bytes(whole))) = row.first() else { return None };
    let mut value = Jsonb::from_bytes(whole);
    for step in path {
        let Some(Cell::Text(step)) = step else { return None };
        value = match JsonbKind::of(value.as_bytes()) {
            JsonbKind::Array(_) => Jsonb::item(value.as_bytes(), step.trim().parse().ok()?)?,
            _ => Jsonb::field(value.as_bytes(), step)?,
        };
    }
    Some(value)
}

/// One step into a `json`.
enum Step<'a> {
    /// To a member, or an item by its number as a text.
    Key(&'a str),
    Item(i64),
    /// To nowhere.
    Null,
}

fn step(row: &[Option<Cell>]) -> Step<'_> {
    match row.get(1) {
        Some(Some(Cell::Integer(place))) => Step::Item(*place),
        key => Step::Key(text(key)),
    }
}

fn steps(path: &[Option<Cell>]) -> Vec<Step<'_>> {
    let mut steps = Vec::with_capacity(path.len());
    for cell in path {
        steps.push(if let Some(Cell::Text(key)) = cell { Step::Key(key) } else { Step::Null });
    }
    steps
}

/// What is wanted of a `json`: a part as it was written, or as `->>` has it. In a path the number of an item is a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    Field,
    FieldText,
    Path,
    PathText,
}

/// The part of a `json` at the end of a path.
fn part(row: &[Option<Cell>], path: &[Step<'_>], wants: Wants) -> Given {
    let Some(Some(Cell::Text(whole))) = row.first() else { return Ok(None) };
    let is_path = matches!(wants, Wants::Path | Wants::PathText);
    let mut rest = whole.as_str();
    for step in path {
        match range_of(rest, step, is_path)? {
            Some(range) => rest = &rest[range],
            None => return Ok(None),
        }
    }
    if matches!(wants, Wants::Field | Wants::Path) {
        return Ok(Some(Cell::Text(rest.trim().to_owned())));
    }
    Ok(match members(rest).map_err(|fault| faulty(fault, rest))? {
        Members::Plain { text, .. } => text.map(Cell::Text),
        Members::Array(_) | Members::Object(_) => Some(Cell::Text(rest.trim().to_owned())),
    })
}

fn range_of(text: &str, step: &Step<'_>, is_path: bool) -> Result<Option<Range<usize>>, SqlError> {
    let found = members(text).map_err(|fault| faulty(fault, text))?;
    Ok(match (found, step) {
        (Members::Object(members), Step::Key(key)) => {
            // The last of several is the one that counts.
            members.into_iter().rev().find(|(known, _)| known == key).map(|(_, range)| range)
        }
        (Members::Array(items), Step::Item(place)) => item(&items, *place),
        (Members::Array(items), Step::Key(key)) if is_path => key.trim().parse().ok().and_then(|at| item(&items, at)),
        _ => None,
    })
}

fn item(items: &[Range<usize>], place: i64) -> Option<Range<usize>> {
    let count = i64::try_from(items.len()).ok()?;
    let place = if place < 0 { count.checked_add(place)? } else { place };
    items.get(usize::try_from(place).ok()?).cloned()
}
