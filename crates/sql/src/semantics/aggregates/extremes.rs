//! `min` and `max` of a `char(n)`, which are a `char(n)` again, and `array_agg` of a `uuid` or a text of a length: the library's
//! functions, with the mark of the type on the result.
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, WindowFunctionDefinition,
};
use engine::{ArrayItem, DataType};

use crate::values::types::marked;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Marked {
    inner: Arc<AggregateUDF>,
    of: DataType,
}

/// The function over values of this type, if its result has a mark and has none yet.
pub(crate) fn of_marked(function: &Arc<AggregateUDF>, of: DataType) -> Option<Arc<AggregateUDF>> {
    let of = match function.name() {
        "min" | "max" if matches!(of, DataType::Char { .. }) => of,
        "array_agg" => DataType::Array(ArrayItem::of(of)?),
        _ => return None,
    };
    let is_new = !function.inner().is::<Marked>();
    is_new.then(|| Arc::new(AggregateUDF::from(Marked { inner: function.clone(), of })))
}

/// The function over a window, likewise.
pub(crate) fn over_window(function: &WindowFunctionDefinition, of: DataType) -> Option<WindowFunctionDefinition> {
    match function {
        WindowFunctionDefinition::AggregateUDF(function) => {
            of_marked(function, of).map(WindowFunctionDefinition::AggregateUDF)
        }
        WindowFunctionDefinition::WindowUDF(_) => None,
    }
}

impl AggregateUDFImpl for Marked {
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

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn with_beneficial_ordering(self: Arc<Self>, is_ordered: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let inner = self.inner.as_ref().clone().with_beneficial_ordering(is_ordered)?;
        Ok(inner.map(|inner| Arc::new(Marked { inner: Arc::new(inner), of: self.of }) as Arc<dyn AggregateUDFImpl>))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            ReversedUDAF::Reversed(inner) => {
                ReversedUDAF::Reversed(Arc::new(AggregateUDF::from(Marked { inner, of: self.of })))
            }
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            ReversedUDAF::NotSupported => ReversedUDAF::NotSupported,
        }
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }
}
