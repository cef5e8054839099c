//! Aggregates that PostgreSQL has of doubles alone, such as `corr`: numerics without limits become doubles, as all other numbers do.
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use crate::values::numerics::is_numeric;
use crate::values::types::taken;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct OfDoubles {
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

/// The function in the place of the library's, if it is one of these.
pub(crate) fn function(inner: &Arc<AggregateUDF>) -> Option<AggregateUDF> {
    let is_known = matches!(inner.name(), "corr" | "covar_pop" | "covar_samp") || inner.name().starts_with("regr_");
    let signature = Signature::user_defined(Volatility::Immutable);
    is_known.then(|| AggregateUDF::from(OfDoubles { inner: inner.clone(), signature }))
}

impl AggregateUDFImpl for OfDoubles {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let double = |found: &DataType| if is_numeric(found) { DataType::Float64 } else { found.clone() };
        let taken = taken(self.inner.as_ref(), &types.iter().map(double).collect::<Vec<_>>())?;
        // The library knows no way from a numeric to a double: a rule of its own goes it once the call is planned.
        let stays = |(found, taken): (&DataType, DataType)| if is_numeric(found) { found.clone() } else { taken };
        Ok(types.iter().zip(taken).map(stays).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
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

    fn default_value(&self, data_type: &DataType) -> Result<datafusion::common::ScalarValue> {
        self.inner.default_value(data_type)
    }
}
