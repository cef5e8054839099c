//! Arrays compared as PostgreSQL does: `@>`, `<@` and `&&`, where NULL is equal to nothing; `x op ANY (array)` and `x op ALL
//! (array)` in three values; and the array of a query without rows, which is empty.
use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, Scalar, new_null_array};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::array::make_comparator;
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::compute::filter;
use datafusion::arrow::compute::kernels::cmp;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::error::SqlError;
use crate::values::assign::argument;
use crate::values::numerics::{is_exact, is_list, is_numeric, plain, with_items};
use crate::values::types::is_space;

/// The name of the function that makes an empty array of NULL; no statement can spell it, and it is shown as `array`.
pub(crate) const FILLED: &str = "\0filled\0array";

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Compare {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    /// Whether the first array has all items of the second.
    Contains,
    /// Whether two arrays have an item in common.
    Overlaps,
    /// Whether a value compares so with any item of an array.
    Any(Compare),
    /// With all items.
    All(Compare),
    /// An empty array for NULL.
    Fill,
    /// An array without the items that are a value, or NULL.
    Remove,
    /// Whether two arrays compare so, item by item, where NULL is equal to NULL and greater than any value.
    Order(Compare),
}

const NAMED: [(Does, &str); 14] = [
    (Does::Any(Compare::Eq), "\0any ="),
    (Does::Any(Compare::NotEq), "\0any <>"),
    (Does::Any(Compare::Lt), "\0any <"),
    (Does::Any(Compare::LtEq), "\0any <="),
    (Does::Any(Compare::Gt), "\0any >"),
    (Does::Any(Compare::GtEq), "\0any >="),
    (Does::All(Compare::Eq), "\0all ="),
    (Does::All(Compare::NotEq), "\0all <>"),
    (Does::All(Compare::Lt), "\0all <"),
    (Does::All(Compare::LtEq), "\0all <="),
    (Does::All(Compare::Gt), "\0all >"),
    (Does::All(Compare::GtEq), "\0all >="),
    (Does::Fill, FILLED),
    (Does::Remove, "array_remove"),
];

/// The functions that a statement's tree names.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    NAMED.into_iter().map(|(does, name)| function(does, name))
}

/// The name of the function for `x op ANY (array)` or `x op ALL (array)`, if there is one.
pub(crate) fn comparison(op: &BinaryOperator, is_all: bool) -> Option<String> {
    let name = format!("\0{} {op}", if is_all { "all" } else { "any" });
    NAMED.iter().any(|(_, known)| *known == name).then_some(name)
}

/// `left @> right`.
pub(crate) fn contains() -> ScalarUDF {
    function(Does::Contains, "array_contains_all")
}

/// `left && right`.
pub(crate) fn overlaps() -> ScalarUDF {
    function(Does::Overlaps, "array_overlaps")
}

/// `left < right` of arrays, and the like; equal arrays are left to the library.
pub(crate) fn order(op: &BinaryOperator) -> Option<ScalarUDF> {
    let (op, name) = match op {
        BinaryOperator::Lt => (Compare::Lt, "array_lt"),
        BinaryOperator::LtEq => (Compare::LtEq, "array_lt_eq"),
        BinaryOperator::Gt => (Compare::Gt, "array_gt"),
        BinaryOperator::GtEq => (Compare::GtEq, "array_gt_eq"),
        _ => return None,
    };
    Some(function(Does::Order(op), name))
}

fn function(does: Does, name: &'static str) -> ScalarUDF {
    ScalarUDF::from(Function { does, name, signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    does: Does,
    name: &'static str,
    signature: Signature,
}

fn item_of(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => Some(item.data_type()),
        _ => None,
    }
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

/// The type in which two values are compared. An untyped text is of the other's type.
fn common(left: &DataType, right: &DataType) -> Option<DataType> {
    let is_untyped = |a: &DataType, b: &DataType| *a == DataType::Utf8 && !b.is_string() && !b.is_null();
    match () {
        () if left == right => Some(left.clone()),
        () if left.is_null() || is_untyped(left, right) => Some(right.clone()),
        () if right.is_null() || is_untyped(right, left) => Some(left.clone()),
        () => comparison_coercion(left, right),
    }
}

/// Whether a type is that of numerics without limits, or of arrays of such.
fn of_numerics(found: &DataType) -> bool {
    is_numeric(item_of(found).unwrap_or(found))
}

/// Whether a type is that of exact numbers, of arrays of such, or of literals.
fn is_number(found: &DataType) -> bool {
    let item = item_of(found).unwrap_or(found);
    is_exact(item) || item.is_null() || *item == DataType::Utf8
}

/// Values and arrays as numerics that show no decimals but those needed, if one of them is of numerics without limits: these are
/// compared as they are kept.
fn plain_numerics(arrays: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
    if !arrays.iter().any(|array| of_numerics(array.data_type())) {
        return Ok(arrays);
    }
    let external = |error: SqlError| DataFusionError::External(Box::new(error));
    let read =
        |values: &ArrayRef| argument(values, engine::DataType::Numeric).map(|read| plain(&read)).map_err(external);
    let plain = |array: &ArrayRef| match array.as_list_opt::<i32>() {
        Some(lists) => Ok(with_items(lists, read(lists.values())?)),
        None => read(array),
    };
    arrays.iter().map(plain).collect()
}

impl Function {
    fn coerced(&self, types: &[DataType]) -> Option<Vec<DataType>> {
        match (self.does, types) {
            (Does::Remove, [list, _]) if !is_list(list) => {}
            (Does::Fill, _) => {}
            // They become plain numerics before they are compared.
            _ if types.iter().any(of_numerics) && types.iter().all(is_number) => return Some(types.to_vec()),
            _ => {}
        }
        match (self.does, types) {
            (Does::Fill, [DataType::Null]) => None,
            (Does::Fill, [list]) => Some(vec![list_of(item_of(list)?.clone())]),
            (Does::Contains | Does::Overlaps | Does::Order(_), [left, right]) => {
                let item = common(item_of(left)?, item_of(right)?)?;
                Some(vec![list_of(item.clone()), list_of(item)])
            }
            // A literal without a type is read as an item.
            (Does::Remove, [list, DataType::Utf8]) | (Does::Any(_) | Does::All(_), [DataType::Utf8, list])
                if item_of(list).is_some_and(is_space) =>
            {
                Some(types.to_vec())
            }
            (Does::Remove, [list, value]) => {
                let item = common(item_of(list)?, value)?;
                Some(vec![list_of(item.clone()), item])
            }
            (Does::Any(_) | Does::All(_), [left, _]) if item_of(left).is_some() => None,
            (Does::Any(_) | Does::All(_), [left, DataType::Null]) => Some(vec![left.clone(), list_of(left.clone())]),
            (Does::Any(_) | Does::All(_), [left, right]) => {
                let item = common(left, item_of(right)?)?;
                Some(vec![item.clone(), list_of(item)])
            }
            _ => None,
        }
    }

    fn no_such(&self, types: &[DataType]) -> DataFusionError {
        let named: Vec<String> = types.iter().map(crate::values::types::type_name).collect();
        let sign = match self.does {
            Does::Contains => "@>",
            Does::Overlaps => "&&",
            Does::Fill => "array",
            Does::Remove => {
                let message = format!("function {}({}) does not exist", self.name, named.join(", "));
                return DataFusionError::External(Box::new(SqlError::new("42883", message)));
            }
            Does::Order(Compare::Lt) => "<",
            Does::Order(Compare::LtEq) => "<=",
            Does::Order(Compare::Gt) => ">",
            Does::Order(_) => ">=",
            Does::Any(_) | Does::All(_) if types.get(1).is_some_and(|list| item_of(list).is_none()) => {
                let error = SqlError::new("42809", "op ANY/ALL (array) requires array on right side");
                return DataFusionError::External(Box::new(error));
            }
            Does::Any(_) | Does::All(_) => self.name.rsplit(' ').next().unwrap_or_default(),
        };
        let message = format!("operator does not exist: {}", named.join(&format!(" {sign} ")));
        DataFusionError::External(Box::new(SqlError::new("42883", message)))
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.coerced(types).ok_or_else(|| self.no_such(types))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (self.does, types) {
            (Does::Fill, [list]) | (Does::Remove, [list, _]) => Ok(list.clone()),
            (Does::Fill | Does::Remove, _) => Err(self.no_such(types)),
            _ => Ok(DataType::Boolean),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match (self.does, args.arg_fields) {
            (Does::Fill, [list]) | (Does::Remove, [list, _]) => {
                Ok(Arc::new(list.as_ref().clone().with_name(self.name).with_nullable(true)))
            }
            _ => Ok(Arc::new(Field::new(self.name, DataType::Boolean, true))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let arrays = if self.does == Does::Fill { arrays } else { plain_numerics(arrays)? };
        let computed: ArrayRef = match (self.does, &arrays[..]) {
            (Does::Fill, [lists]) => filled(lists.as_list())?,
            (Does::Remove, [lists, values]) => without(lists.as_list(), values)?,
            (Does::Contains, [left, right]) => {
                Arc::new(each(rows, left.as_list(), right.as_list(), |has, wanted| has_all(&has, &wanted))?)
            }
            (Does::Overlaps, [left, right]) => {
                Arc::new(each(rows, left.as_list(), right.as_list(), |one, other| has_any(&one, &other))?)
            }
            (Does::Order(op), [left, right]) => Arc::new(in_order(left, right, op)?),
            (Does::Any(op), [left, right]) => Arc::new(quantified(left, right.as_list(), op, false)?),
            (Does::All(op), [left, right]) => Arc::new(quantified(left, right.as_list(), op, true)?),
            _ => return Err(DataFusionError::Internal(format!("{} of nothing", self.name))),
        };
        Ok(ColumnarValue::Array(computed))
    }
}

/// The lists with empty ones for NULL.
fn filled(lists: &ListArray) -> Result<ArrayRef> {
    if lists.null_count() == 0 {
        return Ok(Arc::new(lists.clone()));
    }
    let DataType::List(item) = lists.data_type() else {
        return Err(DataFusionError::Internal("an array that is no list".to_owned()));
    };
    let kept: Vec<ArrayRef> = (0..lists.len()).filter(|row| lists.is_valid(*row)).map(|row| lists.value(row)).collect();
    let kept: Vec<&dyn Array> = kept.iter().map(AsRef::as_ref).collect();
    let values = match kept.is_empty() {
        true => new_null_array(item.data_type(), 0),
        false => datafusion::arrow::compute::concat(&kept)?,
    };
    let lengths = (0..lists.len()).map(|row| if lists.is_valid(row) { lists.value_length(row) as usize } else { 0 });
    Ok(Arc::new(ListArray::try_new(item.clone(), OffsetBuffer::from_lengths(lengths), values, None)?))
}

/// The lists without the items that are the value of their row.
fn without(lists: &ListArray, values: &ArrayRef) -> Result<ArrayRef> {
    let DataType::List(item) = lists.data_type() else {
        return Err(DataFusionError::Internal("an array that is no list".to_owned()));
    };
    let mut kept: Vec<ArrayRef> = vec![lists.values().slice(0, 0)];
    let mut lengths = Vec::with_capacity(lists.len());
    for row in 0..lists.len() {
        let items = if lists.is_valid(row) { lists.value(row) } else { lists.values().slice(0, 0) };
        let is_other = cmp::distinct(&items, &Scalar::new(values.slice(row, 1)))?;
        let items = filter(&items, &is_other)?;
        lengths.push(items.len());
        kept.push(items);
    }
    let kept: Vec<&dyn Array> = kept.iter().map(AsRef::as_ref).collect();
    let items = datafusion::arrow::compute::concat(&kept)?;
    Ok(Arc::new(ListArray::try_new(item.clone(), OffsetBuffer::from_lengths(lengths), items, lists.nulls().cloned())?))
}

fn each(
    rows: usize,
    left: &ListArray,
    right: &ListArray,
    holds: impl Fn(ArrayRef, ArrayRef) -> Result<bool>,
) -> Result<BooleanArray> {
    let mut answers = BooleanBuilder::with_capacity(rows);
    for row in 0..rows {
        match left.is_valid(row) && right.is_valid(row) {
            true => answers.append_value(holds(left.value(row), right.value(row))?),
            false => answers.append_null(),
        }
    }
    Ok(answers.finish())
}

fn in_order(left: &ArrayRef, right: &ArrayRef, op: Compare) -> Result<BooleanArray> {
    let compare = make_comparator(left, right, SortOptions { descending: false, nulls_first: false })?;
    let holds = |row: usize| {
        (left.is_valid(row) && right.is_valid(row)).then(|| {
            let order = compare(row, row);
            match op {
                Compare::Eq => order.is_eq(),
                Compare::NotEq => order.is_ne(),
                Compare::Lt => order.is_lt(),
                Compare::LtEq => order.is_le(),
                Compare::Gt => order.is_gt(),
                Compare::GtEq => order.is_ge(),
            }
        })
    };
    Ok((0..left.len()).map(holds).collect())
}

/// Which items compare so with a value; those that are NULL are unknown.
fn compared(value: &ArrayRef, op: Compare, items: &ArrayRef) -> Result<BooleanArray> {
    let value = Scalar::new(value.clone());
    Ok(match op {
        Compare::Eq => cmp::eq(&value, items)?,
        Compare::NotEq => cmp::neq(&value, items)?,
        Compare::Lt => cmp::lt(&value, items)?,
        Compare::LtEq => cmp::lt_eq(&value, items)?,
        Compare::Gt => cmp::gt(&value, items)?,
        Compare::GtEq => cmp::gt_eq(&value, items)?,
    })
}

fn is_among(value: &ArrayRef, items: &ArrayRef) -> Result<bool> {
    Ok(value.is_valid(0) && compared(value, Compare::Eq, items)?.true_count() > 0)
}

fn has_all(items: &ArrayRef, wanted: &ArrayRef) -> Result<bool> {
    for at in 0..wanted.len() {
        if !is_among(&wanted.slice(at, 1), items)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_any(items: &ArrayRef, others: &ArrayRef) -> Result<bool> {
    for at in 0..others.len() {
        if is_among(&others.slice(at, 1), items)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn quantified(values: &ArrayRef, lists: &ListArray, op: Compare, is_all: bool) -> Result<BooleanArray> {
    let mut answers = BooleanBuilder::with_capacity(values.len());
    for row in 0..values.len() {
        if lists.is_null(row) {
            answers.append_null();
            continue;
        }
        let items = lists.value(row);
        let holds = compared(&values.slice(row, 1), op, &items)?;
        let decides = if is_all { holds.false_count() > 0 } else { holds.true_count() > 0 };
        answers.append_option(match (decides, holds.null_count() > 0) {
            (true, _) => Some(!is_all),
            (false, true) => None,
            (false, false) => Some(is_all),
        });
    }
    Ok(answers.finish())
}
