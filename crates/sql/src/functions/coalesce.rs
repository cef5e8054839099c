//! `coalesce` of numerics of several widths.
//!
//! The library has no type for one of 128 and one of 256 bits together, and refuses them before the types are settled here. So
//! its function is asked for arguments of one width. It works out no argument behind the first that is there, as it becomes a
//! `CASE`.
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use engine::DataType::Uuid;

use super::typed::of_one_width;
use crate::values::alike::{are_uuids, castable, decided, deciding};
use crate::values::numerics::is_numeric;
use crate::values::types::{is_space, marked};

/// The function under its name in SQL.
pub(super) fn function() -> ScalarUDF {
    ScalarUDF::from(OfOneWidth { inner: coalesce() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfOneWidth {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for OfOneWidth {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        if let Some(space) =
            deciding(args.arg_fields.iter().map(|field| field.data_type())).filter(|of| is_space(of) || is_numeric(of))
        {
            let is_nullable = args.arg_fields.iter().all(|field| field.is_nullable());
            return Ok(Arc::new(Field::new(self.name(), space.clone(), is_nullable)));
        }
        let is_of_uuids = are_uuids(args.arg_fields, args.scalar_arguments);
        let field = self.inner.return_field_from_args(args)?;
        Ok(if is_of_uuids { Arc::new(marked(field.as_ref().clone(), Uuid)) } else { field })
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        // What does not fit JSON is refused by a rule of its own.
        if let Some(json) = types.iter().find(|found| matches!(found, DataType::LargeUtf8 | DataType::LargeBinary)) {
            return Ok(vec![json.clone(); types.len()]);
        }
        let to = decided(types.to_vec());
        if to.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(castable(types, to));
        }
        self.inner.coerce_types(&of_one_width(to))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}
