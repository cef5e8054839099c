//! The options of an index: `WITH (budget = '64MB')`, what the method `bwd` searches first.
//!
//! PostgreSQL's `fillfactor`, `buffering` and `deduplicate_items` say how it fills its pages. They are read for the sake of scripts that
//! have them, and change nothing here.
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Spanned, Value, ValueWithSpan};
use engine::IndexMethod;

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::state::memory_limit::{self, BUDGET};
use crate::syntax::source::Source;

/// The budget in bytes that options say, if they do.
pub(super) fn budget(options: &[Expr], method: IndexMethod, source: &Source) -> Result<Option<u64>> {
    let (mut budget, mut seen) = (None, Vec::new());
    for option in options {
        let at = source.start(option.span());
        let (name, value) = match option {
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => match &**left {
                Expr::Identifier(name) => (fold(name), &**right),
                _ => return Err(SqlError::syntax("an option of an index is a name and a value").at(at)),
            },
            _ => return Err(SqlError::syntax("an option of an index is a name and a value").at(at)),
        };
        if seen.contains(&name) {
            return Err(SqlError::new("22023", format!("parameter \"{name}\" specified more than once")).at(at));
        }
        match (name.as_str(), method) {
            (BUDGET, IndexMethod::Bwd) => budget = Some(bytes(value).map_err(|error| error.at(at))?),
            _ => check_filling(&name, value, method).map_err(|error| error.at(at))?,
        }
        seen.push(name);
    }
    Ok(budget)
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
        ("fillfactor", method) if method != IndexMethod::Bwd => match text.parse::<u32>() {
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
