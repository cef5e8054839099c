//! What a type of intervals says of its values: the fields that it names, and the digits of their seconds, as in
//! `interval day to minute`, `interval second(2)` and `interval(3)`.
//!
//! A value of such a type has nothing below the last field that is named, and nothing beside years and months if that is one of them;
//! what stands above the first one is kept, as in PostgreSQL. A text is read with regard to them: a number without a unit counts the
//! last field, and `1:30` is a minute and a half where the type has minutes and seconds alone.
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, DateTimeField, Interval as Literal, IntervalFields as SqlFields,
};
use engine::{DataType, Interval, IntervalFields, SECOND_DIGITS_MAX, TimeKind};

use crate::error::{Result, SqlError};

/// The digits that seconds have.
const DIGITS_MAX: u32 = 6;
/// A second in microseconds.
pub(super) const SECOND: i64 = 1_000_000;

/// Before the last field and the digits, where a field of a schema tells of both.
const MARK: &str = "interval to ";

/// Months, days and microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) months: i64,
    pub(crate) days: i64,
    pub(crate) micros: i64,
}

/// What numbers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    Months(i64),
    Days(i64),
    Micros(i64),
}

/// The unit of a name.
pub(crate) fn unit(name: &str) -> Option<Unit> {
    let hour = 3600 * SECOND;
    Some(match name.to_ascii_lowercase().as_str() {
        "us" | "usec" | "usecs" | "microsecond" | "microseconds" | "microsecon" => Unit::Micros(1),
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" | "millisecon" => Unit::Micros(1000),
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Micros(SECOND),
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Micros(60 * SECOND),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Micros(hour),
        "d" | "day" | "days" => Unit::Days(1),
        "w" | "week" | "weeks" => Unit::Days(7),
        "mon" | "mons" | "month" | "months" => Unit::Months(1),
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Months(12),
        "dec" | "decs" | "decade" | "decades" => Unit::Months(120),
        "c" | "cent" | "century" | "centuries" => Unit::Months(1200),
        "mil" | "mils" | "millennium" | "millennia" => Unit::Months(12_000),
        _ => return None,
    })
}

impl Span {
    /// All of it with the other sign.
    pub(crate) fn negated(self) -> Span {
        let negated = |number: i64| number.saturating_neg();
        Span { months: negated(self.months), days: negated(self.days), micros: negated(self.micros) }
    }
}

/// A field of intervals that a type may end with, from the largest to the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Hash)]
enum LastField {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// What a type of intervals says of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntervalForm {
    /// None where no field is named: all of them.
    last: Option<LastField>,
    /// What a number without a unit counts, if the type says.
    bare: Option<Unit>,
    /// Whether the fields are minutes and seconds.
    is_minutes_and_seconds: bool,
    digits: u32,
}

impl LastField {
    const ALL: [(LastField, &str); 6] = [
        (LastField::Year, "year"),
        (LastField::Month, "month"),
        (LastField::Day, "day"),
        (LastField::Hour, "hour"),
        (LastField::Minute, "minute"),
        (LastField::Second, "second"),
    ];

    fn name(self) -> &'static str {
        LastField::ALL[self as usize].1
    }

    fn named(name: &str) -> Option<LastField> {
        LastField::ALL.into_iter().find(|(_, known)| name.eq_ignore_ascii_case(known)).map(|(field, _)| field)
    }
}

impl IntervalForm {
    /// All fields, with all digits.
    pub(crate) const WHOLE: IntervalForm =
        IntervalForm { last: None, bare: None, is_minutes_and_seconds: false, digits: DIGITS_MAX };

    /// That of a type, if it is one of intervals.
    ///
    /// # Errors
    /// Digits are of seconds only.
    pub(crate) fn of_type(data_type: &SqlType) -> Result<Option<IntervalForm>> {
        let SqlType::Interval { fields, precision } = data_type else { return Ok(None) };
        let name = fields.map_or_else(String::new, |fields| fields.to_string());
        IntervalForm::of_fields(&name).with_digits(*precision).map(Some)
    }

    /// That of a column, whose type says so of its fields and digits.
    pub(crate) fn of_column(fields: IntervalFields, digits: u8) -> IntervalForm {
        IntervalForm { digits: digits.into(), ..IntervalForm::of_fields(fields.name()) }
    }

    /// The type of a column of intervals with these fields and digits.
    ///
    /// # Errors
    /// Digits are of seconds only.
    pub(crate) fn column_type(fields: Option<SqlFields>, precision: Option<u64>) -> Result<DataType> {
        let form = IntervalForm::of_type(&SqlType::Interval { fields, precision })?.unwrap_or(IntervalForm::WHOLE);
        let name = fields.map_or_else(String::new, |fields| fields.to_string().to_lowercase());
        let fields = IntervalFields::named(&name).unwrap_or(IntervalFields::All);
        let of = TimeKind::Interval { fields, says_digits: precision.is_some() };
        Ok(match (fields, precision) {
            (IntervalFields::All, None) => DataType::Interval,
            _ => DataType::TimeDigits { of, digits: u8::try_from(form.digits).unwrap_or(SECOND_DIGITS_MAX) },
        })
    }

    /// The type of intervals that a modifier in PostgreSQL's form tells of.
    pub(crate) fn of_modifier(modifier: i32) -> DataType {
        let digits = u8::try_from(modifier & 0xffff).ok().filter(|digits| *digits <= SECOND_DIGITS_MAX);
        match (modifier >= 0).then(|| IntervalFields::of_mask(modifier >> 16)).flatten() {
            None => DataType::Interval,
            Some(IntervalFields::All) if digits.is_none() => DataType::Interval,
            Some(fields) => {
                let of = TimeKind::Interval { fields, says_digits: digits.is_some() };
                DataType::TimeDigits { of, digits: digits.unwrap_or(SECOND_DIGITS_MAX) }
            }
        }
    }

    /// The value of this type that an interval becomes.
    pub(crate) fn cut_interval(self, of: Interval) -> Interval {
        let span = self.cut(Span { months: of.months.into(), days: of.days.into(), micros: of.micros });
        // Months and days are not more than they were.
        let narrow = |number: i64| i32::try_from(number).unwrap_or_default();
        Interval { months: narrow(span.months), days: narrow(span.days), micros: span.micros }
    }

    /// That of the fields of a type, by their name in SQL.
    fn of_fields(name: &str) -> IntervalForm {
        let last = name.rsplit(' ').next().and_then(LastField::named);
        let is_minutes_and_seconds = name.eq_ignore_ascii_case(IntervalFields::MinuteToSecond.name());
        IntervalForm { is_minutes_and_seconds, ..IntervalForm::up_to(last) }
    }

    fn up_to(last: Option<LastField>) -> IntervalForm {
        IntervalForm { last, bare: last.and_then(|last| unit(last.name())), ..IntervalForm::WHOLE }
    }

    /// That of a literal with fields behind its text. Beside the fields of types there are other units (`INTERVAL '2' WEEKS`), and
    /// digits of a field that is no second, which say nothing (`INTERVAL '90' DAY (3)`).
    ///
    /// # Errors
    /// Fields that do not go from the one to the other; digits of the first of two fields.
    pub(crate) fn of_literal(literal: &Literal) -> Result<IntervalForm> {
        let Some(first) = &literal.leading_field else { return Ok(IntervalForm::WHOLE) };
        if let (None, None, Some(bare)) =
            (&literal.last_field, LastField::named(&first.to_string()), unit(&first.to_string()))
        {
            return Ok(IntervalForm { bare: Some(bare), ..IntervalForm::WHOLE });
        }
        let last = literal.last_field.as_ref();
        let wrong = |field: &DateTimeField| syntax(&field.to_string());
        let named = |field: &DateTimeField| LastField::named(&field.to_string()).ok_or_else(|| wrong(field));
        let (first, named_last) = (named(first)?, last.map(named).transpose()?);
        let is_range = match (first, named_last) {
            (_, None) | (LastField::Year, Some(LastField::Month)) => true,
            (LastField::Day | LastField::Hour | LastField::Minute, Some(last)) => first < last,
            _ => false,
        };
        if let (false, Some(last)) = (is_range, last) {
            return Err(wrong(last));
        }
        let digits = match named_last {
            Some(_) if literal.leading_precision.is_some() => return Err(syntax("(")),
            Some(_) => literal.fractional_seconds_precision,
            None if literal.fractional_seconds_precision.is_some() => return Err(syntax(",")),
            None => literal.leading_precision.filter(|_| first == LastField::Second),
        };
        let is_minutes_and_seconds = (first, named_last) == (LastField::Minute, Some(LastField::Second));
        let last = Some(named_last.unwrap_or(first));
        IntervalForm { is_minutes_and_seconds, ..IntervalForm::up_to(last) }.with_digits(digits)
    }

    /// With so many digits, at most those that there are.
    fn with_digits(self, digits: Option<u64>) -> Result<IntervalForm> {
        match (digits, self.last) {
            (None, _) => Ok(self),
            (Some(_), Some(last)) if last != LastField::Second => Err(syntax("(")),
            (Some(digits), _) => {
                let digits = u32::try_from(digits).unwrap_or(DIGITS_MAX).min(DIGITS_MAX);
                Ok(IntervalForm { digits, ..self })
            }
        }
    }

    /// What a number without a unit counts in a text of this type, if the type says.
    pub(super) fn bare(self) -> Option<Unit> {
        self.bare
    }

    /// Whether two numbers with a colon between them are minutes and seconds.
    pub(super) fn has_short_clock(self) -> bool {
        self.is_minutes_and_seconds
    }

    /// Whether values of the type are those of any interval.
    pub(crate) fn is_whole(self) -> bool {
        matches!(self.last, None | Some(LastField::Second)) && self.digits == DIGITS_MAX
    }

    /// The value of this type that an interval becomes.
    pub(crate) fn cut(self, span: Span) -> Span {
        let Span { months, days, micros } = span;
        let whole = |unit: i64| Span { micros: micros - micros % unit, ..span };
        match self.last {
            Some(LastField::Year) => Span { months: months - months % 12, days: 0, micros: 0 },
            Some(LastField::Month) => Span { months, days: 0, micros: 0 },
            Some(LastField::Day) => Span { months, days, micros: 0 },
            Some(LastField::Hour) => whole(3600 * SECOND),
            Some(LastField::Minute) => whole(60 * SECOND),
            None | Some(LastField::Second) => {
                let unit = 10i64.pow(DIGITS_MAX - self.digits);
                let up = micros.saturating_add(micros.signum() * (unit / 2));
                Span { micros: up - up % unit, ..span }
            }
        }
    }

    /// The text by which a field of a schema tells of it, for casts.
    pub(crate) fn mark(self) -> String {
        format!("{MARK}{} {}", self.last.unwrap_or(LastField::Second).name(), self.digits)
    }

    /// What such a text tells of.
    pub(crate) fn of_mark(mark: &str) -> Option<IntervalForm> {
        let (last, digits) = mark.strip_prefix(MARK)?.split_once(' ')?;
        let (last, digits) = (Some(LastField::named(last)?), digits.parse().ok()?);
        Some(IntervalForm { digits, ..IntervalForm::up_to(last) })
    }
}

fn syntax(near: &str) -> SqlError {
    SqlError::syntax(format!("syntax error at or near \"{}\"", near.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: Option<SqlFields>, precision: Option<u64>) -> IntervalForm {
        IntervalForm::of_type(&SqlType::Interval { fields, precision }).unwrap().unwrap()
    }

    #[test]
    fn what_is_below_the_last_field_is_left_out() {
        let span = Span { months: 17, days: 3, micros: -(2 * 3600 + 3 * 60 + 4) * SECOND - 555_000 };
        let cut = |fields| {
            let Span { months, days, micros } = of(Some(fields), None).cut(span);
            (months, days, micros / SECOND)
        };
        assert_eq!(cut(SqlFields::Year), (12, 0, 0));
        assert_eq!(cut(SqlFields::YearToMonth), (17, 0, 0));
        assert_eq!(cut(SqlFields::Day), (17, 3, 0));
        assert_eq!(cut(SqlFields::DayToHour), (17, 3, -7200));
        assert_eq!(cut(SqlFields::HourToMinute), (17, 3, -7380));
        assert_eq!(of(Some(SqlFields::Second), None).cut(span), span);
        assert_eq!(of(None, Some(2)).cut(span).micros, span.micros - 5_000, "halves go away from zero");
        assert_eq!(of(None, Some(9)), IntervalForm::WHOLE);
        assert!(
            IntervalForm::of_type(&SqlType::Interval { fields: Some(SqlFields::Day), precision: Some(2) }).is_err()
        );
    }

    #[test]
    fn a_mark_tells_what_a_cast_does() {
        for form in [of(Some(SqlFields::Day), None), of(Some(SqlFields::HourToSecond), Some(3))] {
            assert_eq!(IntervalForm::of_mark(&form.mark()), Some(form));
        }
        assert_eq!(IntervalForm::of_mark("digits 3"), None);
    }
}
