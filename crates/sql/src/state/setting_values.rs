//! Reading the values of settings: truths, times, words, and the texts that a `SET` has them in.
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Expr, Value};
use engine::{Durability, PUBLIC_SCHEMA};

use crate::error::{Result, SqlError};
use crate::parsing::time_limit::{self, Wrong};
use crate::syntax::identifiers::{fold, quoted};

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

/// An item of the value that a `SET` gives `search_path`: each is one name, whatever is in it.
pub(crate) fn schema(value: &Expr) -> Result<String> {
    match value {
        Expr::Identifier(ident) if ident.value.eq_ignore_ascii_case("default") => Ok(ident.value.clone()),
        Expr::Identifier(ident) => Ok(quoted(&fold(ident))),
        other => literal(other).map(|name| quoted(&name)),
    }
}

/// The value of `search_path`.
#[derive(Clone)]
pub(crate) struct PathValue {
    /// as `SHOW` gives it
    pub(crate) text: String,
    /// the schemas in which names are looked for, in this order
    pub(crate) schemas: Arc<[String]>,
}

impl Default for PathValue {
    fn default() -> PathValue {
        PathValue { text: PUBLIC_SCHEMA.to_owned(), schemas: [PUBLIC_SCHEMA.to_owned()].into() }
    }
}

impl PathValue {
    /// Reads a list of schemas. That of the user's name, of the catalog and of temporary tables are searched anyway, or are none.
    pub(crate) fn read(text: &str) -> Result<PathValue> {
        let wrong = || {
            SqlError::new("22023", format!("invalid value for parameter \"search_path\": \"{text}\""))
                .detail("List syntax is invalid.")
        };
        let mut names = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (name, after) = match rest.strip_prefix('"') {
                Some(quoted) => {
                    let (name, after) = quoted.split_once('"').ok_or_else(wrong)?;
                    (name.to_owned(), after.trim_start())
                }
                None => {
                    let end = rest.find(',').unwrap_or(rest.len());
                    (rest[..end].trim().to_lowercase(), &rest[end..])
                }
            };
            names.push(name);
            rest = match after.strip_prefix(',') {
                Some(next) if next.trim().is_empty() => return Err(wrong()),
                Some(next) => next.trim_start(),
                None if after.is_empty() => after,
                None => return Err(wrong()),
            };
        }
        let is_searched = |name: &&String| !["$user", "pg_catalog", "pg_temp", ""].contains(&name.as_str());
        let schemas = names.iter().filter(is_searched).cloned().collect();
        let text: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        Ok(PathValue { text: if names.is_empty() { quoted("") } else { text.join(", ") }, schemas })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_list_of_names() {
        let read = |text| {
            PathValue::read(text).map(|path| (path.text, path.schemas.join("|"))).map_err(|error| error.sqlstate)
        };
        assert_eq!(read("\"$user\", public"), Ok(("\"$user\", public".into(), "public".into())));
        assert_eq!(read("A, \"B c\""), Ok(("a, \"B c\"".into(), "a|B c".into())));
        assert_eq!(read(""), Ok(("\"\"".into(), String::new())));
        assert_eq!((read("a,"), read("\"a")), (Err("22023"), Err("22023")));
    }
}
