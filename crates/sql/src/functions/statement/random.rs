//! `random()` and `setseed`.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Float64Array, StringViewArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::told_by;
use crate::error::SqlError;
use crate::state::random::Random;
use crate::state::view::View;
use crate::values::types::{VOID, of_catalog};

/// Makes the functions known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> DataFusionResult<()> {
    let volatile = Volatility::Volatile;
    for (name, signature) in
        [("random", Signature::nullary(volatile)), (SET, Signature::exact(vec![DataType::Float64], volatile))]
    {
        let function = RandomFunction { name, signature, random: view.random.clone() };
        state.register_udf(Arc::new(ScalarUDF::from(function)))?;
    }
    Ok(())
}

const SET: &str = "setseed";

struct RandomFunction {
    name: &'static str,
    signature: Signature,
    random: Random,
}

impl ScalarUDFImpl for RandomFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(if self.name == SET { DataType::Utf8View } else { DataType::Float64 })
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> DataFusionResult<FieldRef> {
        let field = Field::new(self.name, self.return_type(&[])?, true);
        Ok(Arc::new(if self.name == SET { of_catalog(field, VOID) } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let rows = args.number_rows;
        let Some(seeds) = args.args.into_iter().next() else {
            return Ok(ColumnarValue::Array(Arc::new(Float64Array::from(self.random.next(rows)))));
        };
        let seeds = seeds.into_array(rows)?;
        let set = |seed: Option<f64>| {
            let Some(seed) = seed else { return Ok(None) };
            if !(-1.0..=1.0).contains(&seed) {
                let message = format!("setseed parameter {seed} is out of allowed range [-1,1]");
                return Err(DataFusionError::External(Box::new(SqlError::new("22023", message))));
            }
            self.random.seed(seed);
            // PostgreSQL's type for nothing is sent as an empty text.
            Ok(Some(""))
        };
        let done = seeds.as_primitive::<Float64Type>().iter().map(set);
        Ok(ColumnarValue::Array(Arc::new(done.collect::<DataFusionResult<StringViewArray>>()?)))
    }
}

told_by!(RandomFunction, name);
