//! Dates and times as people write them: PostgreSQL's input syntax, in the order of the session's `DateStyle` where only numbers
//! say which is which.
//!
//! A text is cut into words at blanks and commas, and a word that holds a date and a time at the `T` between them. Each word
//! then says by its form what it is: a time has a colon, a date signs between its numbers, a month or a zone a name. Numbers
//! by themselves are whatever is missing: a day and a year beside the name of a month, else a date of six or eight digits,
//! and after it a time of four or six.

use chrono_tz::Tz;

use super::Misfit;
use super::datetime::{DAYS, MICROS_PER_DAY, day_number, days_in, wall_time};
use crate::interrupt::session_zone;
use crate::interrupt::time_style::DateOrder;
use crate::interrupt::zone::{Zone, of_small_name};

/// The day before all days and the one after them.
pub(crate) const DAY_MIN: i64 = i32::MIN as i64;
pub(crate) const DAY_MAX: i64 = i32::MAX as i64;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const MONTH_NAMES: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// Zones by their letters, in minutes east of Greenwich.
const ZONES: [(&str, i64); 21] = [
    ("z", 0),
    ("utc", 0),
    ("gmt", 0),
    ("zulu", 0),
    ("ut", 0),
    ("wet", 0),
    ("west", 60),
    ("bst", 60),
    ("cet", 60),
    ("cest", 120),
    ("eet", 120),
    ("eest", 180),
    ("msk", 180),
    ("jst", 540),
    ("est", -300),
    ("edt", -240),
    ("cst", -360),
    ("cdt", -300),
    ("mst", -420),
    ("mdt", -360),
    ("pst", -480),
];

/// The meaning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before or after everything.
    Infinite { is_late: bool },
    /// A day, the time on it, and how far its zone is east of Greenwich if one is written, both in microseconds.
    At { days: i64, micros: i64, offset: Option<i64> },
}

/// Reads a date with or without a time.
pub(super) fn parse(text: &str) -> Result<Moment, Misfit> {
    match plain(text.as_bytes()) {
        Some(moment) => Ok(moment),
        None => parse_any(text),
    }
}

/// What programs write: `2020-01-31`, and `2020-01-31 23:59:58`.
fn plain(text: &[u8]) -> Option<Moment> {
    let number = |place: std::ops::Range<usize>| {
        let digits = text.get(place)?;
        let value = |value, digit: &u8| value * 10 + i64::from(*digit - b'0');
        digits.iter().all(u8::is_ascii_digit).then(|| digits.iter().fold(0, value))
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let has_signs = text[4] == b'-' && text[7] == b'-';
    let small_month = u32::try_from(month).ok().filter(|month| (1..=12).contains(month))?;
    if !has_signs || year == 0 || day == 0 || day > i64::from(days_in(year, small_month)) {
        return None;
    }
    let days = day_number(year, small_month, 1) + day - 1;
    let micros = match text.len() {
        10 => 0,
        19 if text[10] == b' ' && text[13] == b':' && text[16] == b':' => {
            let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
            if hour > 23 || minute > 59 || second > 59 {
                return None;
            }
            ((hour * 60 + minute) * 60 + second) * 1_000_000
        }
        _ => return None,
    };
    Some(Moment::At { days, micros, offset: None })
}

/// Reads every form.
fn parse_any(text: &str) -> Result<Moment, Misfit> {
    let text = text.trim().to_ascii_lowercase();
    let mut fields = Fields::default();
    for word in text.split([' ', '\t', '\n', ',']).filter(|word| !word.is_empty()) {
        match date_and_time(word) {
            Some((date, time)) => {
                fields.word(date)?;
                fields.word(time)?;
            }
            None => fields.word(word)?,
        }
    }
    fields.finish()
}

/// `2020-01-02t03:04`: the two parts.
fn date_and_time(word: &str) -> Option<(&str, &str)> {
    let (date, time) = word.split_once('t')?;
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    (is_digit(date.as_bytes().last()) && is_digit(time.as_bytes().first())).then_some((date, time))
}

/// The fields that have been read of a text.
#[derive(Debug, Default)]
struct Fields {
    special: Option<Moment>,
    /// Numbers that stand by themselves beside the name of a month.
    numbers: Vec<String>,
    month: Option<u32>,
    /// year, month and day
    date: Option<(i64, u32, u32)>,
    day_number: Option<i64>,
    time: Option<i64>,
    offset: Option<i64>,
    /// A zone of the database, whose offset the whole tells.
    zone: Option<Tz>,
    is_bc: bool,
    is_afternoon: Option<bool>,
}

/// Reads a value once.
fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Misfit> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Misfit::Syntax),
    }
}

impl Fields {
    fn word(&mut self, word: &str) -> Result<(), Misfit> {
        let first = word.as_bytes().first().copied().unwrap_or(b' ');
        if first == b'+' || (first == b'-' && word.len() > 1 && word.as_bytes()[1].is_ascii_digit()) {
            return once(&mut self.offset, parse_offset(word)?);
        }
        if first.is_ascii_digit() {
            return self.number(word);
        }
        self.name(word)
    }

    fn name(&mut self, word: &str) -> Result<(), Misfit> {
        // What the session's clocks show.
        let now = || {
            let moment = wall_time();
            session_zone::current().shown(moment).unwrap_or(moment)
        };
        let today = || now().div_euclid(MICROS_PER_DAY);
        let day = |days| Moment::At { days, micros: 0, offset: Some(0) };
        match word {
            "epoch" => return once(&mut self.special, day(0)),
            "infinity" | "+infinity" => return once(&mut self.special, Moment::Infinite { is_late: true }),
            "-infinity" => return once(&mut self.special, Moment::Infinite { is_late: false }),
            "now" => {
                let (moment, shown) = (wall_time(), now());
                let (days, micros) = (shown.div_euclid(MICROS_PER_DAY), shown.rem_euclid(MICROS_PER_DAY));
                let offset = session_zone::current().at_moment(moment) * 1_000_000;
                return once(&mut self.special, Moment::At { days, micros, offset: Some(offset) });
            }
            "today" => return once(&mut self.day_number, today()),
            "tomorrow" => return once(&mut self.day_number, today() + 1),
            "yesterday" => return once(&mut self.day_number, today() - 1),
            "allballs" => {
                self.time = Some(0);
                return once(&mut self.offset, 0);
            }
            "bc" => {
                self.is_bc = true;
                return Ok(());
            }
            "ad" | "at" | "on" => return Ok(()),
            "am" => return once(&mut self.is_afternoon, false),
            "pm" => return once(&mut self.is_afternoon, true),
            "pdt" => return once(&mut self.offset, -420 * 60_000_000),
            _ => {}
        }
        if let Some(month) = month_of(word.trim_end_matches('.')) {
            return once(&mut self.month, month);
        }
        if WEEKDAYS.iter().any(|day| word.len() >= 3 && day.starts_with(word)) {
            return Ok(());
        }
        if let Some((_, minutes)) = ZONES.iter().find(|(zone, _)| *zone == word) {
            return once(&mut self.offset, minutes * 60_000_000);
        }
        if let Some(day) = word.strip_prefix('j').and_then(|day| day.parse::<i64>().ok()) {
            return once(&mut self.day_number, day - 2_440_588);
        }
        // `jan-08-1999`
        match word.contains('-') && month_of(word.split('-').next().unwrap_or_default()).is_some() {
            true => self.signed_date(word, '-'),
            false => once(&mut self.zone, of_small_name(word).ok_or(Misfit::Syntax)?),
        }
    }

    fn number(&mut self, word: &str) -> Result<(), Misfit> {
        // A date with signs may have a zone behind it without a blank, too.
        if let Some(zone) = word.find('+').filter(|end| word[..*end].contains(['-', '/']))
            && !word[..zone].contains(':')
        {
            self.word(&word[..zone])?;
            return self.word(&word[zone..]);
        }
        if word.contains(':') {
            return self.time_of_day(word);
        }
        if let Some(meridian) = ["am", "pm"].into_iter().find(|end| word.ends_with(end)) {
            self.time_of_day(&word[..word.len() - 2])?;
            return once(&mut self.is_afternoon, meridian == "pm");
        }
        if let Some(sign) = ['-', '/'].into_iter().find(|sign| word.contains(*sign)) {
            return self.signed_date(word, sign);
        }
        if let Some((year, day)) = word.split_once('.') {
            if word.matches('.').count() == 2 {
                return self.signed_date(word, '.');
            }
            if year.len() == 4 && day.len() == 3 && self.date.is_none() {
                return self.day_of_year(number(year)?, number(day)?);
            }
            return self.packed_time(word);
        }
        // A number may have a zone behind it without a blank.
        let end = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
        if end < word.len() {
            self.packed_time(&word[..end])?;
            return self.word(&word[end..]);
        }
        let has_date = self.date.is_some() || self.day_number.is_some();
        match word.len() {
            8.. if !has_date && self.month.is_none() => {
                let (year, rest) = word.split_at(word.len() - 4);
                once(&mut self.date, (number(year)?, small(&rest[..2])?, small(&rest[2..])?))
            }
            6 if !has_date && self.month.is_none() => {
                let year = two_digits(number(&word[..2])?);
                once(&mut self.date, (year, small(&word[2..4])?, small(&word[4..])?))
            }
            4 | 6 if has_date && self.time.is_none() => self.packed_time(word),
            _ if !has_date => {
                self.numbers.push(word.to_owned());
                Ok(())
            }
            _ => Err(Misfit::Syntax),
        }
    }

    fn day_of_year(&mut self, year: i64, day: i64) -> Result<(), Misfit> {
        let length = 337 + i64::from(days_in(year, 2));
        if !(1..=length).contains(&day) {
            return Err(Misfit::DateField);
        }
        once(&mut self.day_number, day_number(year, 1, 1) + day - 1)
    }

    /// A date of three parts: year first where it has more than two digits, else in the order of the session; a month's name says for
    /// itself.
    fn signed_date(&mut self, word: &str, sign: char) -> Result<(), Misfit> {
        let parts: Vec<&str> = word.split(sign).collect();
        let [first, second, third] = parts[..] else { return Err(Misfit::Syntax) };
        let order = session_zone::style().dates.order;
        let is_year_first = order == DateOrder::Ymd && third.len() <= 2;
        let date = match (month_of(first), month_of(second)) {
            (Some(month), _) if is_year_first => (year(second)?, month, small(third)?),
            (Some(month), _) => (year(third)?, month, small(second)?),
            (None, Some(month)) if first.len() > 2 || is_year_first => (year(first)?, month, small(third)?),
            (None, Some(month)) => (year(third)?, month, small(first)?),
            (None, None) if first.len() > 2 || order == DateOrder::Ymd => (year(first)?, small(second)?, small(third)?),
            (None, None) if order == DateOrder::Dmy => (year(third)?, small(second)?, small(first)?),
            (None, None) => (year(third)?, small(first)?, small(second)?),
        };
        once(&mut self.date, date)
    }

    /// `HH:MM[:SS[.fraction]]`, and a zone right behind it.
    fn time_of_day(&mut self, word: &str) -> Result<(), Misfit> {
        let end = word.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(word.len());
        let mut parts = word[..end].split(':');
        let hour = short(parts.next())?;
        let minute = if word[..end].contains(':') { short(parts.next())? } else { 0 };
        let (second, fraction) = match parts.next() {
            None => (0, 0),
            Some(part) => match part.split_once('.') {
                None => (short(Some(part))?, 0),
                Some((second, digits)) => (short(Some(second))?, parse_fraction(digits)?),
            },
        };
        if parts.next().is_some() {
            return Err(Misfit::Syntax);
        }
        self.clock(hour, minute, second, fraction)?;
        if end == word.len() { Ok(()) } else { self.word(&word[end..]) }
    }

    /// `HHMM[SS[.fraction]]`.
    fn packed_time(&mut self, word: &str) -> Result<(), Misfit> {
        let (digits, fraction) = word.split_once('.').unwrap_or((word, ""));
        if !matches!(digits.len(), 4 | 6) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Misfit::Syntax);
        }
        let field = |at: usize| digits.get(at..at + 2).map_or(Ok(0), number);
        self.clock(field(0)?, field(2)?, field(4)?, parse_fraction(fraction)?)
    }

    fn clock(&mut self, hour: i64, minute: i64, second: i64, fraction: i64) -> Result<(), Misfit> {
        let micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction;
        if minute > 59 || second > 60 || micros > MICROS_PER_DAY {
            return Err(Misfit::DateField);
        }
        once(&mut self.time, micros)
    }

    fn finish(mut self) -> Result<Moment, Misfit> {
        if let Some(special) = self.special {
            let is_alone = self.date.is_none() && self.time.is_none() && self.month.is_none();
            return if is_alone { Ok(special) } else { Err(Misfit::Syntax) };
        }
        let days = match (self.day_number, self.month, self.date) {
            (Some(days), None, None) => days,
            (None, Some(month), None) => {
                let [first, second] = &self.numbers[..] else { return Err(Misfit::Syntax) };
                let is_year = |text: &str| text.len() > 2 || text.parse::<u32>().is_ok_and(|number| number > 31);
                let is_year_first = session_zone::style().dates.order == DateOrder::Ymd && second.len() <= 2;
                let (day, year_text) = if is_year(first) || is_year_first { (second, first) } else { (first, second) };
                let date = (if self.is_bc { number(year_text)? } else { year(year_text)? }, month, small(day)?);
                self.numbers.clear();
                self.day_of(date)?
            }
            (None, None, Some(date)) => self.day_of(date)?,
            _ => return Err(Misfit::Syntax),
        };
        if !self.numbers.is_empty() {
            return Err(Misfit::Syntax);
        }
        let micros = self.micros()?;
        let offset = match (self.zone, self.offset) {
            (Some(_), Some(_)) => return Err(Misfit::Syntax),
            (Some(zone), None) => {
                let shown = days.saturating_mul(MICROS_PER_DAY).saturating_add(micros);
                Some(Zone::Named(zone).at_shown(shown) * 1_000_000)
            }
            (None, offset) => offset,
        };
        Ok(Moment::At { days, micros, offset })
    }

    fn micros(&self) -> Result<i64, Misfit> {
        const HALF: i64 = MICROS_PER_DAY / 2;
        let time = self.time.unwrap_or(0);
        match self.is_afternoon {
            None => Ok(time),
            Some(_) if time >= HALF + MICROS_PER_DAY / 24 => Err(Misfit::DateField),
            Some(true) if time < HALF => Ok(time + HALF),
            Some(false) if time >= HALF => Ok(time - HALF),
            Some(_) => Ok(time),
        }
    }

    fn day_of(&self, (year, month, day): (i64, u32, u32)) -> Result<i64, Misfit> {
        let year = match (year, self.is_bc) {
            (0, _) => return Err(Misfit::DateField),
            (year, true) => 1 - year,
            (year, false) => year,
        };
        let is_day = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
        if !is_day || year.abs() > 6_000_000 {
            return Err(Misfit::DateField);
        }
        Some(day_number(year, month, day)).filter(|days| DAYS.contains(days)).ok_or(Misfit::DateField)
    }
}

fn month_of(word: &str) -> Option<u32> {
    let by = |names: &[&str]| names.iter().position(|name| *name == word);
    let at = by(&MONTHS).or_else(|| by(&MONTH_NAMES)).or_else(|| (word == "sept").then_some(8))?;
    u32::try_from(at + 1).ok()
}

fn number(text: &str) -> Result<i64, Misfit> {
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().map_err(|_| Misfit::DateField),
        false => Err(Misfit::Syntax),
    }
}

fn small(text: &str) -> Result<u32, Misfit> {
    u32::try_from(number(text)?).map_err(|_| Misfit::DateField)
}

/// One or two digits.
fn short(part: Option<&str>) -> Result<i64, Misfit> {
    match part {
        Some(part) if (1..=2).contains(&part.len()) => number(part),
        _ => Err(Misfit::Syntax),
    }
}

/// A year; of two digits it is one between 1970 and 2069.
fn year(text: &str) -> Result<i64, Misfit> {
    let year = number(text)?;
    Ok(if text.len() <= 2 { two_digits(year) } else { year })
}

fn two_digits(year: i64) -> i64 {
    if year < 70 { year + 2000 } else { year + 1900 }
}

/// Digits after the point as microseconds, the seventh rounding the sixth.
pub(super) fn parse_fraction(digits: &str) -> Result<i64, Misfit> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Misfit::Syntax);
    }
    let kept: i64 = format!("{:0<6}", &digits[..digits.len().min(6)]).parse().map_err(|_| Misfit::Syntax)?;
    Ok(kept + i64::from(digits.as_bytes().get(6).is_some_and(|digit| *digit >= b'5')))
}

/// `+HH[[:]MM[[:]SS]]`: microseconds east of Greenwich.
fn parse_offset(zone: &str) -> Result<i64, Misfit> {
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let zone = &zone[1..];
    let parts: Vec<&str> = match zone.contains(':') {
        true => zone.split(':').collect(),
        false if zone.len() <= 2 => vec![zone],
        false => {
            let split = |from: usize, to: usize| zone.get(from..to.min(zone.len())).filter(|part| !part.is_empty());
            let start = if zone.len() % 2 == 1 { 1 } else { 2 };
            [split(0, start), split(start, start + 2), split(start + 2, 8)].into_iter().flatten().collect()
        }
    };
    let mut fields = [0; 3];
    for (field, part) in fields.iter_mut().zip(&parts) {
        *field = short(Some(part))?;
    }
    let [hours, minutes, seconds] = fields;
    if parts.len() > 3 {
        return Err(Misfit::Syntax);
    }
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Misfit::Displacement);
    }
    Ok(sign * ((hours * 60 + minutes) * 60 + seconds) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_write_is_read_as_everything_is() {
        let dates = ["2020-02-29", "1900-02-28", "0001-01-01", "9999-12-31", "1969-12-31", "2000-11-09"];
        let times = ["", " 00:00:00", " 23:59:59", " 12:34:56"];
        for text in dates.iter().flat_map(|date| times.iter().map(move |time| format!("{date}{time}"))) {
            assert!(plain(text.as_bytes()).is_some(), "{text}");
            assert_eq!(plain(text.as_bytes()), parse_any(&text).ok(), "{text}");
        }
        let others = ["2021-02-29", "2020-13-01", "2020-00-10", "2020-01-00", "0000-01-01", "2020/01/02", "2020-1-002"];
        let more = ["2020-01-02 24:00:00", "2020-01-02T03:04:05", "2020-01-02 03:04:05.6", "20-01-2020", "2020-01-02 "];
        for text in others.into_iter().chain(more) {
            assert_eq!(plain(text.as_bytes()), None, "{text}");
        }
    }
}
