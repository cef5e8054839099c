//! Arrays of tables as arrays of queries, and back. Tables know texts, bytes and numbers; queries have an Arrow type for each type
//! of SQL, so that an operator is found by the types of its operands:
//!
//! | type | in a table | in a query |
//! |---|---|---|
//! | `json` | texts | `LargeUtf8` |
//! | `jsonb` | bytes | `LargeBinary` |
//! | `interval` | bytes | `Interval` |
//! | arrays | bytes | `List` |
//! | `numeric` without limits | bytes | `Binary` |
//! | ranges, shapes, addresses | bytes | `FixedSizeBinary` of a width of their own |
//! | any other | as in a query | |
//!
//! Files of other programs have the Arrow types of queries for plain texts and bytes.
use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, IntervalMonthDayNanoArray, LargeBinaryArray, LargeStringArray,
    ListArray, RecordBatch, RecordBatchOptions, StringViewArray,
};
use arrow_schema::{DataType as ArrowType, Field, IntervalUnit, Schema, SchemaRef};
use engine::{ArrayItem, ArrayValue, DataType, Interval};

use super::builder::ColumnBuilder;
use super::clock::{interval_of, span_of};
use super::numerics::is_numeric;
use super::single::array_of;
use super::text::text_value;
use super::types::{is_enum, is_space};

/// A column of a table as a query has it.
pub(crate) fn as_queried(array: &ArrayRef, wanted: &ArrowType) -> ArrayRef {
    match (array.data_type(), wanted) {
        (ArrowType::Utf8View, ArrowType::LargeUtf8) => {
            Arc::new(array.as_string_view().iter().collect::<LargeStringArray>())
        }
        (ArrowType::BinaryView, ArrowType::LargeBinary) => {
            Arc::new(array.as_binary_view().iter().collect::<LargeBinaryArray>())
        }
        (ArrowType::BinaryView, ArrowType::Binary) => Arc::new(array.as_binary_view().iter().collect::<BinaryArray>()),
        (ArrowType::BinaryView, ArrowType::Interval(IntervalUnit::MonthDayNano)) => {
            let interval = |bytes: Option<&[u8]>| bytes.map(|bytes| interval_of(Interval::from_bytes(bytes)));
            Arc::new(array.as_binary_view().iter().map(interval).collect::<IntervalMonthDayNanoArray>())
        }
        (ArrowType::BinaryView, ArrowType::FixedSizeBinary(width)) => fixed_of(array.as_binary_view(), *width),
        (ArrowType::BinaryView, ArrowType::List(item)) => lists_of(array.as_binary_view(), item.data_type()),
        _ => array.clone(),
    }
}

/// Ranges or shapes, each of so many bytes.
fn fixed_of(kept: &BinaryViewArray, width: i32) -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::with_capacity(kept.len(), width);
    for bytes in kept {
        let appended = match bytes {
            Some(bytes) => builder.append_value(bytes),
            None => {
                builder.append_null();
                Ok(())
            }
        };
        debug_assert!(appended.is_ok(), "all values of a type have as many bytes");
    }
    Arc::new(builder.finish())
}

/// Arrays that are kept as bytes.
fn lists_of(kept: &BinaryViewArray, item: &ArrowType) -> ArrayRef {
    let item = DataType::from_arrow(item).and_then(ArrayItem::of).unwrap_or(ArrayItem::TEXT);
    let mut builder = ColumnBuilder::new(DataType::Array(item));
    for bytes in kept {
        match bytes {
            Some(bytes) => builder.append_array(bytes),
            None => builder.append_null(),
        }
    }
    builder.finish()
}

/// A column of a query as a table has it.
pub(crate) fn as_stored(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        ArrowType::LargeUtf8 => Arc::new(array.as_string::<i64>().iter().collect::<StringViewArray>()),
        ArrowType::LargeBinary => Arc::new(array.as_binary::<i64>().iter().collect::<BinaryViewArray>()),
        ArrowType::Binary => Arc::new(array.as_binary::<i32>().iter().collect::<BinaryViewArray>()),
        ArrowType::FixedSizeBinary(_) => Arc::new(array.as_fixed_size_binary().iter().collect::<BinaryViewArray>()),
        ArrowType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>().iter();
            let bytes = |interval: Option<IntervalMonthDayNano>| interval.map(|interval| span_of(interval).to_bytes());
            Arc::new(values.map(bytes).collect::<BinaryViewArray>())
        }
        ArrowType::List(item) => {
            let item = DataType::from_arrow(item.data_type()).and_then(ArrayItem::of).unwrap_or(ArrayItem::TEXT);
            let lists = array.as_list::<i32>();
            let kept = |items: Option<ArrayRef>| items.and_then(|items| array_of(&items, item));
            let kept: Vec<Option<ArrayValue>> = lists.iter().map(kept).collect();
            Arc::new(kept.iter().map(|array| array.as_ref().map(ArrayValue::as_bytes)).collect::<BinaryViewArray>())
        }
        _ => array.clone(),
    }
}

/// Rows of a query as a table takes them.
pub(crate) fn rows_as_stored(rows: &RecordBatch) -> RecordBatch {
    let columns: Vec<ArrayRef> = rows.columns().iter().map(as_stored).collect();
    if columns.iter().zip(rows.columns()).all(|(new, old)| Arc::ptr_eq(new, old)) {
        return rows.clone();
    }
    retyped(rows, columns)
}

/// Rows of a table under the types of a query.
pub(crate) fn rows_as_queried(rows: &RecordBatch, schema: &SchemaRef) -> RecordBatch {
    debug_assert_eq!(rows.num_columns(), schema.fields().len(), "a type for each column");
    let columns = rows.columns().iter().zip(schema.fields());
    let columns = columns.map(|(array, field)| as_queried(array, field.data_type())).collect();
    batch(schema.clone(), columns, rows)
}

/// The rows with these columns in place of theirs.
fn retyped(rows: &RecordBatch, columns: Vec<ArrayRef>) -> RecordBatch {
    let fields = rows.schema_ref().fields().iter().zip(&columns);
    let fields: Vec<Field> =
        fields.map(|(field, array)| field.as_ref().clone().with_data_type(array.data_type().clone())).collect();
    batch(Arc::new(Schema::new(fields)), columns, rows)
}

fn batch(schema: SchemaRef, columns: Vec<ArrayRef>, rows: &RecordBatch) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let made = RecordBatch::try_new_with_options(schema, columns, &options);
    debug_assert!(made.is_ok(), "columns of the types that are told: {made:?}");
    made.unwrap_or_else(|_| rows.clone())
}

/// A column of a file of another program, in which the types of `json`, `jsonb`, ranges and shapes are those of texts and bytes.
pub(crate) fn of_file(array: &ArrayRef, field: &Field) -> (ArrayRef, Field) {
    let plain = match array.data_type() {
        ArrowType::LargeUtf8 | ArrowType::LargeBinary | ArrowType::Binary | ArrowType::FixedSizeBinary(_) => {
            as_stored(array)
        }
        _ => array.clone(),
    };
    let field = field.clone().with_data_type(plain.data_type().clone());
    (plain, field)
}

/// A column of a query's answer for other programs, to which `json`, `jsonb`, numerics without limits, ranges, shapes and the labels of
/// enums are texts, and so are times with their zone; any other is as it was.
pub fn for_file(array: &ArrayRef) -> ArrayRef {
    let is_text = |of: &ArrowType| {
        let is_own = matches!(of, ArrowType::LargeUtf8 | ArrowType::LargeBinary | ArrowType::Binary);
        is_own || is_enum(of) || is_space(of)
    };
    match array.data_type() {
        of if is_text(of) => Arc::new((0..array.len()).map(|row| text_value(array, row)).collect::<StringViewArray>()),
        ArrowType::List(item)
            if is_enum(item.data_type()) || is_numeric(item.data_type()) || is_space(item.data_type()) =>
        {
            let lists = array.as_list::<i32>();
            let item = Arc::new(Field::new_list_field(ArrowType::Utf8View, true));
            let (offsets, items) = (lists.offsets().clone(), for_file(lists.values()));
            Arc::new(ListArray::new(item, offsets, items, lists.nulls().cloned()))
        }
        _ => array.clone(),
    }
}
