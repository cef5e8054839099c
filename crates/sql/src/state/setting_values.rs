//! Reading the values of settings: truths, times, words, zones, and the texts that a `SET` has them in.
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{ContextModifier, Expr, Set, Value};
use engine::{Durability, PUBLIC_SCHEMA};

use crate::error::{Result, SqlError};
use crate::interrupt::time_style::{DateForm, DateOrder, DateStyle, IntervalStyle};
use crate::interrupt::zone::{Zone, offset_text};
use crate::parsing::modes::AskedModes;
use crate::parsing::time_limit::{self, Wrong};
use crate::state::outcome::Severity;
use crate::syntax::identifiers::{fold, quoted};
use crate::values::interval_input;
use crate::values::wire::encodings::Named;

/// Which transactions a mode is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Those to come.
    Default,
    /// The one that runs.
    Current,
}

/// The change that a `SET` makes.
pub(crate) enum Change {
    /// It was a setting of the session, and is done.
    Done,
    /// It is a mode of the running transaction.
    Modes(AskedModes),
}

/// The style of intervals that a setting names.
pub(crate) fn interval_style(name: &str, value: &str) -> Result<IntervalStyle> {
    let hint = "Available values: postgres, postgres_verbose, sql_standard, iso_8601.";
    IntervalStyle::named(value).ok_or_else(|| invalid(name, value).hint(hint))
}

/// The form of dates and the order of their parts that `datestyle` names; what it does not name is as it was.
///
/// # Errors
/// PostgreSQL's of a word that it does not know, and of two forms or orders.
pub(super) fn date_style(name: &str, value: &str, was: DateStyle) -> Result<DateStyle> {
    let (mut form, mut order) = (None, None);
    for word in value.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty()) {
        let lower = word.to_ascii_lowercase();
        let found = match lower.as_str() {
            "iso" => (Some(DateForm::Iso), None),
            "sql" => (Some(DateForm::Sql), None),
            "german" => (Some(DateForm::German), None),
            "mdy" | "us" | "noneuro" | "noneuropean" | "non-european" => (None, Some(DateOrder::Mdy)),
            "dmy" | "euro" | "european" => (None, Some(DateOrder::Dmy)),
            "ymd" => (None, Some(DateOrder::Ymd)),
            lower if lower.starts_with("postgres") => (Some(DateForm::Postgres), None),
            _ => {
                return Err(invalid(name, value).detail(format!("Unrecognized key word: \"{word}\".")));
            }
        };
        let conflicts = matches!((found.0, form), (Some(one), Some(other)) if one != other)
            || matches!((found.1, order), (Some(one), Some(other)) if one != other);
        if conflicts {
            return Err(invalid(name, value).detail("Conflicting \"datestyle\" specifications."));
        }
        (form, order) = (form.or(found.0), order.or(found.1));
    }
    // Of German dates the day comes first unless it is said otherwise.
    let order = order.or((form == Some(DateForm::German)).then_some(DateOrder::Dmy));
    Ok(DateStyle { form: form.unwrap_or(was.form), order: order.unwrap_or(was.order) })
}

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

/// The least important of the messages that a client is told, by its name.
#[derive(Clone, Copy)]
pub(crate) struct Messages(pub(crate) &'static str);

impl Default for Messages {
    fn default() -> Messages {
        Messages("notice")
    }
}

impl Messages {
    /// The names, from the least important on.
    const NAMES: [&str; 10] =
        ["debug5", "debug4", "debug3", "debug2", "debug1", "log", "info", "notice", "warning", "error"];

    pub(crate) fn read(name: &str, value: &str) -> Result<Messages> {
        let value = if value.eq_ignore_ascii_case("debug") { "debug2" } else { value };
        let found = Messages::NAMES.iter().find(|known| known.eq_ignore_ascii_case(value));
        let available = "debug5, debug4, debug3, debug2, debug1, log, notice, warning, error";
        found
            .map(|known| Messages(known))
            .ok_or_else(|| invalid(name, value).hint(format!("Available values: {available}.")))
    }

    /// Whether messages of this importance are among those that are told.
    pub(crate) fn tell(self, severity: Severity) -> bool {
        match severity {
            Severity::Notice => !["warning", "error"].contains(&self.0),
            Severity::Warning => self.0 != "error",
        }
    }
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

/// The encoding of clients that a setting names.
pub(super) fn encoding(name: &str, value: &str) -> Result<Named> {
    match Named::find(value) {
        Some(Named::Missing) => {
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
            let detail = format!("Conversion between {} and UTF8 is not supported.", value.to_ascii_uppercase());
            let hint = "Use UTF8, or an encoding of one byte a character.";
            Err(SqlError::new("0A000", message).detail(detail).hint(hint))
        }
        Some(found) => Ok(found),
        None => Err(invalid(name, value)),
    }
}

/// The setting that a `SET` is about, and the value.
pub(crate) fn asked(set: &Set) -> Result<(String, String)> {
    match set {
        Set::SingleAssignment { scope: Some(ContextModifier::Global), .. } => Err(SqlError::unsupported("SET GLOBAL")),
        Set::SingleAssignment { variable, values, hivevar: false, .. } => {
            let name = variable.to_string().to_lowercase();
            let read = if name == "search_path" { schema } else { literal };
            let texts: Result<Vec<String>> = values.iter().map(read).collect();
            Ok((name, texts?.join(", ")))
        }
        Set::SetTimeZone { value, .. } => {
            let zone = literal(value)?;
            Ok(("timezone".to_owned(), if zone.eq_ignore_ascii_case("local") { "default".to_owned() } else { zone }))
        }
        Set::SetNames { charset_name, collation_name: None } => {
            Ok(("client_encoding".to_owned(), charset_name.value.clone()))
        }
        Set::SetNamesDefault {} => Ok(("client_encoding".to_owned(), "default".to_owned())),
        other => Err(SqlError::unsupported(format!("\"{other}\""))),
    }
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

/// The value of `search_path` where nothing else is said. There is no schema of the user's name.
pub(crate) const DEFAULT_PATH: &str = "\"$user\", public";

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
        PathValue { text: DEFAULT_PATH.to_owned(), schemas: [PUBLIC_SCHEMA.to_owned()].into() }
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
                    let (name, after) = in_quotes(quoted).ok_or_else(wrong)?;
                    (name, after.trim_start())
                }
                None => {
                    let end = rest.find(',').unwrap_or(rest.len());
                    (rest[..end].trim().to_lowercase(), &rest[end..])
                }
            };
            if !names.contains(&name) {
                names.push(name);
            }
            rest = match after.strip_prefix(',') {
                Some(next) if next.trim().is_empty() => return Err(wrong()),
                Some(next) => next.trim_start(),
                None if after.is_empty() => after,
                None => return Err(wrong()),
            };
        }
        let is_searched = |name: &&String| !["$user", "pg_catalog", "pg_temp", ""].contains(&name.as_str());
        let schemas = names.iter().filter(is_searched).cloned().collect();
        Ok(PathValue { text: text.to_owned(), schemas })
    }
}

/// The name behind whose first quote a text begins, and what stands behind its last.
fn in_quotes(text: &str) -> Option<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text);
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(within) => {
                name.push('"');
                rest = within;
            }
            None => return Some((name, after)),
        }
    }
}

/// The value of `timezone`.
#[derive(Clone)]
pub(crate) struct ZoneValue {
    /// as `SHOW` gives it
    pub(crate) text: String,
    pub(crate) zone: Zone,
}

impl Default for ZoneValue {
    fn default() -> ZoneValue {
        ZoneValue { text: "UTC".to_owned(), zone: Zone::UTC }
    }
}

impl ZoneValue {
    /// Reads a name of the time zone database, a number of hours east of Greenwich, an interval, or an offset as POSIX writes it.
    pub(crate) fn read(text: &str) -> Result<ZoneValue> {
        let wrong = || invalid("TimeZone", text);
        let is_interval = text.get(..8).is_some_and(|word| word.eq_ignore_ascii_case("interval"));
        if is_interval {
            let value = text.split('\'').nth(1).ok_or_else(wrong)?;
            let span = interval_input::parse(value).map_err(|_| wrong())?;
            if span.months != 0 {
                return Err(wrong().detail("Cannot specify months in time zone interval."));
            }
            if span.days != 0 {
                return Err(wrong().detail("Cannot specify days in time zone interval."));
            }
            return Ok(ZoneValue::of_offset(span.micros / 1_000_000));
        }
        let hours = text.trim().parse::<f64>().ok().filter(|hours| hours.is_finite() && hours.abs() < 168.0);
        if let Some(hours) = hours {
            return Ok(ZoneValue::of_offset(whole_seconds(hours)));
        }
        let zone = Zone::named(text).ok_or_else(wrong)?;
        let text = match zone {
            Zone::UTC if text.eq_ignore_ascii_case("utc") => "UTC".to_owned(),
            Zone::Named(zone) => zone.name().to_owned(),
            Zone::Fixed(_) => text.to_owned(),
        };
        Ok(ZoneValue { text, zone })
    }

    /// A zone of so many seconds east of Greenwich, with a name as POSIX writes it: there the offset counts to the west.
    fn of_offset(seconds: i64) -> ZoneValue {
        let (east, west) = (offset_text(seconds), offset_text(-seconds));
        // Nothing is to the west as it is to the east.
        let west = if seconds == 0 { "-00".to_owned() } else { west };
        ZoneValue { text: format!("<{east}>{west}"), zone: Zone::Fixed(seconds) }
    }
}

/// Hours in seconds; the caller knows that they are few.
#[expect(clippy::cast_possible_truncation, reason = "an offset is a matter of days")]
fn whole_seconds(hours: f64) -> i64 {
    (hours * 3_600.0) as i64
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
        assert_eq!(read("A, \"B c\""), Ok(("A, \"B c\"".into(), "a|B c".into())));
        assert_eq!(read(""), Ok((String::new(), String::new())));
        assert_eq!(read("\"a\"\"b\", c, c"), Ok(("\"a\"\"b\", c, c".into(), "a\"b|c".into())));
        assert_eq!((read("a,"), read("\"a")), (Err("22023"), Err("22023")));
    }

    #[test]
    fn a_zone_is_a_name_or_a_distance() {
        let read = |text| {
            ZoneValue::read(text).map(|value| (value.text, value.zone.at_moment(0))).map_err(|error| error.sqlstate)
        };
        assert_eq!(read("europe/paris"), Ok(("Europe/Paris".into(), 3_600)));
        assert_eq!((read("utc"), read("2.5")), (Ok(("UTC".into(), 0)), Ok(("<+02:30>-02:30".into(), 9_000))));
        assert_eq!(read("INTERVAL '-08:00' HOUR TO MINUTE"), Ok(("<-08>+08".into(), -28_800)));
        assert_eq!((read("+02:30"), read("0")), (Ok(("+02:30".into(), -9_000)), Ok(("<+00>-00".into(), 0))));
        assert_eq!((read("Nowhere"), read("interval '1 day'"), read("")), (Err("22023"), Err("22023"), Err("22023")));
    }
}
