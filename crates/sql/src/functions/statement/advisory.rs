//! `pg_advisory_lock` and its sisters: for the session or the transaction, alone or shared, waiting or trying.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, StringViewArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::told_by;
use crate::error::{Result, SqlError};
use crate::interrupt::runtimes::blocking;
use crate::state::advisory::{Locks, Mode, Number, Span};
use crate::state::view::View;
use crate::values::types::{VOID, of_catalog};

/// The action of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    Take(Mode, Span),
    Try(Mode, Span),
    Release(Mode),
    ReleaseAll,
}

const CALLS: [(&str, Call); 11] = [
    ("pg_advisory_lock", Call::Take(Mode::Exclusive, Span::Session)),
    ("pg_advisory_lock_shared", Call::Take(Mode::Shared, Span::Session)),
    ("pg_advisory_xact_lock", Call::Take(Mode::Exclusive, Span::Transaction)),
    ("pg_advisory_xact_lock_shared", Call::Take(Mode::Shared, Span::Transaction)),
    ("pg_try_advisory_lock", Call::Try(Mode::Exclusive, Span::Session)),
    ("pg_try_advisory_lock_shared", Call::Try(Mode::Shared, Span::Session)),
    ("pg_try_advisory_xact_lock", Call::Try(Mode::Exclusive, Span::Transaction)),
    ("pg_try_advisory_xact_lock_shared", Call::Try(Mode::Shared, Span::Transaction)),
    ("pg_advisory_unlock", Call::Release(Mode::Exclusive)),
    ("pg_advisory_unlock_shared", Call::Release(Mode::Shared)),
    ("pg_advisory_unlock_all", Call::ReleaseAll),
];

/// Whether a function is one of these.
pub(super) fn is_one(name: &str) -> bool {
    CALLS.iter().any(|(known, _)| *known == name)
}

/// Makes the functions known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> DataFusionResult<()> {
    for (name, call) in CALLS {
        let number = DataType::Int64;
        let signature = match call {
            Call::ReleaseAll => Signature::nullary(Volatility::Volatile),
            _ => {
                let both = TypeSignature::Exact(vec![number.clone(), number.clone()]);
                Signature::one_of(vec![TypeSignature::Exact(vec![number]), both], Volatility::Volatile)
            }
        };
        let function = LockFunction { name, call, signature, locks: view.locks.clone() };
        state.register_udf(Arc::new(ScalarUDF::from(function)))?;
    }
    Ok(())
}

/// A function for one statement.
struct LockFunction {
    name: &'static str,
    call: Call,
    signature: Signature,
    locks: Locks,
}

impl LockFunction {
    /// One row: a truth, or nothing where there is nothing to say. NULL among the arguments gives NULL, and locks nothing.
    fn call(&self, args: &[ArrayRef], row: usize) -> Result<Option<bool>> {
        if args.iter().any(|arg| arg.is_null(row)) {
            return Ok(None);
        }
        let given = |at: usize| args[at].as_primitive::<Int64Type>().value(row);
        let small = |at: usize| i32::try_from(given(at)).map_err(|_| SqlError::new("22003", "integer out of range"));
        let number = match args.len() {
            0 => Number::One(0),
            1 => Number::One(given(0)),
            _ => Number::Two(small(0)?, small(1)?),
        };
        Ok(Some(match self.call {
            Call::Take(mode, span) => blocking(|| self.locks.take(number, mode, span)).map(|()| true)?,
            Call::Try(mode, span) => self.locks.try_take(number, mode, span),
            Call::Release(mode) => self.locks.release(number, mode),
            Call::ReleaseAll => {
                self.locks.release_all();
                true
            }
        }))
    }
}

impl ScalarUDFImpl for LockFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(match self.call {
            Call::Try(..) | Call::Release(_) => DataType::Boolean,
            Call::Take(..) | Call::ReleaseAll => DataType::Utf8View,
        })
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> DataFusionResult<FieldRef> {
        let field = Field::new(self.name, self.return_type(&[])?, true);
        Ok(Arc::new(if matches!(self.call, Call::Take(..) | Call::ReleaseAll) {
            of_catalog(field, VOID)
        } else {
            field
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<DataFusionResult<Vec<_>>>()?;
        let answers: Result<Vec<Option<bool>>> = (0..rows).map(|row| self.call(&arrays, row)).collect();
        let answers = answers.map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(ColumnarValue::Array(match self.return_type(&[])? {
            DataType::Boolean => Arc::new(BooleanArray::from(answers)),
            // PostgreSQL's type for nothing is sent as an empty text.
            _ => Arc::new(answers.iter().map(|answer| answer.map(|_| "")).collect::<StringViewArray>()),
        }))
    }
}

told_by!(LockFunction, call);
