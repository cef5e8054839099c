//! Dates as timestamps and timestamps as dates, of which those that are infinite stay it; the library's casts have none such.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::{DataType as ArrowType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use crate::error::SqlError;
use crate::interrupt::session_zone;
use crate::interrupt::zone::Zone;
use crate::values::datetime::MICROS_PER_DAY;

/// The action of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    /// The first moment of a day.
    Midnight,
    /// Something that compares with timestamps as a date does: of a day beyond all timestamps one that only the infinite are beyond. With a
    /// zone it compares with moments.
    Beside(Option<Zone>),
    /// The day of a timestamp.
    Day,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Days {
    does: Does,
    signature: Signature,
}

/// A date as a timestamp.
pub(crate) fn midnight(date: Expr) -> Expr {
    call(Does::Midnight, date)
}

/// A timestamp as a date.
pub(crate) fn day(timestamp: Expr) -> Expr {
    call(Does::Day, timestamp)
}

/// A date as what compares with timestamps, or with moments by the clocks of the session's zone.
pub(crate) fn beside_timestamps(date: Expr, are_moments: bool) -> Expr {
    call(Does::Beside(are_moments.then(session_zone::current)), date)
}

/// The date below a call that makes a timestamp of it.
pub(crate) fn date_below(call: &ScalarFunction) -> Option<&Expr> {
    let days = call.func.inner().downcast_ref::<Days>()?;
    call.args.first().filter(|_| days.does == Does::Midnight)
}

/// A comparison of a date with a timestamp as one with a date, if there is one.
pub(crate) fn compared(date: &Expr, op: Operator, micros: i64) -> Option<Expr> {
    let (day, is_midnight) = match micros {
        i64::MAX => (i32::MAX, true),
        i64::MIN => (i32::MIN, true),
        micros => (i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok()?, micros.rem_euclid(MICROS_PER_DAY) == 0),
    };
    let op = match op {
        op if is_midnight => op,
        Operator::Lt | Operator::LtEq => Operator::LtEq,
        Operator::Gt | Operator::GtEq => Operator::Gt,
        _ => return None,
    };
    Some(datafusion::logical_expr::binary_expr(date.clone(), op, lit(ScalarValue::Date32(Some(day)))))
}

fn call(does: Does, arg: Expr) -> Expr {
    let function = ScalarUDF::from(Days { does, signature: Signature::any(1, Volatility::Immutable) });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![arg]))
}

impl ScalarUDFImpl for Days {
    fn name(&self) -> &str {
        match self.does {
            Does::Midnight => "midnight",
            Does::Beside(_) => "date_beside_timestamps",
            Does::Day => "day",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        let timestamps = |zone| ArrowType::Timestamp(TimeUnit::Microsecond, zone);
        Ok(match self.does {
            Does::Midnight | Does::Beside(None) => timestamps(None),
            Does::Beside(Some(_)) => timestamps(Some("UTC".into())),
            Does::Day => ArrowType::Date32,
        })
    }

    fn evaluate_bounds(&self, _: &[&Interval]) -> Result<Interval> {
        Interval::make_unbounded(&self.return_type(&[])?)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[..] {
            [ColumnarValue::Scalar(value)] => {
                let done = self.compute(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&done, 0)?))
            }
            [ColumnarValue::Array(array)] => self.compute(array).map(ColumnarValue::Array),
            _ => Err(DataFusionError::Internal(format!("{} takes one argument", self.name()))),
        }
    }
}

impl Days {
    fn compute(&self, array: &ArrayRef) -> Result<ArrayRef> {
        // The optimizer asks what a condition is where a column is NULL.
        if array.data_type().is_null() {
            return Ok(new_null_array(&self.return_type(&[])?, array.len()));
        }
        let out_of_range = || {
            let error = SqlError::new("22008", "date out of range for timestamp");
            DataFusionError::External(Box::new(error))
        };
        let dates = || array.as_primitive::<Date32Type>();
        Ok(match self.does {
            Does::Midnight => {
                let midnight = |date| midnight_of(date).ok_or_else(out_of_range);
                Arc::new(dates().try_unary::<_, TimestampMicrosecondType, _>(midnight)?)
            }
            Does::Beside(None) => Arc::new(dates().unary::<_, TimestampMicrosecondType>(beside)),
            Does::Beside(Some(zone)) => {
                let moment = |date| match midnight_of(date) {
                    Some(shown @ (i64::MIN | i64::MAX)) => shown,
                    Some(shown) => zone.moment(shown).unwrap_or_else(|| beside(date)),
                    None => beside(date),
                };
                Arc::new(dates().unary::<_, TimestampMicrosecondType>(moment).with_timezone("UTC"))
            }
            Does::Day => {
                let day = |micros| match micros {
                    i64::MAX => i32::MAX,
                    i64::MIN => i32::MIN,
                    micros => (micros.div_euclid(MICROS_PER_DAY)) as i32,
                };
                Arc::new(array.as_primitive::<TimestampMicrosecondType>().unary::<_, Date32Type>(day))
            }
        })
    }
}

/// The first microsecond of a day, if there is one.
fn midnight_of(date: i32) -> Option<i64> {
    match date {
        i32::MAX => Some(i64::MAX),
        i32::MIN => Some(i64::MIN),
        date => i64::from(date).checked_mul(MICROS_PER_DAY),
    }
}

/// As that, and where there is none the last or the first that is finite.
fn beside(date: i32) -> i64 {
    midnight_of(date).unwrap_or(if date > 0 { i64::MAX - 1 } else { i64::MIN + 1 })
}
