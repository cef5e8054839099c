//! Reading the values of settings: truths, times, words, and the texts that a `SET` has them in.
use datafusion::sql::sqlparser::ast::{Expr, Value};
use engine::Durability;

use crate::error::{Result, SqlError};
use crate::parsing::time_limit::{self, Wrong};

/// The error about a value that a setting does not take.
pub(crate) fn invalid(name: &str, value: &str) -> SqlError {
    SqlError::new("22023", format!("invalid value for parameter \"{name}\": \"{value}\""))
}

/// How long a time is, in milliseconds.
pub(crate) fn milliseconds(name: &str, value: &str) -> Result<u32> {
    time_limit::parse(value).map_err(|wrong| match wrong {
        Wrong::Form => {
            let hint = "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";
            invalid(name, value).hint(hint)
        }
        Wrong::Range(millis) => {
            let range = format!("(0 ms .. {} ms)", i32::MAX);
            let message = format!("{millis} ms is outside the valid range for parameter \"{name}\" {range}");
            SqlError::new("22023", message)
        }
    })
}

/// PostgreSQL's words, and one more; those that wait for standbys are one here with `on`, as there are none.
pub(crate) fn durability(name: &str, value: &str) -> Result<Durability> {
    if value.eq_ignore_ascii_case("partition") {
        return Ok(Durability::Partition);
    }
    if ["local", "remote_write", "remote_apply"].iter().any(|word| word.eq_ignore_ascii_case(value)) {
        return Ok(Durability::Sync);
    }
    let is_sync = boolean(name, value).map_err(|_| {
        invalid(name, value).hint("Available values: local, remote_write, remote_apply, partition, on, off.")
    })?;
    Ok(if is_sync { Durability::Sync } else { Durability::Async })
}

/// Reads a truth as PostgreSQL does: a word or its beginning, if no other word begins so.
pub(crate) fn boolean(name: &str, value: &str) -> Result<bool> {
    let value = value.to_ascii_lowercase();
    let begins = |word: &str, least: usize| value.len() >= least && word.starts_with(&value);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || value == "1" {
        Ok(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || value == "0" {
        Ok(false)
    } else {
        Err(SqlError::new("22023", format!("parameter \"{name}\" requires a Boolean value")))
    }
}

/// Whether an encoding's name is one of UTF-8's. As in PostgreSQL only its letters and digits count.
pub(crate) fn is_utf8(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    ["utf8", "unicode", "sqlascii"].contains(&plain.to_ascii_lowercase().as_str())
}

/// The text of a setting's value: a string, a number or a bare word.
pub(crate) fn literal(value: &Expr) -> Result<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) | Value::SingleQuotedString(text) => Ok(text.clone()),
            Value::Boolean(value) => Ok(if *value { "on" } else { "off" }.to_owned()),
            other => Err(SqlError::syntax(format!("invalid value {other}"))),
        },
        Expr::Identifier(ident) => Ok(ident.value.clone()),
        Expr::UnaryOp { .. } | Expr::Interval(_) => Ok(value.to_string()),
        other => Err(SqlError::syntax(format!("invalid value {other}"))),
    }
}
