//! Texts read by templates as the SQL standard has it, for the paths of JSON: what stands between the patterns must be in the text as it
//! is in the template, and nothing may be left of either. The patterns say whether it is a date, a time, or both, and with a zone.
use super::dates::{DAYS, MONTHS, ROMAN};
use super::pieces::{Piece, pattern, strip};
use crate::error::SqlError;
use crate::values::datetime::{DAYS as KNOWN_DAYS, MICROS_PER_DAY, civil, day_number, days_in};

/// What may stand between patterns without quotes.
const SEPARATORS: &str = "-./,':; ";

/// The hours that a zone may be away from Greenwich at most.
const ZONE_HOURS_MAX: i64 = 15;

const MONDAY_OF_1970: i64 = 3;

/// A template, cut and looked at.
pub(crate) struct Template {
    nodes: Vec<Node>,
    is_dated: bool,
    is_timed: bool,
    is_zoned: bool,
}

enum Node {
    Pattern { word: &'static str, is_short: bool, has_ordinal: bool },
    Separator(char),
    Quoted(char),
}

/// A date or a time that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Datetime {
    /// The number of the day.
    Date(i64),
    /// Microseconds since midnight.
    Time(i64),
    /// Likewise, where the clocks are so many seconds ahead of those of Greenwich.
    TimeTz(i64, i64),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// The moment in microseconds since 1970 in Greenwich, and how many seconds the clocks were ahead that it was read from.
    TimestampTz(i64, i64),
}

/// The fields of a text; zero where there is none.
#[derive(Default)]
struct Fields {
    year: i64,
    /// With how many digits the year was asked for.
    year_digits: usize,
    is_before_christ: bool,
    century: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    /// From Sunday, which is 1.
    weekday: i64,
    week: i64,
    week_of_month: i64,
    julian: i64,
    /// Whether the date is told by ISO weeks, if a pattern says so.
    is_iso: Option<bool>,
    hour: i64,
    is_twelve: bool,
    is_afternoon: bool,
    minute: i64,
    second: i64,
    seconds_of_day: i64,
    milliseconds: i64,
    micros: i64,
    /// The digits of a second that are kept.
    digits: Option<u32>,
    zone_sign: i64,
    zone_hour: i64,
    zone_minute: i64,
}

fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new("22007", message)
}

impl Template {
    /// Cuts a template.
    ///
    /// # Errors
    /// Signs between patterns that the standard has not.
    pub(crate) fn new(template: &str) -> Result<Template, SqlError> {
        let mut read = Template { nodes: Vec::new(), is_dated: false, is_timed: false, is_zoned: false };
        let (mut rest, mut is_short) = (template, false);
        while let Some(sign) = rest.chars().next() {
            if let Some(after) = strip(rest, "FM") {
                (is_short, rest) = (true, after);
                continue;
            }
            if let Some((found, after)) = pattern(rest, is_short) {
                (is_short, rest) = (false, after);
                if let Some(Piece::Pattern { word, is_short, ordinal, .. }) = found {
                    read.is_timed |= is_of_time(word);
                    read.is_zoned |= is_of_zone(word);
                    read.is_dated |= !is_of_time(word) && !is_of_zone(word);
                    read.nodes.push(Node::Pattern { word, is_short, has_ordinal: ordinal.is_some() });
                }
                continue;
            }
            rest = &rest[sign.len_utf8()..];
            match sign {
                '"' => rest = read.quoted(rest),
                sign if SEPARATORS.contains(sign) => read.nodes.push(Node::Separator(sign)),
                sign => return Err(wrong(format!("invalid datetime format separator: \"{sign}\""))),
            }
        }
        Ok(read)
    }

    /// Takes what stands in quotes, and gives what is behind them.
    fn quoted<'t>(&mut self, text: &'t str) -> &'t str {
        let mut signs = text.chars();
        while let Some(sign) = signs.next() {
            match sign {
                '"' => break,
                '\\' => self.nodes.push(Node::Quoted(signs.next().unwrap_or('\\'))),
                other => self.nodes.push(Node::Quoted(other)),
            }
        }
        signs.as_str()
    }

    /// Whether the number before node `at` takes all of its digits: no other number follows it.
    fn ends_number(&self, at: usize) -> bool {
        match self.nodes.get(at) {
            None => true,
            Some(Node::Pattern { word, .. }) => !is_number(word) && *word != "Y,YYY",
            Some(Node::Separator(sign) | Node::Quoted(sign)) => !sign.is_ascii_digit(),
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// It is not as the template says, or no time.
    pub(crate) fn read(&self, text: &str) -> Result<Datetime, SqlError> {
        let (mut fields, mut rest) = (Fields::default(), text);
        for (at, node) in self.nodes.iter().enumerate() {
            if rest.is_empty() {
                return Err(wrong("input string is too short for datetime format"));
            }
            rest = match node {
                Node::Separator(sign) => {
                    let unmatched = || wrong(format!("unmatched format separator \"{sign}\""));
                    rest.strip_prefix(*sign).ok_or_else(unmatched)?
                }
                Node::Quoted(sign) => {
                    let unmatched = || wrong(format!("unmatched format character \"{sign}\""));
                    rest.strip_prefix(*sign).ok_or_else(unmatched)?
                }
                Node::Pattern { word, is_short, has_ordinal } => {
                    let takes_all = *is_short || *has_ordinal || self.ends_number(at + 1);
                    let behind = fields.pattern(word, takes_all, rest)?;
                    if *has_ordinal { behind.get(2..).unwrap_or("") } else { behind }
                }
            };
        }
        if !self.nodes.is_empty() && !rest.trim_start().is_empty() {
            return Err(wrong("trailing characters remain in input string after datetime format"));
        }
        self.made(&fields, text)
    }

    fn made(&self, fields: &Fields, text: &str) -> Result<Datetime, SqlError> {
        let days = fields.days(text)?;
        let time = fields.time(text)?;
        let zone = fields.zone(text)?;
        let overflow = || SqlError::new("22008", "timestamp out of range");
        let moment = || days.checked_mul(MICROS_PER_DAY)?.checked_add(time);
        match (self.is_dated, self.is_timed, self.is_zoned) {
            (true, true, true) => {
                let moment = moment().and_then(|moment| moment.checked_sub(zone * 1_000_000));
                moment.map(|moment| Datetime::TimestampTz(moment, zone)).ok_or_else(overflow)
            }
            (true, true, false) => moment().map(Datetime::Timestamp).ok_or_else(overflow),
            (true, false, true) => Err(wrong("datetime format is zoned but not timed")),
            (true, false, false) if KNOWN_DAYS.contains(&days) => Ok(Datetime::Date(days)),
            (true, false, false) => Err(SqlError::new("22008", format!("date out of range: \"{text}\""))),
            (false, true, true) => Ok(Datetime::TimeTz(time, zone)),
            (false, true, false) => Ok(Datetime::Time(time)),
            (false, false, _) => Err(wrong("datetime format is not dated and not timed")),
        }
    }
}

fn is_of_time(word: &str) -> bool {
    let words = ["A.M.", "AM", "P.M.", "PM", "HH24", "HH12", "HH", "MI", "SSSSS", "SSSS", "SS", "MS", "US"];
    words.contains(&word) || word.starts_with("FF")
}

fn is_of_zone(word: &str) -> bool {
    ["TZH", "TZM", "TZ", "OF"].contains(&word)
}

/// Whether a pattern stands for digits alone.
fn is_number(word: &str) -> bool {
    let names = [
        "A.M.", "AM", "P.M.", "PM", "B.C.", "BC", "A.D.", "AD", "MONTH", "MON", "DAY", "DY", "RM", "TZ", "OF", "TZH",
        "Y,YYY",
    ];
    !names.contains(&word)
}

/// The year next to 2020 that ends with such digits.
fn nearest(year: i64) -> i64 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

/// Sets a field, which may not have another value from another pattern.
fn set(field: &mut i64, value: i64, word: &str) -> Result<(), SqlError> {
    if *field != 0 && *field != value {
        let message = format!("conflicting values for \"{word}\" field in formatting string");
        return Err(wrong(message).detail("This value contradicts a previous setting for the same field type."));
    }
    *field = value;
    Ok(())
}

/// A number at the beginning of a text, how many signs it has, and what is behind it: all of its digits, or so many.
fn number<'t>(word: &str, text: &'t str, width: usize, takes_all: bool) -> Result<(i64, usize, &'t str), SqlError> {
    let blank = text.len() - text.trim_start().len();
    let digits = &text[blank..];
    let shown: String = digits.chars().take(width).collect();
    let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
    let window = match takes_all {
        true => digits,
        false if digits.len() < width => {
            let detail = format!("Field requires {width} characters, but only {} remain.", digits.len());
            let message = format!("source string too short for \"{word}\" formatting field");
            return Err(wrong(message).detail(detail).hint(hint));
        }
        false => digits.get(..width).unwrap_or(digits),
    };
    let sign = usize::from(window.starts_with(['+', '-']));
    let length = sign + window[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let invalid = || wrong(format!("invalid value \"{shown}\" for \"{word}\""));
    if length == sign {
        return Err(invalid().detail("Value must be an integer."));
    }
    if !takes_all && length < width {
        let detail = format!("Field requires {width} characters, but only {length} could be parsed.");
        return Err(invalid().detail(detail).hint(hint));
    }
    let value = window[..length].parse::<i32>().map_err(|_| {
        let detail = format!("Value must be in the range {} to {}.", i32::MIN, i32::MAX);
        SqlError::new("22008", format!("value for \"{word}\" in source string is out of range")).detail(detail)
    })?;
    Ok((value.into(), blank + length, &digits[length..]))
}

/// Which of some names a text begins with, and what is behind it.
fn name<'t>(word: &str, text: &'t str, names: &[&str]) -> Result<(usize, &'t str), SqlError> {
    let starts = |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    let found = names.iter().position(|name| starts(name)).ok_or_else(|| {
        let shown = text.split(|sign: char| sign.is_ascii_whitespace()).next().unwrap_or(text);
        let detail = "The given value did not match any of the allowed values for this field.";
        wrong(format!("invalid value \"{shown}\" for \"{word}\"")).detail(detail)
    })?;
    Ok((found, &text[names[found].len()..]))
}

impl Fields {
    /// Takes what a pattern stands for from the beginning of a text.
    fn pattern<'t>(&mut self, word: &'static str, takes_all: bool, text: &'t str) -> Result<&'t str, SqlError> {
        self.set_calendar(word)?;
        if !is_number(word) {
            return self.named(word, takes_all, text);
        }
        let width = match word {
            "HH24" | "HH12" | "TZM" => 2,
            "ID" => 1,
            "IDDD" | "MS" => 3,
            "US" => 6,
            word if word.starts_with("FF") => usize::from(word.as_bytes()[2] - b'0'),
            other => other.len(),
        };
        let (value, used, rest) = number(word, text, width, takes_all)?;
        let fraction = |digits: usize| match u32::try_from(digits.saturating_sub(used)) {
            Ok(missing) => value * 10i64.pow(missing),
            Err(_) => value,
        };
        let field = match word {
            "HH24" => &mut self.hour,
            "HH12" | "HH" => {
                self.is_twelve = true;
                &mut self.hour
            }
            "MI" => &mut self.minute,
            "SS" => &mut self.second,
            "SSSSS" | "SSSS" => &mut self.seconds_of_day,
            "MS" => return set(&mut self.milliseconds, fraction(3), word).map(|()| rest),
            "US" => return set(&mut self.micros, fraction(6), word).map(|()| rest),
            "YYYY" | "IYYY" | "YYY" | "IYY" | "YY" | "IY" | "Y" | "I" => {
                self.year_digits = word.len();
                let year = if word.len() < 4 && used < 4 { nearest(value) } else { value };
                return set(&mut self.year, year, word).map(|()| rest);
            }
            "MM" => &mut self.month,
            "DD" => &mut self.day,
            "DDD" | "IDDD" => &mut self.day_of_year,
            "D" => &mut self.weekday,
            "ID" => return set(&mut self.weekday, value % 7 + 1, word).map(|()| rest),
            "WW" | "IW" => &mut self.week,
            "W" => &mut self.week_of_month,
            "J" => &mut self.julian,
            "CC" => &mut self.century,
            "TZM" => {
                self.zone_sign = if self.zone_sign == 0 { 1 } else { self.zone_sign };
                &mut self.zone_minute
            }
            // Which quarter it is says too little.
            "Q" => return Ok(rest),
            _ => {
                self.digits = u32::try_from(width).ok();
                return set(&mut self.micros, fraction(6), word).map(|()| rest);
            }
        };
        set(field, value, word).map(|()| rest)
    }

    /// A date is told by the calendar or by ISO weeks.
    fn set_calendar(&mut self, word: &str) -> Result<(), SqlError> {
        let is_iso = match word {
            "IYYY" | "IYY" | "IY" | "I" | "IDDD" | "ID" | "IW" => true,
            _ if is_of_time(word) || is_of_zone(word) => return Ok(()),
            "DAY" | "DY" | "J" | "A.D." | "AD" | "B.C." | "BC" => return Ok(()),
            _ => false,
        };
        if self.is_iso.is_some_and(|before| before != is_iso) {
            let hint = "Do not mix Gregorian and ISO week date conventions in a formatting template.";
            return Err(wrong("invalid combination of date conventions").hint(hint));
        }
        self.is_iso = Some(is_iso);
        Ok(())
    }

    fn named<'t>(&mut self, word: &str, takes_all: bool, text: &'t str) -> Result<&'t str, SqlError> {
        let place = |found: usize| i64::try_from(found).unwrap_or(0) + 1;
        match word {
            "MONTH" => {
                let (found, rest) = name(word, text, &MONTHS)?;
                set(&mut self.month, place(found), word).map(|()| rest)
            }
            "MON" => {
                let (found, rest) = name(word, text, &MONTHS.map(|name| &name[..3]))?;
                set(&mut self.month, place(found), word).map(|()| rest)
            }
            "DAY" => {
                let (found, rest) = name(word, text, &DAYS)?;
                set(&mut self.weekday, place(found), word).map(|()| rest)
            }
            "DY" => {
                let (found, rest) = name(word, text, &DAYS.map(|name| &name[..3]))?;
                set(&mut self.weekday, place(found), word).map(|()| rest)
            }
            "RM" => {
                // Longer numbers before those that they begin with.
                let mut order: [usize; 12] = std::array::from_fn(|at| at);
                order.sort_by_key(|at| std::cmp::Reverse(ROMAN[*at].len()));
                let (found, rest) = name(word, text, &order.map(|at| ROMAN[at]))?;
                set(&mut self.month, place(order[found]), word).map(|()| rest)
            }
            "A.M." | "P.M." | "AM" | "PM" => {
                let names = if word.contains('.') { ["A.M.", "P.M."] } else { ["AM", "PM"] };
                let (found, rest) = name(word, text, &names)?;
                (self.is_afternoon, self.is_twelve) = (found == 1, true);
                Ok(rest)
            }
            "A.D." | "B.C." | "AD" | "BC" => {
                let names = if word.contains('.') { ["A.D.", "B.C."] } else { ["AD", "BC"] };
                let (found, rest) = name(word, text, &names)?;
                self.is_before_christ = found == 1;
                Ok(rest)
            }
            "Y,YYY" => {
                let invalid = || wrong("invalid input string for \"Y,YYY\"");
                let (thousands, others) = text.split_once(',').ok_or_else(invalid)?;
                let digits = others.bytes().take(3).take_while(u8::is_ascii_digit).count();
                let year = thousands.trim_start().parse::<i64>().ok().filter(|_| digits > 0);
                let year = year.and_then(|year| year.checked_mul(1000)?.checked_add(others[..digits].parse().ok()?));
                self.year_digits = 4;
                set(&mut self.year, year.ok_or_else(invalid)?, word).map(|()| &others[digits..])
            }
            "TZH" => {
                let (sign, digits) = match text.chars().next() {
                    Some('-') => (-1, &text[1..]),
                    Some('+' | ' ') => (1, &text[1..]),
                    _ => (1, text),
                };
                self.zone_sign = sign;
                let (value, _, rest) = number(word, digits, 2, takes_all)?;
                set(&mut self.zone_hour, value, word).map(|()| rest)
            }
            other => {
                let message = format!("formatting field \"{other}\" is only supported in to_char");
                Err(SqlError::new("0A000", message))
            }
        }
    }

    fn overflow(text: &str) -> SqlError {
        SqlError::new("22008", format!("date/time field value out of range: \"{text}\""))
    }

    /// The year, zero being 1 BC, where something says it.
    fn full_year(&self) -> Option<i64> {
        let century = if self.is_before_christ { -self.century } else { self.century };
        match (self.year, century) {
            (0, 0) => None,
            (0, century) if century >= 0 => Some((century - 1) * 100 + 1),
            (0, century) => Some(century * 100 + 1),
            (year, century) if century != 0 && self.year_digits <= 2 => Some(match (year % 100, century < 0) {
                (0, false) => century * 100,
                (0, true) => century * 100 + 1,
                (year, false) => year + (century - 1) * 100,
                (year, true) => (century + 1) * 100 - year + 1,
            }),
            (year, _) => {
                let year = if self.is_before_christ { -year } else { year };
                Some(if year < 0 { year + 1 } else { year })
            }
        }
    }

    /// The number of the day.
    fn days(&self, text: &str) -> Result<i64, SqlError> {
        let known_year = self.full_year();
        let (mut year, mut month, mut day) = (known_year.unwrap_or(0), 1, 1);
        let mut put = |days: i64| {
            let (of_year, of_month, of_day) = civil(days);
            (year, month, day) = (of_year, of_month.into(), of_day.into());
        };
        if self.julian != 0 {
            put(self.julian - 2_440_588);
        }
        let mut day_of_year = self.day_of_year;
        let is_iso = self.is_iso == Some(true);
        let first_monday = |year: i64| {
            let fourth = day_number(year, 1, 4);
            fourth - (fourth + MONDAY_OF_1970).rem_euclid(7)
        };
        match (self.week, is_iso) {
            (0, _) => {}
            (week, true) => {
                // Sunday is the last day of its week.
                let weekday = if self.weekday == 0 { 0 } else { (self.weekday + 5) % 7 };
                put(first_monday(known_year.unwrap_or(0)) + (week - 1) * 7 + weekday);
            }
            (week, false) => day_of_year = (week - 1) * 7 + 1,
        }
        if self.week_of_month != 0 {
            day = (self.week_of_month - 1) * 7 + 1;
        }
        day = if self.day == 0 { day } else { self.day };
        month = if self.month == 0 { month } else { self.month };
        if day_of_year != 0 && (month <= 1 || day <= 1) {
            let Some(known) = known_year.filter(|year| *year != 0 || self.is_before_christ) else {
                return Err(wrong("cannot calculate day of year without year information"));
            };
            let start = if is_iso { first_monday(known) } else { day_number(known, 1, 1) };
            let (of_year, of_month, of_day) = civil(start + day_of_year - 1);
            if !is_iso && of_year != known {
                return Err(Fields::overflow(text));
            }
            (year, month, day) = (of_year, of_month.into(), of_day.into());
        }
        let month = u32::try_from(month).ok().filter(|month| (1..=12).contains(month));
        let found = month.and_then(|month| {
            let day = u32::try_from(day).ok().filter(|day| (1..=days_in(year, month)).contains(day))?;
            Some(day_number(year, month, day))
        });
        found.ok_or_else(|| Fields::overflow(text))
    }

    /// Microseconds since midnight.
    fn time(&self, text: &str) -> Result<i64, SqlError> {
        let of = |field: i64, otherwise: i64| if field == 0 { otherwise } else { field };
        let seconds = self.seconds_of_day;
        let mut hour = of(self.hour, seconds / 3600);
        let (minute, second) = (of(self.minute, seconds / 60 % 60), of(self.second, seconds % 60));
        if self.is_twelve {
            if !(1..=12).contains(&hour) {
                let error = wrong(format!("hour \"{hour}\" is invalid for the 12-hour clock"));
                return Err(error.hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            hour = hour % 12 + if self.is_afternoon { 12 } else { 0 };
        }
        let micros = self.milliseconds.saturating_mul(1000).saturating_add(self.micros);
        let fits = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..1_000_000).contains(&micros);
        if !fits {
            return Err(Fields::overflow(text));
        }
        let unit = self.digits.map_or(1, |digits| 10i64.pow(6 - digits.min(6)));
        let micros = (micros + unit / 2) / unit * unit;
        Ok(((hour * 60 + minute) * 60 + second) * 1_000_000 + micros)
    }

    /// The seconds that the clocks are ahead of those of Greenwich.
    fn zone(&self, text: &str) -> Result<i64, SqlError> {
        let fits = (0..=ZONE_HOURS_MAX).contains(&self.zone_hour) && (0..60).contains(&self.zone_minute);
        match fits {
            true => Ok(self.zone_sign * (self.zone_hour * 3600 + self.zone_minute * 60)),
            false => Err(SqlError::new("22009", format!("time zone displacement out of range: \"{text}\""))),
        }
    }
}
