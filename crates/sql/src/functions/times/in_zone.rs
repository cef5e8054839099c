//! Casts and sums that depend on a zone, as functions that plans call where the session's zone is not UTC.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{IntervalMonthDayNano, IntervalMonthDayNanoType, TimestampMicrosecondType};
use arrow_array::{ArrayRef, TimestampMicrosecondArray};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::SqlError;
use crate::functions::times::intervals::INTERVAL;
use crate::interrupt::zone::Zone;
use crate::values::zoned;

/// The action of a function, by the clocks of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Does {
    Cast { to: ArrowType },
    Add,
    Subtract,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InZone {
    does: Does,
    zone: Zone,
    signature: Signature,
}

/// A value as one of another type.
pub(crate) fn as_type(zone: Zone, value: Expr, to: ArrowType) -> Expr {
    call(zone, Does::Cast { to }, vec![value])
}

/// A moment plus an interval, or minus one.
pub(crate) fn moved(zone: Zone, moment: Expr, interval: Expr, is_earlier: bool) -> Expr {
    call(zone, if is_earlier { Does::Subtract } else { Does::Add }, vec![moment, interval])
}

fn call(zone: Zone, does: Does, args: Vec<Expr>) -> Expr {
    let signature = Signature::any(args.len(), Volatility::Immutable);
    let function = ScalarUDF::from(InZone { does, zone, signature });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), args))
}

fn moments() -> ArrowType {
    ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

impl ScalarUDFImpl for InZone {
    fn name(&self) -> &str {
        match self.does {
            Does::Cast { .. } => "cast_in_zone",
            Does::Add => "add_in_zone",
            Does::Subtract => "subtract_in_zone",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(match &self.does {
            Does::Cast { to } => to.clone(),
            Does::Add | Does::Subtract => moments(),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let done = match (&self.does, &arrays[..]) {
            (Does::Cast { to }, [value]) => zoned::cast_in(self.zone, value, to).map_err(|_| out_of_range())?,
            (Does::Add, [moment, interval]) => self.sum(moment, interval, |interval| interval)?,
            (Does::Subtract, [moment, interval]) => self.sum(moment, interval, |interval| {
                let (months, days) = (interval.months.wrapping_neg(), interval.days.wrapping_neg());
                IntervalMonthDayNano::new(months, days, interval.nanoseconds.wrapping_neg())
            })?,
            _ => return Err(DataFusionError::Internal("a sum in a zone without two arguments".to_owned())),
        };
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&done, 0)?),
            false => ColumnarValue::Array(done),
        })
    }
}

impl InZone {
    fn sum(
        &self,
        moments_of: &ArrayRef,
        intervals: &ArrayRef,
        sign: impl Fn(IntervalMonthDayNano) -> IntervalMonthDayNano,
    ) -> Result<ArrayRef> {
        let (moments_of, intervals) = (cast(moments_of, &moments())?, cast(intervals, &INTERVAL)?);
        let pairs = moments_of
            .as_primitive::<TimestampMicrosecondType>()
            .iter()
            .zip(intervals.as_primitive::<IntervalMonthDayNanoType>().iter());
        let later = |(moment, interval): (Option<i64>, Option<IntervalMonthDayNano>)| match (moment, interval) {
            (Some(moment), Some(interval)) => {
                zoned::later(self.zone, moment, sign(interval)).map(Some).ok_or_else(out_of_range)
            }
            _ => Ok(None),
        };
        let sums = pairs.map(later).collect::<Result<TimestampMicrosecondArray>>()?;
        Ok(Arc::new(sums.with_timezone("UTC")))
    }
}

fn out_of_range() -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new("22008", "timestamp out of range")))
}
