//! Parameters in calls of PostgreSQL's functions whose arguments can be of one type only, or of that of another argument.
use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArgOperator, ObjectName};
use engine::{ArrayItem, DataType};

use super::{Finder, plain_argument};
use crate::names::fold;
use crate::syntax::identifiers::last_part;

/// The arguments of functions, one letter each.
///
/// `t` a text, `b` a boolean, `i` an integer, `n` a `bigint`, `f` a double precision, `y` bytes, `j` a `jsonb`, `a` an array of texts;
/// `=` the type of the first argument, `*` that of its items, `-` not said here. A function with several lists has those of other
/// numbers of arguments.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("array_append", &["-*"]),
    ("array_position", &["-*", "-*i"]),
    ("array_positions", &["-*"]),
    ("array_remove", &["-*"]),
    ("array_replace", &["-**"]),
    ("array_to_string", &["-t", "-tt"]),
    ("btrim", &["t", "tt"]),
    ("chr", &["i"]),
    ("decode", &["tt"]),
    ("encode", &["yt"]),
    ("jsonb_insert", &["-aj", "-ajb"]),
    ("jsonb_set", &["-aj", "-ajb"]),
    ("lag", &["-", "-i", "-i="]),
    ("lead", &["-", "-i", "-i="]),
    ("left", &["ti"]),
    ("lpad", &["ti", "tit"]),
    ("make_date", &["iii"]),
    ("make_interval", &["i", "ii", "iii", "iiii", "iiiii", "iiiiii", "iiiiiif"]),
    ("make_time", &["iif"]),
    ("make_timestamp", &["iiiiif"]),
    ("make_timestamptz", &["iiiiif", "iiiiift"]),
    ("mod", &["=="]),
    ("nth_value", &["-i"]),
    ("ntile", &["i"]),
    ("percentile_cont", &["f"]),
    ("percentile_disc", &["f"]),
    ("pg_advisory_lock", &["n", "ii"]),
    ("pg_advisory_lock_shared", &["n", "ii"]),
    ("pg_advisory_unlock", &["n", "ii"]),
    ("pg_advisory_unlock_shared", &["n", "ii"]),
    ("pg_advisory_xact_lock", &["n", "ii"]),
    ("pg_advisory_xact_lock_shared", &["n", "ii"]),
    ("pg_cancel_backend", &["i"]),
    ("pg_sleep", &["f"]),
    ("pg_terminate_backend", &["i", "in"]),
    ("pg_try_advisory_lock", &["n", "ii"]),
    ("pg_try_advisory_lock_shared", &["n", "ii"]),
    ("pg_try_advisory_xact_lock", &["n", "ii"]),
    ("pg_try_advisory_xact_lock_shared", &["n", "ii"]),
    ("power", &["=="]),
    ("repeat", &["ti"]),
    ("right", &["ti"]),
    ("round", &["-", "-i"]),
    ("rpad", &["ti", "tit"]),
    ("set_config", &["ttb"]),
    ("setval", &["-n", "-nb"]),
    ("sha224", &["y"]),
    ("sha256", &["y"]),
    ("sha384", &["y"]),
    ("sha512", &["y"]),
    ("split_part", &["tti"]),
    ("string_to_array", &["tt", "ttt"]),
    ("substr", &["-i", "-ii"]),
    ("to_timestamp", &["f", "tt"]),
    ("trunc", &["-", "-i"]),
    ("width_bucket", &["-=", "-==i"]),
];

/// The arguments that have names, and are integers.
const NAMED: &[(&str, &[&str])] = &[("make_interval", &["years", "months", "weeks", "days", "hours", "mins"])];

impl Finder<'_> {
    /// Parameters of a call take the types that the function has arguments of.
    pub(super) fn set_known_call(&mut self, name: &ObjectName, args: &[FunctionArg]) {
        let Some(name) = last_part(name) else { return };
        if let Some((_, names)) = NAMED.iter().find(|(known, _)| *known == name) {
            self.set_named(names, args);
        }
        let Some((_, lists)) = ARGUMENTS.iter().find(|(known, _)| *known == name) else { return };
        let Some(list) = lists.iter().find(|list| list.len() == args.len()) else { return };
        let args: Vec<Option<&Expr>> = args.iter().map(plain_argument).collect();
        for (letter, arg) in list.chars().zip(&args) {
            let Some(arg) = arg else { continue };
            let first = || self.type_beside(args[0]?, [*arg]);
            let data_type = match letter {
                't' => Some(DataType::TEXT),
                'b' => Some(DataType::Boolean),
                'i' => Some(DataType::Integer),
                'n' => Some(DataType::BigInt),
                'f' => Some(DataType::Double),
                'y' => Some(DataType::Bytea),
                'j' => Some(DataType::Jsonb),
                '=' => first(),
                '*' => match first() {
                    Some(DataType::Array(item)) => Some(item.data_type()),
                    _ => None,
                },
                'a' => {
                    self.set_array(arg, Some(ArrayItem::TEXT.data_type()));
                    None
                }
                _ => None,
            };
            self.set(arg, data_type);
        }
    }

    fn set_named(&mut self, names: &[&str], args: &[FunctionArg]) {
        for arg in args {
            if let FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(value),
                operator: FunctionArgOperator::RightArrow | FunctionArgOperator::Assignment,
            } = arg
                && names.contains(&fold(name).as_str())
            {
                self.set(value, Some(DataType::Integer));
            }
        }
    }
}
