//! `min` and `max` of a `char(n)`, which are a `char(n)` again: the library's functions, with the mark of the type on the result.
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, WindowFunctionDefinition,
};
use engine::DataType;

use crate::values::types::marked;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    inner: Arc<AggregateUDF>,
    of: DataType,
}

/// The function over values of this type, if it is `min` or `max`.
pub(crate) fn of_marked(function: &Arc<AggregateUDF>, of: DataType) -> Option<Arc<AggregateUDF>> {
    let is_extreme = matches!(function.name(), "min" | "max") && !function.inner().is::<Extreme>();
    is_extreme.then(|| Arc::new(AggregateUDF::from(Extreme { inner: function.clone(), of })))
}

/// The function over a window, if it is `min` or `max`.
pub(crate) fn over_window(function: &WindowFunctionDefinition, of: DataType) -> Option<WindowFunctionDefinition> {
    match function {
        WindowFunctionDefinition::AggregateUDF(function) => {
            of_marked(function, of).map(WindowFunctionDefinition::AggregateUDF)
        }
        WindowFunctionDefinition::WindowUDF(_) => None,
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        self.inner.return_type(types)
    }

    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        let field = self.inner.return_field(args)?;
        let plain = Field::new(field.name(), field.data_type().clone(), field.is_nullable());
        Ok(Arc::new(marked(plain, self.of)))
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        self.inner.coerce_types(types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }
}
