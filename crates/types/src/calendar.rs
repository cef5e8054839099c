//! Days and microseconds since 1970-01-01 as text, in PostgreSQL's ISO form.
//!
//! The days of the proleptic Gregorian calendar are counted in eras of 400 years that start on 1 March, so that leap
//! days come last.
use std::fmt;

const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The year, month (1..=12) and day (1..=31) that is `days` after 1970-01-01, in the proleptic Gregorian calendar; year 0 is 1 BC.
pub fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + EPOCH_DAYS;
    let (era, day_of_era) = (shifted.div_euclid(DAYS_PER_ERA), shifted.rem_euclid(DAYS_PER_ERA));
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Writes a date; years before 1 as PostgreSQL does, with `BC`, the ends of time as `infinity`.
pub(crate) fn write_date(f: &mut fmt::Formatter<'_>, days: i64) -> fmt::Result {
    if let Some(end) = end_of_time(days, i32::MIN.into(), i32::MAX.into()) {
        return f.write_str(end);
    }
    let (year, month, day) = civil(days);
    if year > 0 {
        write!(f, "{year:04}-{month:02}-{day:02}")
    } else {
        write!(f, "{:04}-{month:02}-{day:02} BC", 1 - year)
    }
}

/// The word for the first or the last time.
fn end_of_time(at: i64, first: i64, last: i64) -> Option<&'static str> {
    match at {
        _ if at == first => Some("-infinity"),
        _ if at == last => Some("infinity"),
        _ => None,
    }
}

/// Writes a timestamp with as many digits of its second as it needs, then `zone`; the ends of time as `infinity`.
pub(crate) fn write_timestamp(f: &mut fmt::Formatter<'_>, micros: i64, zone: &str) -> fmt::Result {
    if let Some(end) = end_of_time(micros, i64::MIN, i64::MAX) {
        return f.write_str(end);
    }
    let (days, of_day) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    let (year, month, day) = civil(days);
    let (shown, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    write!(f, "{shown:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")?;
    if fraction != 0 {
        f.write_str(format!(".{fraction:06}").trim_end_matches('0'))?;
    }
    write!(f, "{zone}{era}")
}

#[cfg(test)]
mod tests {
    use crate::Value;

    #[test]
    fn dates_and_times_print_as_in_postgresql() {
        assert_eq!(Value::Date(0).to_string(), "1970-01-01");
        assert_eq!(Value::Date(19_782).to_string(), "2024-02-29");
        assert_eq!(Value::Date(-719_528).to_string(), "0001-01-01 BC");
        assert_eq!(Value::Date(-1).to_string(), "1969-12-31");
        assert_eq!(Value::Date(i32::MAX).to_string(), "infinity");
        assert_eq!(Value::TimestampTz(i64::MIN).to_string(), "-infinity");
        assert_eq!(Value::Timestamp(-1).to_string(), "1969-12-31 23:59:59.999999");
        assert_eq!(Value::TimestampTz(1_582_934_401_500_000).to_string(), "2020-02-29 00:00:01.5+00");
    }
}
