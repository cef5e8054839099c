//! `date_trunc` of a time to decades, centuries and millennia, which the library's function does not know.
//!
//! Centuries and millennia begin with their year 1, decades with a year that ends in 0; the year before the first is the year 0, as the
//! calendar counts without a gap.
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_cast::cast;
use arrow_schema::{DataType, FieldRef, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions::datetime::date_trunc;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::values::datetime::{MICROS_PER_DAY, civil, day_number};
use crate::values::interval_form::{Unit, unit};

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
        self.0.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let years = match args.args.first() {
            Some(ColumnarValue::Scalar(unit)) => unit.try_as_str().flatten().and_then(years_of),
            _ => None,
        };
        match (years, args.args.get(1)) {
            (Some(years), Some(ColumnarValue::Array(times))) => Ok(ColumnarValue::Array(first_years(times, years)?)),
            (Some(years), Some(ColumnarValue::Scalar(time))) => {
                let first = first_years(&time.to_array()?, years)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&first, 0)?))
            }
            _ => self.0.invoke_with_args(args),
        }
    }
}

/// How many years a unit has that is longer than one.
fn years_of(name: &str) -> Option<i64> {
    match unit(name)? {
        Unit::Months(months) if months > 12 => Some(months / 12),
        _ => None,
    }
}

/// The moments at which units of so many years began, in the type of the times.
fn first_years(times: &ArrayRef, years: i64) -> Result<ArrayRef> {
    let micros = cast(times, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    let first = micros.as_primitive::<TimestampMicrosecondType>();
    let first = first.unary::<_, TimestampMicrosecondType>(|moment| first_of_years(moment, years));
    Ok(cast(&first, times.data_type())?)
}

/// The moment at which a unit of so many years began.
fn first_of_years(moment: i64, years: i64) -> i64 {
    if [i64::MIN, i64::MAX].contains(&moment) {
        return moment;
    }
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
        assert_eq!(first_of_years(i64::MAX, 100), i64::MAX, "infinity");
    }
}
