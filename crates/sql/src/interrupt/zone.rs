//! Time zones: offsets, and those of the IANA database, by their names in any case.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use chrono::{DateTime, Datelike, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{OffsetComponents, OffsetName, TZ_VARIANTS, Tz};

const MICROS: i64 = 1_000_000;
/// The largest offset of a zone.
const OFFSET_MAX_S: i64 = 15 * 3_600 + 59 * 60 + 59;

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Zone {
    /// So many seconds east of Greenwich.
    Fixed(i64),
    Named(Tz),
}

impl Default for Zone {
    fn default() -> Zone {
        Zone::UTC
    }
}

/// What the clocks of a zone of the database show at a moment.
pub(crate) struct Clocks {
    pub(crate) name: &'static str,
    pub(crate) abbreviation: String,
    /// seconds east of Greenwich
    pub(crate) offset: i64,
    /// whether it is summer time
    pub(crate) is_summer: bool,
}

static BY_NAME: LazyLock<BTreeMap<String, Tz>> =
    LazyLock::new(|| TZ_VARIANTS.iter().map(|zone| (zone.name().to_ascii_lowercase(), *zone)).collect());

/// The zone that the database has by this name, which is in small letters.
pub(crate) fn of_small_name(name: &str) -> Option<Tz> {
    BY_NAME.get(name).copied()
}

/// All zones of the database at a moment, in microseconds.
pub(crate) fn all(moment: i64) -> Vec<Clocks> {
    let at = naive(moment).unwrap_or_default();
    let clocks = |zone: &Tz| {
        let offset = zone.offset_from_utc_datetime(&at);
        let seconds = i64::from(offset.fix().local_minus_utc());
        let abbreviation = offset.abbreviation().map_or_else(String::new, str::to_owned);
        let is_summer = !offset.dst_offset().is_zero();
        Clocks { name: zone.name(), abbreviation, offset: seconds, is_summer }
    };
    TZ_VARIANTS.iter().map(clocks).collect()
}

impl Zone {
    pub(crate) const UTC: Zone = Zone::Fixed(0);

    /// What the clocks show at a moment, in microseconds; `None` out of range. The ends of time are shown as they are.
    pub(crate) fn shown(self, moment: i64) -> Option<i64> {
        if [i64::MIN, i64::MAX].contains(&moment) {
            return Some(moment);
        }
        moment.checked_add(self.at_moment(moment) * MICROS)
    }

    /// The moment at which the clocks show this; `None` out of range.
    pub(crate) fn moment(self, shown: i64) -> Option<i64> {
        if [i64::MIN, i64::MAX].contains(&shown) {
            return Some(shown);
        }
        shown.checked_sub(self.at_shown(shown) * MICROS)
    }

    /// How people call the zone at a moment: `CET`, or `+02` where it has no name.
    pub(crate) fn abbreviation(self, moment: i64) -> String {
        match self {
            Zone::UTC => "UTC".to_owned(),
            Zone::Fixed(seconds) => offset_text(seconds),
            Zone::Named(zone) => {
                let offset = zone.offset_from_utc_datetime(&naive(moment).unwrap_or_default());
                let name = offset.abbreviation().map(str::to_owned);
                name.unwrap_or_else(|| offset_text(offset.fix().local_minus_utc().into()))
            }
        }
    }

    /// The zone of this name: of the database, or an offset as POSIX writes it.
    pub(crate) fn named(name: &str) -> Option<Zone> {
        let small = name.to_ascii_lowercase();
        if ["utc", "gmt", "z", "zulu", "uct"].contains(&&*small) {
            return Some(Zone::Fixed(0));
        }
        if name.starts_with(['+', '-']) || name.starts_with(|sign: char| sign.is_ascii_digit()) {
            return offset(name).map(Zone::Fixed);
        }
        of_small_name(&small).map(Zone::Named).or_else(|| offset(behind_name(name)?).map(Zone::Fixed))
    }

    /// The seconds that the clocks are ahead of those of Greenwich at a moment.
    pub(crate) fn at_moment(&self, moment: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => *seconds,
            Zone::Named(zone) => {
                naive(moment).map_or(0, |moment| zone.offset_from_utc_datetime(&moment).fix().local_minus_utc().into())
            }
        }
    }

    /// The seconds that clocks which show this time are ahead: of two such moments the later, and of none the clocks as they
    /// were before.
    pub(crate) fn at_shown(&self, shown: i64) -> i64 {
        let Zone::Named(zone) = self else { return self.at_moment(shown) };
        let Some(naive) = naive(shown) else { return 0 };
        match zone.offset_from_local_datetime(&naive) {
            MappedLocalTime::Single(offset) | MappedLocalTime::Ambiguous(_, offset) => {
                offset.fix().local_minus_utc().into()
            }
            MappedLocalTime::None => self.at_moment(shown - 24 * 3_600 * MICROS),
        }
    }
}

/// An offset as PostgreSQL writes it behind a time: `+02`, `-03:30`, `+00:53:28`.
pub(crate) fn offset_text(seconds: i64) -> String {
    let (sign, far) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
    let (hours, minutes, rest) = (far / 3_600, far / 60 % 60, far % 60);
    match (minutes, rest) {
        (0, 0) => format!("{sign}{hours:02}"),
        (_, 0) => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{rest:02}"),
    }
}

/// The last year that the database of zones tells of. Rules that hold then hold for good.
const LAST_YEAR: i32 = 2099;

/// A moment at which the clocks of a zone are as far from Greenwich as at this one, in a year that the database knows.
fn naive(micros: i64) -> Option<NaiveDateTime> {
    let at = DateTime::from_timestamp_micros(micros)?.naive_utc();
    if at.year() <= LAST_YEAR {
        return Some(at);
    }
    let first = |year| NaiveDate::from_ymd_opt(year, 1, 1);
    let (own, is_leap) = (first(at.year())?, at.date().leap_year());
    // Within twenty-eight years there is one of each kind: it begins with the same day of the week, and has as many days.
    let mut known = (LAST_YEAR - 27..=LAST_YEAR).filter_map(first);
    let like = known.find(|year| year.weekday() == own.weekday() && year.leap_year() == is_leap)?;
    Some(at + (like - own))
}

/// The offset behind a name that POSIX has for a zone: of `GMT-02:00`, and of `<+02>-02`.
fn behind_name(text: &str) -> Option<&str> {
    let rest = match text.strip_prefix('<') {
        Some(named) => named.split_once('>')?.1,
        None => text.trim_start_matches(|sign: char| sign.is_ascii_alphabetic()),
    };
    (text.len() - rest.len() >= 3).then_some(rest)
}

/// An offset in hours, minutes and seconds, where POSIX counts to the west.
fn offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (1, &text[1..]),
        b'+' => (-1, &text[1..]),
        _ => (-1, text),
    };
    let mut seconds = 0;
    let mut unit = 3_600;
    for part in digits.split(':') {
        let is_number = !part.is_empty() && part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 =
            part.parse().ok().filter(|number| is_number && unit > 0 && (unit == 3_600 || *number < 60))?;
        seconds += number * unit;
        unit /= 60;
    }
    (seconds <= OFFSET_MAX_S).then_some(sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<NaiveDateTime>().unwrap().and_utc().timestamp_micros()
    }

    #[test]
    fn clocks_that_were_moved_show_an_hour_twice_or_never() {
        let berlin = Zone::named("europe/berlin").unwrap();
        assert_eq!(berlin.at_moment(at("2024-07-01T00:00:00")), 7_200);
        assert_eq!(berlin.at_shown(at("2024-10-27T02:30:00")), 3_600);
        assert_eq!(berlin.at_shown(at("2024-03-31T02:30:00")), 3_600);
    }

    #[test]
    fn offsets_count_to_the_west() {
        assert_eq!((offset("+02"), offset("-05:30"), offset("2:00:01")), (Some(-7_200), Some(19_800), Some(-7_201)));
        assert_eq!((offset("+2:60"), offset("+99"), offset("1:2:3:4"), offset("+")), (None, None, None, None));
        assert!(Zone::named("Nowhere/City").is_none() && Zone::named("ab-2").is_none());
        assert_eq!(
            (Zone::named("GMT-02:00"), Zone::named("<+02>-02")),
            (Some(Zone::Fixed(7_200)), Some(Zone::Fixed(7_200)))
        );
    }

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(Zone::named("AMERICA/port_OF_spain"), Zone::named("America/Port_of_Spain"));
        assert!(all(at("2024-07-01T00:00:00")).iter().any(|zone| zone.name == "Europe/Berlin" && zone.is_summer));
    }
}
