//! Dates, times and intervals made of their fields, and intervals brought into shape: `make_date` and its kin, `age`,
//! `justify_days`, `justify_hours`, `justify_interval`, `isfinite`.
use arrow_array::types::IntervalMonthDayNano;
use arrow_schema::DataType;
use datafusion::logical_expr::ScalarUDF;

use crate::error::SqlError;
use crate::functions::overloads::overloaded;
use crate::functions::row_wise::{Cell, Kind, Variant, double, function, interval, text, whole};
use crate::functions::times::truncation;
use crate::interrupt::session_zone;
use crate::interrupt::zone::Zone;
use crate::values::datetime::{DAYS, MICROS_PER_DAY, MICROS_PER_SECOND, civil, day_number, days_in};

type Row = [Option<Cell>];

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    use Kind::{Boolean, Count, Date, Double, Interval, Text, Time, Timestamp, TimestampTz};
    const AGE: &[Variant] = &[
        Variant::strict(&[Timestamp, Timestamp], Interval, age),
        Variant::strict(&[TimestampTz, TimestampTz], Interval, |row| {
            let shown = |at| whole(row.get(at));
            let shown = |at| session_zone::current().shown(shown(at)).unwrap_or_else(|| shown(at));
            age(&[Some(Cell::Time(shown(0))), Some(Cell::Time(shown(1)))])
        }),
    ];
    const FINITE: &[Variant] = &[
        Variant::strict(&[Date], Boolean, |row| {
            let is_end = [i64::from(i32::MIN), i64::from(i32::MAX)].contains(&whole(row.first()));
            Ok(Some(Cell::Boolean(!is_end)))
        }),
        Variant::strict(&[Timestamp], Boolean, is_within),
        Variant::strict(&[TimestampTz], Boolean, is_within),
        Variant::strict(&[Interval], Boolean, |_| Ok(Some(Cell::Boolean(true)))),
    ];
    const JUSTIFY_DAYS: &[Variant] = &[Variant::strict(&[Interval], Interval, |row| justified(row, Parts::days))];
    const JUSTIFY_HOURS: &[Variant] = &[Variant::strict(&[Interval], Interval, |row| justified(row, Parts::hours))];
    const JUSTIFY: &[Variant] = &[Variant::strict(&[Interval], Interval, |row| justified(row, Parts::all))];
    const MAKE_DATE: &[Variant] =
        &[Variant::strict(&[Count, Count, Count], Date, |row| Ok(Some(Cell::Time(day(row)?))))];
    const MAKE_TIME: &[Variant] =
        &[Variant::strict(&[Count, Count, Double], Time, |row| Ok(Some(Cell::Time(clock(row)?))))];
    const MAKE_TIMESTAMP: &[Variant] =
        &[Variant::strict(&[Count, Count, Count, Count, Count, Double], Timestamp, |row| {
            Ok(Some(Cell::Time(shown(row)?)))
        })];
    const MAKE_TIMESTAMPTZ: &[Variant] = &[
        Variant::strict(&[Count, Count, Count, Count, Count, Double], TimestampTz, |row| {
            moment_in(session_zone::current(), row)
        }),
        Variant::strict(&[Count, Count, Count, Count, Count, Double, Text], TimestampTz, |row| {
            let name = text(row.get(6));
            let no_such = || SqlError::new("22023", format!("time zone \"{name}\" not recognized"));
            moment_in(Zone::named(name).ok_or_else(no_such)?, row)
        }),
    ];
    const MAKE_INTERVAL: &[Variant] =
        &[Variant::strict(&[Count, Count, Count, Count, Count, Count, Double], Interval, make_interval)];
    const BIN: &[Variant] = &[
        Variant::strict(&[Interval, Timestamp, Timestamp], Timestamp, binned),
        Variant::strict(&[Interval, TimestampTz, TimestampTz], TimestampTz, binned),
    ];
    const TRUNC: &[Variant] = &[Variant::strict(&[Text, Interval], Interval, truncated)];
    let is_interval = |found: &DataType| matches!(found, DataType::Interval(_) | DataType::Duration(_));
    let truncating = overloaded(truncation::truncating(), "date_trunc", is_interval, TRUNC);
    let named: [(&'static str, &'static [Variant]); 11] = [
        ("age", AGE),
        ("date_bin", BIN),
        ("isfinite", FINITE),
        ("justify_days", JUSTIFY_DAYS),
        ("justify_hours", JUSTIFY_HOURS),
        ("justify_interval", JUSTIFY),
        ("make_date", MAKE_DATE),
        ("make_time", MAKE_TIME),
        ("make_timestamp", MAKE_TIMESTAMP),
        ("make_timestamptz", MAKE_TIMESTAMPTZ),
        ("make_interval", MAKE_INTERVAL),
    ];
    named.into_iter().map(|(name, variants)| function(name, variants)).chain([truncating])
}

/// The moment at which clocks of a zone show the time of a row.
fn moment_in(zone: Zone, row: &Row) -> Result<Option<Cell>, SqlError> {
    let moment = zone.moment(shown(row.get(..6).unwrap_or(row))?);
    moment.map(|moment| Some(Cell::Time(moment))).ok_or_else(|| out_of_range("timestamp"))
}

/// An interval without what is smaller than a unit.
fn truncated(row: &Row) -> Result<Option<Cell>, SqlError> {
    let (unit, value) = (text(row.first()), interval(row.get(1)));
    let (months, days, micros) = (i64::from(value.months), i64::from(value.days), value.nanoseconds / 1000);
    let down = |value: i64, unit: i64| value / unit * unit;
    match unit.to_ascii_lowercase().as_str() {
        "millennium" | "millennia" | "mil" | "mils" => made(down(months, 12_000), 0, 0),
        "century" | "centuries" | "c" | "cent" => made(down(months, 1_200), 0, 0),
        "decade" | "decades" | "dec" | "decs" => made(down(months, 120), 0, 0),
        "year" | "years" | "y" | "yr" | "yrs" => made(down(months, 12), 0, 0),
        "quarter" | "qtr" => made(down(months, 3), 0, 0),
        "month" | "months" | "mon" | "mons" => made(months, 0, 0),
        "day" | "days" | "d" => made(months, days, 0),
        "hour" | "hours" | "h" | "hr" | "hrs" => made(months, days, down(micros, 3_600 * MICROS_PER_SECOND)),
        "minute" | "minutes" | "m" | "min" | "mins" => made(months, days, down(micros, 60 * MICROS_PER_SECOND)),
        "second" | "seconds" | "s" | "sec" | "secs" => made(months, days, down(micros, MICROS_PER_SECOND)),
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => made(months, days, down(micros, 1_000)),
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" => made(months, days, micros),
        "week" | "weeks" | "w" | "epoch" | "dow" | "doy" | "isodow" | "isoyear" | "julian" | "timezone"
        | "timezone_hour" | "timezone_minute" => {
            let error = SqlError::new("0A000", format!("unit \"{unit}\" not supported for type interval"));
            Err(match unit.to_ascii_lowercase().starts_with('w') {
                true => error.detail("Months usually have fractional weeks."),
                false => error,
            })
        }
        _ => Err(SqlError::new("22023", format!("unit \"{unit}\" not recognized for type interval"))),
    }
}

fn is_within(row: &Row) -> Result<Option<Cell>, SqlError> {
    Ok(Some(Cell::Boolean(![i64::MIN, i64::MAX].contains(&whole(row.first())))))
}

fn out_of_range(what: &str) -> SqlError {
    SqlError::new("22008", format!("{what} out of range"))
}

/// An interval of so many months, days and microseconds.
fn made(months: i64, days: i64, micros: i64) -> Result<Option<Cell>, SqlError> {
    let wrong = |_| out_of_range("interval");
    let (months, days) = (i32::try_from(months).map_err(wrong)?, i32::try_from(days).map_err(wrong)?);
    let nanos = micros.checked_mul(1000).ok_or_else(|| out_of_range("interval"))?;
    Ok(Some(Cell::Interval(IntervalMonthDayNano::new(months, days, nanos))))
}

/// The years, months and days from one time to another, as people count ages: whole months first, then days.
fn age(row: &Row) -> Result<Option<Cell>, SqlError> {
    let (end, start) = (whole(row.first()), whole(row.get(1)));
    if [end, start].iter().any(|moment| [i64::MIN, i64::MAX].contains(moment)) {
        return Err(out_of_range("timestamp"));
    }
    let (late, early, sign) = if end < start { (start, end, -1) } else { (end, start, 1) };
    let fields = |moment: i64| {
        let (year, month, day) = civil(moment.div_euclid(MICROS_PER_DAY));
        (year, i64::from(month), i64::from(day), moment.rem_euclid(MICROS_PER_DAY))
    };
    let (first, last) = (fields(early), fields(late));
    let mut micros = last.3 - first.3;
    let mut days = last.2 - first.2;
    let mut months = (last.0 - first.0) * 12 + last.1 - first.1;
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    // The month that is cut is the one that the earlier time lies in.
    if days < 0 {
        days += i64::from(days_in(first.0, u32::try_from(first.1).unwrap_or(1)));
        months -= 1;
    }
    made(sign * months, sign * days, sign * micros)
}

/// The parts of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    months: i64,
    days: i64,
    micros: i64,
}

impl Parts {
    fn hours(mut self) -> Parts {
        self.days += self.micros / MICROS_PER_DAY;
        self.micros %= MICROS_PER_DAY;
        self.same_sign_of_time()
    }

    fn days(mut self) -> Parts {
        self.months += self.days / 30;
        self.days %= 30;
        if self.months > 0 && self.days < 0 {
            (self.days, self.months) = (self.days + 30, self.months - 1);
        } else if self.months < 0 && self.days > 0 {
            (self.days, self.months) = (self.days - 30, self.months + 1);
        }
        self
    }

    fn all(mut self) -> Parts {
        self.days += self.micros / MICROS_PER_DAY;
        self.micros %= MICROS_PER_DAY;
        self.months += self.days / 30;
        self.days %= 30;
        if self.months > 0 && (self.days < 0 || (self.days == 0 && self.micros < 0)) {
            (self.days, self.months) = (self.days + 30, self.months - 1);
        } else if self.months < 0 && (self.days > 0 || (self.days == 0 && self.micros > 0)) {
            (self.days, self.months) = (self.days - 30, self.months + 1);
        }
        self.same_sign_of_time()
    }

    fn same_sign_of_time(mut self) -> Parts {
        if self.days > 0 && self.micros < 0 {
            (self.micros, self.days) = (self.micros + MICROS_PER_DAY, self.days - 1);
        } else if self.days < 0 && self.micros > 0 {
            (self.micros, self.days) = (self.micros - MICROS_PER_DAY, self.days + 1);
        }
        self
    }
}

fn justified(row: &Row, by: fn(Parts) -> Parts) -> Result<Option<Cell>, SqlError> {
    let value = interval(row.first());
    let parts = Parts { months: value.months.into(), days: value.days.into(), micros: value.nanoseconds / 1000 };
    let Parts { months, days, micros } = by(parts);
    made(months, days, micros)
}

/// The day of a year, a month and a day; a negative year is one before Christ.
fn day(row: &Row) -> Result<i64, SqlError> {
    let (year, month, day) = (whole(row.first()), whole(row.get(1)), whole(row.get(2)));
    let wrong = || SqlError::new("22008", format!("date field value out of range: {year}-{month:02}-{day:02}"));
    let civil_year = if year < 0 { year + 1 } else { year };
    let (Ok(month), Ok(day)) = (u32::try_from(month), u32::try_from(day)) else { return Err(wrong()) };
    if year == 0 || !(1..=12).contains(&month) || day == 0 || day > days_in(civil_year, month) {
        return Err(wrong());
    }
    let days = day_number(civil_year, month, day);
    match DAYS.contains(&days) {
        true => Ok(days),
        false => Err(SqlError::new("22008", format!("date out of range: {year}-{month:02}-{day:02}"))),
    }
}

/// The microseconds of an hour, a minute and seconds.
fn clock(row: &Row) -> Result<i64, SqlError> {
    let (hour, minute, second) = (whole(row.first()), whole(row.get(1)), double(row.get(2)));
    let wrong = || SqlError::new("22008", format!("time field value out of range: {hour}:{minute:02}:{second:02}"));
    if !(0..=24).contains(&hour) || !(0..=59).contains(&minute) || !(0.0..=60.0).contains(&second) {
        return Err(wrong());
    }
    let micros = (hour * 60 + minute) * 60 * MICROS_PER_SECOND + micros(second);
    if micros > MICROS_PER_DAY { Err(wrong()) } else { Ok(micros) }
}

/// Seconds, rounded to microseconds; the caller knows that they are few.
#[expect(clippy::cast_possible_truncation, reason = "what is too large is cut to the ends of the range")]
fn micros(seconds: f64) -> i64 {
    (seconds * 1e6).round_ties_even() as i64
}

/// The time without a zone that a row of fields is.
fn shown(row: &Row) -> Result<i64, SqlError> {
    let (date, time) = row.split_at(3.min(row.len()));
    let (days, micros) = (day(date)?, clock(time)?);
    let time = days.checked_mul(MICROS_PER_DAY).and_then(|start| start.checked_add(micros));
    time.ok_or_else(|| out_of_range("timestamp"))
}

/// The beginning of the stride that a time is in, if one begins at the last argument.
fn binned(row: &Row) -> Result<Option<Cell>, SqlError> {
    let (stride, time, origin) = (interval(row.first()), whole(row.get(1)), whole(row.get(2)));
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(SqlError::new("0A000", message));
    }
    let micros = i64::from(stride.days).checked_mul(MICROS_PER_DAY);
    let micros = micros.and_then(|days| days.checked_add(stride.nanoseconds / 1000));
    let micros = micros.ok_or_else(|| out_of_range("interval"))?;
    if micros <= 0 {
        return Err(SqlError::new("22008", "stride must be greater than zero"));
    }
    let is_end = |time: i64| [i64::MIN, i64::MAX].contains(&time);
    if is_end(origin) {
        return Err(out_of_range("origin"));
    }
    if is_end(time) {
        return Ok(Some(Cell::Time(time)));
    }
    let since = time.checked_sub(origin).ok_or_else(|| out_of_range("interval"))?;
    let first = time.checked_sub(since.rem_euclid(micros)).ok_or_else(|| out_of_range("timestamp"))?;
    Ok(Some(Cell::Time(first)))
}

fn make_interval(row: &Row) -> Result<Option<Cell>, SqlError> {
    let part = |at| whole(row.get(at));
    let seconds = double(row.get(6));
    if !seconds.is_finite() || seconds.abs() > 9e12 {
        return Err(out_of_range("interval"));
    }
    let clock = (part(4) * 60 + part(5)).checked_mul(60 * MICROS_PER_SECOND);
    let micros = clock.and_then(|clock| clock.checked_add(micros(seconds))).ok_or_else(|| out_of_range("interval"))?;
    made(part(0) * 12 + part(1), part(2) * 7 + part(3), micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(months: i64, days: i64, hours: i64) -> Parts {
        Parts { months, days, micros: hours * 3600 * MICROS_PER_SECOND }
    }

    #[test]
    fn parts_have_one_sign_when_justified() {
        assert_eq!(parts(0, 35, 0).days(), parts(1, 5, 0));
        assert_eq!(parts(0, -35, 0).days(), parts(-1, -5, 0));
        assert_eq!(parts(0, 0, 27).hours(), parts(0, 1, 3));
        assert_eq!(parts(1, 0, -1).all(), parts(0, 29, 23));
        assert_eq!(parts(0, 35, 27).all(), parts(1, 6, 3));
    }

    #[test]
    fn ages_count_whole_months() {
        let at = |year, month, day| Some(Cell::Time(day_number(year, month, day) * MICROS_PER_DAY));
        let of = |end, start| match age(&[end, start]) {
            Ok(Some(Cell::Interval(value))) => (value.months, value.days),
            other => panic!("{other:?}"),
        };
        assert_eq!(of(at(2001, 4, 10), at(1957, 6, 13)), (43 * 12 + 9, 27));
        assert_eq!(of(at(2020, 3, 1), at(2020, 2, 29)), (0, 1));
        assert_eq!(of(at(2020, 1, 31), at(2020, 3, 1)), (-1, -1));
    }
}
