//! Arguments of PostgreSQL's functions by name: each is put in its place, and what is not given is what it is by itself.
//!
//! ```text
//! make_interval(days => 10)                      ->  make_interval(0, 0, 0, 10, 0, 0, 0)
//! jsonb_path_exists(j, '$.a', silent => true)    ->  jsonb_path_exists(j, '$.a', '{}', true)
//! ```
use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

use crate::syntax::identifiers::fold;

/// What an argument is that is not given.
#[derive(Clone, Copy)]
enum Missing {
    /// An error.
    Asked,
    Zero,
    Truth(bool),
    /// An object of JSON without members.
    NoMembers,
}

/// The arguments of a function, by name.
type Places = &'static [(&'static str, Missing)];

const INTERVAL: Places = &[
    ("years", Missing::Zero),
    ("months", Missing::Zero),
    ("weeks", Missing::Zero),
    ("days", Missing::Zero),
    ("hours", Missing::Zero),
    ("mins", Missing::Zero),
    ("secs", Missing::Zero),
];
const DATE: Places = &[("year", Missing::Asked), ("month", Missing::Asked), ("day", Missing::Asked)];
const TIME: Places = &[("hour", Missing::Asked), ("min", Missing::Asked), ("sec", Missing::Asked)];
const TIMESTAMP: Places = &[
    ("year", Missing::Asked),
    ("month", Missing::Asked),
    ("mday", Missing::Asked),
    ("hour", Missing::Asked),
    ("min", Missing::Asked),
    ("sec", Missing::Asked),
];
const JSON_PATH: Places = &[
    ("target", Missing::Asked),
    ("path", Missing::Asked),
    ("vars", Missing::NoMembers),
    ("silent", Missing::Truth(false)),
];
const JSON_SET: Places = &[
    ("jsonb_in", Missing::Asked),
    ("path", Missing::Asked),
    ("replacement", Missing::Asked),
    ("create_if_missing", Missing::Truth(true)),
];
const JSON_INSERT: Places = &[
    ("jsonb_in", Missing::Asked),
    ("path", Missing::Asked),
    ("replacement", Missing::Asked),
    ("insert_after", Missing::Truth(false)),
];

/// The arguments of a function that PostgreSQL has names for.
fn places_of(function: &str) -> Option<Places> {
    Some(match function {
        "make_interval" => INTERVAL,
        "make_date" => DATE,
        "make_time" => TIME,
        "make_timestamp" | "make_timestamptz" => TIMESTAMP,
        "jsonb_path_exists" | "jsonb_path_exists_tz" | "jsonb_path_match" | "jsonb_path_match_tz" => JSON_PATH,
        "jsonb_path_query" | "jsonb_path_query_array" | "jsonb_path_query_first" => JSON_PATH,
        "jsonb_path_query_tz" | "jsonb_path_query_array_tz" | "jsonb_path_query_first_tz" => JSON_PATH,
        "jsonb_set" => JSON_SET,
        "jsonb_insert" => JSON_INSERT,
        _ => return None,
    })
}

/// Puts arguments in their places, if some have names, or if the function takes all of them in any case. A call that is none of the
/// function's stays, and the planner says so.
pub(super) fn put_in_place(function: &str, call: &mut Function) {
    let FunctionArguments::List(list) = &mut call.args else { return };
    let Some(places) = places_of(function) else { return };
    let is_named = |arg: &FunctionArg| matches!(arg, FunctionArg::Named { .. });
    if function != "make_interval" && !list.args.iter().any(is_named) {
        return;
    }
    if let Some(args) = in_place(places, &list.args) {
        list.args = args;
    }
}

fn in_place(places: Places, args: &[FunctionArg]) -> Option<Vec<FunctionArg>> {
    let mut given: Vec<Option<Expr>> = vec![None; places.len()];
    for (at, arg) in args.iter().enumerate() {
        let (at, expr) = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => (at, expr),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                (places.iter().position(|(known, _)| fold(name) == *known)?, expr)
            }
            _ => return None,
        };
        let place = given.get_mut(at).filter(|place| place.is_none())?;
        *place = Some(expr.clone());
    }
    let placed = given.into_iter().zip(places).map(|(expr, (_, missing))| expr.or_else(|| missing.value()));
    placed.map(|expr| Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(expr?)))).collect()
}

impl Missing {
    fn value(self) -> Option<Expr> {
        Some(Expr::value(match self {
            Missing::Asked => return None,
            Missing::Zero => Value::Number("0".to_owned(), false),
            Missing::Truth(truth) => Value::Boolean(truth),
            Missing::NoMembers => Value::SingleQuotedString("{}".to_owned()),
        }))
    }
}
