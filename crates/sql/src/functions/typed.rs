//! Functions of the library under PostgreSQL's types: what counts is an `integer`, and the sign of a number that is no
//! numeric is a double. The planner finds the types of expressions long before they are rewritten, so that it must know
//! these from the beginning.
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_cast::cast;
use arrow_schema::{DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::core::{greatest, least, nullif};
use datafusion::functions::math::{gcd, lcm, signum};
use datafusion::functions::string::{bit_length, concat, concat_ws, octet_length};
use datafusion::functions::unicode::{character_length, strpos, substr};
use datafusion::functions_nested::concat::{array_append_udf, array_prepend_udf};
use datafusion::functions_nested::make_array::make_array_udf;
use datafusion::functions_nested::position::{array_position_udf, array_positions_udf};
use datafusion::functions_nested::replace::array_replace_udf;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use engine::ArrayItem;
use engine::DataType::{Array, Uuid};

use crate::error::SqlError;
use crate::functions::texts::octets::with_bytes;
use crate::values::alike::{are_uuids, castable, decided};
use crate::values::numerics::{NUMERIC, is_exact, is_list};
use crate::values::types::{is_space, marked, taken};

/// The type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Gives {
    Integer,
    Integers,
    /// What the library says of an array and items that have become one type.
    Array,
    /// `integer` of what fits it, else what the library says.
    Widest,
    /// A numeric of numerics, a double of all others.
    Sign,
    /// What the library says, where a `smallint` is as good as an `integer`.
    Same,
    /// The type of the first argument, where PostgreSQL compares it with the second as it is.
    First,
    /// What the library says, of numerics of one width.
    Common,
}

/// The functions under their names in SQL.
pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named = [
        (Gives::Integer, array_position_udf()),
        (Gives::Integers, array_positions_udf()),
        (Gives::Array, array_append_udf()),
        (Gives::Array, array_prepend_udf()),
        (Gives::Array, array_replace_udf()),
        (Gives::Widest, gcd()),
        (Gives::Widest, lcm()),
        (Gives::Sign, signum()),
        (Gives::Integer, character_length()),
        (Gives::Integer, strpos()),
        (Gives::Integer, octet_length()),
        (Gives::Integer, bit_length()),
        (Gives::Same, substr()),
        (Gives::Same, concat()),
        (Gives::Same, concat_ws()),
        (Gives::First, nullif()),
        (Gives::Common, greatest()),
        (Gives::Common, least()),
        (Gives::Common, make_array_udf()),
    ];
    named.into_iter().map(|(gives, inner)| function(gives, inner))
}

fn function(gives: Gives, inner: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(TypedFunction { gives, inner, signature: Signature::user_defined(Volatility::Immutable) })
}

/// `position(part IN text)`, the text being the first argument.
pub(crate) fn position() -> ScalarUDF {
    with_bytes(function(Gives::Integer, strpos()))
}

/// `substring(text FROM start FOR length)`.
pub(crate) fn substring() -> ScalarUDF {
    with_bytes(function(Gives::Same, substr()))
}

/// A function of the library, and what it gives here.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TypedFunction {
    gives: Gives,
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl TypedFunction {
    /// The types that the library's function takes.
    fn taken(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let types = &match self.gives {
            Gives::Widest | Gives::Sign => typed(types),
            Gives::Same => {
                let as_taken = |of: &DataType| match of {
                    DataType::Int16 => DataType::Int64,
                    // They are written out before they come here.
                    of if is_space(of) => DataType::Utf8View,
                    DataType::Struct(_) if self.inner.name().starts_with("concat") => DataType::Utf8View,
                    of => of.clone(),
                };
                types.iter().map(as_taken).collect()
            }
            Gives::First | Gives::Common => of_one_width(decided(types.to_vec())),
            _ => of_one_type(types, if self.gives == Gives::Integer { 2 } else { types.len() }),
        };
        taken(self.inner.as_ref(), types)
    }

    /// What the library's function gives for values of these types.
    fn given(&self, types: &[DataType]) -> Result<DataType> {
        let fields: Vec<_> = types.iter().map(|found| Arc::new(Field::new("", found.clone(), true))).collect();
        let literals = vec![None; fields.len()];
        let args = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &literals };
        Ok(self.inner.return_field_from_args(args)?.data_type().clone())
    }
}

impl ScalarUDFImpl for TypedFunction {
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
        let is_float = |found: &DataType| found.is_numeric() || found.is_null() || *found == DataType::Utf8;
        let taken = match self.gives {
            Gives::Sign if types.iter().all(is_float) => vec![DataType::Float64; types.len()],
            _ => self.taken(types)?,
        };
        let is_kept = |found: &DataType| match self.gives {
            Gives::Widest => matches!(found, DataType::Int16 | DataType::Int32),
            Gives::Sign => found.is_decimal(),
            Gives::First => matches!(types, [left, right] if are_comparable(left, right)),
            Gives::Integer | Gives::Integers | Gives::Array | Gives::Same | Gives::Common => false,
        };
        let known = typed(types);
        Ok(if known.iter().all(is_kept) { known } else { castable(types, taken) })
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_small = |found: &DataType| matches!(found, DataType::Int16 | DataType::Int32);
        Ok(match self.gives {
            Gives::Integer => DataType::Int32,
            Gives::Widest if types.iter().all(is_small) => DataType::Int32,
            Gives::First if matches!(types, [left, right] if are_comparable(left, right)) => types[0].clone(),
            Gives::Widest | Gives::Array | Gives::Same | Gives::First | Gives::Common => {
                self.given(&self.taken(types)?)?
            }
            Gives::Integers => DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true))),
            Gives::Sign if types.iter().all(DataType::is_decimal) => DataType::Decimal128(38, 0),
            Gives::Sign => DataType::Float64,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        let is_of_uuids =
            matches!(self.gives, Gives::First | Gives::Common) && are_uuids(args.arg_fields, args.scalar_arguments);
        let of = if field.data_type().is_list() { Array(ArrayItem::Uuid) } else { Uuid };
        Ok(Arc::new(if is_of_uuids { marked(field, of) } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let taken = match self.gives {
            Gives::Sign => vec![DataType::Float64; types.len()],
            _ => self.taken(&types)?,
        };
        let inner = args.args.iter().zip(&taken).map(|(arg, taken)| arg.cast_to(taken, None));
        let inner = inner.collect::<Result<Vec<_>>>()?;
        let fields = taken.iter().map(|taken| Arc::new(Field::new("", taken.clone(), true))).collect();
        let given = Arc::new(Field::new(self.name(), self.given(&taken)?, true));
        let to = args.return_field.data_type().clone();
        let args = ScalarFunctionArgs { args: inner, arg_fields: fields, return_field: given, ..args };
        match self.inner.invoke_with_args(args)? {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(fitting(&array, &to)?)),
            ColumnarValue::Scalar(value) => {
                let array = fitting(&value.to_array()?, &to)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
        }
    }
}

/// Whether PostgreSQL compares values of two types that differ without a cast.
fn are_comparable(left: &DataType, right: &DataType) -> bool {
    let is_time = |found: &DataType| matches!(found, DataType::Date32 | DataType::Timestamp(..));
    left != right
        && ((left.is_signed_integer() && right.is_signed_integer())
            || (left.is_floating() && right.is_floating())
            || (is_time(left) && is_time(right)))
}

/// The types of numbers, where what has none is of the type that another has.
fn typed(types: &[DataType]) -> Vec<DataType> {
    let is_untyped = |found: &DataType| found.is_null() || *found == DataType::Utf8;
    let Some(known) = types.iter().find(|found| !is_untyped(found)) else { return types.to_vec() };
    types.iter().map(|found| if is_untyped(found) { known.clone() } else { found.clone() }).collect()
}

/// Numerics, where one of them has 256 bits, with as many and the decimals of all: the library knows nothing that holds both.
pub(super) fn of_one_width(types: Vec<DataType>) -> Vec<DataType> {
    let decimals = |found: &DataType| match found {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => Some(*scale),
        other => (other.is_integer() || other.is_null()).then_some(0),
    };
    let is_wide = |found: &DataType| matches!(found, DataType::Decimal256(..));
    let all: Option<Vec<i8>> = types.iter().map(decimals).collect();
    match all.and_then(|all| all.into_iter().max()) {
        Some(scale) if types.iter().any(is_wide) => {
            vec![DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale); types.len()]
        }
        _ => types,
    }
}

/// The types of an array and its items, of which so many arguments are, where all are numbers and become one type.
fn of_one_type(types: &[DataType], items: usize) -> Vec<DataType> {
    if types.iter().any(is_list) {
        // What stands beside them becomes such a numeric by a rule of its own.
        let item = |found: &DataType| if is_exact(found) { NUMERIC } else { found.clone() };
        return types.iter().take(items).map(item).chain(types.iter().skip(items).cloned()).collect();
    }
    let item = |found: &DataType| match found {
        DataType::List(item) => item.data_type().clone(),
        other => other.clone(),
    };
    let common = types.iter().take(items).map(item).try_fold(None, |common: Option<DataType>, next| match common {
        _ if !next.is_numeric() => None,
        None => Some(Some(next)),
        Some(known) if known == next => Some(Some(known)),
        Some(known) if known.is_floating() || next.is_floating() => Some(Some(DataType::Float64)),
        Some(known) => comparison_coercion(&known, &next).map(Some),
    });
    let Some(Some(common)) = common else { return types.to_vec() };
    let become_one = |(at, found): (usize, &DataType)| match found {
        DataType::List(_) => DataType::List(Arc::new(Field::new_list_field(common.clone(), true))),
        _ if at < items => common.clone(),
        other => other.clone(),
    };
    types.iter().enumerate().map(become_one).collect()
}

/// Results as values of a type; what does not fit it is an error.
fn fitting(results: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let cast = cast(results, to)?;
    if cast.logical_null_count() > results.logical_null_count() {
        let error = SqlError::new("22003", "integer out of range");
        return Err(DataFusionError::External(Box::new(error)));
    }
    Ok(cast)
}
