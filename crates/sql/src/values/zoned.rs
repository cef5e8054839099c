//! Moments, and times without a zone, as one another: what the clocks of a zone show.
//!
//! In UTC the two are the same number, and Arrow's casts serve. In another zone a moment is moved by the offset that the zone has then.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{IntervalMonthDayNano, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, ListArray, TimestampMicrosecondArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType as ArrowType, TimeUnit};
use chrono::{DateTime, Days, Months};

use crate::interrupt::zone::Zone;

/// How Arrow types name the zone of moments.
const UTC: &str = "UTC";

/// Whether it is a type of moments. Labels of enums have a zone, too, and stand in seconds.
pub(crate) fn is_moment(of: &ArrowType) -> bool {
    matches!(of, ArrowType::Timestamp(unit, Some(_)) if *unit != TimeUnit::Second)
}

/// Whether it is a type of dates, of times of day, or of timestamps without a zone.
pub(crate) fn is_shown(of: &ArrowType) -> bool {
    matches!(
        of,
        ArrowType::Timestamp(_, None)
            | ArrowType::Date32
            | ArrowType::Date64
            | ArrowType::Time32(_)
            | ArrowType::Time64(_)
    )
}

/// Whether a cast between these types depends on a zone; one of arrays as that of their items.
pub(crate) fn depends_on_zone(from: &ArrowType, to: &ArrowType) -> bool {
    match (from, to) {
        (ArrowType::List(from), ArrowType::List(to)) => depends_on_zone(from.data_type(), to.data_type()),
        _ => (is_moment(from) && is_shown(to)) || (is_shown(from) && is_moment(to)),
    }
}

/// Values of another type, by the clocks of a zone where that matters.
///
/// # Errors
/// Arrow's, and where a moment is out of range.
pub(crate) fn cast_in(zone: Zone, array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef, ArrowError> {
    if zone == Zone::UTC || !depends_on_zone(array.data_type(), to) {
        return cast(array, to);
    }
    if let (Some(list), ArrowType::List(item)) = (array.as_list_opt::<i32>(), to) {
        let items = cast_in(zone, list.values(), item.data_type())?;
        let cast = ListArray::try_new(item.clone(), list.offsets().clone(), items, list.nulls().cloned())?;
        return Ok(Arc::new(cast));
    }
    let plain = ArrowType::Timestamp(TimeUnit::Microsecond, None);
    if is_moment(array.data_type()) {
        let moments = cast(array, &ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())))?;
        return cast(&moved(&moments, |moment| zone.shown(moment))?, to);
    }
    let moments = moved(&cast(array, &plain)?, |shown| zone.moment(shown))?;
    cast(&(Arc::new(moments.with_timezone(UTC)) as ArrayRef), to)
}

fn moved(times: &ArrayRef, to: impl Fn(i64) -> Option<i64>) -> Result<TimestampMicrosecondArray, ArrowError> {
    let out_of_range = || ArrowError::ComputeError("timestamp out of range".to_owned());
    times.as_primitive::<TimestampMicrosecondType>().try_unary(|time| to(time).ok_or_else(out_of_range))
}

/// A moment an interval later, in microseconds: months and days by the calendar and clocks of the zone, months first, then the rest.
/// `None` where the calendar has no such moment. The ends of time stay where they are.
pub(crate) fn later(zone: Zone, moment: i64, step: IntervalMonthDayNano) -> Option<i64> {
    if [i64::MIN, i64::MAX].contains(&moment) {
        return Some(moment);
    }
    let mut moment = moment;
    if step.months != 0 {
        let (at, months) =
            (DateTime::from_timestamp_micros(zone.shown(moment)?)?, Months::new(step.months.unsigned_abs()));
        let at = if step.months < 0 { at.checked_sub_months(months) } else { at.checked_add_months(months) }?;
        moment = zone.moment(at.timestamp_micros())?;
    }
    if step.days != 0 {
        let (at, days) =
            (DateTime::from_timestamp_micros(zone.shown(moment)?)?, Days::new(step.days.unsigned_abs().into()));
        let at = if step.days < 0 { at.checked_sub_days(days) } else { at.checked_add_days(days) }?;
        moment = zone.moment(at.timestamp_micros())?;
    }
    moment.checked_add(step.nanoseconds / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::datetime::parse_timestamp;
    use crate::values::text::text_value;

    fn at(text: &str) -> i64 {
        parse_timestamp(text, true).unwrap()
    }

    #[test]
    fn days_are_those_of_the_clocks_and_hours_those_that_pass() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let (day, hours) = (IntervalMonthDayNano::new(0, 1, 0), IntervalMonthDayNano::new(0, 0, 86_400_000_000_000));
        // 25 hours lie between noon and noon where the clocks go back.
        let noon = at("2024-10-26 12:00+02");
        assert_eq!(later(berlin, noon, day), Some(at("2024-10-27 12:00+01")));
        assert_eq!(later(berlin, noon, hours), Some(at("2024-10-27 11:00+01")));
        assert_eq!(later(berlin, i64::MAX, day), Some(i64::MAX));
    }

    #[test]
    fn what_was_shown_is_the_moment_again() {
        let plain = ArrowType::Timestamp(TimeUnit::Microsecond, None);
        let moments: ArrayRef =
            Arc::new(TimestampMicrosecondArray::from(vec![at("2024-07-01 23:30+00")]).with_timezone(UTC));
        let zone = Zone::named("Asia/Kolkata").unwrap();
        let shown = cast_in(zone, &moments, &plain).unwrap();
        assert_eq!(text_value(&shown, 0).as_deref(), Some("2024-07-02 05:00:00"));
        assert_eq!(&cast_in(zone, &shown, moments.data_type()).unwrap(), &moments);
        let days = cast_in(zone, &moments, &ArrowType::Date32).unwrap();
        assert_eq!(text_value(&days, 0).as_deref(), Some("2024-07-02"));
    }
}
