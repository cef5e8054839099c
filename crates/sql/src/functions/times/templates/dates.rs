//! Dates, times and intervals by templates such as `YYYY-MM-DD HH24:MI:SS`.
use super::pieces::{Ordinal, Piece, cut};
use crate::error::SqlError;
use crate::interrupt::zone::{Zone, offset_text};
use crate::values::datetime::{MICROS_PER_DAY, civil, day_number, days_in};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
pub(super) const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// What a template is filled with.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    /// Zero is 1 BC.
    year: i64,
    month: i64,
    day: i64,
    /// The number of the day; `None` of an interval.
    days: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Of a moment: the seconds that the zone is east of Greenwich, and how it is called.
    zone: Option<(i64, String)>,
}

impl Fields {
    /// The fields of a time, or of a moment as the clocks of a zone show it.
    pub(super) fn of_timestamp(time: i64, zone: Option<Zone>) -> Fields {
        let micros = zone.and_then(|zone| zone.shown(time)).unwrap_or(time);
        let zone = zone.map(|zone| (zone.at_moment(time), zone.abbreviation(time)));
        let (days, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
        let (year, month, day) = civil(days);
        let fields = Fields { year, month: month.into(), day: day.into(), days: Some(days), zone, ..Fields::default() };
        fields.with_time(time)
    }

    pub(super) fn of_interval(months: i64, days: i64, micros: i64) -> Fields {
        Fields { year: months / 12, month: months % 12, day: days, ..Fields::default() }.with_time(micros)
    }

    fn with_time(self, time: i64) -> Fields {
        let seconds = time / 1_000_000;
        Fields {
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            micros: time % 1_000_000,
            ..self
        }
    }

    /// The year as it is counted: 1 BC is 1.
    fn shown_year(&self) -> i64 {
        if self.days.is_some() && self.year <= 0 { 1 - self.year } else { self.year }
    }

    /// The year of ISO weeks, the week, and the day of that year.
    fn iso(&self) -> (i64, i64, i64) {
        let days = self.days.unwrap_or(0);
        let monday = |year: i64| {
            let fourth = day_number(year, 1, 4);
            fourth - (fourth + 3).rem_euclid(7)
        };
        let year = civil(days).0;
        let found = [year + 1, year, year - 1].into_iter().find(|year| monday(*year) <= days).unwrap_or(year);
        let day = days - monday(found);
        (found, day / 7 + 1, day + 1)
    }

    fn day_of_year(&self) -> i64 {
        self.days.map_or(0, |days| days - day_number(self.year, 1, 1) + 1)
    }

    fn weekday(&self) -> i64 {
        (self.days.unwrap_or(0) + 4).rem_euclid(7)
    }
}

/// Writes fields by a template.
pub(super) fn write(fields: &Fields, template: &str) -> Result<String, SqlError> {
    let mut out = String::new();
    for piece in cut(template) {
        match piece {
            Piece::Text(text) => out.push_str(&text),
            Piece::Pattern { word, written, is_short, ordinal } => {
                let start = out.len();
                piece_of(fields, word, &written, is_short, &mut out)?;
                if let Some(ordinal) = ordinal {
                    let ending = ending(out[start..].trim());
                    out.push_str(&if ordinal == Ordinal::Upper { ending.to_uppercase() } else { ending.to_owned() });
                }
            }
        }
    }
    Ok(out)
}

/// `st`, `nd`, `rd` or `th` for a number.
pub(super) fn ending(number: &str) -> &'static str {
    let digits: Vec<char> = number.chars().filter(char::is_ascii_digit).collect();
    match digits[..] {
        [.., '1', _] => "th",
        [.., '1'] => "st",
        [.., '2'] => "nd",
        [.., '3'] => "rd",
        _ => "th",
    }
}

fn piece_of(fields: &Fields, word: &str, written: &str, is_short: bool, out: &mut String) -> Result<(), SqlError> {
    let number = |value: i64, width: usize| match is_short {
        true => value.to_string(),
        false => {
            let sign = if value < 0 { "-" } else { "" };
            format!("{sign}{:0width$}", value.unsigned_abs())
        }
    };
    let offset = fields.zone.as_ref().map_or(0, |(offset, _)| *offset);
    let year = fields.shown_year();
    let (iso_year, iso_week, iso_day) = fields.iso();
    let twelve = if fields.hour % 12 == 0 { 12 } else { fields.hour % 12 };
    let text = match word {
        "HH24" => number(fields.hour, 2),
        "HH12" | "HH" => number(twelve, 2),
        "MI" => number(fields.minute, 2),
        "SS" => number(fields.second, 2),
        "SSSSS" | "SSSS" => number(fields.hour * 3600 + fields.minute * 60 + fields.second, 1),
        "MS" => format!("{:03}", fields.micros / 1000),
        "US" => format!("{:06}", fields.micros),
        "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let digits = usize::from(word.as_bytes()[2] - b'0');
            format!("{:06}", fields.micros)[..digits].to_owned()
        }
        "AM" | "PM" | "A.M." | "P.M." => {
            let half = match (fields.hour % 24 >= 12, word.contains('.')) {
                (true, false) => "PM",
                (true, true) => "P.M.",
                (false, false) => "AM",
                (false, true) => "A.M.",
            };
            as_written(half, written)
        }
        "YYYY" => number(year, 4),
        "Y,YYY" => format!("{},{:03}", year / 1000, year % 1000),
        "YYY" => number(year % 1000, 3),
        "YY" => number(year % 100, 2),
        "Y" => number(year % 10, 1),
        "IYYY" => number(iso_year, 4),
        "IYY" => number(iso_year % 1000, 3),
        "IY" => number(iso_year % 100, 2),
        "I" => number(iso_year % 10, 1),
        "IW" => number(iso_week, 2),
        "IDDD" => number(iso_day, 3),
        "MM" => number(fields.month, 2),
        // Here the sign counts as a digit.
        "DD" => {
            if is_short {
                fields.day.to_string()
            } else {
                format!("{:02}", fields.day)
            }
        }
        "CC" => number(if fields.year > 0 { (fields.year + 99) / 100 } else { -((99 - (fields.year - 1)) / 100) }, 2),
        "Q" => number((fields.month - 1) / 3 + 1, 1),
        "TZ" => as_written(fields.zone.as_ref().map_or("", |(_, name)| name), written),
        "TZH" => offset_text(offset / 3_600 * 3_600),
        "OF" => offset_text(offset / 60 * 60),
        "TZM" => format!("{:02}", offset.abs() / 60 % 60),
        _ => return day_or_name(fields, word, written, is_short, out),
    };
    out.push_str(&text);
    Ok(())
}

/// Patterns that an interval has nothing for.
fn day_or_name(fields: &Fields, word: &str, written: &str, is_short: bool, out: &mut String) -> Result<(), SqlError> {
    if fields.days.is_none() && matches!(word, "DAY" | "DY" | "D" | "ID" | "BC" | "B.C." | "AD" | "A.D.") {
        return Err(SqlError::new("22007", "invalid format specification for an interval value")
            .hint("Intervals are not tied to specific calendar dates."));
    }
    let month = usize::try_from(fields.month).ok().and_then(|month| month.checked_sub(1)).filter(|month| *month < 12);
    let weekday = usize::try_from(fields.weekday()).unwrap_or(0);
    let padded = |name: &str| {
        let name = as_written(name, written);
        if is_short { name } else { format!("{name:<9}") }
    };
    let number = |value: i64, width: usize| if is_short { value.to_string() } else { format!("{value:0width$}") };
    out.push_str(&match word {
        "MONTH" => month.map_or(String::new(), |month| padded(MONTHS[month])),
        "MON" => month.map_or(String::new(), |month| as_written(&MONTHS[month][..3], written)),
        "RM" => {
            let roman = month.map_or(String::new(), |month| match written.starts_with('R') {
                true => ROMAN[month].to_owned(),
                false => ROMAN[month].to_lowercase(),
            });
            if is_short { roman } else { format!("{roman:<4}") }
        }
        "DAY" => padded(DAYS[weekday]),
        "DY" => as_written(&DAYS[weekday][..3], written),
        "DDD" => number(if fields.days.is_some() { fields.day_of_year() } else { fields.day }, 3),
        "D" => (fields.weekday() + 1).to_string(),
        "ID" => if fields.weekday() == 0 { 7 } else { fields.weekday() }.to_string(),
        "WW" => number((fields.day_of_year() - 1) / 7 + 1, 2),
        "W" => ((fields.day - 1) / 7 + 1).to_string(),
        "J" => fields.days.map_or(0, |days| days + 2_440_588).to_string(),
        "BC" | "AD" | "B.C." | "A.D." => {
            let era = match (fields.year <= 0, word.contains('.')) {
                (true, false) => "BC",
                (true, true) => "B.C.",
                (false, false) => "AD",
                (false, true) => "A.D.",
            };
            as_written(era, written)
        }
        _ => String::new(),
    });
    Ok(())
}

/// A name in the case in which the pattern is written.
fn as_written(name: &str, written: &str) -> String {
    let mut letters = written.chars().filter(char::is_ascii_alphabetic);
    let (first, second) = (letters.next(), letters.next());
    match (first, second) {
        (Some(first), _) if first.is_lowercase() => name.to_lowercase(),
        (Some(_), Some(second)) if second.is_lowercase() => name.to_owned(),
        _ => name.to_uppercase(),
    }
}

/// What has been read.
#[derive(Debug, Default)]
struct Read {
    year: Option<i64>,
    is_before_christ: bool,
    century: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    iso: (Option<i64>, Option<i64>, Option<i64>),
    hour: i64,
    is_twelve: bool,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
}

fn wrong_value(text: &str, written: &str) -> SqlError {
    SqlError::new("22007", format!("invalid value \"{text}\" for \"{written}\""))
}

/// Reads a time by a template, in microseconds.
pub(super) fn read(text: &str, template: &str) -> Result<i64, SqlError> {
    let pieces = cut(template);
    let mut read = Read::default();
    let mut rest = text.trim_start();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(literal) => rest = skipped(rest, literal),
            Piece::Pattern { word, written, is_short, ordinal } => {
                rest = rest.trim_start();
                // Digits of the next pattern belong to it only where no sign is between.
                let is_followed = matches!(pieces.get(at + 1), Some(Piece::Pattern { .. })) && !is_short;
                rest = read.piece(word, written, is_followed, rest)?;
                if ordinal.is_some() {
                    rest = rest.get(2..).unwrap_or("");
                }
            }
        }
    }
    read.finish(text)
}

/// What is behind as many signs as a template has between its patterns.
fn skipped<'t>(text: &'t str, literal: &str) -> &'t str {
    let mut rest = text;
    for sign in literal.chars() {
        let Some(next) = rest.chars().next() else { break };
        if sign.is_whitespace() {
            rest = rest.trim_start();
            if rest.len() == text.len() && next.is_ascii_punctuation() && !matches!(next, '+' | '-') {
                rest = &rest[next.len_utf8()..];
            }
        } else if sign.is_ascii_punctuation() {
            rest = rest.trim_start();
            let is_separator = rest.chars().next().is_some_and(|next| next.is_ascii_punctuation());
            if is_separator {
                rest = &rest[1..];
            }
        } else {
            rest = &rest[next.len_utf8()..];
        }
    }
    rest
}

impl Read {
    fn piece<'t>(&mut self, word: &str, written: &str, is_followed: bool, text: &'t str) -> Result<&'t str, SqlError> {
        let width = match word {
            "HH24" | "HH12" | "HH" | "MI" | "SS" | "MM" | "DD" | "YY" | "IW" | "WW" | "CC" | "IY" => 2,
            "YYYY" | "IYYY" => 4,
            "YYY" | "DDD" | "MS" | "IDDD" => 3,
            "US" => 6,
            "SSSSS" | "SSSS" => 5,
            "J" => 7,
            "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => usize::from(word.as_bytes()[2] - b'0'),
            "Y" | "D" | "ID" | "Q" | "I" | "W" => 1,
            _ => return self.name(word, written, text),
        };
        // What has no neighbour takes all of its digits.
        let is_long = !is_followed && matches!(word, "YYYY" | "IYYY" | "J" | "DDD" | "SSSSS" | "SSSS");
        let (digits, rest) = digits(text, if is_long { usize::MAX } else { width });
        let number: i64 = digits.parse().map_err(|_| {
            let shown: String = text.chars().take(width).collect();
            wrong_value(&shown, written).detail("Value must be an integer.")
        })?;
        let fraction = |places: i32| match 6 - i32::try_from(digits.len()).unwrap_or(0).min(places) {
            left if left > 0 => number * 10i64.pow(left.unsigned_abs()),
            _ => number,
        };
        match word {
            "HH24" => self.hour = number,
            "HH12" | "HH" => {
                if !(1..=12).contains(&number) {
                    let error = SqlError::new("22007", format!("hour \"{number}\" is invalid for the 12-hour clock"));
                    return Err(error.hint("Use the 24-hour clock, or give an hour between 1 and 12."));
                }
                (self.hour, self.is_twelve) = (number, true);
            }
            "MI" => self.minute = number,
            "SS" => self.second = number,
            "SSSSS" | "SSSS" => {
                (self.hour, self.minute, self.second) = (number / 3600, number / 60 % 60, number % 60);
            }
            "MS" => self.micros = fraction(3),
            "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => self.micros = fraction(6),
            "YYYY" => self.year = Some(number),
            "YYY" | "YY" | "Y" => self.year = Some(nearest(number, digits.len())),
            "IYYY" => self.iso.0 = Some(number),
            "IW" => self.iso.1 = Some(number),
            "ID" => self.iso.2 = Some(number),
            "MM" => self.month = Some(number),
            "DD" => self.day = Some(number),
            "DDD" => self.day_of_year = Some(number),
            "WW" => self.day_of_year = Some((number - 1) * 7 + 1),
            "J" => self.julian = Some(number),
            "CC" => self.century = Some(number),
            // What says nothing of the date is only looked at.
            _ => {}
        }
        Ok(rest)
    }

    fn name<'t>(&mut self, word: &str, written: &str, text: &'t str) -> Result<&'t str, SqlError> {
        let starts = |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        let unknown = || {
            let word = text.split(|sign: char| !sign.is_alphanumeric()).next().unwrap_or(text);
            let detail = "The given value did not match any of the allowed values for this field.";
            wrong_value(word, written).detail(detail)
        };
        match word {
            "MONTH" | "MON" | "DAY" | "DY" => {
                let names: &[&str] = if word.starts_with('M') { &MONTHS } else { &DAYS };
                let is_long = matches!(word, "MONTH" | "DAY");
                let length = |name: &str| if is_long { name.len() } else { 3 };
                let found = names.iter().position(|name| starts(&name[..length(name)])).ok_or_else(unknown)?;
                if word.starts_with('M') {
                    self.month = i64::try_from(found + 1).ok();
                }
                Ok(&text[length(names[found])..])
            }
            "RM" => {
                let mut known: Vec<(usize, &&str)> = ROMAN.iter().enumerate().collect();
                known.sort_by_key(|(_, roman)| std::cmp::Reverse(roman.len()));
                let (at, roman) = known.into_iter().find(|(_, roman)| starts(roman)).ok_or_else(unknown)?;
                self.month = i64::try_from(at + 1).ok();
                Ok(&text[roman.len()..])
            }
            "AM" | "PM" | "A.M." | "P.M." => {
                let known = [("a.m.", false), ("p.m.", true), ("am", false), ("pm", true)];
                let (name, is_late) = known.into_iter().find(|(name, _)| starts(name)).ok_or_else(unknown)?;
                (self.is_afternoon, self.is_twelve) = (Some(is_late), true);
                Ok(&text[name.len()..])
            }
            "BC" | "AD" | "B.C." | "A.D." => {
                let known = [("b.c.", true), ("a.d.", false), ("bc", true), ("ad", false)];
                let (name, is_before) = known.into_iter().find(|(name, _)| starts(name)).ok_or_else(unknown)?;
                self.is_before_christ = is_before;
                Ok(&text[name.len()..])
            }
            "Y,YYY" => {
                let (thousands, rest) = digits(text, 3);
                let (others, rest) = digits(rest.strip_prefix(',').unwrap_or(rest), 3);
                self.year = format!("{thousands}{others}").parse().ok();
                Ok(rest)
            }
            _ => Err(SqlError::unsupported(format!("\"{written}\" in a template that is read"))),
        }
    }

    fn finish(self, text: &str) -> Result<i64, SqlError> {
        let wrong = || SqlError::new("22008", format!("date/time field value out of range: \"{text}\""));
        let days = self.day_number().ok_or_else(wrong)?;
        let hour = match (self.is_twelve, self.is_afternoon) {
            (true, Some(true)) if self.hour < 12 => self.hour + 12,
            (true, Some(false)) if self.hour == 12 => 0,
            _ => self.hour,
        };
        if hour > 24 || self.minute > 59 || self.second > 59 {
            return Err(wrong());
        }
        let micros = ((hour * 60 + self.minute) * 60 + self.second) * 1_000_000 + self.micros;
        days.checked_mul(MICROS_PER_DAY).and_then(|start| start.checked_add(micros)).ok_or_else(wrong)
    }

    fn day_number(&self) -> Option<i64> {
        if let Some(julian) = self.julian {
            return Some(julian - 2_440_588);
        }
        if let (Some(year), Some(week), day) = self.iso {
            let fourth = day_number(year, 1, 4);
            return Some(fourth - (fourth + 3).rem_euclid(7) + (week - 1) * 7 + day.unwrap_or(1) - 1);
        }
        // Without a year it is 1 BC, as nothing is more than zero.
        let year = match (self.year, self.century) {
            (Some(year), Some(century)) if year < 100 => (century - 1) * 100 + year,
            (Some(year), _) => year,
            (None, Some(century)) => (century - 1) * 100 + 1,
            (None, None) => 0,
        };
        let year = if self.is_before_christ && year > 0 { 1 - year } else { year };
        if let Some(day) = self.day_of_year {
            let length = if days_in(year, 2) == 29 { 366 } else { 365 };
            return (1..=length).contains(&day).then(|| day_number(year, 1, 1) + day - 1);
        }
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        let month = u32::try_from(month).ok().filter(|month| (1..=12).contains(month))?;
        let day = u32::try_from(day).ok().filter(|day| (1..=days_in(year, month)).contains(day))?;
        Some(day_number(year, month, day))
    }
}

/// The year next to 2020 that ends with these digits.
fn nearest(number: i64, digits: usize) -> i64 {
    match digits {
        1 => number + 2000,
        2 if number < 70 => number + 2000,
        2 => number + 1900,
        3 if number < 520 => number + 2000,
        3 => number + 1000,
        _ => number,
    }
}

/// The digits that a text begins with, with their sign.
fn digits(text: &str, most: usize) -> (&str, &str) {
    let sign = usize::from(text.starts_with(['-', '+']));
    let count = text[sign..].bytes().take(most).take_while(u8::is_ascii_digit).count();
    text.split_at(sign + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(micros: i64, template: &str) -> String {
        write(&Fields::of_timestamp(micros, None), template).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let moment = day_number(2020, 2, 29) * MICROS_PER_DAY + 47_109_123_456;
        let templates = ["YYYY-MM-DD HH24:MI:SS.US", "DD Mon YYYY HH12:MI:SS.US AM", "Month DD, YYYY HH24MISSUS"];
        for template in templates {
            assert_eq!(read(&shown(moment, template), template), Ok(moment), "{template}");
        }
        assert_eq!(shown(moment, "FMDay, DDth FMMonth YYYY"), "Saturday, 29th February 2020");
        assert_eq!(shown(moment, "IYYY-IW-ID Q DDD"), "2020-09-6 1 060");
    }

    #[test]
    fn what_is_no_date_is_refused() {
        let code = |text, template| read(text, template).map_err(|error| error.sqlstate);
        assert_eq!(code("2020-13-01", "YYYY-MM-DD"), Err("22008"));
        assert_eq!(code("2020-02-30", "YYYY-MM-DD"), Err("22008"));
        assert_eq!(code("ab", "YYYY"), Err("22007"));
        assert_eq!(code("13", "HH12"), Err("22007"));
    }
}
