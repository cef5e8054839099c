//! Python's functions as functions of SQL: called for each row with values, or for each batch with arrays of Arrow.
//!
//! ```text
//! plan ──▶ UserFunction::compute (any thread) ──▶ interpreter ──▶ by row:    objects ──▶ call, call, ... ──▶ column
//!                                                            └──▶ by column: batch of Arrow ──▶ call ──▶ batch of one column
//! ```
//!
//! The thread that waits for the statement has let the interpreter go, so that a computing thread may have it. A function can't use the
//! package: its session is in use, and a statement that it started would wait for itself. An exception ends the statement with
//! SQLSTATE 38000; it is kept beside the error, and becomes the cause of what Python raises in the end.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType as ArrowType, Field, Schema};
use engine::{DataType, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use sql::{
    CancelHandle, Outcome, Session, SqlError, StopCheck, UserFunction, column_of_values, read_value, type_of_field,
};

use crate::calls::{Inside, Raised};
use crate::capsule;
use crate::objects::objects;
use crate::parameter::Parameter;
use crate::rows::NativeRows;

/// How many rows are computed without a look at whether the statement is to stop.
const ROWS_BETWEEN_CHECKS: usize = 64;

/// How a function wants to be called.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// With arrays of Arrow, once for many rows.
    pub(crate) by_column: bool,
    /// For rows with a NULL among the arguments too, which give NULL otherwise.
    pub(crate) sees_null: bool,
    pub(crate) is_pure: bool,
}

/// A function of Python's.
pub(crate) struct PythonFunction {
    function: Py<PyAny>,
    /// The parameters as columns, for what their Arrow types do not say.
    fields: Vec<Field>,
    parameters: Vec<DataType>,
    returns: DataType,
    manner: Manner,
    raised: Raised,
    cancel: CancelHandle,
}

/// A type by its name in SQL, as a column of it.
///
/// # Errors
/// 42601 and 42704 for names of no type; 0A000 for types that no column of a table has.
fn field_of(session: &mut Session, name: &str) -> Result<(Field, DataType), SqlError> {
    if ["numeric", "decimal"].contains(&name.trim().to_lowercase().as_str()) {
        let bare = DataType::Decimal { precision: 38, scale: 10 };
        return Ok((Field::new("", bare.to_arrow(), true), bare));
    }
    let Outcome::Rows(rows) = session.execute(&format!("SELECT CAST(NULL AS {name})"))? else {
        return Err(SqlError::new("42704", format!("\"{name}\" is no type")));
    };
    let schema = rows.schema();
    match schema.fields().iter().map(|field| (field, type_of_field(field))).next() {
        Some((field, Some(data_type))) if schema.fields().len() == 1 => Ok((field.as_ref().clone(), data_type)),
        _ => Err(SqlError::new("0A000", format!("a function takes and gives values of columns, not {name}"))),
    }
}

impl PythonFunction {
    /// A function with parameters and results of types by their names.
    ///
    /// # Errors
    /// Those of a name that is none of a type.
    pub(crate) fn new(
        session: &mut Session,
        function: Py<PyAny>,
        (parameters, returns): (&[String], &str),
        manner: Manner,
        raised: Raised,
    ) -> Result<PythonFunction, SqlError> {
        let taken = parameters.iter().map(|name| field_of(session, name)).collect::<Result<Vec<_>, _>>()?;
        let (fields, parameters) = taken.into_iter().unzip();
        let (_, returns) = field_of(session, returns)?;
        let cancel = session.cancel_handle();
        Ok(PythonFunction { function, fields, parameters, returns, manner, raised, cancel })
    }

    fn by_row(
        &self,
        py: Python<'_>,
        arguments: &[ArrayRef],
        rows: usize,
        stop: &StopCheck,
    ) -> Result<ArrayRef, SqlError> {
        let failed = |error| self.raised.failed(py, error);
        let columns = arguments.iter().zip(&self.fields).map(|(array, field)| objects(py, array, field));
        let mut columns: Vec<_> =
            columns.map(|column| column.map(Vec::into_iter)).collect::<PyResult<_>>().map_err(failed)?;
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            if row % ROWS_BETWEEN_CHECKS == 0 {
                stop.check()?;
            }
            let cells: Vec<_> = columns.iter_mut().filter_map(Iterator::next).collect();
            if !self.manner.sees_null && cells.iter().any(|cell| cell.is_none()) {
                values.push(Value::Null);
                continue;
            }
            let result = PyTuple::new(py, cells).and_then(|cells| self.function.bind(py).call1(cells));
            let result = result.and_then(|result| self.parameter(&result)).map_err(failed)?;
            values.push(self.value(&result)?);
        }
        column_of_values(&values, self.returns)
    }

    /// A result as its own type; of JSON a text.
    fn parameter(&self, result: &Bound<'_, PyAny>) -> PyResult<Parameter> {
        let is_json = matches!(self.returns, DataType::Json | DataType::Jsonb);
        if is_json && !result.is_none() && !result.is_instance_of::<PyString>() {
            let text = result.py().import("json")?.call_method1("dumps", (result,))?;
            return Parameter::of(&text);
        }
        Parameter::of(result)
    }

    fn value(&self, result: &Parameter) -> Result<Value, SqlError> {
        let by_text = |text: String| read_value(&text, self.returns).map(Some);
        let value = match (result, self.returns) {
            (Parameter::Integer(number), DataType::Decimal { .. } | DataType::Double | DataType::Real) => {
                by_text(number.to_string())?
            }
            (Parameter::Integer(number), DataType::SmallInt | DataType::Integer) => by_text(number.to_string())?,
            (Parameter::Double(number), DataType::Decimal { .. }) => by_text(number.to_string())?,
            _ => result.value(self.returns, false)?,
        };
        value.ok_or_else(|| {
            let kind = result.natural().map_or_else(|| "a text".to_owned(), |kind| kind.to_string());
            let message = format!("the function gave {kind}, and it is declared to return {}", self.returns);
            SqlError::new("39000", message)
        })
    }

    fn by_column(&self, py: Python<'_>, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef, SqlError> {
        let named = |(at, (array, field)): (usize, (&ArrayRef, &Field))| {
            field.clone().with_name(format!("argument {}", at + 1)).with_data_type(array.data_type().clone())
        };
        let fields: Vec<Field> = arguments.iter().zip(&self.fields).enumerate().map(named).collect();
        let internal = |error: arrow_schema::ArrowError| SqlError::new("XX000", error.to_string());
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arguments.to_vec()).map_err(internal)?;
        let given = NativeRows::of_batch(batch, self.cancel.clone());
        let batches = Py::new(py, given).and_then(|given| {
            let result = self.function.bind(py).call1((given,))?;
            let (_, batches) = capsule::rows_of(&result)?;
            batches.collect::<Result<Vec<_>, _>>().map_err(PyTypeError::new_err)
        });
        let batches = batches.map_err(|error| self.raised.failed(py, error))?;
        let column = batches.first().filter(|_| batches.len() == 1).and_then(|batch| batch.columns().first());
        match column {
            Some(column) => self.column(column),
            None if rows == 0 => column_of_values(&[], self.returns),
            None => Err(SqlError::new("39000", "the function gave no array")),
        }
    }

    /// An array as one of the type that is returned.
    fn column(&self, column: &ArrayRef) -> Result<ArrayRef, SqlError> {
        let wanted = self.returns.to_arrow();
        let misfit = |error: arrow_schema::ArrowError| {
            let message =
                format!("the function gave {}, and it is declared to return {}", column.data_type(), self.returns);
            SqlError { detail: Some(error.to_string()), ..SqlError::new("39000", message) }
        };
        if matches!(self.returns, DataType::Json | DataType::Jsonb | DataType::Uuid) {
            let texts = cast(column, &ArrowType::Utf8View).map_err(misfit)?;
            let read = |text: Option<&str>| text.map_or(Ok(Value::Null), |text| read_value(text, self.returns));
            let values = texts.as_string_view().iter().map(read).collect::<Result<Vec<_>, _>>()?;
            return column_of_values(&values, self.returns);
        }
        cast_with_options(column, &wanted, &CastOptions { safe: false, ..CastOptions::default() }).map_err(misfit)
    }
}

impl UserFunction for PythonFunction {
    fn parameters(&self) -> &[DataType] {
        &self.parameters
    }

    fn returns(&self) -> DataType {
        self.returns
    }

    fn is_pure(&self) -> bool {
        self.manner.is_pure
    }

    fn compute(&self, arguments: &[ArrayRef], rows: usize, stop: &StopCheck) -> Result<ArrayRef, SqlError> {
        let computed = Python::try_attach(|py| {
            let _inside = Inside::enter();
            match self.manner.by_column {
                true => self.by_column(py, arguments, rows),
                false => self.by_row(py, arguments, rows, stop),
            }
        });
        computed.unwrap_or_else(|| Err(SqlError::new("57P01", "the interpreter has ended")))
    }
}
