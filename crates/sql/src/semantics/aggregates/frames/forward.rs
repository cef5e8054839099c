//! Aggregates that give their rows in order, over windows.
//!
//! Where rows are sorted for one window, the library works another one out from its end that has the opposite order. What is
//! collected so is the wrong way round, and can't be taken back row by row. These say that they don't go backwards, so that
//! their rows are sorted anew.
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, Signature};

#[derive(Debug, PartialEq, Eq, Hash)]
struct Forward {
    inner: Arc<AggregateUDF>,
}

/// The function that goes forward only, if it is one of these.
pub(super) fn forward(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
    let is_known = matches!(function.name(), "array_agg" | "string_agg") && !function.inner().is::<Forward>();
    is_known.then(|| Arc::new(AggregateUDF::from(Forward { inner: function.clone() })))
}

impl AggregateUDFImpl for Forward {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
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

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::HardRequirement
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }
}
