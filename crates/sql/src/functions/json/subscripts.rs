//! A `jsonb` of which a part is set by subscripts: `SET j['a'][2] = value`, which
//! [`subscript_tokens`](crate::syntax::subscript_tokens) makes the call of a function. The same function sets the items of arrays.
//!
//! ```text
//! {"a": 1}    j['b'] = 2         {"a": 1, "b": 2}
//! NULL        j['a'][1] = 2      {"a": [null, 2]}     what is not there is made, what lies between is null
//! ```
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, LargeBinaryArray};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use engine::DataType;
use engine::json::{Json, Jsonb};

use super::cells::wrong;
use crate::error::{SqlError, external};
use crate::syntax::subscript_tokens::ITEM;
use crate::values::set_parts::{check_part, part};
use crate::values::types::{type_name_of_field, type_of_field};

/// As many `null`s are put before an item at the most.
const ITEMS_MAX: i64 = 1 << 24;

/// A function of arrays with an item set, for `jsonb`s as well.
pub(crate) fn besides(of_arrays: ScalarUDF) -> ScalarUDF {
    match of_arrays.name() {
        ITEM => ScalarUDF::from(Subscripts { of_arrays, signature: Signature::variadic_any(Volatility::Immutable) }),
        _ => of_arrays,
    }
}

#[derive(Debug)]
struct Subscripts {
    of_arrays: ScalarUDF,
    signature: Signature,
}

impl PartialEq for Subscripts {
    fn eq(&self, other: &Subscripts) -> bool {
        self.of_arrays == other.of_arrays
    }
}

impl Eq for Subscripts {}

impl Hash for Subscripts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of_arrays.hash(state);
    }
}

/// Whether a column of this field has `jsonb`.
pub(crate) fn is_jsonb(field: &Field) -> bool {
    type_of_field(field) == Some(DataType::Jsonb)
}

/// An error if a `jsonb` has no subscripts of this type.
///
/// # Errors
/// 42804, with the types that it has.
pub(crate) fn check_subscript(field: &Field) -> Result<()> {
    let found = field.data_type();
    let is_text = matches!(found, ArrowType::Utf8 | ArrowType::Utf8View | ArrowType::LargeUtf8);
    if found.is_integer() || found.is_null() || is_text {
        return Ok(());
    }
    let error = SqlError::mismatch(format!("subscript type {} is not supported", type_name_of_field(field)));
    Err(external(error.hint("jsonb subscript must be coercible to either integer or text.")))
}

impl ScalarUDFImpl for Subscripts {
    fn name(&self) -> &str {
        self.of_arrays.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        self.of_arrays.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [whole, places @ .., value] = args.arg_fields else { return self.of_arrays.return_field_from_args(args) };
        if !is_jsonb(whole) {
            return self.of_arrays.return_field_from_args(args);
        }
        places.iter().try_for_each(|place| check_subscript(place))?;
        check_part(whole, DataType::Jsonb, value)?;
        Ok(Arc::new(whole.as_ref().clone().with_name(self.name()).with_nullable(false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if !is_jsonb(&args.arg_fields[0]) {
            return self.of_arrays.inner().invoke_with_args(args);
        }
        let (rows, fields, given) = (args.number_rows, args.arg_fields, args.return_field.data_type().clone());
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let ([whole, places @ .., value], [of_whole, .., of_value]) = (&arrays[..], &fields[..]) else {
            return Err(DataFusionError::Internal(format!("{} of nothing", self.name())));
        };
        let value = part(value, of_value, of_whole, DataType::Jsonb)?;
        let (whole, value) = (cast(whole, &ArrowType::LargeBinary)?, cast(&value, &ArrowType::LargeBinary)?);
        let places = places.iter().map(Places::of).collect::<Result<Vec<Places>>>()?;
        let (whole, value) = (whole.as_binary::<i64>(), value.as_binary::<i64>());
        let mut made = Vec::with_capacity(rows);
        for row in 0..rows {
            let path = places.iter().map(|places| places.step(row)).collect::<std::result::Result<Vec<_>, _>>();
            let path = path.map_err(external)?;
            let tree = |array: &LargeBinaryArray| array.is_valid(row).then(|| Jsonb::tree_of(array.value(row)));
            let new = with_part(tree(whole), &path, tree(value).unwrap_or(Json::Null)).map_err(external)?;
            made.push(Jsonb::of(&new).as_bytes().to_vec());
        }
        let made: ArrayRef = Arc::new(LargeBinaryArray::from_iter_values(made));
        Ok(ColumnarValue::Array(cast(&made, &given)?))
    }
}

/// The subscripts of all rows at one step of the path.
enum Places {
    Keys(ArrayRef),
    Items(ArrayRef),
}

/// One step of a path.
enum Step {
    Key(String),
    Item(i64),
}

impl Places {
    fn of(array: &ArrayRef) -> Result<Places> {
        Ok(match array.data_type().is_integer() {
            true => Places::Items(cast(array, &ArrowType::Int64)?),
            false => Places::Keys(cast(array, &ArrowType::LargeUtf8)?),
        })
    }

    fn step(&self, row: usize) -> std::result::Result<Step, SqlError> {
        match self {
            Places::Items(items) if items.is_valid(row) => Ok(Step::Item(items.as_primitive::<Int64Type>().value(row))),
            Places::Keys(keys) if keys.is_valid(row) => Ok(Step::Key(keys.as_string::<i64>().value(row).to_owned())),
            _ => Err(SqlError::new("22004", "jsonb subscript in assignment must not be null")),
        }
    }
}

/// The value with another one at the end of a path.
fn with_part(whole: Option<Json>, path: &[Step], new: Json) -> std::result::Result<Json, SqlError> {
    let mut whole = whole.unwrap_or_else(|| empty(path));
    put(&mut whole, path, 1, new)?;
    Ok(whole)
}

/// What a path leads into where nothing is.
fn empty(path: &[Step]) -> Json {
    match path.first() {
        Some(Step::Item(_)) => Json::Array(Vec::new()),
        _ => Json::Object(Vec::new()),
    }
}

/// Puts a value at the end of a path, whose first step has this number.
fn put(json: &mut Json, path: &[Step], number: usize, new: Json) -> std::result::Result<(), SqlError> {
    let Some((step, rest)) = path.split_first() else {
        *json = new;
        return Ok(());
    };
    match json {
        Json::Object(members) => {
            let key = match step {
                Step::Key(key) => key.clone(),
                Step::Item(item) => item.to_string(),
            };
            if let Some((_, member)) = members.iter_mut().find(|(name, _)| *name == key) {
                return put(member, rest, number + 1, new);
            }
            let mut member = empty(rest);
            put(&mut member, rest, number + 1, new)?;
            let mut all = std::mem::take(members);
            all.push((key, member));
            *json = Json::object(all);
            Ok(())
        }
        Json::Array(items) => {
            let item = place(items.len(), step, number)?;
            while items.len() < item {
                items.push(Json::Null);
            }
            if item == items.len() {
                items.push(empty(rest));
            }
            put(&mut items[item], rest, number + 1, new)
        }
        _ => Err(wrong("cannot replace existing key")
            .detail("The path assumes key is a composite object, but it is a scalar value.")),
    }
}

/// The index of an item, which counts from the end if it is negative.
fn place(count: usize, step: &Step, number: usize) -> std::result::Result<usize, SqlError> {
    let item = match step {
        Step::Item(item) => *item,
        Step::Key(key) => key.trim().parse().map_err(|_| {
            SqlError::new("22P02", format!("path element at position {number} is not an integer: \"{key}\""))
        })?,
    };
    let found = if item < 0 { item.saturating_add(i64::try_from(count).unwrap_or(i64::MAX)) } else { item };
    if found >= ITEMS_MAX {
        return Err(SqlError::new("54000", format!("array size exceeds the maximum allowed ({ITEMS_MAX})")));
    }
    let out_of_range = || wrong(format!("path element at position {number} is out of range: {item}"));
    usize::try_from(found).map_err(|_| out_of_range())
}
