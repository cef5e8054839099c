//! Values of Arrow arrays as Python's objects: column by column, then put together to tuples.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef, TimeUnit};
use engine::{DataType, Value};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyList, PyString, PyTime, PyTuple, PyTzInfo};
use sql::{field_of_items, for_file, pg_types, text_value, type_of_field};

use crate::errors::with_sqlstate;
use crate::parameter::DAY_MICROS;

/// A column: name, SQL's name of the type, digits and decimals of an exact number.
pub(crate) fn described(field: &Field) -> (String, String, Option<u8>, Option<i8>) {
    let (precision, scale) = match field.data_type() {
        ArrowType::Decimal128(precision, scale) | ArrowType::Decimal256(precision, scale) => {
            (Some(*precision), Some(*scale))
        }
        _ => (None, None),
    };
    (field.name().clone(), type_name(field), precision, scale)
}

fn type_name(field: &Field) -> String {
    match type_of_field(field) {
        Some(DataType::Array(_)) => format!("{}[]", type_name(&field_of_items(field))),
        Some(known) => pg_types::shown_name(known),
        None => match field.data_type() {
            ArrowType::Decimal256(..) => "numeric".to_owned(),
            ArrowType::Interval(_) | ArrowType::Duration(_) => "interval".to_owned(),
            ArrowType::Time32(_) | ArrowType::Time64(_) => "time without time zone".to_owned(),
            ArrowType::List(item) | ArrowType::LargeList(item) => format!("{}[]", type_name(item)),
            ArrowType::Struct(_) => "record".to_owned(),
            _ => "unknown".to_owned(),
        },
    }
}

/// The columns without what only SQL knows of them.
pub(crate) fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    let plain = |field: &Arc<Field>| {
        // JSON and the labels of enums are texts to other programs.
        let data_type = for_file(&new_empty_array(field.data_type())).data_type().clone();
        Field::new(field.name(), data_type, true)
    };
    Arc::new(Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>()))
}

/// The columns of a batch as [`plain_schema`] tells of them.
///
/// # Errors
/// The text of an error if the columns are none of the schema's, which can't be.
pub(crate) fn plain_batch(batch: &RecordBatch) -> Result<RecordBatch, String> {
    let columns = batch.columns().iter().map(for_file).collect();
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(plain_schema(&batch.schema()), columns, &rows).map_err(|error| error.to_string())
}

/// Appends the rows from `from` to `to` of a batch to a list, as tuples.
pub(crate) fn append_rows(rows: &Bound<'_, PyList>, batch: &RecordBatch, (from, to): (usize, usize)) -> PyResult<()> {
    let (py, schema) = (rows.py(), batch.schema());
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(array, field)| objects(py, &array.slice(from, to - from), field));
    let mut columns: Vec<_> = columns.map(|column| column.map(Vec::into_iter)).collect::<PyResult<_>>()?;
    for _ in from..to {
        let cells: Vec<Bound<'_, PyAny>> = columns.iter_mut().filter_map(Iterator::next).collect();
        rows.append(PyTuple::new(py, cells)?)?;
    }
    Ok(())
}

pub(crate) type Objects<'py> = PyResult<Vec<Bound<'py, PyAny>>>;

/// A row of single values as a tuple; `None` where a value is of a type that only columns are read of.
pub(crate) fn tuple_of<'py>(py: Python<'py>, row: &[Value]) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let mut cells = Vec::with_capacity(row.len());
    for value in row {
        match object_of(py, value)? {
            Some(object) => cells.push(object),
            None => return Ok(None),
        }
    }
    PyTuple::new(py, cells).map(Some)
}

/// A single value as an object; `None` where only columns are read of its type.
pub(crate) fn object_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(match value {
        Value::Null => none(py),
        Value::Boolean(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::SmallInt(number) => number.into_bound_py_any(py)?,
        Value::Integer(number) => number.into_bound_py_any(py)?,
        Value::BigInt(number) => number.into_bound_py_any(py)?,
        Value::Real(number) => number.into_bound_py_any(py)?,
        Value::Double(number) => number.into_bound_py_any(py)?,
        Value::Decimal(number) => decimal(py, &number.to_string())?,
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::Bytea(bytes) => PyBytes::new(py, bytes).into_any(),
        _ => return Ok(None),
    }))
}

/// The values of numbers, each made an object; NULL is `None`.
fn primitives<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &ArrayRef,
    make: impl Fn(T::Native) -> PyResult<Bound<'py, PyAny>>,
) -> Objects<'py> {
    array.as_primitive::<T>().iter().map(|value| value.map_or_else(|| Ok(none(py)), &make)).collect()
}

fn numbers<'py, T: ArrowPrimitiveType>(py: Python<'py>, array: &ArrayRef) -> Objects<'py>
where
    T::Native: IntoPyObject<'py>,
{
    primitives::<T>(py, array, |value| value.into_bound_py_any(py))
}

fn none(py: Python<'_>) -> Bound<'_, PyAny> {
    py.None().into_bound(py)
}

/// A class of Python's library.
fn class<'py>(
    py: Python<'py>,
    kept: &'static PyOnceLock<Py<PyAny>>,
    module: &str,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    Ok(kept.get_or_try_init(py, || py.import(module)?.getattr(name).map(Bound::unbind))?.bind(py))
}

fn uuid<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static UUID: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    class(py, &UUID, "uuid", "UUID")?.call1((text,))
}

fn decimal<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    class(py, &DECIMAL, "decimal", "Decimal")?.call1((text,))
}

/// What a JSON text says: dictionaries, lists, texts, numbers and so on.
fn json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    class(py, &LOADS, "json", "loads")?.call1((text,))
}

/// The values of an array, one object for each.
pub(crate) fn objects<'py>(py: Python<'py>, array: &ArrayRef, field: &Field) -> Objects<'py> {
    match array.data_type() {
        // Labels, ranges and shapes as their texts.
        of if matches!(
            DataType::from_arrow(of),
            Some(
                DataType::Enum(_)
                    | DataType::Range(_)
                    | DataType::Geometry(_)
                    | DataType::Network(_)
                    | DataType::TimeTz
            )
        ) =>
        {
            let label =
                |row| text_value(array, row).map_or_else(|| none(py), |text| PyString::new(py, &text).into_any());
            Ok((0..array.len()).map(label).collect())
        }
        ArrowType::Null => Ok((0..array.len()).map(|_| none(py)).collect()),
        ArrowType::Boolean => {
            let of = |value: Option<bool>| {
                value.map_or_else(|| none(py), |value| PyBool::new(py, value).to_owned().into_any())
            };
            Ok(array.as_boolean().iter().map(of).collect())
        }
        ArrowType::Int8 => numbers::<Int8Type>(py, array),
        ArrowType::Int16 => numbers::<Int16Type>(py, array),
        ArrowType::Int32 => numbers::<Int32Type>(py, array),
        ArrowType::Int64 => numbers::<Int64Type>(py, array),
        ArrowType::UInt8 => numbers::<UInt8Type>(py, array),
        ArrowType::UInt16 => numbers::<UInt16Type>(py, array),
        ArrowType::UInt32 => numbers::<UInt32Type>(py, array),
        ArrowType::UInt64 => numbers::<UInt64Type>(py, array),
        ArrowType::Float32 => numbers::<Float32Type>(py, array),
        ArrowType::Float64 => numbers::<Float64Type>(py, array),
        ArrowType::Utf8View if type_of_field(field) == Some(DataType::Uuid) => {
            let texts = array.as_string_view();
            texts.iter().map(|text| text.map_or_else(|| Ok(none(py)), |text| uuid(py, text))).collect()
        }
        ArrowType::Utf8View => Ok(texts(py, array.as_string_view().iter())),
        ArrowType::Utf8 => Ok(texts(py, array.as_string::<i32>().iter())),
        // The types of `json` and `jsonb` in answers.
        ArrowType::LargeUtf8 | ArrowType::LargeBinary => {
            let value = |row| text_value(array, row).map_or_else(|| Ok(none(py)), |text| json(py, &text));
            (0..array.len()).map(value).collect()
        }
        ArrowType::BinaryView => Ok(bytes(py, array.as_binary_view().iter())),
        // Numerics without limits come as what they are in answers.
        ArrowType::Binary | ArrowType::Decimal128(..) | ArrowType::Decimal256(..) => {
            let text = |row| text_value(array, row).map_or_else(|| Ok(none(py)), |text| decimal(py, &text));
            (0..array.len()).map(text).collect()
        }
        ArrowType::List(_) | ArrowType::LargeList(_) => lists(py, array, field),
        ArrowType::Struct(_) => structs(py, array),
        ArrowType::Dictionary(_, values) => objects(py, &casted(py, array, values)?, field),
        _ => of_time(py, array, field),
    }
}

fn casted(py: Python<'_>, array: &ArrayRef, to: &ArrowType) -> PyResult<ArrayRef> {
    cast(array, to).map_err(|error| with_sqlstate(py, "XX000", error.to_string()))
}

fn texts<'py, 'a>(py: Python<'py>, texts: impl Iterator<Item = Option<&'a str>>) -> Vec<Bound<'py, PyAny>> {
    texts.map(|text| text.map_or_else(|| none(py), |text| PyString::new(py, text).into_any())).collect()
}

fn bytes<'py, 'a>(py: Python<'py>, values: impl Iterator<Item = Option<&'a [u8]>>) -> Vec<Bound<'py, PyAny>> {
    values.map(|value| value.map_or_else(|| none(py), |value| PyBytes::new(py, value).into_any())).collect()
}

/// Arrays as lists.
fn lists<'py>(py: Python<'py>, array: &ArrayRef, field: &Field) -> Objects<'py> {
    let item = field_of_items(field);
    let of = |row: usize| {
        if array.is_null(row) {
            return Ok(none(py));
        }
        let items = match array.as_list_opt::<i32>() {
            Some(lists) => lists.value(row),
            None => array.as_list::<i64>().value(row),
        };
        PyList::new(py, objects(py, &items, &item)?).map(Bound::into_any)
    };
    (0..array.len()).map(of).collect()
}

/// Rows as tuples.
fn structs<'py>(py: Python<'py>, array: &ArrayRef) -> Objects<'py> {
    let values = array.as_struct();
    let columns = values.columns().iter().zip(values.fields());
    let columns: Vec<_> = columns.map(|(column, field)| objects(py, column, field)).collect::<PyResult<_>>()?;
    let of = |row: usize| {
        if array.is_null(row) {
            return Ok(none(py));
        }
        PyTuple::new(py, columns.iter().map(|column| &column[row])).map(Bound::into_any)
    };
    (0..array.len()).map(of).collect()
}

/// Year, month and day of a day since 1970-01-01 (Howard Hinnant's `civil_from_days`), if Python's calendar has it.
fn civil(days: i64) -> Option<(i32, u8, u8)> {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (1..=9999).contains(&year).then_some((year as i32, month as u8, day as u8))
}

/// The error of a value that Python's `datetime` does not hold.
fn beyond(py: Python<'_>, array: &ArrayRef, row: usize, field: &Field) -> PyErr {
    let text = text_value(array, row).unwrap_or_default();
    let message = format!(
        "column \"{}\" has {text}, and Python's calendar goes from year 1 to year 9999: read it as text, or as Arrow",
        field.name()
    );
    with_sqlstate(py, "22008", message)
}

fn time_of<'py>(py: Python<'py>, micros: i64) -> PyResult<Bound<'py, PyAny>> {
    let (hour, minute, second) = (micros / 3_600_000_000, micros / 60_000_000 % 60, micros / 1_000_000 % 60);
    PyTime::new(py, hour as u8, minute as u8, second as u8, (micros % 1_000_000) as u32, None).map(Bound::into_any)
}

fn moment<'py>(
    py: Python<'py>,
    micros: i64,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let (year, month, day) = civil(micros.div_euclid(DAY_MICROS))?;
    let of_day = micros.rem_euclid(DAY_MICROS);
    let (hour, minute, second) = (of_day / 3_600_000_000, of_day / 60_000_000 % 60, of_day / 1_000_000 % 60);
    let micros = (of_day % 1_000_000) as u32;
    let made = PyDateTime::new(py, year, month, day, hour as u8, minute as u8, second as u8, micros, zone);
    Some(made.map(Bound::into_any))
}

/// A time span; months count 30 days, as in other drivers.
fn span<'py>(py: Python<'py>, days: i64, micros: i64) -> PyResult<Bound<'py, PyAny>> {
    let days = i32::try_from(days + micros.div_euclid(DAY_MICROS));
    let days = days.map_err(|_| with_sqlstate(py, "22008", "an interval is too long for Python's timedelta"))?;
    let of_day = micros.rem_euclid(DAY_MICROS);
    let (seconds, micros) = ((of_day / 1_000_000) as i32, (of_day % 1_000_000) as i32);
    PyDelta::new(py, days, seconds, micros, true).map(Bound::into_any)
}

fn of_time<'py>(py: Python<'py>, array: &ArrayRef, field: &Field) -> Objects<'py> {
    match array.data_type() {
        ArrowType::Date32 => {
            let of = |(row, days): (usize, Option<i32>)| match days {
                None => Ok(none(py)),
                Some(days) => match civil(i64::from(days)) {
                    Some((year, month, day)) => PyDate::new(py, year, month, day).map(Bound::into_any),
                    None => Err(beyond(py, array, row, field)),
                },
            };
            array.as_primitive::<Date32Type>().iter().enumerate().map(of).collect()
        }
        ArrowType::Date64 => primitives::<Date64Type>(py, array, |millis| {
            moment(py, millis * 1000, None).unwrap_or_else(|| Err(with_sqlstate(py, "22008", "a date is out of range")))
        }),
        ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
            let zone = zone.as_ref().map(|_| PyTzInfo::utc(py).map(|utc| utc.to_owned())).transpose()?;
            let of = |(row, micros): (usize, Option<i64>)| match micros {
                None => Ok(none(py)),
                Some(micros) => moment(py, micros, zone.as_ref()).unwrap_or_else(|| Err(beyond(py, array, row, field))),
            };
            array.as_primitive::<TimestampMicrosecondType>().iter().enumerate().map(of).collect()
        }
        ArrowType::Timestamp(_, zone) => {
            objects(py, &casted(py, array, &ArrowType::Timestamp(TimeUnit::Microsecond, zone.clone()))?, field)
        }
        ArrowType::Time64(TimeUnit::Microsecond) => {
            primitives::<arrow_array::types::Time64MicrosecondType>(py, array, |micros| time_of(py, micros))
        }
        ArrowType::Time32(_) | ArrowType::Time64(_) => {
            objects(py, &casted(py, array, &ArrowType::Time64(TimeUnit::Microsecond))?, field)
        }
        ArrowType::Interval(arrow_schema::IntervalUnit::MonthDayNano) => {
            primitives::<IntervalMonthDayNanoType>(py, array, |value| {
                span(py, i64::from(value.months) * 30 + i64::from(value.days), value.nanoseconds / 1000)
            })
        }
        ArrowType::Duration(TimeUnit::Microsecond) => {
            primitives::<DurationMicrosecondType>(py, array, |micros| span(py, 0, micros))
        }
        ArrowType::Duration(_) => objects(py, &casted(py, array, &ArrowType::Duration(TimeUnit::Microsecond))?, field),
        _ => {
            let text =
                |row| text_value(array, row).map_or_else(|| none(py), |text| PyString::new(py, &text).into_any());
            Ok((0..array.len()).map(text).collect())
        }
    }
}
