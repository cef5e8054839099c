//! JSON taken apart: what it is, how long it is, and its items, keys and members as arrays, of which functions in FROM make rows.
use datafusion::logical_expr::ScalarUDF;
use engine::json::{Json, Jsonb, JsonbKind, Members, members};

use super::cells::{Given, faulty, kept, tree, wrong};
use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, octets, text};

use Kind::{Integer, Json as TextJson, Jsonb as Kept, Jsonbs, Jsons, Text, Texts};

/// What of a value is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Items,
    Keys,
    /// The keys for `each`, which has other words for its errors.
    Names,
    Values,
}

const KIND: &[Variant] =
    &[Variant::strict(&[Kept], Text, |row| Ok(Some(Cell::Text(JsonbKind::of(octets(row.first())).name().to_owned()))))];
const JSON_KIND: &[Variant] = &[Variant::strict(&[TextJson], Text, |row| {
    let kind = match parts_of(text(row.first()))? {
        Members::Plain { kind, .. } => kind,
        Members::Array(_) => "array",
        Members::Object(_) => "object",
    };
    Ok(Some(Cell::Text(kind.to_owned())))
})];
const LENGTH: &[Variant] = &[Variant::strict(&[Kept], Integer, |row| match JsonbKind::of(octets(row.first())) {
    JsonbKind::Array(count) => Ok(Some(Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX)))),
    JsonbKind::Object(_) => Err(wrong("cannot get array length of a non-array")),
    _ => Err(wrong("cannot get array length of a scalar")),
})];
const JSON_LENGTH: &[Variant] = &[Variant::strict(&[TextJson], Integer, |row| match parts_of(text(row.first()))? {
    Members::Array(items) => Ok(Some(Cell::Integer(i64::try_from(items.len()).unwrap_or(i64::MAX)))),
    Members::Object(_) => Err(wrong("cannot get array length of a non-array")),
    Members::Plain { .. } => Err(wrong("cannot get array length of a scalar")),
})];

const ITEMS: &[Variant] = &[Variant::strict(&[Kept], Jsonbs, |row| of_kept(row, Part::Items, false))];
const ITEM_TEXTS: &[Variant] = &[Variant::strict(&[Kept], Texts, |row| of_kept(row, Part::Items, true))];
const KEYS: &[Variant] = &[Variant::strict(&[Kept], Texts, |row| of_kept(row, Part::Keys, true))];
const NAMES: &[Variant] = &[Variant::strict(&[Kept], Texts, |row| of_kept(row, Part::Names, true))];
const VALUES: &[Variant] = &[Variant::strict(&[Kept], Jsonbs, |row| of_kept(row, Part::Values, false))];
const VALUE_TEXTS: &[Variant] = &[Variant::strict(&[Kept], Texts, |row| of_kept(row, Part::Values, true))];
const JSON_ITEMS: &[Variant] = &[Variant::strict(&[TextJson], Jsons, |row| of_text(row, Part::Items, false))];
const JSON_ITEM_TEXTS: &[Variant] = &[Variant::strict(&[TextJson], Texts, |row| of_text(row, Part::Items, true))];
const JSON_KEYS: &[Variant] = &[Variant::strict(&[TextJson], Texts, |row| of_text(row, Part::Keys, true))];
const JSON_NAMES: &[Variant] = &[Variant::strict(&[TextJson], Texts, |row| of_text(row, Part::Names, true))];
const JSON_VALUES: &[Variant] = &[Variant::strict(&[TextJson], Jsons, |row| of_text(row, Part::Values, false))];
const JSON_VALUE_TEXTS: &[Variant] = &[Variant::strict(&[TextJson], Texts, |row| of_text(row, Part::Values, true))];

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named: [(&'static str, &'static [Variant]); 16] = [
        ("jsonb_typeof", KIND),
        ("json_typeof", JSON_KIND),
        ("jsonb_array_length", LENGTH),
        ("json_array_length", JSON_LENGTH),
        ("\0jsonb items", ITEMS),
        ("\0jsonb item texts", ITEM_TEXTS),
        ("\0jsonb keys", KEYS),
        ("\0jsonb names", NAMES),
        ("\0jsonb values", VALUES),
        ("\0jsonb value texts", VALUE_TEXTS),
        ("\0json items", JSON_ITEMS),
        ("\0json item texts", JSON_ITEM_TEXTS),
        ("\0json keys", JSON_KEYS),
        ("\0json names", JSON_NAMES),
        ("\0json values", JSON_VALUES),
        ("\0json value texts", JSON_VALUE_TEXTS),
    ];
    named.into_iter().map(|(name, variants)| function(name, variants))
}

fn parts_of(text: &str) -> Result<Members, SqlError> {
    members(text).map_err(|fault| faulty(fault, text))
}

/// What a `jsonb` that has no such parts is told.
fn refused(json: &Json, part: Part) -> SqlError {
    wrong(match (part, json) {
        (Part::Items, Json::Object(_)) => "cannot extract elements from an object",
        (Part::Items, _) => "cannot extract elements from a scalar",
        (Part::Keys, Json::Array(_)) => "cannot call jsonb_object_keys on an array",
        (Part::Keys, _) => "cannot call jsonb_object_keys on a scalar",
        (Part::Names | Part::Values, _) => "cannot call jsonb_each on a non-object",
    })
}

fn of_kept(row: &[Option<Cell>], part: Part, as_text: bool) -> Given {
    let json = tree(row.first());
    let value = |json: &Json| match (as_text, json) {
        (false, json) => Some(kept(json)),
        (true, json) => Jsonb::text_of(Jsonb::of(json).as_bytes()).map(Cell::Text),
    };
    Ok(Some(Cell::List(match (part, &json) {
        (Part::Items, Json::Array(items)) => items.iter().map(value).collect(),
        (Part::Keys | Part::Names, Json::Object(members)) => {
            members.iter().map(|(key, _)| Some(Cell::Text(key.clone()))).collect()
        }
        (Part::Values, Json::Object(members)) => members.iter().map(|(_, json)| value(json)).collect(),
        _ => return Err(refused(&json, part)),
    })))
}

fn of_text(row: &[Option<Cell>], part: Part, as_text: bool) -> Given {
    let whole = text(row.first());
    let value = |range: std::ops::Range<usize>| -> Result<Option<Cell>, SqlError> {
        let part = &whole[range];
        Ok(match (as_text, parts_of(part)?) {
            (true, Members::Plain { text, .. }) => text.map(Cell::Text),
            _ => Some(Cell::Text(part.to_owned())),
        })
    };
    Ok(Some(Cell::List(match (part, parts_of(whole)?) {
        (Part::Items, Members::Array(items)) => items.into_iter().map(value).collect::<Result<_, _>>()?,
        (Part::Keys | Part::Names, Members::Object(members)) => {
            members.into_iter().map(|(key, _)| Some(Cell::Text(key))).collect()
        }
        (Part::Values, Members::Object(members)) => {
            members.into_iter().map(|(_, range)| value(range)).collect::<Result<_, _>>()?
        }
        (part, found) => return Err(refused_text(&found, part)),
    })))
}

/// What a `json` that has no such parts is told.
fn refused_text(found: &Members, part: Part) -> SqlError {
    wrong(match (part, found) {
        (Part::Items, Members::Object(_)) => "cannot call json_array_elements on a non-array",
        (Part::Items, _) => "cannot call json_array_elements on a scalar",
        (Part::Keys, Members::Array(_)) => "cannot call json_object_keys on an array",
        (Part::Keys, _) => "cannot call json_object_keys on a scalar",
        (Part::Names | Part::Values, Members::Array(_)) => "cannot deconstruct an array as an object",
        (Part::Names | Part::Values, _) => "cannot deconstruct a scalar",
    })
}
