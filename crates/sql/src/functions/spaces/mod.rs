//! Functions and operators of ranges, points, boxes, circles, addresses and times of day with their zone.
//!
//! A function is a list of forms: the types that it takes, the type that it gives, and what it computes of the values of a row. The
//! first form serves whose types the arguments have or become: a literal without a type becomes any, a number and a date become a
//! wider one. A form that does not ask for NULLs gives NULL for them.
mod form;
mod networks;
mod ranges;
mod shapes;
mod zoned_times;

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow_schema::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions::string::{lower, upper};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use engine::{DataType, NetworkKind, Value};

use super::numbers::bits;
use super::overloads::beside;
use super::times::zones;
use crate::error::{SqlError, external};
use crate::values::assign::argument;
use crate::values::builder::ColumnBuilder;
use crate::values::numerics::{is_exact, is_numeric};
use crate::values::single::{scalar_of_value, value_at, value_of_scalar};
use crate::values::types::{is_enum, is_space, type_name};
use form::Form;

pub(crate) use form::PART;
pub(crate) use shapes::{areas_of, compare_areas};
pub(crate) use zoned_times::TO_TIME;

/// The functions that SQL may call by their names.
pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let of_bits = bits::functions().filter(|function| function.name() == "bitwise_not").map(Arc::new);
    let of_zones = zones::functions().map(Arc::new);
    let of_library: Vec<Arc<ScalarUDF>> = [lower(), upper()].into_iter().chain(of_bits).chain(of_zones).collect();
    let is_overloaded = |name: &str| of_library.iter().any(|library| library.name() == name);
    let plain: Vec<ScalarUDF> = NAMED.iter().filter(|function| !is_overloaded(function.name())).cloned().collect();
    let overloaded = of_library.into_iter().filter_map(|library| {
        let own = NAMED.iter().find(|function| function.name() == library.name())?;
        Some(beside(library, Arc::new(own.clone()), is_space))
    });
    plain.into_iter().chain(overloaded)
}

/// The function of an operator, whose name it has: SQL does not call it by that.
pub(crate) fn operator(op: &str) -> Option<ScalarUDF> {
    OPERATORS.iter().find(|function| function.name() == op).cloned()
}

/// Whether a function by this name takes ranges or shapes.
pub(crate) fn takes_spaces(name: &str) -> bool {
    NAMED.iter().chain(OPERATORS.iter()).any(|function| function.name() == name)
}

/// The function of this name.
pub(crate) fn named(name: &str) -> Option<ScalarUDF> {
    NAMED.iter().find(|function| function.name() == name).cloned()
}

/// The types that an operator takes to its left and to its right.
pub(crate) fn operands_of(function: &ScalarUDF) -> Vec<(DataType, DataType)> {
    let Some(own) = function.inner().downcast_ref::<OfSpaces>() else { return Vec::new() };
    let pair = |form: &Form| Some((*form.takes.first()?, *form.takes.get(1)?));
    own.forms.iter().filter_map(pair).collect()
}

static NAMED: LazyLock<Vec<ScalarUDF>> = LazyLock::new(|| {
    let named = ranges::named().into_iter().chain(shapes::named()).chain(networks::named()).chain(zoned_times::named());
    named.map(|(name, forms)| function(name.to_owned(), forms)).collect()
});

static OPERATORS: LazyLock<Vec<ScalarUDF>> = LazyLock::new(|| {
    let mut operators = ranges::operators();
    let others = shapes::operators().into_iter().chain(networks::operators()).chain(zoned_times::operators());
    for (op, mut forms) in others {
        match operators.iter_mut().find(|(known, _)| *known == op) {
            Some((_, known)) => known.append(&mut forms),
            None => operators.push((op, forms)),
        }
    }
    operators.into_iter().map(|(op, forms)| function(op.to_owned(), forms)).collect()
});

fn function(name: String, forms: Vec<Form>) -> ScalarUDF {
    ScalarUDF::from(OfSpaces { name, forms, signature: Signature::variadic_any(Volatility::Immutable) })
}

/// A function of ranges, shapes or addresses; its name tells it from others.
struct OfSpaces {
    name: String,
    forms: Vec<Form>,
    signature: Signature,
}

impl std::fmt::Debug for OfSpaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OfSpaces").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for OfSpaces {
    fn eq(&self, other: &OfSpaces) -> bool {
        self.name == other.name
    }
}

impl Eq for OfSpaces {}

impl Hash for OfSpaces {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl OfSpaces {
    /// The form for arguments of these types: one whose types they have, or else the first whose types they become.
    fn form(&self, types: &[ArrowType]) -> Result<&Form> {
        let fits = |form: &&Form, accepts: fn(&ArrowType, DataType) -> bool| {
            form.takes.len() == types.len() && types.iter().zip(&form.takes).all(|(found, to)| accepts(found, *to))
        };
        let exact = |found: &ArrowType, to: DataType| *found == to.to_arrow();
        let found = self
            .forms
            .iter()
            .find(|form| fits(form, exact))
            .or_else(|| self.forms.iter().find(|form| fits(form, becomes_within_its_type)))
            .or_else(|| self.forms.iter().find(|form| fits(form, becomes)));
        found.ok_or_else(|| {
            let named: Vec<String> = types.iter().map(type_name).collect();
            let error = SqlError::new("42883", format!("function {}({}) does not exist", self.name, named.join(", ")));
            let hint =
                "No function matches the given name and argument types. You might need to add explicit type casts.";
            external(error.hint(hint))
        })
    }
}

/// Whether an argument is taken for a type, other than a `cidr` for an `inet`: that is the last that is looked for.
fn becomes_within_its_type(found: &ArrowType, to: DataType) -> bool {
    becomes(found, to) && (!is_space(found) || *found == to.to_arrow())
}

/// Whether an argument of one type is taken for another one.
pub(crate) fn becomes(found: &ArrowType, to: DataType) -> bool {
    match (found, to) {
        (ArrowType::Null | ArrowType::Utf8, _) => true,
        (ArrowType::Utf8View, DataType::Text { .. }) => true,
        (found, DataType::Integer | DataType::BigInt) => found.is_integer(),
        (found, DataType::Decimal { .. }) => is_exact(found),
        (found, DataType::Double) => found.is_numeric() || is_numeric(found),
        (found, DataType::Network(NetworkKind::Inet)) => {
            matches!(DataType::from_arrow(found), Some(DataType::Network(_)))
        }
        (ArrowType::Date32 | ArrowType::Timestamp(_, None), DataType::Timestamp) => true,
        (ArrowType::Date32 | ArrowType::Timestamp(..), DataType::TimestampTz) => !is_enum(found),
        (found, to) => *found == to.to_arrow(),
    }
}

impl ScalarUDFImpl for OfSpaces {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.form(types)?.gives.to_arrow())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<ArrowType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let form = self.form(&types)?;
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        if let Some(values) = plain_values(&args.args, &form.takes) {
            let computed = (form.compute)(&values).map_err(external)?;
            if let Some(computed) = scalar_of_value(&computed, form.gives) {
                return Ok(ColumnarValue::Scalar(computed));
            }
        }
        let rows = if is_scalar { 1 } else { args.number_rows };
        let mut columns = Vec::with_capacity(types.len());
        for (arg, to) in args.args.into_iter().zip(&form.takes) {
            // What is one for all rows is read once.
            let is_one = matches!(arg, ColumnarValue::Scalar(_));
            let array = arg.into_array(if is_one { 1 } else { rows })?;
            columns.push((argument(&array, *to).map_err(external)?, is_one, *to));
        }
        let mut builder = ColumnBuilder::new(form.gives);
        let mut values = Vec::with_capacity(columns.len());
        for row in 0..rows {
            values.clear();
            for (array, is_one, of) in &columns {
                values.push(value_at(array, if *is_one { 0 } else { row }, *of).unwrap_or(Value::Null));
            }
            let has_null = values.iter().any(Value::is_null);
            let computed = match has_null && !form.sees_null {
                true => Value::Null,
                false => (form.compute)(&values).map_err(external)?,
            };
            builder.append_value(&computed).map_err(|misfit| external(misfit.error("", form.gives, "", "")))?;
        }
        let computed = builder.finish();
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }
}

/// Arguments that are one for all rows and none of them NULL, if they are of the types that they are taken for, or integers for
/// wider numbers.
fn plain_values(args: &[ColumnarValue], takes: &[DataType]) -> Option<Vec<Value>> {
    let value = |(arg, to): (&ColumnarValue, &DataType)| {
        let ColumnarValue::Scalar(scalar) = arg else { return None };
        let value = value_of_scalar(scalar, DataType::from_arrow(&scalar.data_type())?)?;
        match (&value, to) {
            (Value::SmallInt(number), DataType::BigInt) => Some(Value::BigInt((*number).into())),
            (Value::Integer(number), DataType::BigInt) => Some(Value::BigInt((*number).into())),
            (Value::SmallInt(number), DataType::Double) => Some(Value::Double((*number).into())),
            (Value::Integer(number), DataType::Double) => Some(Value::Double((*number).into())),
            _ => value.fits(*to).then_some(value),
        }
    };
    args.iter().zip(takes).map(value).collect()
}
