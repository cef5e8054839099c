//! Dates and times in paths: `.datetime()` reads them from texts, comparisons know what they are.
//!
//! A date is compared with a timestamp as its midnight. One of the two with a zone and one without are only compared by the functions
//! that may look at the session's zone, those with `_tz` at the end of their names.
use std::cmp::Ordering;
use std::sync::LazyLock;

use crate::error::SqlError;
use crate::functions::times::templates::standard::{Datetime, Template};
use crate::interrupt::session_zone;
use crate::values::datetime::{MICROS_PER_DAY, format_date, format_time, format_timestamp, wall_time};

const SECOND: i64 = 1_000_000;

/// The times that are tried where no template says a form, with or without parts of a second, and their zones.
const TIMES: [&str; 2] = ["HH24:MI:SS.US", "HH24:MI:SS"];
const ZONES: [&str; 3] = ["TZH:TZM", "TZH", ""];

/// The forms that are tried: a date, a time, and both with a blank or a T between them.
static FORMS: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let mut forms = vec!["yyyy-mm-dd".to_owned()];
    for before in ["", "yyyy-mm-dd ", "yyyy-mm-dd\"T\""] {
        forms.extend(TIMES.iter().flat_map(|time| ZONES.map(|zone| format!("{before}{time}{zone}"))));
    }
    forms.iter().filter_map(|form| Template::new(form).ok()).collect()
});

/// The date or time that a text is by a template, or in one of the forms that need none.
///
/// # Errors
/// It is none.
pub(super) fn read(text: &str, template: Option<&str>) -> Result<Datetime, SqlError> {
    if let Some(template) = template {
        return Template::new(template)?.read(text);
    }
    // All forms begin with a digit, but for blanks and a sign.
    let is_near = text.trim_start().starts_with(|sign: char| sign.is_ascii_digit() || "+-".contains(sign));
    FORMS.iter().filter(|_| is_near).find_map(|form| form.read(text).ok()).ok_or_else(|| {
        let error = SqlError::new("22031", format!("datetime format is not recognized: \"{text}\""));
        error.hint("Use a datetime template argument to specify the input data format.")
    })
}

/// As JSON shows it.
pub(super) fn text(datetime: Datetime) -> String {
    let zone = |seconds: i64| {
        let (sign, far) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
        format!("{sign}{:02}:{:02}", far / 3600, far / 60 % 60)
    };
    match datetime {
        Datetime::Date(days) => format_date(days),
        Datetime::Time(micros) => format_time(micros),
        Datetime::TimeTz(micros, ahead) => format!("{}{}", format_time(micros), zone(ahead)),
        Datetime::Timestamp(micros) => format_timestamp(micros, "").replacen(' ', "T", 1),
        Datetime::TimestampTz(micros, ahead) => {
            format_timestamp(micros + ahead * SECOND, &zone(ahead)).replacen(' ', "T", 1)
        }
    }
}

/// PostgreSQL's name of its type.
pub(super) fn type_name(datetime: Datetime) -> &'static str {
    match datetime {
        Datetime::Date(_) => "date",
        Datetime::Time(_) => "time without time zone",
        Datetime::TimeTz(..) => "time with time zone",
        Datetime::Timestamp(_) => "timestamp without time zone",
        Datetime::TimestampTz(..) => "timestamp with time zone",
    }
}

/// The name by which an error calls it.
fn short_name(datetime: Datetime) -> &'static str {
    match datetime {
        Datetime::Date(_) => "date",
        Datetime::Time(_) => "time",
        Datetime::TimeTz(..) => "timetz",
        Datetime::Timestamp(_) => "timestamp",
        Datetime::TimestampTz(..) => "timestamptz",
    }
}

/// What two are compared by; `None` where one is a date and the other is none.
enum Compared {
    Places(i64, i64),
    /// Two moments of a day, and how far their clocks are ahead, which orders those that are the same.
    Times((i64, i64), (i64, i64)),
}

fn places(left: Datetime, right: Datetime) -> Option<Compared> {
    use Datetime::{Date, Time, TimeTz, Timestamp, TimestampTz};
    let zone = session_zone::current();
    let midnight = |days: i64| days.saturating_mul(MICROS_PER_DAY);
    let moment = |shown: i64| zone.moment(shown).unwrap_or(shown);
    // The clocks of today tell how far a time is ahead.
    let here = |time: i64| {
        let now = wall_time();
        let today = zone.shown(now).unwrap_or(now).div_euclid(MICROS_PER_DAY);
        (time, zone.at_shown(midnight(today) + time))
    };
    Some(match (left, right) {
        (Date(left), Date(right)) | (Time(left), Time(right)) | (Timestamp(left), Timestamp(right)) => {
            Compared::Places(left, right)
        }
        (Date(days), Timestamp(right)) => Compared::Places(midnight(days), right),
        (Timestamp(left), Date(days)) => Compared::Places(left, midnight(days)),
        (Date(days), TimestampTz(right, _)) => Compared::Places(moment(midnight(days)), right),
        (TimestampTz(left, _), Date(days)) => Compared::Places(left, moment(midnight(days))),
        (Timestamp(shown), TimestampTz(right, _)) => Compared::Places(moment(shown), right),
        (TimestampTz(left, _), Timestamp(shown)) => Compared::Places(left, moment(shown)),
        (TimestampTz(left, _), TimestampTz(right, _)) => Compared::Places(left, right),
        (TimeTz(left, ahead), TimeTz(right, of_right)) => Compared::Times((left, ahead), (right, of_right)),
        (Time(left), TimeTz(right, ahead)) => Compared::Times(here(left), (right, ahead)),
        (TimeTz(left, ahead), Time(right)) => Compared::Times((left, ahead), here(right)),
        _ => return None,
    })
}

/// The order of two; `None` where they are of kinds that are not compared.
///
/// # Errors
/// One has a zone and the other has none, where the session's zone must not matter.
pub(super) fn compare(left: Datetime, right: Datetime, uses_zone: bool) -> Result<Option<Ordering>, SqlError> {
    let Some(places) = places(left, right) else { return Ok(None) };
    let has_zone = |datetime| matches!(datetime, Datetime::TimeTz(..) | Datetime::TimestampTz(..));
    if !uses_zone && has_zone(left) != has_zone(right) {
        let (from, to) = if has_zone(left) { (right, left) } else { (left, right) };
        let (from, to) = (short_name(from), short_name(to));
        let message = format!("cannot convert value from {from} to {to} without time zone usage");
        return Err(SqlError::new("0A000", message).hint("Use *_tz() function for time zone support."));
    }
    Ok(Some(match places {
        Compared::Places(left, right) => left.cmp(&right),
        Compared::Times((left, ahead), (right, of_right)) => {
            let order = (left - ahead * SECOND).cmp(&(right - of_right * SECOND));
            order.then(of_right.cmp(&ahead))
        }
    }))
}
