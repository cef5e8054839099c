//! `to_char`, `to_date`, `to_timestamp` and `to_number`: values written and read by templates.
mod dates;
mod numbers;
mod pieces;
pub(crate) mod standard;

use datafusion::logical_expr::ScalarUDF;

use self::dates::Fields;
use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, double, function, interval, text, whole};
use crate::interrupt::session_zone;
use crate::interrupt::zone::Zone;
use crate::values::datetime::MICROS_PER_DAY;

type Row = [Option<Cell>];

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    use Kind::{Any, BigInt, Date, Double, Exact, Interval, Text, Timestamp, TimestampTz};
    const TO_CHAR: &[Variant] = &[
        Variant::strict(&[Interval, Text], Text, |row| {
            let value = interval(row.first());
            let fields = Fields::of_interval(value.months.into(), value.days.into(), value.nanoseconds / 1000);
            dates::write(&fields, text(row.get(1))).map(some)
        }),
        Variant::strict(&[Timestamp, Text], Text, |row| moment(row, None)),
        Variant::strict(&[TimestampTz, Text], Text, |row| moment(row, Some(session_zone::current()))),
        Variant::strict(&[BigInt, Text], Text, |row| {
            numbers::write(&whole(row.first()).to_string(), text(row.get(1))).map(some)
        }),
        Variant::strict(&[Exact, Text], Text, |row| numbers::write(text(row.first()), text(row.get(1))).map(some)),
        Variant::strict(&[Double, Text], Text, |row| {
            numbers::write_float(double(row.first()), text(row.get(1))).map(some)
        }),
    ];
    const TO_DATE: &[Variant] = &[Variant::strict(&[Any, Text], Date, |row| {
        let read = dates::read(text(row.first()), text(row.get(1)))?;
        Ok(Some(Cell::Time(read.div_euclid(MICROS_PER_DAY))))
    })];
    const TO_TIMESTAMP: &[Variant] = &[
        Variant::strict(&[Text, Text], TimestampTz, |row| {
            let shown = dates::read(text(row.first()), text(row.get(1)))?;
            let moment = session_zone::current().moment(shown);
            moment.map(|moment| Some(Cell::Time(moment))).ok_or_else(out_of_range)
        }),
        Variant::strict(&[Double], TimestampTz, |row| {
            super::intervals::moment(double(row.first())).map(|micros| Some(Cell::Time(micros)))
        }),
    ];
    let named: [(&'static str, &'static [Variant]); 3] =
        [("to_char", TO_CHAR), ("to_date", TO_DATE), ("to_timestamp", TO_TIMESTAMP)];
    named.into_iter().map(|(name, variants)| function(name, variants)).chain([numbers::to_number()])
}

fn out_of_range() -> SqlError {
    SqlError::new("22008", "timestamp out of range")
}

fn some(text: String) -> Option<Cell> {
    Some(Cell::Text(text))
}

/// A timestamp by a template; an infinite one is empty.
fn moment(row: &Row, zone: Option<Zone>) -> Result<Option<Cell>, SqlError> {
    let micros = whole(row.first());
    if [i64::MIN, i64::MAX].contains(&micros) {
        return Ok(None);
    }
    dates::write(&Fields::of_timestamp(micros, zone), text(row.get(1))).map(some)
}
