//! The functions by which a statement says what is an outer query's aggregate. They are gone before anything is worked out.
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// What stands beside a subquery: the expression with the subquery, and for each aggregate its number and the aggregate.
pub(super) const BESIDE: &str = "\0beside";

/// How the function is called that stands for an aggregate, with the aggregate's number and arguments.
pub(super) fn stand_in(aggregate: &str) -> String {
    format!("\0outer {aggregate}")
}

/// Both functions, the second for each of the aggregates.
pub(crate) fn functions(aggregates: &[Arc<AggregateUDF>]) -> Vec<Arc<ScalarUDF>> {
    let mut all = vec![Arc::new(ScalarUDF::from(Beside(Signature::variadic_any(Volatility::Volatile))))];
    for aggregate in aggregates {
        for name in std::iter::once(aggregate.name()).chain(aggregate.aliases().iter().map(String::as_str)) {
            let function = StandIn {
                name: stand_in(name),
                aggregate: aggregate.clone(),
                signature: Signature::variadic_any(Volatility::Volatile),
            };
            all.push(Arc::new(ScalarUDF::from(function)));
        }
    }
    all
}

fn remains<T>(name: &str) -> Result<T> {
    Err(DataFusionError::Internal(format!("{} is left in a plan", name.trim_start_matches('\0'))))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Beside(Signature);

impl ScalarUDFImpl for Beside {
    fn name(&self) -> &str {
        BESIDE
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        remains(self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        args.arg_fields.first().cloned().map_or_else(|| remains(self.name()), Ok)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        remains(self.name())
    }
}

/// Has the type of its aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct StandIn {
    name: String,
    aggregate: Arc<AggregateUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for StandIn {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        remains(self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let given = args.arg_fields.get(1..).unwrap_or_default();
        let taken = fields_with_udf(given, self.aggregate.as_ref())?;
        let field = self.aggregate.return_field(&taken)?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        remains(self.name())
    }
}
