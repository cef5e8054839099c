//! The functions of `hstore`, pairs of texts: what PostgreSQL has as operators are functions here, which the planner calls.
use datafusion::logical_expr::ScalarUDF;
use engine::json::{Json, Jsonb};

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, list, text};
use crate::values::hstore::{Pairs, ordered, parsed, written};

use Kind::{Boolean, Json as TextJson, Jsonb as Kept, Text, Texts};

type Row = [Option<Cell>];
type Given = Result<Option<Cell>, SqlError>;

const GET: &[Variant] =
    &[Variant::strict(&[Text, Text], Text, value_of), Variant::strict(&[Text, Texts], Texts, values_of)];
const EXIST: &[Variant] = &[Variant::strict(&[Text, Text], Boolean, |row| {
    Ok(Some(Cell::Boolean(find(&pairs(row, 0)?, text(row.get(1))).is_some())))
})];
const ANY: &[Variant] = &[Variant::strict(&[Text, Texts], Boolean, |row| has_keys(row, false))];
const ALL: &[Variant] = &[Variant::strict(&[Text, Texts], Boolean, |row| has_keys(row, true))];
const CONTAINS: &[Variant] = &[Variant::strict(&[Text, Text], Boolean, |row| {
    let (whole, part) = (pairs(row, 0)?, pairs(row, 1)?);
    Ok(Some(Cell::Boolean(part.iter().all(|(key, value)| find(&whole, key) == Some(value)))))
})];
const CONCAT: &[Variant] = &[Variant::strict(&[Text, Text], Text, |row| {
    // Of one key the second value holds.
    let mut all = pairs(row, 1)?;
    all.extend(pairs(row, 0)?);
    Ok(Some(Cell::Text(written(&ordered(all)))))
})];
const DELETE: &[Variant] = &[
    Variant::strict(&[Text, Text], Text, |row| kept(pairs(row, 0)?, |key, _| key != text(row.get(1)))),
    Variant::strict(&[Text, Texts], Text, |row| {
        let keys = texts(row.get(1));
        kept(pairs(row, 0)?, |key, _| !keys.contains(&Some(key)))
    }),
];
const MINUS: &[Variant] = &[Variant::strict(&[Text, Text], Text, |row| {
    let others = pairs(row, 1)?;
    kept(pairs(row, 0)?, |key, value| find(&others, key) != Some(value))
})];

/// The operators under the names of their functions.
const OPERATORS: [(&str, &[Variant]); 8] = [
    ("\0hstore ->", GET),
    ("\0hstore ?", EXIST),
    ("\0hstore ?|", ANY),
    ("\0hstore ?&", ALL),
    ("\0hstore @>", CONTAINS),
    ("\0hstore ||", CONCAT),
    ("\0hstore - key", DELETE),
    ("\0hstore -", MINUS),
];

/// The function that an operator is, by its name behind `hstore`.
pub(crate) fn operator(name: &str) -> Option<ScalarUDF> {
    let found = OPERATORS.iter().find(|(known, _)| known.strip_prefix("\0hstore ") == Some(name));
    found.map(|(known, variants)| function(known, variants))
}

/// The function that makes a `jsonb` of one, or a `json`.
pub(crate) fn as_json(is_kept: bool) -> ScalarUDF {
    match is_kept {
        true => function("hstore_to_jsonb", TO_JSONB),
        false => function("hstore_to_json", TO_JSON),
    }
}

const TO_JSON: &[Variant] = &[Variant::strict(&[Text], TextJson, |row| Ok(Some(Cell::Text(json(row)?))))];
const TO_JSONB: &[Variant] = &[Variant::strict(&[Text], Kept, |row| {
    let kept = Jsonb::parse(&json(row)?).map_err(|_| SqlError::new("XX000", "pairs are no JSON"))?;
    Ok(Some(Cell::Bytes(kept.as_bytes().to_vec())))
})];

/// Whether a function gives a `hstore`.
pub(crate) fn gives_pairs(name: &str) -> bool {
    matches!(name, "hstore" | "slice" | "delete" | "\0hstore ||" | "\0hstore -" | "\0hstore - key")
}

/// The functions under their names.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    const KEYS: &[Variant] =
        &[Variant::strict(&[Text], Texts, |row| listed(pairs(row, 0)?.into_iter().map(|(key, _)| Some(key))))];
    const VALUES: &[Variant] =
        &[Variant::strict(&[Text], Texts, |row| listed(pairs(row, 0)?.into_iter().map(|(_, value)| value)))];
    const ARRAY: &[Variant] = &[Variant::strict(&[Text], Texts, |row| {
        listed(pairs(row, 0)?.into_iter().flat_map(|(key, value)| [Some(key), value]))
    })];
    const DEFINED: &[Variant] = &[Variant::strict(&[Text, Text], Boolean, |row| {
        let pairs = pairs(row, 0)?;
        Ok(Some(Cell::Boolean(find(&pairs, text(row.get(1))).is_some_and(Option::is_some))))
    })];
    const SLICE: &[Variant] = &[Variant::strict(&[Text, Texts], Text, |row| {
        let keys = texts(row.get(1));
        kept(pairs(row, 0)?, |key, _| keys.contains(&Some(key)))
    })];
    const SLICE_ARRAY: &[Variant] = &[Variant::strict(&[Text, Texts], Texts, values_of)];
    const MADE: &[Variant] = &[
        Variant::with_nulls(&[Text, Text], Text, |row| {
            let Some(Cell::Text(key)) = &row[0] else { return Ok(None) };
            let value = row[1].is_some().then(|| text(row.get(1)).to_owned());
            Ok(Some(Cell::Text(written(&vec![(key.clone(), value)]))))
        }),
        Variant::strict(&[Texts], Text, of_array),
        Variant::with_nulls(&[Texts, Texts], Text, of_two_arrays),
    ];
    let named: [(&str, &[Variant]); 12] = [
        ("akeys", KEYS),
        ("avals", VALUES),
        ("hstore_to_array", ARRAY),
        ("exist", EXIST),
        ("isexists", EXIST),
        ("defined", DEFINED),
        ("isdefined", DEFINED),
        ("delete", DELETE),
        ("slice", SLICE),
        ("slice_array", SLICE_ARRAY),
        ("hstore", MADE),
        ("fetchval", GET),
    ];
    let json = [as_json(false), as_json(true)];
    named.into_iter().chain(OPERATORS).map(|(name, variants)| function(name, variants)).chain(json)
}

/// The pairs of an argument.
fn pairs(row: &Row, at: usize) -> Result<Pairs, SqlError> {
    let given = text(row.get(at));
    parsed(given).map_err(|fault| SqlError::new("XX000", fault.message(given)))
}

fn find<'p>(pairs: &'p Pairs, wanted: &str) -> Option<&'p Option<String>> {
    pairs.iter().find(|(key, _)| key == wanted).map(|(_, value)| value)
}

fn value_of(row: &Row) -> Given {
    Ok(find(&pairs(row, 0)?, text(row.get(1))).cloned().flatten().map(Cell::Text))
}

fn values_of(row: &Row) -> Given {
    let pairs = pairs(row, 0)?;
    let value = |key: Option<&str>| key.and_then(|key| find(&pairs, key)).cloned().flatten();
    listed(texts(row.get(1)).into_iter().map(value))
}

fn has_keys(row: &Row, all: bool) -> Given {
    let pairs = pairs(row, 0)?;
    let mut keys = texts(row.get(1)).into_iter().flatten();
    let has = |key: &str| find(&pairs, key).is_some();
    Ok(Some(Cell::Boolean(if all { keys.all(has) } else { keys.any(has) })))
}

/// The pairs that pass.
fn kept(mut pairs: Pairs, is_kept: impl Fn(&str, &Option<String>) -> bool) -> Given {
    pairs.retain(|(key, value)| is_kept(key, value));
    Ok(Some(Cell::Text(written(&pairs))))
}

/// The items of an array of texts.
fn texts(cell: Option<&Option<Cell>>) -> Vec<Option<&str>> {
    list(cell).iter().map(|cell| cell.is_some().then(|| text(Some(cell)))).collect()
}

fn listed(items: impl Iterator<Item = Option<String>>) -> Given {
    Ok(Some(Cell::List(items.map(|item| item.map(Cell::Text)).collect())))
}

fn null_key() -> SqlError {
    SqlError::new("22004", "null value not allowed for hstore key")
}

/// Keys and values, one after the other.
fn of_array(row: &Row) -> Given {
    let items = texts(row.first());
    let (paired, rest) = items.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(SqlError::new("2202E", "array must have even number of elements"));
    }
    let pair = |[key, value]: &[Option<&str>; 2]| Ok((key.ok_or_else(null_key)?.to_owned(), value.map(str::to_owned)));
    let pairs = paired.iter().map(pair).collect::<Result<Pairs, SqlError>>()?;
    Ok(Some(Cell::Text(written(&ordered(pairs)))))
}

/// Keys, and values or none.
fn of_two_arrays(row: &Row) -> Given {
    if row[0].is_none() {
        return Ok(None);
    }
    let (keys, values) = (texts(row.first()), row[1].is_some().then(|| texts(row.get(1))));
    if values.as_ref().is_some_and(|values| values.len() != keys.len()) {
        return Err(SqlError::new("2202E", "arrays must have same bounds"));
    }
    let value = |at: usize| values.as_ref().and_then(|values| values[at]).map(str::to_owned);
    let pair = |(at, key): (usize, &Option<&str>)| Ok((key.ok_or_else(null_key)?.to_owned(), value(at)));
    let pairs = keys.iter().enumerate().map(pair).collect::<Result<Pairs, SqlError>>()?;
    Ok(Some(Cell::Text(written(&ordered(pairs)))))
}

fn json(row: &Row) -> Result<String, SqlError> {
    let member = |(key, value): &(String, Option<String>)| {
        let value = value.as_deref().map_or_else(|| "null".to_owned(), Json::quote);
        format!("{}: {value}", Json::quote(key))
    };
    Ok(format!("{{{}}}", pairs(row, 0)?.iter().map(member).collect::<Vec<_>>().join(", ")))
}
