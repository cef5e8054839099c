//! How a session writes times: in its zone, dates and intervals in its styles; and in which order it reads the parts of a date.
use engine::Interval;

use crate::interrupt::zone::Zone;

/// How a session writes times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TimeStyle {
    pub(crate) zone: Zone,
    pub(crate) intervals: IntervalStyle,
    pub(crate) dates: DateStyle,
}

/// How dates are written, and the order of their parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct DateStyle {
    pub(crate) form: DateForm,
    pub(crate) order: DateOrder,
}

impl DateStyle {
    /// As a setting shows it.
    pub(crate) fn name(self) -> String {
        format!("{}, {}", self.form.name(), self.order.name())
    }
}

/// The forms of dates that are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum DateForm {
    /// `1997-12-17 07:37:16-08`
    #[default]
    Iso,
    /// `12/17/1997 07:37:16.00 PST`
    Sql,
    /// `Wed Dec 17 07:37:16 1997 PST`
    Postgres,
    /// `17.12.1997 07:37:16.00 PST`
    German,
}

impl DateForm {
    fn name(self) -> &'static str {
        match self {
            DateForm::Iso => "ISO",
            DateForm::Sql => "SQL",
            DateForm::Postgres => "Postgres",
            DateForm::German => "German",
        }
    }
}

/// The order in which the parts of a date are read where only numbers say which is which, and in which some forms write them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum DateOrder {
    #[default]
    Mdy,
    Dmy,
    Ymd,
}

impl DateOrder {
    fn name(self) -> &'static str {
        match self {
            DateOrder::Mdy => "MDY",
            DateOrder::Dmy => "DMY",
            DateOrder::Ymd => "YMD",
        }
    }
}

/// How intervals are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum IntervalStyle {
    #[default]
    Postgres,
    Verbose,
    Iso,
    Standard,
}

impl IntervalStyle {
    /// The style that a setting names.
    pub(crate) fn named(name: &str) -> Option<IntervalStyle> {
        let all = [IntervalStyle::Postgres, IntervalStyle::Verbose, IntervalStyle::Iso, IntervalStyle::Standard];
        all.into_iter().find(|style| style.name().eq_ignore_ascii_case(name))
    }

    /// Its name as a setting.
    pub(crate) fn name(self) -> &'static str {
        match self {
            IntervalStyle::Postgres => "postgres",
            IntervalStyle::Verbose => "postgres_verbose",
            IntervalStyle::Iso => "iso_8601",
            IntervalStyle::Standard => "sql_standard",
        }
    }

    /// An interval in it.
    pub(crate) fn text(self, interval: Interval) -> String {
        match self {
            IntervalStyle::Postgres => interval.to_string(),
            IntervalStyle::Verbose => verbose(interval),
            IntervalStyle::Iso => interval.iso_8601(),
            IntervalStyle::Standard => standard(interval),
        }
    }
}

/// An interval in the style `sql_standard`: `1-2` of years and months, `3 4:05:06` of days and what is shorter, and both with a sign before
/// each part where it has both, or parts of two signs.
fn standard(interval: Interval) -> String {
    let Interval { months, days, micros } = interval;
    let parts = [i64::from(months), i64::from(days), micros];
    let (has_months, has_days) = (months != 0, days != 0);
    let is_negative = parts.iter().any(|part| *part < 0);
    let is_mixed = is_negative && parts.iter().any(|part| *part > 0) || has_months && (has_days || micros != 0);
    let time = {
        let seconds = micros.unsigned_abs() / 1_000_000;
        let clock = format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        match micros.unsigned_abs() % 1_000_000 {
            0 => clock,
            rest => format!("{clock}.{rest:06}").trim_end_matches('0').to_owned(),
        }
    };
    let (years, months) = (months.unsigned_abs() / 12, months.unsigned_abs() % 12);
    let days = days.unsigned_abs();
    if is_mixed {
        let [of_months, of_days, of_time] = parts.map(|part| if part < 0 { '-' } else { '+' });
        return format!("{of_months}{years}-{months} {of_days}{days} {of_time}{time}");
    }
    let sign = if is_negative { "-" } else { "" };
    match (has_months, has_days) {
        (false, false) if micros == 0 => "0".to_owned(),
        (true, _) => format!("{sign}{years}-{months}"),
        (false, true) => format!("{sign}{days} {time}"),
        (false, false) => format!("{sign}{time}"),
    }
}

/// An interval in the style `postgres_verbose`, as `@ 1 year 2 mons 3 days 4 hours 5 mins 6.7 secs ago`: the sign of the first part is that
/// of the whole.
fn verbose(interval: Interval) -> String {
    let seconds = interval.micros / 1_000_000;
    let parts = [
        (i64::from(interval.months / 12), "year"),
        (i64::from(interval.months % 12), "mon"),
        (i64::from(interval.days), "day"),
        (seconds / 3600, "hour"),
        (seconds / 60 % 60, "min"),
    ];
    let rest = interval.micros % 60_000_000;
    let counts = parts.iter().map(|(count, _)| *count).chain([rest]);
    let is_before = counts.into_iter().find(|count| *count != 0).is_some_and(|first| first < 0);
    let mut text = "@".to_owned();
    for (count, unit) in parts.into_iter().filter(|(count, _)| *count != 0) {
        let count = if is_before { -count } else { count };
        text += &format!(" {count} {unit}{}", if count == 1 { "" } else { "s" });
    }
    if rest != 0 {
        let sign = if (rest < 0) == is_before { "" } else { "-" };
        let digits = format!("{}.{:06}", rest.unsigned_abs() / 1_000_000, rest.unsigned_abs() % 1_000_000);
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        text += &format!(" {sign}{digits} sec{}", if digits == "1" { "" } else { "s" });
    }
    if text.len() == 1 {
        text.push_str(" 0");
    }
    if is_before {
        text.push_str(" ago");
    }
    text
}
