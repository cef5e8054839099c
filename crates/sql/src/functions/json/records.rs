//! Members of objects as the texts of columns, for `jsonb_to_recordset` and its kin.
use datafusion::logical_expr::ScalarUDF;
use engine::json::Json;

use super::cells::{Given, tree, wrong};
use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, text};
use crate::functions::tables::json_records::{COLUMN, Reads};

use Kind::{Jsonb as Kept, Text, Texts};

const COLUMNS: &[Variant] = &[Variant::with_nulls(&[Kept, Text, Text, Text], Texts, column)];

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    std::iter::once(function(COLUMN, COLUMNS))
}

/// The texts of a column, of these arguments: the value, the name of the column, the function that was called, as what to read.
fn column(row: &[Option<Cell>]) -> Given {
    let (name, called, reads) = (text(row.get(1)), text(row.get(2)), Reads::of(text(row.get(3))));
    let is_set = called.ends_with("set");
    if let None | Some(None) = row.first() {
        // A function that gives one row gives one without values.
        return Ok(Some(Cell::List(if is_set { Vec::new() } else { vec![None] })));
    }
    let json = tree(row.first());
    let refused = |kind: &str| {
        wrong(match (is_set, called.starts_with("jsonb_")) {
            (true, true) => format!("cannot call {called} on a non-array"),
            (true, false) => format!("cannot call {called} on {kind}"),
            // So is called what does it in PostgreSQL.
            (false, _) => format!("cannot call populate_composite on {kind}"),
        })
    };
    let objects = match &json {
        Json::Object(_) if is_set => return Err(refused("an object")),
        Json::Object(_) => std::slice::from_ref(&json),
        Json::Array(items) if is_set => &items[..],
        Json::Array(_) => return Err(refused("an array")),
        _ => return Err(refused("a scalar")),
    };
    let cell = |object: &Json| match object {
        Json::Object(_) => object.field(name).map_or(Ok(None), |value| member(value, name, reads)),
        _ => Err(wrong(format!("argument of {called} must be an array of objects"))),
    };
    Ok(Some(Cell::List(objects.iter().map(cell).collect::<Result<_, _>>()?)))
}

fn member(value: &Json, name: &str, reads: Reads) -> Given {
    Ok(Some(Cell::Text(match (value, reads) {
        (Json::Null, _) => return Ok(None),
        (Json::Text(text), Reads::Text | Reads::Array) => text.clone(),
        (Json::Array(items), Reads::Array) => array_text(items),
        (_, Reads::Array) => {
            let hint = format!("See the value of key \"{name}\".");
            return Err(SqlError::new("22P02", "expected JSON array").hint(hint));
        }
        (value, _) => value.to_string(),
    })))
}

/// An array's text as PostgreSQL writes arrays.
fn array_text(items: &[Json]) -> String {
    let item = |item: &Json| match item {
        Json::Null => "NULL".to_owned(),
        Json::Array(items) => array_text(items),
        Json::Text(text) => quoted(text),
        Json::Object(_) => quoted(&item.to_string()),
        plain => plain.to_string(),
    };
    format!("{{{}}}", items.iter().map(item).collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
