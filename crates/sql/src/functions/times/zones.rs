//! `timezone(zone, time)`, which is what `time AT TIME ZONE zone` says: a time without a zone as one of that zone, and a moment
//! as the clocks of the zone show it. A zone is a name of the time zone database, an offset as POSIX writes it, or an
//! interval.
use arrow_array::IntervalMonthDayNanoArray;
use datafusion::logical_expr::ScalarUDF;

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, interval, text, whole};
use crate::interrupt::zone::Zone;
use crate::values::text::text_value;

type Row = [Option<Cell>];
type Answer = Result<Option<Cell>, SqlError>;

/// The name of the function.
pub(crate) const NAME: &str = "timezone";

/// The name of the function that truncates, of which the third argument is a zone.
pub(crate) const TRUNCATED: &str = "date_trunc";

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    use Kind::{Interval, Text, Timestamp, TimestampTz};
    const TIMEZONE: &[Variant] = &[
        Variant::strict(&[Text, Timestamp], TimestampTz, |row| moment(&named(text(row.first()))?, row)),
        Variant::strict(&[Text, TimestampTz], Timestamp, |row| shown(&named(text(row.first()))?, row)),
        Variant::strict(&[Interval, Timestamp], TimestampTz, |row| moment(&far(row)?, row)),
        Variant::strict(&[Interval, TimestampTz], Timestamp, |row| shown(&far(row)?, row)),
    ];
    [function(NAME, TIMEZONE)].into_iter()
}

fn named(name: &str) -> Result<Zone, SqlError> {
    Zone::named(name).ok_or_else(|| SqlError::new("22023", format!("time zone \"{name}\" not recognized")))
}

/// The zone that is as far from Greenwich as the interval in a row.
fn far(row: &Row) -> Result<Zone, SqlError> {
    let distance = interval(row.first());
    if distance.months != 0 || distance.days != 0 {
        let shown = IntervalMonthDayNanoArray::from(vec![distance]);
        let shown = text_value(&shown, 0).unwrap_or_default();
        let message = format!("interval time zone \"{shown}\" must not include months or days");
        return Err(SqlError::new("22023", message));
    }
    Ok(Zone::Fixed(distance.nanoseconds / 1_000_000_000))
}

fn out_of_range() -> SqlError {
    SqlError::new("22008", "timestamp out of range")
}

/// The moment at which the clocks of the zone show the time.
fn moment(zone: &Zone, row: &Row) -> Answer {
    zone.moment(whole(row.get(1))).map(|moment| Some(Cell::Time(moment))).ok_or_else(out_of_range)
}

/// What the clocks of the zone show at the moment.
fn shown(zone: &Zone, row: &Row) -> Answer {
    zone.shown(whole(row.get(1))).map(|shown| Some(Cell::Time(shown))).ok_or_else(out_of_range)
}
