//! `nextval(name)`, `setval(name, value [, is_called])`, `currval(name)` and `lastval()`.
//!
//! They are computed anew for every row, and named by what the statement's transaction sees. Numbers for the rows of a batch are
//! taken together, as each is on disk before it is given out.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::DataType as ArrowType;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use engine::Sequence;

use super::told_by;
use crate::error::{Result, SqlError};
use crate::names::found_by_text;
use crate::names::tables::Tables;
use crate::state::taken_numbers::StatementSequences;
use crate::state::view::View;

/// Makes the functions known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> DataFusionResult<()> {
    for call in [Call::Next, Call::Set, Call::Current, Call::Last] {
        let function = SequenceFunction {
            call,
            signature: call.signature(),
            tables: view.tables.newest(),
            taking: view.taking.clone(),
        };
        state.register_udf(Arc::new(ScalarUDF::from(function)))?;
    }
    Ok(())
}

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    Next,
    Set,
    Current,
    Last,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Call::Next => "nextval",
            Call::Set => "setval",
            Call::Current => "currval",
            Call::Last => "lastval",
        }
    }

    fn signature(self) -> Signature {
        let (text, number) = (ArrowType::Utf8View, ArrowType::Int64);
        match self {
            Call::Next | Call::Current => Signature::exact(vec![text], Volatility::Volatile),
            Call::Last => Signature::nullary(Volatility::Volatile),
            Call::Set => {
                let long = TypeSignature::Exact(vec![text.clone(), number.clone(), ArrowType::Boolean]);
                Signature::one_of(vec![TypeSignature::Exact(vec![text, number]), long], Volatility::Volatile)
            }
        }
    }
}

/// A function for one statement.
struct SequenceFunction {
    call: Call,
    signature: Signature,
    tables: Tables,
    taking: StatementSequences,
}

impl SequenceFunction {
    /// One row; NULL among the arguments gives NULL.
    fn call(&self, args: &[ArrayRef], row: usize, known: &mut Option<(String, Sequence)>) -> Result<Option<i64>> {
        if args.iter().any(|arg| arg.is_null(row)) {
            return Ok(None);
        }
        let mut sequence = || self.sequence(args[0].as_string_view().value(row), known);
        let number = || args[1].as_primitive::<Int64Type>().value(row);
        let number = match self.call {
            Call::Next => return Ok(self.taking.next(&sequence()?, 1)?.first().copied()),
            Call::Current => self.taking.current(&sequence()?)?,
            Call::Last => self.taking.last()?,
            Call::Set => {
                let is_called = args.get(2).is_none_or(|arg| arg.as_boolean().value(row));
                self.taking.set(&sequence()?, number(), is_called)?;
                number()
            }
        };
        Ok(Some(number))
    }

    /// Numbers for all rows from one sequence, which are taken together.
    fn next_of_one(&self, name: &str, rows: usize) -> Result<Int64Array> {
        let sequence = self.tables.sequence(&found_by_text(&self.tables, name)?)?;
        Ok(self.taking.next(&sequence, rows)?.into())
    }

    /// The sequence of a name, which is mostly that of the row before.
    fn sequence(&self, name: &str, known: &mut Option<(String, Sequence)>) -> Result<Sequence> {
        let other = known.take().filter(|(same, _)| same == name);
        let found = match other {
            Some(same) => same,
            None => (name.to_owned(), self.tables.sequence(&found_by_text(&self.tables, name)?)?),
        };
        Ok(known.insert(found).1.clone())
    }
}

impl ScalarUDFImpl for SequenceFunction {
    fn name(&self) -> &str {
        self.call.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> DataFusionResult<ArrowType> {
        Ok(ArrowType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let rows = args.number_rows;
        if let (Call::Next, [ColumnarValue::Scalar(name)], 1..) = (self.call, &args.args[..], rows)
            && let Some(Some(name)) = name.try_as_str()
        {
            let numbers = self.next_of_one(name, rows).map_err(|error| DataFusionError::External(Box::new(error)))?;
            return Ok(ColumnarValue::Array(Arc::new(numbers)));
        }
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<DataFusionResult<Vec<_>>>()?;
        let mut known = None;
        let numbers: Result<Int64Array> = (0..rows).map(|row| self.call(&arrays, row, &mut known)).collect();
        let numbers = numbers.map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(ColumnarValue::Array(Arc::new(numbers)))
    }
}

told_by!(SequenceFunction, call);

impl Tables {
    /// The sequence of this name.
    pub(crate) fn sequence(&self, name: &str) -> Result<Sequence> {
        let table = self.find(name)?;
        let wrong = || engine::Error::WrongKind { name: name.to_owned(), expected: "sequence" };
        self.sequence_of(&table).ok_or_else(|| SqlError::from(wrong()))
    }
}
