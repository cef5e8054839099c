//! `date_trunc` of a timestamp. The library's function knows no decades, centuries and millennia, and of other units only the years that
//! nanoseconds reach.
//!
//! Centuries and millennia begin with their year 1, decades with a year that ends in 0; the year before the first is the year 0, as the
//! calendar counts without a gap.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{ArrayRef, TimestampMicrosecondArray};
use arrow_cast::cast;
use arrow_schema::{DataType, FieldRef, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions::datetime::date_trunc;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::error::{SqlError, external};
use crate::values::datetime::{MICROS_PER_DAY, civil, day_number};
use crate::values::interval_form::{Unit, unit};
use crate::values::types::type_name;

/// The library's function, with these units.
pub(super) fn truncating() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Truncation(date_trunc())))
}

/// See the module; the library's function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Truncation(Arc<ScalarUDF>);

impl ScalarUDFImpl for Truncation {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        // A unit may be NULL.
        Ok(Arc::new(self.0.return_field_from_args(args)?.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let unit = match args.args.first() {
            Some(ColumnarValue::Scalar(unit)) => unit.try_as_str().flatten().and_then(unit_of),
            _ => None,
        };
        let is_time = |found: &DataType| matches!(found, DataType::Timestamp(..) | DataType::Date32);
        match (unit, args.args.get(1)) {
            (Some(unit), Some(ColumnarValue::Array(times))) if is_time(times.data_type()) => {
                Ok(ColumnarValue::Array(beginnings(times, unit)?))
            }
            (Some(unit), Some(ColumnarValue::Scalar(time))) if is_time(&time.data_type()) => {
                let first = beginnings(&time.to_array()?, unit)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&first, 0)?))
            }
            (None, Some(time)) if is_time(&time.data_type()) => {
                let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
                let rows = if is_scalar { 1 } else { args.number_rows };
                let first = each_beginning(&args.args[0].to_array(rows)?, &time.to_array(rows)?)?;
                Ok(match is_scalar {
                    true => ColumnarValue::Scalar(ScalarValue::try_from_array(&first, 0)?),
                    false => ColumnarValue::Array(first),
                })
            }
            _ => self.0.invoke_with_args(args),
        }
    }
}

/// The moments at which the units of each row began, in the type of the times.
fn each_beginning(units: &ArrayRef, times: &ArrayRef) -> Result<ArrayRef> {
    let (units, kind) = (cast(units, &DataType::Utf8View)?, type_name(times.data_type()));
    let micros = cast(times, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    let rows = units.as_string_view().iter().zip(micros.as_primitive::<TimestampMicrosecondType>());
    let first = rows.map(|row| match row {
        (Some(name), Some(moment)) => match unit_of(name) {
            Some(unit) => Ok(Some(beginning(moment, unit))),
            None => Err(external(SqlError::new("22023", format!("unit \"{name}\" not recognized for type {kind}")))),
        },
        _ => Ok(None),
    });
    Ok(cast(&first.collect::<Result<TimestampMicrosecondArray>>()?, times.data_type())?)
}

/// The unit of a name.
fn unit_of(name: &str) -> Option<Unit> {
    match name.to_ascii_lowercase().as_str() {
        "quarter" | "qtr" => Some(Unit::Months(3)),
        name => unit(name),
    }
}

/// The moments at which units began, in the type of the times.
fn beginnings(times: &ArrayRef, unit: Unit) -> Result<ArrayRef> {
    let micros = cast(times, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    let first = micros.as_primitive::<TimestampMicrosecondType>();
    let first = first.unary::<_, TimestampMicrosecondType>(|moment| beginning(moment, unit));
    Ok(cast(&first, times.data_type())?)
}

/// The moment at which a unit began.
fn beginning(moment: i64, unit: Unit) -> i64 {
    if [i64::MIN, i64::MAX].contains(&moment) {
        return moment;
    }
    let (day, within) = (moment.div_euclid(MICROS_PER_DAY), moment.rem_euclid(MICROS_PER_DAY));
    match unit {
        Unit::Micros(micros) => moment - within % micros,
        Unit::Days(1) => moment - within,
        // Weeks begin on mondays; the first day of 1970 was a thursday.
        Unit::Days(days) => (day - (day + 3).rem_euclid(days)) * MICROS_PER_DAY,
        Unit::Months(months @ 1..=12) => {
            let (year, month, _) = civil(day);
            let first = (i64::from(month) - 1) / months * months + 1;
            day_number(year, u32::try_from(first).unwrap_or(1), 1) * MICROS_PER_DAY
        }
        Unit::Months(months) => first_of_years(moment, months / 12),
    }
}

/// The moment at which a unit of so many years began.
fn first_of_years(moment: i64, years: i64) -> i64 {
    let (year, ..) = civil(moment.div_euclid(MICROS_PER_DAY));
    let offset = i64::from(years > 10);
    day_number((year - offset).div_euclid(years) * years + offset, 1, 1) * MICROS_PER_DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_begin_with_their_first_year() {
        for (year, years, first) in [
            (1970, 100, 1901),
            (1901, 100, 1901),
            (2000, 100, 1901),
            (2001, 1000, 2001),
            (2000, 1000, 1001),
            (1993, 10, 1990),
            (4, 10, 0),
            (1, 100, 1),
            (0, 100, -99),
            (-54, 100, -99),
            (-3, 10, -10),
        ] {
            let start = |year| day_number(year, 1, 1) * MICROS_PER_DAY;
            for within in [0, 1, 364 * MICROS_PER_DAY] {
                assert_eq!(first_of_years(start(year) + within, years), start(first), "{years} years of {year}");
            }
        }
        assert_eq!(beginning(i64::MAX, Unit::Months(1200)), i64::MAX, "infinity");
    }

    #[test]
    fn units_of_any_year_begin_by_the_calendar() {
        let at = |year, month, day, hours: i64| day_number(year, month, day) * MICROS_PER_DAY + hours * 3_600_000_000;
        for (unit, moment, first) in [
            ("week", at(998, 5, 6, 7), at(998, 4, 30, 0)),
            ("week", at(2020, 5, 4, 0), at(2020, 5, 4, 0)),
            ("month", at(-43, 3, 15, 1), at(-43, 3, 1, 0)),
            ("quarter", at(2024, 12, 31, 23), at(2024, 10, 1, 0)),
            ("year", at(5000, 12, 31, 23), at(5000, 1, 1, 0)),
            ("day", at(1969, 12, 31, 23), at(1969, 12, 31, 0)),
            ("hour", at(1, 1, 1, 5) + 1, at(1, 1, 1, 5)),
        ] {
            assert_eq!(unit_of(unit).map(|unit| beginning(moment, unit)), Some(first), "{unit} of {moment}");
        }
        assert_eq!(unit_of("fortnight"), None);
    }
}
