//! `pg_sleep(seconds)`, `pg_sleep_for(interval)`, `pg_backend_pid()`, `txid_current()` and its kin, `pg_cancel_backend(pid)`,
//! `pg_terminate_backend(pid)`, and the clocks beside that of the transaction: `statement_timestamp()`, `clock_timestamp()` and
//! `timeofday()`.
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, StringViewArray, TimestampMicrosecondArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use chrono::DateTime;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use engine::Database;

use super::told_by;
use crate::error::Result as SqlResult;
use crate::interrupt::cancel::Token;
use crate::interrupt::runtimes::blocking;
use crate::interrupt::session_zone;
use crate::state::activity;
use crate::state::transaction_number::TransactionNumber;
use crate::state::view::View;
use crate::values::datetime::wall_time;
use crate::values::types::{VOID, of_catalog};

/// How long a sleep goes on without a look at whether its statement is to stop.
const BETWEEN_CHECKS: Duration = Duration::from_millis(10);
const DAY_S: f64 = 86_400.0;

/// Makes the functions known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> Result<()> {
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let volatile = Volatility::Volatile;
    for (name, call, signature) in [
        ("pg_sleep", Call::Sleep, Signature::exact(vec![DataType::Float64], volatile)),
        ("pg_sleep_for", Call::Sleep, Signature::exact(vec![interval], volatile)),
        ("pg_cancel_backend", Call::Cancel, Signature::uniform(1, vec![DataType::Int32, DataType::Int64], volatile)),
        ("pg_terminate_backend", Call::End, Signature::uniform(1, vec![DataType::Int32, DataType::Int64], volatile)),
        ("pg_backend_pid", Call::Process(view.process), Signature::nullary(Volatility::Stable)),
        ("txid_current", Call::Transaction, Signature::nullary(Volatility::Stable)),
        ("txid_current_if_assigned", Call::GivenTransaction, Signature::nullary(Volatility::Stable)),
        ("pg_current_xact_id", Call::Transaction, Signature::nullary(Volatility::Stable)),
        ("pg_current_xact_id_if_assigned", Call::GivenTransaction, Signature::nullary(Volatility::Stable)),
        ("statement_timestamp", Call::Statement(wall_time()), Signature::nullary(Volatility::Stable)),
        ("clock_timestamp", Call::Clock, Signature::nullary(volatile)),
        ("timeofday", Call::Text, Signature::nullary(volatile)),
    ] {
        let (token, db, number) = (view.token.clone(), view.db.clone(), view.number.clone());
        let function = SessionFunction { name, call, signature, token, db, number };
        state.register_udf(Arc::new(ScalarUDF::from(function)))?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    Sleep,
    Cancel,
    End,
    Process(i32),
    /// The number of the transaction; that alone which it has already.
    Transaction,
    GivenTransaction,
    /// When the statement began.
    Statement(i64),
    Clock,
    /// The clock as a text.
    Text,
}

/// A function for one statement.
struct SessionFunction {
    name: &'static str,
    call: Call,
    signature: Signature,
    token: Arc<Token>,
    db: Database,
    number: TransactionNumber,
}

/// How long the row asks for; nothing where it is NULL.
fn seconds(times: &ArrayRef, row: usize) -> Option<f64> {
    if times.is_null(row) {
        return None;
    }
    if let Some(seconds) = times.as_primitive_opt::<Float64Type>() {
        return Some(seconds.value(row));
    }
    let interval = times.as_primitive_opt::<IntervalMonthDayNanoType>()?.value(row);
    let days = f64::from(interval.months) * 30.0 + f64::from(interval.days);
    Some(days * DAY_S + interval.nanoseconds as f64 / 1e9)
}

/// A time as PostgreSQL's `timeofday` writes it.
fn time_of_day(micros: i64) -> String {
    let zone = session_zone::current();
    let time = DateTime::from_timestamp_micros(zone.shown(micros).unwrap_or(micros)).unwrap_or_default();
    format!("{} {}", time.format("%a %b %d %H:%M:%S%.6f %Y"), zone.abbreviation(micros))
}

/// Sleeps for so long, or until the statement is to stop.
fn sleep(seconds: f64, token: &Token) -> SqlResult<()> {
    let started = Instant::now();
    loop {
        token.check()?;
        let left = seconds - started.elapsed().as_secs_f64();
        if left.is_nan() || left <= 0.0 {
            return Ok(());
        }
        std::thread::sleep(Duration::try_from_secs_f64(left).map_or(BETWEEN_CHECKS, |left| left.min(BETWEEN_CHECKS)));
    }
}

impl ScalarUDFImpl for SessionFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.call {
            Call::Sleep | Call::Text => DataType::Utf8View,
            Call::Process(_) => DataType::Int32,
            Call::Transaction | Call::GivenTransaction => DataType::Int64,
            Call::Cancel | Call::End => DataType::Boolean,
            Call::Statement(_) | Call::Clock => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        })
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        let field = Field::new(self.name, self.return_type(&[])?, true);
        Ok(Arc::new(if self.call == Call::Sleep { of_catalog(field, VOID) } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let times = |time: &dyn Fn() -> i64| {
            let times: Vec<i64> = (0..rows).map(|_| time()).collect();
            Ok(ColumnarValue::Array(Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"))))
        };
        match self.call {
            Call::Process(number) => {
                return Ok(ColumnarValue::Array(Arc::new(Int32Array::from(vec![number; rows]))));
            }
            Call::Transaction | Call::GivenTransaction => {
                let is_given = self.call == Call::GivenTransaction;
                let number = if is_given { self.number.given() } else { Some(self.number.get(&self.db)) };
                return Ok(ColumnarValue::Scalar(ScalarValue::Int64(number)));
            }
            Call::Statement(started) => return times(&|| started),
            Call::Clock => return times(&wall_time),
            Call::Text => {
                let texts = (0..rows).map(|_| Some(time_of_day(wall_time())));
                return Ok(ColumnarValue::Array(Arc::new(texts.collect::<StringViewArray>())));
            }
            Call::Cancel | Call::End => {
                let stop = if self.call == Call::End { activity::end_process } else { activity::cancel_process };
                let processes = cast(&args.args[0].to_array(rows)?, &DataType::Int64)?;
                let is_stopped = |process| i32::try_from(process).is_ok_and(|process| stop(&self.db, process));
                let stopped = processes.as_primitive::<Int64Type>().iter().map(|process| process.map(is_stopped));
                return Ok(ColumnarValue::Array(Arc::new(stopped.collect::<BooleanArray>())));
            }
            Call::Sleep => {}
        }
        let times = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let mut answers = Vec::with_capacity(rows);
        for row in 0..rows {
            let time = times.first().and_then(|times| seconds(times, row));
            if let Some(time) = time {
                let slept = blocking(|| sleep(time, &self.token));
                slept.map_err(|error| DataFusionError::External(Box::new(error)))?;
            }
            // PostgreSQL's type for nothing is sent as an empty text.
            answers.push(time.map(|_| ""));
        }
        Ok(ColumnarValue::Array(Arc::new(StringViewArray::from(answers))))
    }
}

told_by!(SessionFunction, name);
