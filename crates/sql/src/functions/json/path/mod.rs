//! Paths of SQL/JSON: `jsonb_path_query` and its kin, `@?` and `@@`.
//!
//! | file | subject |
//! |---|---|
//! | `lexer` | a path's text as tokens |
//! | `parser` | tokens as a tree |
//! | `tree` | the tree, and how PostgreSQL shows it |
//! | `run` | the tree applied to a value |
//! | `datetimes` | dates and times: their texts and their order |
mod datetimes;
mod lexer;
mod parser;
mod run;
mod tree;

use std::cell::RefCell;
use std::rc::Rc;

use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::json::Json;

use self::run::Subject;
pub(crate) use self::tree::JsonPath;
use super::cells::{Given, kept, tree, wrong};
use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, text};

use Kind::{Boolean, Jsonb as Kept, Jsonbs, Path};

/// What is wanted of what a path gives.
#[derive(Clone, Copy)]
enum Wants {
    Whether,
    /// The truth that it gives.
    Match,
    Rows,
    Array,
    First,
}

/// The ways to call a function: with variables, and with errors that are none; whether the zone of the session may matter.
macro_rules! variants {
    ($wants:ident, $gives:ident, $zone:literal) => {
        &[
            Variant::strict(&[Kept, Path], $gives, |row| answer(row, Wants::$wants, false, $zone)).checking(check),
            Variant::strict(&[Kept, Path, Kept], $gives, |row| answer(row, Wants::$wants, false, $zone))
                .checking(check),
            Variant::strict(&[Kept, Path, Kept, Boolean], $gives, |row| {
                answer(row, Wants::$wants, row.get(3) == Some(&Some(Cell::Boolean(true))), $zone)
            })
            .checking(check),
        ]
    };
}

const EXISTS: &[Variant] = variants!(Whether, Boolean, false);
const EXISTS_TZ: &[Variant] = variants!(Whether, Boolean, true);
const MATCH: &[Variant] = variants!(Match, Boolean, false);
const MATCH_TZ: &[Variant] = variants!(Match, Boolean, true);
const ROWS: &[Variant] = variants!(Rows, Jsonbs, false);
const ROWS_TZ: &[Variant] = variants!(Rows, Jsonbs, true);
const ARRAY: &[Variant] = variants!(Array, Kept, false);
const ARRAY_TZ: &[Variant] = variants!(Array, Kept, true);
const FIRST: &[Variant] = variants!(First, Kept, false);
const FIRST_TZ: &[Variant] = variants!(First, Kept, true);
const EXISTS_OPERATOR: &[Variant] =
    &[Variant::strict(&[Kept, Path], Boolean, |row| answer(row, Wants::Whether, true, false)).checking(check)];
const MATCH_OPERATOR: &[Variant] =
    &[Variant::strict(&[Kept, Path], Boolean, |row| answer(row, Wants::Match, true, false)).checking(check)];
const PATH: &[Variant] = &[
    Variant::strict(&[Path], Path, |row| shown(text(row.first()))).checking(check),
    Variant::strict(&[Kind::Text], Path, |row| shown(text(row.first()))),
];

/// The function that reads a path.
pub(crate) const CAST: &str = "jsonpath";

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named: [(&'static str, &'static [Variant]); 13] = [
        (CAST, PATH),
        ("jsonb_path_exists", EXISTS),
        ("jsonb_path_exists_tz", EXISTS_TZ),
        ("jsonb_path_match", MATCH),
        ("jsonb_path_match_tz", MATCH_TZ),
        ("\0jsonb path items", ROWS),
        ("\0jsonb path items tz", ROWS_TZ),
        ("jsonb_path_query_array", ARRAY),
        ("jsonb_path_query_array_tz", ARRAY_TZ),
        ("jsonb_path_query_first", FIRST),
        ("jsonb_path_query_first_tz", FIRST_TZ),
        ("jsonb_path_exists_opr", EXISTS_OPERATOR),
        ("jsonb_path_match_opr", MATCH_OPERATOR),
    ];
    named.into_iter().map(|(name, variants)| function(name, variants))
}

/// The function of one of these operators.
pub(super) fn operator(op: &BinaryOperator) -> Option<ScalarUDF> {
    Some(match op {
        BinaryOperator::AtQuestion => function("jsonb_path_exists_opr", EXISTS_OPERATOR),
        BinaryOperator::AtAt => function("jsonb_path_match_opr", MATCH_OPERATOR),
        _ => return None,
    })
}

/// The path of a text. Most calls ask for the one of the call before.
fn path_of(text: &str) -> Result<Rc<JsonPath>, SqlError> {
    thread_local! {
        static LAST: RefCell<Option<(String, Rc<JsonPath>)>> = const { RefCell::new(None) };
    }
    LAST.with_borrow_mut(|last| match last {
        Some((known, path)) if known == text => Ok(path.clone()),
        _ => {
            let path = Rc::new(JsonPath::parse(text)?);
            *last = Some((text.to_owned(), path.clone()));
            Ok(path)
        }
    })
}

/// An error if a text is no path.
fn check(text: &str) -> Result<(), SqlError> {
    path_of(text).map(drop)
}

fn shown(text: &str) -> Given {
    Ok(Some(Cell::Text(path_of(text)?.to_string())))
}

fn answer(row: &[Option<Cell>], wants: Wants, is_silent: bool, uses_zone: bool) -> Given {
    let path = path_of(text(row.get(1)))?;
    let (root, variables) = (tree(row.first()), row.get(2).map(|cell| tree(Some(cell))));
    if !matches!(variables, None | Some(Json::Object(_))) {
        let detail = "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.";
        return Err(wrong("\"vars\" argument is not an object").detail(detail));
    }
    let subject = Subject { root: &root, variables: variables.as_ref(), is_silent, uses_zone };
    if let Wants::Whether = wants {
        return Ok(path.has_items(subject)?.map(Cell::Boolean));
    }
    let (mut items, _) = path.items(subject)?;
    Ok(match wants {
        Wants::Rows => Some(Cell::List(items.iter().map(|item| Some(kept(item))).collect())),
        Wants::Array => Some(kept(&Json::Array(items))),
        Wants::First => items.first().map(kept),
        Wants::Match | Wants::Whether => match (items.pop(), items.is_empty()) {
            (Some(Json::Boolean(truth)), true) => Some(Cell::Boolean(truth)),
            (Some(Json::Null), true) => None,
            _ if is_silent => None,
            _ => return Err(SqlError::new("22038", "single boolean result is expected")),
        },
    })
}
