//! How a session writes times: in its zone, intervals in its style.
use engine::Interval;

use crate::interrupt::zone::Zone;

/// How a session writes times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TimeStyle {
    pub(crate) zone: Zone,
    pub(crate) intervals: IntervalStyle,
}

/// How intervals are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum IntervalStyle {
    #[default]
    Postgres,
    Iso,
}

impl IntervalStyle {
    /// The style that a setting names.
    pub(crate) fn named(name: &str) -> Option<IntervalStyle> {
        [IntervalStyle::Postgres, IntervalStyle::Iso].into_iter().find(|style| style.name().eq_ignore_ascii_case(name))
    }

    /// Its name as a setting.
    pub(crate) fn name(self) -> &'static str {
        match self {
            IntervalStyle::Postgres => "postgres",
            IntervalStyle::Iso => "iso_8601",
        }
    }

    /// An interval in it.
    pub(crate) fn text(self, interval: Interval) -> String {
        match self {
            IntervalStyle::Postgres => interval.to_string(),
            IntervalStyle::Iso => interval.iso_8601(),
        }
    }
}
