//! Dates and times as text, in PostgreSQL's ISO style: proleptic Gregorian calendar, microseconds.
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::ZonedTime;

use super::Misfit;
use super::date_input::{self, DAY_MAX, DAY_MIN, Moment};
use crate::interrupt::session_zone;
use crate::interrupt::zone::{Zone, offset_text};

pub(crate) const MICROS_PER_DAY: i64 = 86_400_000_000;
pub(crate) const MICROS_PER_SECOND: i64 = 1_000_000;
/// 4714-11-24 BC, the first day of PostgreSQL's calendar, and 5874897-12-31, the last.
pub(crate) const DAYS: std::ops::RangeInclusive<i64> = -2_440_588..=2_145_042_905;

/// The year (0 is 1 BC), month and day of a day number; after Howard Hinnant's `civil_from_days`.
pub(crate) fn civil(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, u32::try_from(month).unwrap_or(1), u32::try_from(day).unwrap_or(1))
}

/// The day number of a date.
pub(crate) fn day_number(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

pub(crate) fn days_in(year: i64, month: u32) -> u32 {
    match month {
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A date as text, without the era, which comes last.
fn write_day(out: &mut String, days: i64) -> bool {
    let (year, month, day) = civil(days);
    let shown = if year > 0 { year } else { 1 - year };
    let _ = write!(out, "{shown:04}-{month:02}-{day:02}");
    year <= 0
}

/// A date as PostgreSQL writes it.
pub(crate) fn format_date(days: i64) -> String {
    match days {
        DAY_MAX => return "infinity".to_owned(),
        DAY_MIN => return "-infinity".to_owned(),
        _ => {}
    }
    let mut out = String::new();
    if write_day(&mut out, days) {
        out.push_str(" BC");
    }
    out
}

/// A time of day as PostgreSQL writes it: no more digits of the fraction than are needed.
pub(crate) fn format_time(micros: i64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let mut out = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
    out
}

/// A timestamp as PostgreSQL writes it, with `zone` (`+00` or nothing) after the time.
pub(crate) fn format_timestamp(micros: i64, zone: &str) -> String {
    match micros {
        i64::MAX => return "infinity".to_owned(),
        i64::MIN => return "-infinity".to_owned(),
        _ => {}
    }
    let mut out = String::new();
    let is_bc = write_day(&mut out, micros.div_euclid(MICROS_PER_DAY));
    out.push(' ');
    out.push_str(&format_time(micros.rem_euclid(MICROS_PER_DAY)));
    out.push_str(zone);
    if is_bc {
        out.push_str(" BC");
    }
    out
}

/// A moment as PostgreSQL writes it in a zone: what its clocks show, and how far they are ahead of those of Greenwich.
pub(crate) fn format_moment(micros: i64, zone: Zone) -> String {
    if zone == Zone::UTC {
        return format_timestamp(micros, "+00");
    }
    format_timestamp(zone.shown(micros).unwrap_or(micros), &offset_text(zone.at_moment(micros)))
}

/// Reads a date; a time behind it is checked and left out.
pub(crate) fn parse_date(text: &str) -> Result<i32, Misfit> {
    let days = match date_input::parse(text)? {
        Moment::Infinite { is_late: true } => DAY_MAX,
        Moment::Infinite { is_late: false } => DAY_MIN,
        Moment::At { days, .. } => days,
    };
    i32::try_from(days).map_err(|_| Misfit::DateField)
}

/// Reads a timestamp. Where `with_zone` is set it is moved to UTC from the zone that is written, or else the session's; otherwise a
/// zone is left out.
pub(crate) fn parse_timestamp(text: &str, with_zone: bool) -> Result<i64, Misfit> {
    let (days, micros, offset) = match date_input::parse(text)? {
        Moment::Infinite { is_late } => return Ok(if is_late { i64::MAX } else { i64::MIN }),
        Moment::At { days, micros, offset } => (days, micros, offset),
    };
    let shown = days.checked_mul(MICROS_PER_DAY).and_then(|day| day.checked_add(micros));
    let time = match offset {
        Some(offset) if with_zone => shown.and_then(|shown| shown.checked_sub(offset)),
        None if with_zone => shown.and_then(|shown| session_zone::current().moment(shown)),
        _ => shown,
    };
    time.ok_or(Misfit::DateField)
}

/// Reads a time of day, of a timestamp its time. A zone is left out.
pub(crate) fn parse_time(text: &str) -> Result<i64, Misfit> {
    let moment = match date_input::parse(&format!("1970-01-01 {text}")) {
        Err(Misfit::Syntax) => date_input::parse(text)?,
        read => read?,
    };
    match moment {
        // The end of the day is a time of it.
        Moment::At { days: 1, micros: 0, .. } => Ok(MICROS_PER_DAY),
        Moment::At { micros, .. } if !text.trim().is_empty() => Ok(micros),
        _ => Err(Misfit::Syntax),
    }
}

/// What the machine's clock shows, in microseconds since 1970.
pub(crate) fn wall_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Reads a time of day with the distance of its zone from Greenwich: the zone that is written, or else the session's today. A zone
/// that changes its clocks in the year needs a day.
pub(crate) fn parse_zoned_time(text: &str) -> Result<ZonedTime, Misfit> {
    let micros = parse_time(text)?;
    let today = wall_time() / MICROS_PER_DAY;
    let year = civil(today).0;
    let offset_on = |day: &str| match date_input::parse(&format!("{day} {text}")) {
        Ok(Moment::At { offset, .. }) => Some(offset),
        _ => None,
    };
    let east = match [offset_on(&format!("{year:04}-01-01")), offset_on(&format!("{year:04}-07-01"))] {
        [Some(winter), Some(summer)] if winter != summer => return Err(Misfit::Syntax),
        [Some(Some(offset)), _] => offset / MICROS_PER_SECOND,
        [Some(None), _] => session_offset(today, micros),
        // The text has a day of its own.
        [None, _] => match date_input::parse(text)? {
            Moment::At { offset: Some(offset), .. } => offset / MICROS_PER_SECOND,
            Moment::At { days, micros, offset: None } => session_offset(days, micros),
            Moment::Infinite { .. } => return Err(Misfit::Syntax),
        },
    };
    let east = i32::try_from(east).map_err(|_| Misfit::DateField)?;
    Ok(ZonedTime { micros, east })
}

/// How many seconds the clocks of the session's zone are ahead of Greenwich at a time of a day.
fn session_offset(day: i64, micros: i64) -> i64 {
    let zone = session_zone::current();
    let shown = day.saturating_mul(MICROS_PER_DAY).saturating_add(micros);
    zone.at_moment(zone.moment(shown).unwrap_or(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_come_back_as_they_went() {
        for text in ["1970-01-01", "2000-02-29", "0001-01-01", "9999-12-31", "12345-06-07", "0044-03-15 BC"] {
            assert_eq!(format_date(parse_date(text).unwrap().into()), text);
        }
        assert_eq!(parse_date("20200131"), parse_date("2020/1/31"));
        assert_eq!(parse_date("2021-02-29"), Err(Misfit::DateField));
        assert_eq!(parse_date("0000-01-01"), Err(Misfit::DateField));
        assert_eq!(parse_date("soon"), Err(Misfit::Syntax));
        let same = ["Jan 8 1999", "8 Jan 1999", "1999-Jan-08", "19990108", "1/8/1999", "J2451187", "January 8, 1999"];
        for text in
            same.into_iter().chain(["Jan-08-1999", "08-Jan-99", "990108", "1999.008", "1/8/99", "Fri Jan 8 1999"])
        {
            assert_eq!(parse_date(text).map(|days| format_date(days.into())), Ok("1999-01-08".to_owned()), "{text}");
        }
        assert_eq!(parse_date("January 8, 99 BC").map(|days| format_date(days.into())), Ok("0099-01-08 BC".to_owned()));
        assert_eq!((parse_date("18/1/1999"), parse_date("99-01-08")), (Err(Misfit::DateField), Err(Misfit::DateField)));
        for text in ["infinity", "-infinity"] {
            assert_eq!(format_date(parse_date(text).unwrap().into()), text);
            assert_eq!(format_timestamp(parse_timestamp(text, true).unwrap(), "+00"), text);
        }
        assert_eq!(parse_date("5874898-01-01"), Err(Misfit::DateField));
        assert_eq!((parse_date("4714-11-24 BC"), parse_date("5874897-12-31")), (Ok(-2_440_588), Ok(2_145_042_905)));
    }

    #[test]
    fn times_of_day_are_read_with_or_without_a_day() {
        let show = |text| parse_time(text).map(format_time);
        let same = ["04:05:06", "040506", "04:05:06 AM", "04:05:06-08", "2003-04-12 04:05:06"];
        assert!(same.into_iter().all(|text| show(text).as_deref() == Ok("04:05:06")));
        assert_eq!(show("4:05 PM").as_deref(), Ok("16:05:00"));
        assert_eq!(
            (show("24:00").as_deref(), show("00:00:00.0000015").as_deref()),
            (Ok("24:00:00"), Ok("00:00:00.000002"))
        );
        assert_eq!(
            (parse_time("25:00"), parse_time("noon"), parse_time("")),
            (Err(Misfit::DateField), Err(Misfit::Syntax), Err(Misfit::Syntax))
        );
    }

    #[test]
    fn timestamps_round_and_know_their_zone() {
        let show =
            |text: &str, zone| format_timestamp(parse_timestamp(text, zone).unwrap(), if zone { "+00" } else { "" });
        assert_eq!(show("2020-01-02 03:04:05.6", false), "2020-01-02 03:04:05.6");
        assert_eq!(show("2020-01-02T03:04:05.1234567Z", true), "2020-01-02 03:04:05.123457+00");
        assert_eq!(show("2020-01-02 03:04+02:30", true), "2020-01-02 00:34:00+00");
        assert_eq!(show("2020-01-02 03:04+02:30", false), "2020-01-02 03:04:00");
        assert_eq!(show("1969-12-31 23:59:59.999999", false), "1969-12-31 23:59:59.999999");
        assert_eq!(show("2020-01-02", false), "2020-01-02 00:00:00");
        assert_eq!(show("2020-01-02 24:00", false), "2020-01-03 00:00:00");
        assert_eq!(parse_timestamp("2020-01-02 25:00", false), Err(Misfit::DateField));
        assert_eq!(parse_timestamp("2020-01-02 noon", false), Err(Misfit::Syntax));
        assert_eq!(show("1999-01-08 04:05:06 PM", false), "1999-01-08 16:05:06");
        assert_eq!(show("1999-01-08 040506", false), "1999-01-08 04:05:06");
        assert_eq!(show("19990108T040506", false), "1999-01-08 04:05:06");
        assert_eq!(show("January 8 04:05:06 1999 PST", true), "1999-01-08 12:05:06+00");
        assert_eq!(show("1999-01-08 04:05:06 -8:00", true), "1999-01-08 12:05:06+00");
    }
}
