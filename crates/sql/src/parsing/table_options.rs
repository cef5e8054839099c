//! The options of a table, in `CREATE TABLE ... WITH (...)` and `ALTER TABLE ... SET (...)`.
//!
//! | option | values | default |
//! |---|---|---|
//! | `layout` | `column` (for scans), `row` (for reads and writes by key), `array` (for updates in place, without history) | `column` |
//! | `retention` | `forever`, `none`, an interval such as `'7 days'` | `forever` |
//! | `update_range` | a power of two from 4096 to 65536 | the database's |
//! | `merge_after` | 1 or more unmerged tail records of a range | the database's |
//! | `fillfactor` | 10 to 100, as in PostgreSQL, without effect | none |
//! | `autovacuum_...`, `parallel_workers`, `toast_tuple_target`, ... | any, without effect: PostgreSQL's own | none |
use std::time::Duration;

use arrow_cast::parse::parse_interval_month_day_nano;
use datafusion::sql::sqlparser::ast::{CreateTableOptions, Expr, Ident, SqlOption, UnaryOperator, Value};
use engine::{LayoutSetting, Retention, TableSettings};

use crate::error::{Result, SqlError};
use crate::syntax::identifiers::fold;
use crate::syntax::source::Source;
use crate::values::datetime::format_time;

const NANOS_PER_DAY: u64 = 86_400_000_000_000;

/// The settings that a `CREATE TABLE` asks for.
pub(crate) fn read(options: &CreateTableOptions, source: &Source) -> Result<TableSettings> {
    let mut settings = TableSettings::default();
    let given = match options {
        CreateTableOptions::None => &[][..],
        CreateTableOptions::With(options) => options,
        other => return Err(SqlError::unsupported(format!("table option {other}")).at(source.find_word("with"))),
    };
    for (name, value, key) in pairs(given)? {
        set(&mut settings, &name, value).map_err(|error| error.at(source.start(key.span)))?;
    }
    check_array(&settings).map_err(|error| error.at(source.find_word("with")))?;
    Ok(settings)
}

/// Refuses options that say something of a past or of ranges, where the layout has neither.
fn check_array(settings: &TableSettings) -> Result<()> {
    let TableSettings { layout, retention, update_range_records, merge_tail_records, .. } = settings;
    let is_plain = matches!(retention, Retention::Forever | Retention::None)
        && update_range_records.is_none()
        && merge_tail_records.is_none();
    match *layout == LayoutSetting::Array && !is_plain {
        false => Ok(()),
        true => {
            let message = "options retention, update_range and merge_after do not go with layout \"array\"";
            Err(SqlError::new("22023", message).hint("An array table is updated in place and keeps no history."))
        }
    }
}

/// Options as names and values. One given twice is an error.
pub(crate) fn pairs(options: &[SqlOption]) -> Result<Vec<(String, &Expr, &Ident)>> {
    let mut pairs: Vec<(String, &Expr, &Ident)> = Vec::with_capacity(options.len());
    for option in options {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(SqlError::new("22023", format!("table option {option} has no value")).hint(known()));
        };
        let name = fold(key);
        if pairs.iter().any(|(other, ..)| *other == name) {
            return Err(SqlError::new("22023", format!("parameter \"{name}\" specified more than once")));
        }
        pairs.push((name, value, key));
    }
    Ok(pairs)
}

fn known() -> &'static str {
    "Options are layout, retention, update_range and merge_after."
}

/// Whether an option is said where a table is made, and stays.
pub(crate) fn is_fixed(name: &str) -> bool {
    matches!(name, "layout" | "update_range" | "merge_after")
}

/// Whether PostgreSQL has an option of this name, which says how it keeps its own files.
fn is_of_postgres(name: &str) -> bool {
    name.starts_with("autovacuum_")
        || matches!(
            name,
            "log_autovacuum_min_duration"
                | "parallel_workers"
                | "toast_tuple_target"
                | "user_catalog_table"
                | "vacuum_index_cleanup"
                | "vacuum_truncate"
        )
}

/// Gives an option its value.
pub(crate) fn set(settings: &mut TableSettings, name: &str, value: &Expr) -> Result<()> {
    let text = text_of(value);
    let bad = |allowed: &str| {
        let shown = text.clone().unwrap_or_else(|| value.to_string());
        SqlError::new("22023", format!("invalid value for option \"{name}\": \"{shown}\"")).hint(allowed)
    };
    let lower = text.as_deref().map(|text| text.trim().to_lowercase());
    match (name, lower.as_deref()) {
        ("layout", Some("column")) => settings.layout = LayoutSetting::Column,
        ("layout", Some("row")) => settings.layout = LayoutSetting::Row,
        ("layout", Some("array")) => settings.layout = LayoutSetting::Array,
        ("layout", _) => return Err(bad("It is \"column\", \"row\" or \"array\".")),
        ("retention", text) => {
            let allowed = "It is \"forever\", \"none\", or an interval of more than no time, such as \"7 days\".";
            settings.retention = text.and_then(retention).ok_or_else(|| bad(allowed))?;
        }
        ("update_range", text) => {
            let records = text.and_then(|text| text.parse::<usize>().ok());
            let records = records.filter(|records| records.is_power_of_two() && (4_096..=65_536).contains(records));
            let allowed = "It is a power of two from 4096 to 65536.";
            settings.update_range_records = Some(records.ok_or_else(|| bad(allowed))?);
        }
        ("merge_after", text) => {
            let records = text.and_then(|text| text.parse().ok()).filter(|records| *records > 0);
            settings.merge_tail_records = Some(records.ok_or_else(|| bad("It is a whole number from 1 upward."))?);
        }
        // How full PostgreSQL makes its pages; what is updated does not go into them here.
        ("fillfactor", text) => {
            let percent = text.and_then(|text| text.parse::<u8>().ok()).filter(|percent| (10..=100).contains(percent));
            percent.ok_or_else(|| bad("It is a whole number from 10 to 100."))?;
        }
        (name, _) if is_of_postgres(name) => {}
        _ => return Err(SqlError::new("22023", format!("unrecognized parameter \"{name}\"")).hint(known())),
    }
    Ok(())
}

/// The text of a string, a number, a bare word or an interval.
fn text_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) | Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        Expr::Identifier(ident) => Some(ident.value.clone()),
        Expr::Interval(interval) if interval.leading_field.is_none() => text_of(&interval.value),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => text_of(expr).map(|text| format!("-{text}")),
        _ => None,
    }
}

/// A retention from its text. A month has 30 days, as where PostgreSQL compares intervals.
fn retention(text: &str) -> Option<Retention> {
    match text {
        "forever" => return Some(Retention::Forever),
        "none" => return Some(Retention::None),
        number if number.parse::<f64>().is_ok() => return None,
        _ => {}
    }
    let interval = parse_interval_month_day_nano(spelled_out(text).trim()).ok()?;
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    let nanos = days * i128::from(NANOS_PER_DAY) + i128::from(interval.nanoseconds);
    u64::try_from(nanos).ok().filter(|nanos| *nanos > 0).map(|nanos| Retention::For(Duration::from_nanos(nanos)))
}

/// An interval that ends with a clock's part (`1 day 01:30:00`), in words.
fn spelled_out(text: &str) -> String {
    let (start, clock) = text.rsplit_once(' ').unwrap_or(("", text));
    let parts: Vec<&str> = clock.split(':').collect();
    match parts[..] {
        [hours, minutes] => format!("{start} {hours} hours {minutes} minutes"),
        [hours, minutes, seconds] => format!("{start} {hours} hours {minutes} minutes {seconds} seconds"),
        _ => text.to_owned(),
    }
}

/// A retention as it can be given again.
pub(crate) fn show_retention(retention: Retention) -> String {
    let duration = match retention {
        Retention::Forever => return "forever".to_owned(),
        Retention::None => return "none".to_owned(),
        Retention::For(duration) => duration,
    };
    let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    let (days, rest) = (micros / 86_400_000_000, micros % 86_400_000_000);
    let plural = if days == 1 { "" } else { "s" };
    match (days, rest) {
        (0, rest) => format_time(rest),
        (days, 0) => format!("{days} day{plural}"),
        (days, rest) => format!("{days} day{plural} {}", format_time(rest)),
    }
}

/// A layout as it can be given again.
pub(crate) fn show_layout(layout: LayoutSetting) -> &'static str {
    match layout {
        LayoutSetting::Column => "column",
        LayoutSetting::Row => "row",
        LayoutSetting::Array => "array",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retention_is_shown_as_it_can_be_given() {
        let shown = |text| retention(text).map(show_retention);
        assert_eq!(shown("7 days").as_deref(), Some("7 days"));
        assert_eq!(shown("1 month").as_deref(), Some("30 days"));
        assert_eq!(shown("1 day 90 minutes").as_deref(), Some("1 day 01:30:00"));
        for text in ["forever", "none", "7 days", "00:00:01.5", "1 day 01:30:00"] {
            assert_eq!(shown(text).as_deref(), Some(text));
        }
        for text in ["", "soon", "7", "-1 day", "0 days", "1 day -24 hours", "300000 years"] {
            assert_eq!(retention(text), None, "{text}");
        }
    }
}
