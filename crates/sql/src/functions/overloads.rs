//! Functions of the library that PostgreSQL has for more types: of those types they are ours, of all others the library's.
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::row_wise::{Variant, function};
use crate::values::types::taken;

/// Whether a type is one that the library's function does not take.
type IsOurs = fn(&DataType) -> bool;

/// The library's function, and ours for calls with an argument of such a type.
pub(super) fn overloaded(
    library: Arc<ScalarUDF>,
    name: &'static str,
    is_ours: IsOurs,
    variants: &'static [Variant],
) -> ScalarUDF {
    beside(library, Arc::new(function(name, variants)), is_ours)
}

/// The library's function, and another one for calls with an argument of such a type.
pub(super) fn beside(library: Arc<ScalarUDF>, own: Arc<ScalarUDF>, is_ours: IsOurs) -> ScalarUDF {
    let signature = Signature::user_defined(library.signature().volatility);
    ScalarUDF::from(OverloadedFunction { library, own, is_ours: Ours(is_ours), signature })
}

/// The library's function of one that has another one beside it; any other function itself.
pub(crate) fn of_library(function: &Arc<ScalarUDF>) -> &Arc<ScalarUDF> {
    function.inner().downcast_ref::<OverloadedFunction>().map_or(function, |overloaded| &overloaded.library)
}

/// The test belongs to the function's name.
#[derive(Clone, Copy, Debug)]
struct Ours(IsOurs);

impl PartialEq for Ours {
    fn eq(&self, _: &Ours) -> bool {
        true
    }
}

impl Eq for Ours {}

impl std::hash::Hash for Ours {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OverloadedFunction {
    library: Arc<ScalarUDF>,
    own: Arc<ScalarUDF>,
    is_ours: Ours,
    signature: Signature,
}

impl OverloadedFunction {
    fn of(&self, mut types: impl Iterator<Item = DataType>) -> &ScalarUDF {
        if types.any(|found| (self.is_ours.0)(&found)) { &self.own } else { &self.library }
    }
}

impl ScalarUDFImpl for OverloadedFunction {
    fn name(&self) -> &str {
        self.library.name()
    }

    fn aliases(&self) -> &[String] {
        self.library.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let function = self.of(types.iter().cloned());
        if std::ptr::eq(function, &*self.own) {
            function.return_type(types)?;
            return Ok(types.to_vec());
        }
        taken(function, types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.of(types.iter().cloned()).return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.of(args.arg_fields.iter().map(|field| field.data_type().clone())).return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.of(args.args.iter().map(ColumnarValue::data_type)).invoke_with_args(args)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::functions::unicode::reverse;

    use super::super::row_wise::{Cell, Kind};
    use super::*;

    #[test]
    fn a_call_is_ours_by_the_types_of_its_arguments() {
        const OWN: &[Variant] = &[Variant::strict(&[Kind::Bytes], Kind::BigInt, |_| Ok(Some(Cell::Integer(1))))];
        let function = overloaded(reverse(), "reverse", DataType::is_binary, OWN);
        assert_eq!(function.return_type(&[DataType::BinaryView]).unwrap(), DataType::Int64);
        assert!(function.return_type(&[DataType::Utf8View]).unwrap().is_string());
        assert!(function.coerce_types(&[DataType::BinaryView, DataType::Int64]).is_err());
    }
}
