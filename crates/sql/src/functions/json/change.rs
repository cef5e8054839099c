//! A `jsonb` with parts added, set or left out: `||`, `-`, `#-`, `jsonb_set`, `jsonb_insert`, `jsonb_strip_nulls`.
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::json::{Json, Jsonb};

use super::cells::{Given, faulty, kept, tree, wrong};
use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, list, text, whole};

use Kind::{Boolean, Count, Json as TextJson, Jsonb as Kept, Text, Texts};

const CONCAT: &[Variant] =
    &[Variant::strict(&[Kept, Kept], Kept, |row| Ok(Some(kept(&concatenated(tree(row.first()), tree(row.get(1)))))))];
const DELETE: &[Variant] = &[
    Variant::strict(&[Kept, Text], Kept, |row| without_keys(tree(row.first()), &[text(row.get(1))])),
    Variant::strict(&[Kept, Count], Kept, |row| without_item(tree(row.first()), whole(row.get(1)))),
    Variant::strict(&[Kept, Texts], Kept, |row| {
        let keys = list(row.get(1)).iter().filter(|key| key.is_some());
        without_keys(tree(row.first()), &keys.map(|key| text(Some(key))).collect::<Vec<_>>())
    }),
];
const DELETE_PATH: &[Variant] = &[Variant::strict(&[Kept, Texts], Kept, |row| {
    changed(row, Put { new: None, creates: false, inserts: None }, "delete path in")
})];
const SET: &[Variant] = &[
    Variant::strict(&[Kept, Texts, Kept], Kept, |row| set(row, true)),
    Variant::strict(&[Kept, Texts, Kept, Boolean], Kept, |row| set(row, is_true(row.get(3)))),
];
const INSERT: &[Variant] = &[
    Variant::strict(&[Kept, Texts, Kept], Kept, |row| insert(row, false)),
    Variant::strict(&[Kept, Texts, Kept, Boolean], Kept, |row| insert(row, is_true(row.get(3)))),
];
const STRIP: &[Variant] = &[Variant::strict(&[Kept], Kept, |row| Ok(Some(kept(&stripped(tree(row.first()))))))];
const STRIP_JSON: &[Variant] = &[Variant::strict(&[TextJson], TextJson, |row| {
    let read = Json::parse(text(row.first())).map_err(|fault| faulty(fault, text(row.first())))?;
    Ok(Some(Cell::Text(super::written::compact(&stripped(read)))))
})];
const PRETTY: &[Variant] = &[Variant::strict(&[Kept], Text, |row| Ok(Some(Cell::Text(tree(row.first()).pretty()))))];

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named: [(&'static str, &'static [Variant]); 8] = [
        ("jsonb_set", SET),
        ("jsonb_insert", INSERT),
        ("jsonb_strip_nulls", STRIP),
        ("json_strip_nulls", STRIP_JSON),
        ("jsonb_pretty", PRETTY),
        ("jsonb_concat", CONCAT),
        ("jsonb_delete", DELETE),
        ("jsonb_delete_path", DELETE_PATH),
    ];
    named.into_iter().map(|(name, variants)| function(name, variants))
}

/// The function of one of these operators.
pub(super) fn operator(op: &BinaryOperator) -> Option<ScalarUDF> {
    Some(match op {
        BinaryOperator::StringConcat => function("jsonb_concat", CONCAT),
        BinaryOperator::Minus => function("jsonb_delete", DELETE),
        BinaryOperator::HashMinus => function("jsonb_delete_path", DELETE_PATH),
        _ => return None,
    })
}

fn is_true(cell: Option<&Option<Cell>>) -> bool {
    matches!(cell, Some(Some(Cell::Boolean(true))))
}

/// Two objects become one, and anything else the items of an array.
fn concatenated(left: Json, right: Json) -> Json {
    let items = |json: Json| if let Json::Array(items) = json { items } else { vec![json] };
    match (left, right) {
        (Json::Object(mut members), Json::Object(others)) => {
            members.extend(others);
            Json::object(members)
        }
        (left, right) => {
            let mut all = items(left);
            all.extend(items(right));
            Json::Array(all)
        }
    }
}

fn without_keys(json: Json, keys: &[&str]) -> Given {
    let rest = match json {
        Json::Object(members) => {
            Json::Object(members.into_iter().filter(|(key, _)| !keys.contains(&key.as_str())).collect())
        }
        Json::Array(items) => {
            let is_kept = |item: &Json| !matches!(item, Json::Text(text) if keys.contains(&text.as_str()));
            Json::Array(items.into_iter().filter(is_kept).collect())
        }
        _ => return Err(wrong("cannot delete from scalar")),
    };
    Ok(Some(kept(&rest)))
}

fn without_item(json: Json, place: i64) -> Given {
    let mut items = match json {
        Json::Array(items) => items,
        Json::Object(_) => return Err(wrong("cannot delete from object using integer index")),
        _ => return Err(wrong("cannot delete from scalar")),
    };
    if let Some(at) = place_in(&items, place) {
        items.remove(at);
    }
    Ok(Some(kept(&Json::Array(items))))
}

/// The index of a place, which counts from the end if it is negative; `None` if there is no such item.
fn place_in(items: &[Json], place: i64) -> Option<usize> {
    let count = i64::try_from(items.len()).ok()?;
    let place = if place < 0 { count.checked_add(place)? } else { place };
    usize::try_from(place).ok().filter(|place| *place < items.len())
}

/// What becomes of the value at the end of a path.
struct Put {
    /// The new value, or none.
    new: Option<Json>,
    /// Whether it is put where there is none.
    creates: bool,
    /// Whether it is put beside an item, behind it or before.
    inserts: Option<bool>,
}

fn set(row: &[Option<Cell>], creates: bool) -> Given {
    changed(row, Put { new: Some(tree(row.get(2))), creates, inserts: None }, "set path in")
}

fn insert(row: &[Option<Cell>], is_behind: bool) -> Given {
    let put = Put { new: Some(tree(row.get(2))), creates: true, inserts: Some(is_behind) };
    changed(row, put, "set path in")
}

fn changed(row: &[Option<Cell>], put: Put, what: &str) -> Given {
    let mut json = tree(row.first());
    if !matches!(json, Json::Array(_) | Json::Object(_)) {
        return Err(wrong(format!("cannot {what} scalar")));
    }
    let mut path = Vec::new();
    for (at, step) in list(row.get(1)).iter().enumerate() {
        match step {
            Some(Cell::Text(step)) => path.push(step.as_str()),
            _ => return Err(SqlError::new("22004", format!("path element at position {} is null", at + 1))),
        }
    }
    if !path.is_empty() {
        put_at(&mut json, &path, 0, put)?;
    }
    Ok(Some(kept(&json)))
}

fn put_at(json: &mut Json, path: &[&str], at: usize, put: Put) -> Result<(), SqlError> {
    let is_last = at + 1 == path.len();
    match json {
        Json::Object(members) => {
            let found = members.iter().position(|(key, _)| key == path[at]);
            match (found, is_last) {
                (Some(found), false) => return put_at(&mut members[found].1, path, at + 1, put),
                (Some(_), true) if put.inserts.is_some() => {
                    let hint = "Try using the function jsonb_set to replace key value.";
                    return Err(wrong("cannot replace existing key").hint(hint));
                }
                (Some(found), true) => match put.new {
                    Some(new) => members[found].1 = new,
                    None => drop(members.remove(found)),
                },
                (None, true) if put.creates => {
                    let mut all = std::mem::take(members);
                    all.extend(put.new.map(|new| (path[at].to_owned(), new)));
                    *json = Json::object(all);
                }
                (None, _) => {}
            }
        }
        Json::Array(items) => {
            let not_whole = || {
                let message = format!("path element at position {} is not an integer: \"{}\"", at + 1, path[at]);
                SqlError::new("22P02", message)
            };
            let place: i64 = path[at].trim().parse().map_err(|_| not_whole())?;
            match (place_in(items, place), is_last) {
                (Some(found), false) => return put_at(&mut items[found], path, at + 1, put),
                (Some(found), true) => match (put.new, put.inserts) {
                    (Some(new), Some(is_behind)) => items.insert(found + usize::from(is_behind), new),
                    (Some(new), None) => items[found] = new,
                    (None, _) => drop(items.remove(found)),
                },
                (None, true) if put.creates => {
                    let end = if place < 0 { 0 } else { items.len() };
                    put.new.into_iter().for_each(|new| items.insert(end, new));
                }
                (None, _) => {}
            }
        }
        _ => {}
    }
    Ok(())
}

/// Without the members of objects that are `null`.
fn stripped(json: Json) -> Json {
    match json {
        Json::Array(items) => Json::Array(items.into_iter().map(stripped).collect()),
        Json::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| *value != Json::Null);
            Json::Object(kept.map(|(key, value)| (key, stripped(value))).collect())
        }
        plain => plain,
    }
}

/// The value without parts of a `jsonb`, as the text that a cast reads; an error names what it is instead.
pub(crate) fn plain_text(bytes: &[u8], wants_boolean: bool, to: &str) -> Result<String, SqlError> {
    let json = Jsonb::tree_of(bytes);
    match (&json, wants_boolean) {
        (Json::Boolean(_), true) | (Json::Number(_), false) => Ok(json.to_string()),
        _ => {
            let kind = match json {
                Json::Array(_) => "array",
                Json::Object(_) => "object",
                Json::Null => "null",
                Json::Text(_) => "string",
                Json::Number(_) => "numeric",
                Json::Boolean(_) => "boolean",
            };
            Err(wrong(format!("cannot cast jsonb {kind} to type {to}")))
        }
    }
}
