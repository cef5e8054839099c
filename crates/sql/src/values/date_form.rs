//! Dates and moments as text in the form that the session's `DateStyle` names. ISO, which most sessions keep, is written by `datetime`.
use engine::Value;

use crate::interrupt::session_zone::{self, ZoneScope};
use crate::interrupt::time_style::{DateForm, DateOrder, DateStyle, TimeStyle};
use crate::values::date_input::{DAY_MAX, DAY_MIN};
use crate::values::datetime::{MICROS_PER_DAY, civil, format_date, format_moment, format_time, format_timestamp};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// 1970-01-01 was a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Whether the session writes dates in another form than ISO.
pub(crate) fn is_asked() -> bool {
    session_zone::style().dates.form != DateForm::Iso
}

/// Until it is dropped, the thread writes dates in the form ISO.
pub(crate) fn in_iso() -> Option<ZoneScope> {
    let style = session_zone::style();
    let dates = DateStyle { form: DateForm::Iso, ..style.dates };
    (style.dates != dates).then(|| ZoneScope::of(TimeStyle { dates, ..style }))
}

/// A date in the session's form.
pub(crate) fn date_text(days: i64) -> String {
    let style = session_zone::style().dates;
    match days {
        DAY_MAX | DAY_MIN => format_date(days),
        _ if style.form == DateForm::Iso => format_date(days),
        _ => {
            let (day, era) = day_text(days, style);
            format!("{day}{era}")
        }
    }
}

/// A time of a day in the session's form.
pub(crate) fn timestamp_text(micros: i64) -> String {
    written(micros, session_zone::style().dates, None)
}

/// A moment in the session's form and zone.
pub(crate) fn moment_text(micros: i64) -> String {
    let style = session_zone::style();
    if style.dates.form == DateForm::Iso || [i64::MIN, i64::MAX].contains(&micros) {
        return format_moment(micros, style.zone);
    }
    written(style.zone.shown(micros).unwrap_or(micros), style.dates, Some(style.zone.abbreviation(micros)))
}

/// A bound of a range in the session's form.
pub(crate) fn bound_text(bound: &Value) -> String {
    match bound {
        Value::Date(days) => date_text((*days).into()),
        Value::Timestamp(micros) => timestamp_text(*micros),
        Value::TimestampTz(micros) => moment_text(*micros),
        other => other.to_string(),
    }
}

/// The day in numbers, and what stands at the end of the text of one before Christ.
fn day_text(days: i64, style: DateStyle) -> (String, &'static str) {
    let (year, month, day) = civil(days);
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    let sign = match style.form {
        DateForm::Sql => '/',
        DateForm::German => '.',
        DateForm::Iso | DateForm::Postgres => '-',
    };
    let is_day_first = style.order == DateOrder::Dmy || style.form == DateForm::German;
    let (first, second) = if is_day_first { (day, month) } else { (month, day) };
    (format!("{first:02}{sign}{second:02}{sign}{year:04}"), era)
}

fn written(micros: i64, style: DateStyle, zone: Option<String>) -> String {
    if style.form == DateForm::Iso || [i64::MIN, i64::MAX].contains(&micros) {
        return format_timestamp(micros, "");
    }
    let (days, time) = (micros.div_euclid(MICROS_PER_DAY), format_time(micros.rem_euclid(MICROS_PER_DAY)));
    let zone = zone.map(|zone| format!(" {zone}")).unwrap_or_default();
    let (day, era) = day_text(days, style);
    if style.form != DateForm::Postgres {
        return format!("{day} {time}{zone}{era}");
    }
    let (year, month, day) = civil(days);
    let year = if year > 0 { year } else { 1 - year };
    let weekday = usize::try_from(days.rem_euclid(7)).map_or("", |at| WEEKDAYS[at]);
    let month = MONTHS[month as usize - 1];
    let day = if style.order == DateOrder::Dmy { format!("{day:02} {month}") } else { format!("{month} {day:02}") };
    format!("{weekday} {day} {time} {year:04}{zone}{era}")
}
