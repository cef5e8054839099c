//! Dates and times as text, in PostgreSQL's ISO style: proleptic Gregorian calendar, microseconds.
use std::fmt::Write;

use super::Misfit;

pub(crate) const MICROS_PER_DAY: i64 = 86_400_000_000;
/// 4714-11-24 BC, the first day of PostgreSQL's calendar, and 5874897-12-31, the last.
const DAYS: std::ops::RangeInclusive<i64> = -2_440_588..=2_145_042_905;

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

fn days_in(year: i64, month: u32) -> u32 {
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

/// Reads a date; a time behind it is checked and left out.
pub(crate) fn parse_date(text: &str) -> Result<i32, Misfit> {
    let (days, _) = parse_parts(text)?;
    i32::try_from(days).map_err(|_| Misfit::DateField)
}

/// Reads a timestamp. Where `with_zone` is set a zone moves it to UTC, otherwise a zone is left out.
pub(crate) fn parse_timestamp(text: &str, with_zone: bool) -> Result<i64, Misfit> {
    let (days, (micros, offset_micros)) = parse_parts(text)?;
    let micros = if with_zone { micros - offset_micros } else { micros };
    days.checked_mul(MICROS_PER_DAY).and_then(|day| day.checked_add(micros)).ok_or(Misfit::DateField)
}

/// Splits into date, time and era: the day number, and the time of day with its zone's offset.
fn parse_parts(text: &str) -> Result<(i64, (i64, i64)), Misfit> {
    let mut text = text.trim();
    let mut is_bc = false;
    if let Some((before, era)) = text.rsplit_once(' ')
        && (era.eq_ignore_ascii_case("bc") || era.eq_ignore_ascii_case("ad"))
    {
        (text, is_bc) = (before.trim_end(), era.eq_ignore_ascii_case("bc"));
    }
    if text.eq_ignore_ascii_case("epoch") {
        return Ok((0, (0, 0)));
    }
    let end = text.find([' ', 'T', 't']).unwrap_or(text.len());
    let days = parse_day(&text[..end], is_bc)?;
    let rest = text[end..].trim_start_matches([' ', 'T', 't']);
    let time = if rest.is_empty() { (0, 0) } else { parse_time(rest)? };
    Ok((days, time))
}

fn parse_day(text: &str, is_bc: bool) -> Result<i64, Misfit> {
    let number = |text: &str| match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<i64>().map_err(|_| Misfit::DateField),
        false => Err(Misfit::Syntax),
    };
    let separator = if text.contains('/') { '/' } else { '-' };
    let parts: Vec<&str> = text.split(separator).collect();
    let (year, month, day) = match parts[..] {
        [year, month, day] if year.len() >= 3 && month.len() <= 2 && day.len() <= 2 => (year, month, day),
        [all] if (8..=11).contains(&all.len()) && all.is_ascii() => {
            (&all[..all.len() - 4], &all[all.len() - 4..all.len() - 2], &all[all.len() - 2..])
        }
        _ => return Err(Misfit::Syntax),
    };
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let year = match (year, is_bc) {
        (0, _) => return Err(Misfit::DateField),
        (year, true) => 1 - year,
        (year, false) => year,
    };
    let (month, day) = (u32::try_from(month).unwrap_or(0), u32::try_from(day).unwrap_or(0));
    let is_day = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !is_day || year.abs() > 6_000_000 {
        return Err(Misfit::DateField);
    }
    Some(day_number(year, month, day)).filter(|days| DAYS.contains(days)).ok_or(Misfit::DateField)
}

/// `HH:MM[:SS[.fraction]][zone]`: the time of day and the zone's offset from UTC, both in microseconds.
fn parse_time(text: &str) -> Result<(i64, i64), Misfit> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(text.len());
    let (clock, zone) = (&text[..end], text[end..].trim());
    let mut parts = clock.split(':');
    let hour = small(parts.next())?;
    let minute = small(parts.next())?;
    let (second, fraction) = match parts.next() {
        None => (0, 0),
        Some(part) => match part.split_once('.') {
            None => (small(Some(part))?, 0),
            Some((second, digits)) => (small(Some(second))?, parse_fraction(digits)?),
        },
    };
    if parts.next().is_some() {
        return Err(Misfit::Syntax);
    }
    let micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction;
    if minute > 59 || second > 60 || micros > MICROS_PER_DAY {
        return Err(Misfit::DateField);
    }
    Ok((micros, parse_zone(zone)?))
}

fn small(part: Option<&str>) -> Result<i64, Misfit> {
    match part {
        Some(part) if (1..=2).contains(&part.len()) => part.parse().map_err(|_| Misfit::Syntax),
        _ => Err(Misfit::Syntax),
    }
}

/// Digits after the point as microseconds, the seventh rounding the sixth.
fn parse_fraction(digits: &str) -> Result<i64, Misfit> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Misfit::Syntax);
    }
    let kept: i64 = format!("{:0<6}", &digits[..digits.len().min(6)]).parse().map_err(|_| Misfit::Syntax)?;
    Ok(kept + i64::from(digits.as_bytes().get(6).is_some_and(|digit| *digit >= b'5')))
}

fn parse_zone(zone: &str) -> Result<i64, Misfit> {
    if zone.is_empty() || ["z", "utc", "gmt", "zulu"].iter().any(|utc| zone.eq_ignore_ascii_case(utc)) {
        return Ok(0);
    }
    let sign = match zone.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return Err(Misfit::Syntax),
    };
    let digits: String = zone[1..].chars().filter(|c| *c != ':').collect();
    if !matches!(digits.len(), 1 | 2 | 4 | 6) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Misfit::Syntax);
    }
    let field = |range: std::ops::Range<usize>| digits.get(range).map_or(0, |part| part.parse::<i64>().unwrap_or(0));
    let (hours, minutes, seconds) = match digits.len() {
        1 => (field(0..1), 0, 0),
        _ => (field(0..2), field(2..4), field(4..6)),
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Misfit::DateField);
    }
    Ok(sign * ((hours * 60 + minutes) * 60 + seconds) * 1_000_000)
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
        assert_eq!(parse_date("5874898-01-01"), Err(Misfit::DateField));
        assert_eq!((parse_date("4714-11-24 BC"), parse_date("5874897-12-31")), (Ok(-2_440_588), Ok(2_145_042_905)));
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
    }
}
