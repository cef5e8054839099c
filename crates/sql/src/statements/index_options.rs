//! The options of an index: `WITH (budget = '64MB')`, what the method `bwd` searches first.
//!
//! PostgreSQL's `fillfactor`, `buffering`, `deduplicate_items`, `fastupdate`, `gin_pending_list_limit`, `pages_per_range` and
//! `autosummarize` say how it fills its pages. They are checked and told again, and change nothing here.
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Spanned, Value, ValueWithSpan};
use engine::IndexMethod;

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::state::memory_limit::{self, BUDGET};
use crate::syntax::source::Source;

/// The budget in bytes that options say, if they do, and the others with their values.
#[derive(Default)]
pub(super) struct Said {
    pub(super) budget: Option<u64>,
    pub(super) others: Vec<(String, String)>,
}

/// What the options of an index say that is made.
pub(super) fn said(options: &[Expr], method: IndexMethod, source: &Source) -> Result<Said> {
    let mut said = Said::default();
    each(options, source, |name, value| {
        match (name, value, method) {
            (BUDGET, Some(value), IndexMethod::Bwd) => said.budget = Some(bytes(value)?),
            _ => said.others.push((name.to_owned(), check_given(name, value, method)?)),
        }
        Ok(())
    })?;
    Ok(said)
}

/// Sets options of an index that is there.
///
/// # Errors
/// As those of an index that is made; its budget stays.
pub(super) fn set(
    of: &mut Vec<(String, String)>,
    options: &[Expr],
    method: IndexMethod,
    source: &Source,
) -> Result<()> {
    each(options, source, |name, value| match (name, method) {
        (BUDGET, IndexMethod::Bwd) => {
            let hint = "Make the index anew with another budget.";
            Err(SqlError::unsupported("another budget of an index").hint(hint))
        }
        _ => {
            let text = check_given(name, value, method)?;
            // What is set anew comes last, as in PostgreSQL.
            of.retain(|(known, _)| known != name);
            of.push((name.to_owned(), text));
            Ok(())
        }
    })
}

/// Takes options from an index, of which there need be none.
///
/// # Errors
/// One has a value.
pub(super) fn reset(of: &mut Vec<(String, String)>, options: &[Expr], source: &Source) -> Result<()> {
    for option in options {
        let Expr::Identifier(name) = option else {
            let error = SqlError::syntax("RESET must not include values for parameters");
            return Err(error.at(source.start(option.span())));
        };
        let name = fold(name);
        of.retain(|(known, _)| *known != name);
    }
    Ok(())
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

/// Checks an option with its value, of which it gives the text; one without is on.
fn check_given(name: &str, value: Option<&Expr>, method: IndexMethod) -> Result<String> {
    let text = match value {
        Some(Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text) | Value::Number(text, _), ..
        })) => text.clone(),
        Some(Expr::Identifier(word)) => fold(word),
        Some(other) => other.to_string(),
        None => "true".to_owned(),
    };
    check_filling(name, &text, method).map(|()| text)
}

/// Checks an option that says how PostgreSQL fills the pages of an index.
///
/// # Errors
/// Where an index of the method has no such option, or not this value.
fn check_filling(name: &str, text: &str, method: IndexMethod) -> Result<()> {
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
        ("autosummarize", IndexMethod::Brin) if is_truth => Ok(()),
        ("autosummarize", IndexMethod::Brin) => Err(invalid("boolean")),
        ("pages_per_range", IndexMethod::Brin) => match text.parse::<u32>() {
            Ok(1..=131_072) => Ok(()),
            Ok(_) => {
                let message = format!("value {text} out of bounds for option \"{name}\"");
                Err(SqlError::new("22023", message).detail("Valid values are between \"1\" and \"131072\"."))
            }
            Err(_) => Err(invalid("integer")),
        },
        ("fillfactor", method) if has_filling(method) => match text.parse::<u32>() {
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

fn has_filling(method: IndexMethod) -> bool {
    !matches!(method, IndexMethod::Bwd | IndexMethod::Gin | IndexMethod::Brin)
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
