//! How a session writes times: in its zone, intervals in its style; and in which order it reads the parts of a date.
use engine::Interval;

use crate::interrupt::zone::Zone;

/// How a session writes times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TimeStyle {
    pub(crate) zone: Zone,
    pub(crate) intervals: IntervalStyle,
    pub(crate) dates: DateOrder,
}

/// The order in which the parts of a date are read where only numbers say which is which.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum DateOrder {
    #[default]
    Mdy,
    Dmy,
    Ymd,
}

impl DateOrder {
    /// As a setting shows it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DateOrder::Mdy => "ISO, MDY",
            DateOrder::Dmy => "ISO, DMY",
            DateOrder::Ymd => "ISO, YMD",
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
}

impl IntervalStyle {
    /// The style that a setting names.
    pub(crate) fn named(name: &str) -> Option<IntervalStyle> {
        let all = [IntervalStyle::Postgres, IntervalStyle::Verbose, IntervalStyle::Iso];
        all.into_iter().find(|style| style.name().eq_ignore_ascii_case(name))
    }

    /// Its name as a setting.
    pub(crate) fn name(self) -> &'static str {
        match self {
            IntervalStyle::Postgres => "postgres",
            IntervalStyle::Verbose => "postgres_verbose",
            IntervalStyle::Iso => "iso_8601",
        }
    }

    /// An interval in it.
    pub(crate) fn text(self, interval: Interval) -> String {
        match self {
            IntervalStyle::Postgres => interval.to_string(),
            IntervalStyle::Verbose => verbose(interval),
            IntervalStyle::Iso => interval.iso_8601(),
        }
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
