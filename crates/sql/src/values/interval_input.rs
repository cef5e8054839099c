//! Intervals as people write them: `1 year 2 months 3 days 04:05:06.7`, `1-2`, `@ 1 day ago`, `P1Y2M3DT4H5M6S`.
//!
//! A text is a row of numbers with their units. A number without one counts what the type says, or days before hours and a time of day.
//! A part of a unit becomes units below: of a year months, of a month days (of which it has thirty), of a day time.
use datafusion::sql::sqlparser::ast::{Expr, Value};

use super::Misfit;
use super::datetime::MICROS_PER_DAY;
use super::interval_form::{IntervalForm, SECOND, Span, Unit, unit};
use crate::error::SqlError;
use crate::interrupt::session_zone;
use crate::interrupt::time_style::IntervalStyle;

impl Span {
    fn add(&mut self, number: f64, unit: Unit) -> Result<(), Misfit> {
        let (whole, part) = (number.trunc(), number.fract());
        match unit {
            Unit::Months(count @ 2..) => {
                // Years have parts of whole months.
                self.months = sum(self.months, product(whole, count)?)?;
                self.months = sum(self.months, rounded(part * count_of(count))?)?;
            }
            Unit::Months(_) => {
                self.months = sum(self.months, rounded(whole)?)?;
                let days = part * 30.0;
                self.add_days(days)?;
            }
            Unit::Days(count) => {
                self.days = sum(self.days, product(whole, count)?)?;
                self.add_days(part * count_of(count))?;
            }
            Unit::Micros(count) => {
                let whole = product(whole, count)?;
                let part = rounded(part * count_of(count))?;
                self.micros = sum(self.micros, sum(whole, part)?)?;
            }
        }
        Ok(())
    }

    fn add_days(&mut self, days: f64) -> Result<(), Misfit> {
        self.days = sum(self.days, rounded(days.trunc())?)?;
        self.micros = sum(self.micros, rounded(days.fract() * count_of(MICROS_PER_DAY))?)?;
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "units are small")]
fn count_of(count: i64) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn rounded(number: f64) -> Result<i64, Misfit> {
    if number.abs() < 9e18 { Ok(number.round_ties_even() as i64) } else { Err(Misfit::DateField) }
}

fn sum(left: i64, right: i64) -> Result<i64, Misfit> {
    left.checked_add(right).ok_or(Misfit::DateField)
}

fn product(whole: f64, count: i64) -> Result<i64, Misfit> {
    rounded(whole)?.checked_mul(count).ok_or(Misfit::DateField)
}

/// Reads an interval.
pub(crate) fn parse(text: &str) -> Result<Span, Misfit> {
    parse_as(text, IntervalForm::WHOLE)
}

/// Reads an interval of a type: with regard to its fields, and nothing beside them.
pub(crate) fn parse_as(text: &str, form: IntervalForm) -> Result<Span, Misfit> {
    let span = form.cut(uncut(text, form)?);
    let counts_fit = [span.months, span.days].into_iter().all(|count| i32::try_from(count).is_ok());
    // Queries count it in nanoseconds.
    let time_fits = span.micros.checked_mul(1000).is_some();
    if counts_fit && time_fits { Ok(span) } else { Err(Misfit::DateField) }
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// What an expression says, if it is a literal of an interval.
///
/// # Errors
/// Where its text is no interval, or its fields are none of a literal.
pub(crate) fn of_literal(expr: &Expr) -> crate::error::Result<Option<Span>> {
    let (value, form) = match expr {
        Expr::Interval(interval) => match &*interval.value {
            Expr::Value(value) => (value, IntervalForm::of_literal(interval)?),
            _ => return Ok(None),
        },
        Expr::Cast { expr, data_type, .. } => match (&**expr, IntervalForm::of_type(data_type)?) {
            (Expr::Value(value), Some(form)) => (value, form),
            _ => return Ok(None),
        },
        Expr::TypedString(typed) => match IntervalForm::of_type(&typed.data_type)? {
            Some(form) => (&typed.value, form),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Some(text) = text_of(&value.value) else { return Ok(None) };
    let span = parse_as(text, form).map_err(|misfit| match misfit {
        Misfit::DateField => SqlError::new("22015", format!("interval field value out of range: \"{text}\"")),
        _ => SqlError::new("22007", format!("invalid input syntax for type interval: \"{text}\"")),
    })?;
    Ok(Some(span))
}

fn uncut(text: &str, form: IntervalForm) -> Result<Span, Misfit> {
    const HOURS: Unit = Unit::Micros(3600 * SECOND);
    let (text, bare) = (text.trim(), form.bare().unwrap_or(Unit::Micros(SECOND)));
    if text.starts_with(['P', 'p']) {
        return iso(&text[1..]);
    }
    let words = words(text);
    let mut span = Span::default();
    let (mut at, mut seen, mut is_ago) = (0, false, false);
    while let Some(word) = words.get(at) {
        at += 1;
        match word.as_str() {
            "@" if at == 1 => continue,
            "ago" if at == words.len() && seen => {
                is_ago = true;
                continue;
            }
            _ => {}
        }
        seen = true;
        if word.contains(':') {
            let (sign, time) = signed(word);
            span.micros = sum(span.micros, sign * clock(time, form.has_short_clock())?)?;
            continue;
        }
        let (sign, unsigned) = signed(word);
        if let Some((years, months)) = unsigned.split_once('-') {
            let whole = |text: &str| text.parse::<i64>().map_err(|_| Misfit::Syntax);
            let years = whole(years)?.checked_mul(12).ok_or(Misfit::DateField)?;
            let months = sum(years, whole(months)?)?;
            span.months = sum(span.months, months.checked_mul(sign).ok_or(Misfit::DateField)?)?;
            continue;
        }
        let number: f64 = match unsigned.starts_with(|sign: char| sign.is_ascii_digit() || sign == '.') {
            true => word.parse().map_err(|_| Misfit::Syntax)?,
            false => return Err(Misfit::Syntax),
        };
        let named = words.get(at).and_then(|name| unit(name));
        let is_before_time = words.get(at).is_some_and(|next| next.contains(':'));
        let next_counts = || words.get(at + 1).map_or(Some(bare), |name| unit(name));
        let counted = match named {
            Some(unit) => {
                at += 1;
                unit
            }
            None if at == words.len() => bare,
            None if is_before_time || next_counts() == Some(HOURS) => Unit::Days(1),
            None => return Err(Misfit::Syntax),
        };
        span.add(number, counted)?;
    }
    if has_one_sign(&words) {
        let below = |part: i64| if part > 0 { -part } else { part };
        span = Span { months: below(span.months), days: below(span.days), micros: below(span.micros) };
    }
    match (seen, is_ago) {
        (false, _) => Err(Misfit::Syntax),
        (true, true) => Ok(span.negated()),
        (true, false) => Ok(span),
    }
}

/// Numbers, names and signs apart, as in `1day2hours`.
/// Whether the minus before the first part is that of all, as it is in the style `sql_standard` where no other part has a sign.
fn has_one_sign(words: &[String]) -> bool {
    let is_standard = || session_zone::style().intervals == IntervalStyle::Standard;
    let [first, others @ ..] = words else { return false };
    first.starts_with('-') && !others.iter().any(|word| word.starts_with(['-', '+'])) && is_standard()
}

fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in text.split_ascii_whitespace() {
        let mut is_name = None;
        for sign in part.chars() {
            let named = sign.is_alphabetic();
            match words.last_mut() {
                Some(word) if is_name == Some(named) => word.push(sign.to_ascii_lowercase()),
                // A sign may stand apart from its number.
                Some(word) if is_name.is_none() && !named && matches!(word.as_str(), "-" | "+") => word.push(sign),
                _ => words.push(sign.to_ascii_lowercase().to_string()),
            }
            is_name = Some(named);
        }
    }
    words
}

fn signed(word: &str) -> (i64, &str) {
    match word.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, word.strip_prefix('+').unwrap_or(word)),
    }
}

/// `hours:minutes[:seconds]`, in microseconds. Two numbers are minutes and seconds where that is said, or the second has a point.
fn clock(text: &str, is_minutes_and_seconds: bool) -> Result<i64, Misfit> {
    let is_short = text.matches(':').count() == 1 && (is_minutes_and_seconds || text.contains('.'));
    let text = if is_short { format!("0:{text}") } else { text.to_owned() };
    let mut parts = text.split(':');
    let whole = |part: Option<&str>| match part {
        Some(part) if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => {
            part.parse::<i64>().map_err(|_| Misfit::DateField)
        }
        _ => Err(Misfit::Syntax),
    };
    let (hours, minutes) = (whole(parts.next())?, whole(parts.next())?);
    let seconds: f64 = parts.next().map_or(Ok(0.0), |seconds| seconds.parse().map_err(|_| Misfit::Syntax))?;
    if parts.next().is_some() {
        return Err(Misfit::Syntax);
    }
    if minutes > 59 || !(0.0..60.000_001).contains(&seconds) {
        return Err(Misfit::DateField);
    }
    let whole = sum(hours.checked_mul(3600).ok_or(Misfit::DateField)?, minutes * 60)?;
    sum(whole.checked_mul(SECOND).ok_or(Misfit::DateField)?, rounded(seconds * 1e6)?)
}

/// What is behind the `P`.
fn iso(text: &str) -> Result<Span, Misfit> {
    let (mut span, mut number, mut is_time, mut seen) = (Span::default(), String::new(), false, false);
    for sign in text.chars() {
        let unit = match (sign.to_ascii_uppercase(), is_time) {
            ('T', false) if number.is_empty() => {
                is_time = true;
                continue;
            }
            ('0'..='9' | '.' | '-' | '+', _) => {
                number.push(sign);
                continue;
            }
            ('Y', false) => Unit::Months(12),
            ('M', false) => Unit::Months(1),
            ('W', false) => Unit::Days(7),
            ('D', false) => Unit::Days(1),
            ('H', true) => Unit::Micros(3600 * SECOND),
            ('M', true) => Unit::Micros(60 * SECOND),
            ('S', true) => Unit::Micros(SECOND),
            _ => return Err(Misfit::Syntax),
        };
        span.add(number.parse().map_err(|_| Misfit::Syntax)?, unit)?;
        number.clear();
        seen = true;
    }
    if seen && number.is_empty() { Ok(span) } else { Err(Misfit::Syntax) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (i64, i64, i64) {
        let span = parse(text).unwrap();
        (span.months, span.days, span.micros)
    }

    #[test]
    fn intervals_are_read_as_people_write_them() {
        let hour = 3600 * SECOND;
        assert_eq!(of("1 year 2 months 3 days 04:05:06.789"), (14, 3, 4 * hour + 306_789_000));
        assert_eq!(of("1-2"), (14, 0, 0));
        assert_eq!(of("1 2:03:04"), (0, 1, 2 * hour + 184 * SECOND));
        assert_eq!(of("P1Y2M3DT4H5M6S"), (14, 3, 4 * hour + 306 * SECOND));
        assert_eq!(of("@ 1 day ago"), (0, -1, 0));
        assert_eq!((of("1.5 weeks"), of("1.5 months"), of("0.5 year")), ((0, 10, 12 * hour), (1, 15, 0), (6, 0, 0)));
        assert_eq!((of("-1 mons +2 days"), of("1 day -02:00:00"), of("0")), ((-1, 2, 0), (0, 1, -2 * hour), (0, 0, 0)));
        assert_eq!((of("1.123456789 seconds"), of("1h30m")), ((0, 0, 1_123_457), (0, 0, hour + hour / 2)));
        assert_eq!((of("1:30"), of("1:30.5")), ((0, 0, hour + hour / 2), (0, 0, 90_500_000)));
        assert_eq!(of("1 2 hours"), (0, 1, 2 * hour));
        assert_eq!((of("1 month - 1 second"), of("+ 1 day - 02:00")), ((1, 0, -SECOND), (0, 1, -2 * hour)));
        for wrong in ["", "abc", "1 x", "day", "P", "1:2:3:4", "1 day ago 2", "1 2", "1 2 minutes", "1 day -", "- day"]
        {
            assert_eq!(parse(wrong), Err(Misfit::Syntax), "{wrong}");
        }
    }

    #[test]
    fn no_number_is_too_large_to_be_refused() {
        let numbers =
            ["9223372036854775807", "-9223372036854775808", "153722867280.912930117", "1e19", "2147483648", "0.5"];
        let is_held_or_refused = |text: &str| match parse(text) {
            Ok(span) => [span.months, span.days].iter().all(|count| i32::try_from(*count).is_ok()),
            Err(misfit) => matches!(misfit, Misfit::DateField | Misfit::Syntax),
        };
        let units = ["us", "seconds", "minutes", "hours", "days", "weeks", "months", "years", "decades", "millennia"];
        for (number, unit) in numbers.iter().flat_map(|number| units.map(|unit| (number, unit))) {
            let once = format!("{number} {unit}");
            for text in [once.clone(), format!("{once} {once}"), format!("{once} ago"), format!("P{number}Y{number}D")]
            {
                assert!(is_held_or_refused(&text), "{text}");
            }
        }
        for text in ["9223372036854775807-11", "1-9223372036854775807", "2562047788015215:30:00", "1 day 2562047789:00"]
        {
            assert!(is_held_or_refused(text), "{text}");
        }
        assert_eq!(parse("9223372036854775807-11"), Err(Misfit::DateField));
        assert_eq!(parse("9223372036854775807 us 1 us"), Err(Misfit::DateField));
    }
}
