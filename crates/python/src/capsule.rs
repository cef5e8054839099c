//! Python's capsules around the structures of the Arrow C data interface: the Arrow PyCapsule interface, by which packages pass each
//! other tables (`__arrow_c_stream__`, `__arrow_c_schema__`, `__arrow_c_array__`).
//!
//! A capsule holds a structure until a reader moves it out; what is still there when the capsule goes is released then.
use std::ffi::CStr;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::c_data::import::StreamReader;
use crate::c_data::{CArray, CSchema, CStream, Released};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Rows that come from Python, batch by batch.
pub(crate) type ForeignBatches = Box<dyn Iterator<Item = Result<RecordBatch, String>> + Send>;

/// A capsule around a stream.
pub(crate) fn of_stream(py: Python<'_>, stream: CStream) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, stream, STREAM)
}

/// A capsule around a schema.
pub(crate) fn of_schema(py: Python<'_>, schema: CSchema) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// Moves the structure out of a capsule.
fn taken<T: Released>(object: &Bound<'_, PyAny>, name: &CStr) -> PyResult<T> {
    let capsule = object.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(name))?.cast::<T>();
    // SAFETY: a capsule of this name holds a structure of this type, and keeps it alive while it is held here. What is moved out
    // leaves an empty structure behind, as the interface asks, so that it is released once.
    let structure = unsafe { std::ptr::replace(pointer.as_ptr(), T::EMPTY) };
    if structure.is_released() {
        return Err(PyValueError::new_err("the Arrow data has been used already"));
    }
    Ok(structure)
}

/// The rows of any object that gives out Arrow data: a table, a data frame, a batch or a stream of them.
///
/// # Errors
/// `TypeError` for any other object, `ValueError` for data that can't be read.
pub(crate) fn rows_of(object: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, ForeignBatches)> {
    let unreadable = |error: String| PyValueError::new_err(error);
    if object.hasattr("__arrow_c_stream__")? {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let stream = taken::<CStream>(&capsule, STREAM)?;
        let reader = StreamReader::new(stream).map_err(unreadable)?;
        return Ok((reader.schema(), Box::new(reader)));
    }
    if object.hasattr("__arrow_c_array__")? {
        let pair = object.call_method0("__arrow_c_array__")?.cast_into::<PyTuple>()?;
        let schema = taken::<CSchema>(&pair.get_item(0)?, SCHEMA)?;
        let array = taken::<CArray>(&pair.get_item(1)?, ARRAY)?;
        let (schema, batch) = StreamReader::single(&schema, array).map_err(unreadable)?;
        return Ok((schema, Box::new(std::iter::once(Ok(batch)))));
    }
    let kind = object.get_type().fully_qualified_name()?;
    Err(PyTypeError::new_err(format!(
        "a table is expected that gives Arrow data (pyarrow, polars, pandas, or any object with __arrow_c_stream__), not {kind}"
    )))
}
