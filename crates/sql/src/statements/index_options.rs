//! The options of an index: `WITH (budget = '64MB')`, what the method `bwd` searches first.
//!
//! PostgreSQL's `fillfactor`, `buffering`, `deduplicate_items`, `fastupdate` and `gin_pending_list_limit` say how it fills its pages. They
//! are read for the sake of scripts that have them, and change nothing here.
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Ident, Spanned, Value, ValueWithSpan};
use engine::IndexMethod;

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::state::memory_limit::{self, BUDGET};
use crate::syntax::source::Source;

/// The budget in bytes that options say, if they do.
pub(super) fn budget(options: &[Expr], method: IndexMethod, source: &Source) -> Result<Option<u64>> {
    let mut budget = None;
    each(options, source, |name, value| {
        match (name, value, method) {
            (BUDGET, Some(value), IndexMethod::Bwd) => budget = Some(bytes(value)?),
            _ => check_given(name, value, method)?,
        }
        Ok(())
    })?;
    Ok(budget)
}

/// Checks the options that an index is given later.
///
/// # Errors
/// As those of an index that is made; its budget stays.
pub(super) fn check_set(options: &[Expr], method: IndexMethod, source: &Source) -> Result<()> {
    each(options, source, |name, value| match (name, method) {
        (BUDGET, IndexMethod::Bwd) => {
            let hint = "Make the index anew with another budget.";
            Err(SqlError::unsupported("another budget of an index").hint(hint))
        }
        _ => check_given(name, value, method),
    })
}

/// Checks the options that an index loses, of which there need be none.
///
/// # Errors
/// One has a value.
pub(super) fn check_reset(options: &[Expr], source: &Source) -> Result<()> {
    let valued = options.iter().find(|option| !matches!(option, Expr::Identifier(_)));
    valued.map_or(Ok(()), |option| {
        let error = SqlError::syntax("RESET must not include values for parameters");
        Err(error.at(source.start(option.span())))
    })
}

/// Does something with the names and values of options, none of which may come twice.
fn each(options: &[Expr], source: &Source, mut with: impl FnMut(&str, Option<&Expr>) -> Result<()>) -> Result<()> {
    let mut seen = Vec::new();
    for option in options {
        let at = source.start(option.span());
        let (name, value) = match option {
            Expr::Identifier(name) => (fold(name), None),
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } if let Expr::Identifier(name) = &**left => {
                (fold(name), Some(&**right))
            }
            _ => return Err(SqlError::syntax("an option of an index is a name and a value").at(at)),
        };
        if seen.contains(&name) {
            return Err(SqlError::new("22023", format!("parameter \"{name}\" specified more than once")).at(at));
        }
        with(&name, value).map_err(|error| error.at(at))?;
        seen.push(name);
    }
    Ok(())
}

/// Checks an option with its value; one without is on.
fn check_given(name: &str, value: Option<&Expr>, method: IndexMethod) -> Result<()> {
    match value {
        Some(value) => check_filling(name, value, method),
        None => check_filling(name, &Expr::Identifier(Ident::new("true")), method),
    }
}

/// Checks an option that says how PostgreSQL fills the pages of an index.
///
/// # Errors
/// Where an index of the method has no such option, or not this value.
pub(super) fn check_filling(name: &str, value: &Expr, method: IndexMethod) -> Result<()> {
    let text = match value {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text) | Value::Number(text, _), .. }) => {
            text.clone()
        }
        Expr::Identifier(word) => fold(word),
        other => other.to_string(),
    };
    let invalid = |kind: &str| SqlError::new("22023", format!("invalid value for {kind} option \"{name}\": {text}"));
    let is_truth = matches!(&*text.to_lowercase(), "on" | "off" | "true" | "false" | "yes" | "no" | "1" | "0");
    match (name, method) {
        ("fastupdate", IndexMethod::Gin) if is_truth => Ok(()),
        ("fastupdate", IndexMethod::Gin) => Err(invalid("boolean")),
        ("gin_pending_list_limit", IndexMethod::Gin) => match text.parse::<u32>() {
            Ok(64..=2_147_483_647) => Ok(()),
            Ok(_) => {
                let message = format!("value {text} out of bounds for option \"{name}\"");
                Err(SqlError::new("22023", message).detail("Valid values are between \"64\" and \"2147483647\"."))
            }
            Err(_) => Err(invalid("integer")),
        },
        ("fillfactor", method) if !matches!(method, IndexMethod::Bwd | IndexMethod::Gin) => match text.parse::<u32>() {
            Ok(10..=100) => Ok(()),
            Ok(_) => {
                let message = format!("value {text} out of bounds for option \"{name}\"");
                Err(SqlError::new("22023", message).detail("Valid values are between \"10\" and \"100\"."))
            }
            Err(_) => Err(invalid("integer")),
        },
        ("buffering", IndexMethod::Gist) if is_truth || text.eq_ignore_ascii_case("auto") => Ok(()),
        ("buffering", IndexMethod::Gist) => {
            Err(invalid("enum").detail("Valid values are \"on\", \"off\", and \"auto\"."))
        }
        ("deduplicate_items", IndexMethod::Btree) if is_truth => Ok(()),
        ("deduplicate_items", IndexMethod::Btree) => Err(invalid("boolean")),
        _ => Err(SqlError::new("22023", format!("unrecognized parameter \"{name}\""))),
    }
}

fn bytes(value: &Expr) -> Result<u64> {
    let invalid = |hint: &'static str| {
        let message = format!("invalid value for option \"{BUDGET}\": {value}");
        SqlError::new("22023", message).hint(hint)
    };
    let hint = "It is an amount of memory with its unit, such as '64MB'.";
    match value {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            memory_limit::parse(text).ok().flatten().ok_or_else(|| invalid(hint))
        }
        _ => Err(invalid(hint)),
    }
}
