//! Session settings: the few that clients set, accepted where they are true and refused where they would not be; the
//! moment of the past that queries read, if not the present; and the memory limit, which is the whole database's.
use datafusion::sql::sqlparser::ast::{ContextModifier, Expr, Ident, Reset, Set, Value};
use engine::{Database, Timestamp};

use crate::error::{Result, SqlError};
use crate::memory_limit;
use crate::names::fold;
use crate::outcome::Command;
use crate::past;

/// What a setting may be set to.
enum Allowed {
    /// Any text.
    Any,
    /// These, in any case; the first is what is shown.
    Only(&'static [&'static str]),
    /// Nothing: it tells how things are.
    Fixed,
    /// An amount of memory.
    Memory,
    /// A commit or a time.
    Past,
}

/// Name, default and allowed values.
const KNOWN: [(&str, &str, Allowed); 20] = [
    ("application_name", "", Allowed::Any),
    ("bytea_output", "hex", Allowed::Only(&["hex"])),
    ("client_encoding", "UTF8", Allowed::Only(&["UTF8", "utf-8", "unicode"])),
    ("client_min_messages", "notice", Allowed::Only(&["notice", "warning", "error"])),
    ("datestyle", "ISO, YMD", Allowed::Only(&["ISO, YMD", "iso", "iso, mdy", "iso, dmy", "ymd"])),
    ("default_transaction_isolation", "repeatable read", Allowed::Only(&["repeatable read"])),
    ("extra_float_digits", "1", Allowed::Only(&["1", "2", "3"])),
    ("idle_in_transaction_session_timeout", "0", Allowed::Only(&["0"])),
    ("integer_datetimes", "on", Allowed::Fixed),
    ("intervalstyle", "postgres", Allowed::Only(&["postgres"])),
    ("lock_timeout", "0", Allowed::Only(&["0"])),
    ("lstore.as_of", "", Allowed::Past),
    ("memory_limit", "none", Allowed::Memory),
    ("search_path", "public", Allowed::Only(&["public", "\"$user\", public", "$user, public"])),
    ("server_encoding", "UTF8", Allowed::Fixed),
    ("server_version", concat!("16.0 (lstore ", env!("CARGO_PKG_VERSION"), ")"), Allowed::Fixed),
    ("standard_conforming_strings", "on", Allowed::Only(&["on", "true", "1"])),
    ("statement_timeout", "0", Allowed::Only(&["0", "0s", "0ms"])),
    ("timezone", "UTC", Allowed::Only(&["UTC", "gmt", "etc/utc", "z", "0", "+00", "+00:00"])),
    ("transaction_isolation", "repeatable read", Allowed::Fixed),
];

/// The values that a session has set.
pub(crate) struct Settings {
    application_name: String,
    as_of: Option<Timestamp>,
    db: Database,
}

impl Settings {
    pub(crate) fn new(db: &Database) -> Settings {
        Settings { application_name: String::new(), as_of: None, db: db.clone() }
    }

    /// The commit as of which queries read tables, if they don't read the present.
    pub(crate) fn as_of(&self) -> Option<Timestamp> {
        self.as_of
    }

    /// `SHOW name`: the canonical name and the value.
    pub(crate) fn show(&self, words: &[Ident]) -> Result<Vec<(&'static str, String)>> {
        let words: Vec<String> = words.iter().map(fold).collect();
        let name = match words.join(" ").as_str() {
            "all" => return Ok(KNOWN.iter().map(|known| (known.0, self.value(known.0, known.1))).collect()),
            "time zone" => "timezone".to_owned(),
            "lstore as_of" => "lstore.as_of".to_owned(),
            "transaction isolation level" => "transaction_isolation".to_owned(),
            name => name.to_owned(),
        };
        let (name, default, _) = find(&name)?;
        Ok(vec![(name, self.value(name, default))])
    }

    fn value(&self, name: &str, default: &str) -> String {
        match name {
            "application_name" => self.application_name.clone(),
            "lstore.as_of" => self.as_of.map(|at| at.0.to_string()).unwrap_or_default(),
            "memory_limit" => memory_limit::show(self.db.memory_limit_bytes()),
            _ => default.to_owned(),
        }
    }

    /// `SET ...`.
    pub(crate) fn set(&mut self, set: &Set) -> Result<Command> {
        match set {
            Set::SingleAssignment { scope, variable, values, hivevar: false } => {
                if matches!(scope, Some(ContextModifier::Local | ContextModifier::Global)) {
                    return Err(SqlError::unsupported("SET LOCAL or SET GLOBAL"));
                }
                let texts: Result<Vec<String>> = values.iter().map(literal).collect();
                self.assign(&variable.to_string().to_lowercase(), &texts?.join(", "))?;
            }
            Set::SetTimeZone { local: false, value } => self.assign("timezone", &literal(value)?)?,
            Set::SetNames { charset_name, collation_name: None } => {
                self.assign("client_encoding", &charset_name.value)?;
            }
            other => return Err(SqlError::unsupported(format!("\"{other}\""))),
        }
        Ok(Command::new("SET"))
    }

    /// `RESET ...`.
    pub(crate) fn reset(&mut self, reset: &Reset) -> Result<Command> {
        match reset {
            Reset::ALL => {
                self.application_name.clear();
                self.as_of = None;
            }
            Reset::ConfigurationParameter(name) => self.assign(&name.to_string().to_lowercase(), "default")?,
        }
        Ok(Command::new("RESET"))
    }

    fn assign(&mut self, name: &str, value: &str) -> Result<()> {
        let (name, default, allowed) = find(name)?;
        let is_default = value.eq_ignore_ascii_case("default") || value.eq_ignore_ascii_case(default);
        match allowed {
            Allowed::Any => {
                self.application_name = if is_default { default.to_owned() } else { value.to_owned() };
                Ok(())
            }
            Allowed::Memory if value.eq_ignore_ascii_case("default") => {
                Err(SqlError::unsupported("RESET of \"memory_limit\"").hint("Set it to what it shall be."))
            }
            Allowed::Memory => {
                let limit = memory_limit::parse(value).map_err(|hint| {
                    SqlError::new("22023", format!("invalid value for parameter \"{name}\": \"{value}\"")).hint(hint)
                })?;
                self.db.set_memory_limit_bytes(limit);
                Ok(())
            }
            Allowed::Past if is_default => {
                self.as_of = None;
                Ok(())
            }
            Allowed::Past => {
                self.as_of = Some(past::commit_of_text(&self.db, value)?);
                Ok(())
            }
            Allowed::Fixed => Err(SqlError::new("55P02", format!("parameter \"{name}\" cannot be changed"))),
            Allowed::Only(_) if is_default => Ok(()),
            Allowed::Only(values) if values.iter().any(|allowed| allowed.eq_ignore_ascii_case(value)) => Ok(()),
            Allowed::Only(_) => Err(SqlError::unsupported(format!("setting \"{name}\" to \"{value}\""))
                .hint(format!("It is always \"{default}\"."))),
        }
    }
}

fn find(name: &str) -> Result<(&'static str, &'static str, &'static Allowed)> {
    let known = KNOWN.iter().find(|known| known.0 == name);
    known
        .map(|(name, default, allowed)| (*name, *default, allowed))
        .ok_or_else(|| SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\"")))
}

/// The text of a setting's value: a string, a number or a bare word.
fn literal(value: &Expr) -> Result<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_true_or_refused() {
        let mut settings = Settings::new(&Database::in_memory());
        assert!(settings.assign("timezone", "utc").is_ok());
        assert_eq!(settings.assign("timezone", "Europe/Berlin").unwrap_err().sqlstate, "0A000");
        assert_eq!(settings.assign("statement_timeout", "1000").unwrap_err().sqlstate, "0A000");
        assert_eq!(settings.assign("server_version", "1").unwrap_err().sqlstate, "55P02");
        assert_eq!(settings.assign("no_such", "1").unwrap_err().sqlstate, "42704");
        settings.assign("application_name", "psql").unwrap();
        let shown = settings.show(&[Ident::new("Application_Name")]).unwrap();
        assert_eq!(shown, [("application_name", "psql".to_owned())]);
        assert!(KNOWN.is_sorted_by_key(|known| known.0));
    }
}
