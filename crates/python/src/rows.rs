//! The rows of a query as Python holds them: they stream from the session, as tuples or as Arrow.
use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use engine::Value;
use parking_lot::Mutex;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use sql::{CancelHandle, Rows, SqlError, column_of_values, type_of_field};

use crate::c_data::export::{schema_of_rows, stream_of};
use crate::calls::{INSIDE, Raised, is_inside};
use crate::errors::{FORKED, Fault, interface};
use crate::interrupt::Interruptible;
use crate::process::{self, OfProcess};
use crate::{capsule, objects};

/// What is left of the rows.
struct Left {
    /// What the session still gives.
    rows: OfProcess<Option<Rows>>,
    /// A row that was there at once, until it is given out or becomes a batch.
    row: Option<Vec<Value>>,
    /// Batches that have been read from it.
    read: VecDeque<RecordBatch>,
    /// How many rows of the first of them have been given out.
    given: usize,
    /// Why a reader of Arrow, to which an error is a text, got no further.
    failed: Option<SqlError>,
}

impl Left {
    fn none() -> Left {
        Left { rows: OfProcess::new(None), row: None, read: VecDeque::new(), given: 0, failed: None }
    }

    /// Reads one more batch; whether there was one.
    fn read_on(&mut self, schema: &SchemaRef) -> Result<bool, Fault> {
        if let Some(row) = self.row.take() {
            self.read.push_back(batch_of(&row, schema)?);
            return Ok(true);
        }
        if process::is_child() {
            return Err(FORKED);
        }
        let next = self.rows.as_mut().and_then(Iterator::next);
        match next {
            Some(Ok(batch)) => {
                self.read.push_back(batch);
                Ok(true)
            }
            Some(Err(error)) => {
                *self.rows = None;
                Err(error.into())
            }
            None => {
                *self.rows = None;
                Ok(false)
            }
        }
    }

    /// The next batch of rows that are not given out.
    fn next_batch(&mut self, schema: &SchemaRef) -> Option<Result<RecordBatch, Fault>> {
        loop {
            if let Some(batch) = self.read.pop_front() {
                let given = std::mem::take(&mut self.given);
                if given < batch.num_rows() {
                    return Some(Ok(batch.slice(given, batch.num_rows() - given)));
                }
            } else {
                match self.read_on(schema) {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(fault) => return Some(Err(fault)),
                }
            }
        }
    }

    fn end(&mut self) {
        (*self.rows, self.row) = (None, None);
        self.read.clear();
        self.given = 0;
    }
}

/// The rows of a query.
#[pyclass(frozen, weakref, module = "lstore._lstore")]
pub(crate) struct NativeRows {
    schema: SchemaRef,
    tag: Option<String>,
    left: Arc<Mutex<Left>>,
    cancel: CancelHandle,
    /// What functions of Python's have raised; `None` where the session has no such functions.
    functions: Option<Raised>,
}

const IN_USE: &str = "another thread is reading these rows: give each thread a cursor of its own";

impl NativeRows {
    /// The rows of a query; `functions` where it may call functions of Python's.
    pub(crate) fn new(rows: Rows, cancel: CancelHandle, functions: Option<Raised>) -> NativeRows {
        let (schema, tag) = (rows.schema(), rows.tag().map(str::to_owned));
        let left = Left { rows: OfProcess::new(Some(rows)), ..Left::none() };
        NativeRows { schema, tag, left: Arc::new(Mutex::new(left)), cancel, functions }
    }

    /// One row at most, which is there already.
    pub(crate) fn of_row(row: Option<Vec<Value>>, schema: SchemaRef, cancel: CancelHandle) -> NativeRows {
        let left = Left { row, ..Left::none() };
        NativeRows { schema, tag: None, left: Arc::new(Mutex::new(left)), cancel, functions: None }
    }

    /// Rows that are there already.
    pub(crate) fn of_batch(batch: RecordBatch, cancel: CancelHandle) -> NativeRows {
        let schema = batch.schema();
        let left = Left { read: VecDeque::from([batch]), ..Left::none() };
        NativeRows { schema, tag: None, left: Arc::new(Mutex::new(left)), cancel, functions: None }
    }

    fn raised(&self, py: Python<'_>, fault: Fault) -> PyErr {
        match &self.functions {
            Some(functions) => functions.explain(py, fault),
            None => fault.raised(py),
        }
    }

    /// Does something with the rows that are left.
    fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&mut Left) -> PyResult<T>) -> PyResult<T> {
        if is_inside() {
            return Err(INSIDE.raised(py));
        }
        let Some(mut left) = self.left.try_lock() else { return Err(interface(py, IN_USE)) };
        work(&mut left)
    }

    /// Has a batch of rows that are not given out at the front, while there is one.
    fn fill(&self, py: Python<'_>, left: &mut Left) -> PyResult<bool> {
        loop {
            match left.read.front() {
                Some(batch) if left.given < batch.num_rows() => return Ok(true),
                Some(_) => {
                    left.read.pop_front();
                    left.given = 0;
                }
                None => {
                    let entered = Interruptible::enter(py, &self.cancel)?;
                    let read = py.detach(|| left.read_on(&self.schema));
                    drop(entered);
                    if !read.map_err(|fault| self.raised(py, fault))? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// The row that was there at once, if it is still to be given out and its values are of types that become objects one by one.
    fn row<'py>(&self, py: Python<'py>, left: &mut Left) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(row) = &left.row else { return Ok(None) };
        let row = objects::tuple_of(py, row)?;
        if row.is_some() {
            left.row = None;
        }
        Ok(row)
    }

    /// The first row.
    pub(crate) fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let rows = self.fetch(py, Some(1))?;
        rows.iter().next().map_or(Ok(None), |row| Ok(Some(row)))
    }
}

/// A row of values as a batch.
fn batch_of(row: &[Value], schema: &SchemaRef) -> Result<RecordBatch, Fault> {
    let wrong = |what: String| SqlError::new("XX000", format!("a row does not have the columns of its query: {what}"));
    let column = |(value, field): (&Value, &arrow_schema::FieldRef)| {
        let data_type = type_of_field(field).ok_or_else(|| wrong(field.to_string()))?;
        column_of_values(std::slice::from_ref(value), data_type)
    };
    let columns = row.iter().zip(schema.fields()).map(column).collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(schema.clone(), columns).map_err(|error| wrong(error.to_string()))?)
}

/// The next batch for a reader of Arrow.
fn next_of(left: &Mutex<Left>, schema: &SchemaRef, cancel: &CancelHandle) -> Option<Result<RecordBatch, String>> {
    let mut left = left.try_lock()?;
    let entered = Interruptible::without_interpreter(cancel);
    let batch = left.next_batch(schema);
    drop(entered);
    if let Some(Err(Fault::Sql(error))) = &batch {
        left.failed = Some(error.clone());
    }
    batch.map(|batch| batch.map_err(|fault| fault.text()).and_then(|batch| objects::plain_batch(&batch)))
}

#[pymethods]
impl NativeRows {
    /// Up to so many rows as tuples, or all that are left.
    fn fetch<'py>(&self, py: Python<'py>, count: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let fetched = PyList::empty(py);
        self.with(py, |left| {
            let mut wanted = count.unwrap_or(usize::MAX);
            if wanted > 0
                && let Some(row) = self.row(py, left)?
            {
                wanted -= 1;
                fetched.append(row)?;
            }
            while wanted > 0 && self.fill(py, left)? {
                let Some(batch) = left.read.front() else { break };
                let taken = wanted.min(batch.num_rows() - left.given);
                objects::append_rows(&fetched, batch, (left.given, left.given + taken))?;
                left.given += taken;
                wanted -= taken;
            }
            Ok(())
        })?;
        Ok(fetched)
    }

    /// The next row as a tuple; `None` at the end.
    fn fetch_one<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let at_once = self.with(py, |left| self.row(py, left))?;
        match at_once {
            Some(row) => Ok(Some(row.into_any())),
            None => self.first(py),
        }
    }

    /// The rows that come next as tuples, which still come afterwards: up to so many, as far as they come together.
    fn peek<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyList>> {
        let seen = PyList::empty(py);
        self.with(py, |left| {
            if self.fill(py, left)?
                && let Some(batch) = left.read.front()
            {
                let end = batch.num_rows().min(left.given.saturating_add(count));
                objects::append_rows(&seen, batch, (left.given, end))?;
            }
            Ok(())
        })?;
        Ok(seen)
    }

    /// Reads all that is left into memory, so that the session may go on.
    fn read_all(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |left| {
            let entered = Interruptible::enter(py, &self.cancel)?;
            let read = py.detach(|| {
                while left.read_on(&self.schema)? {}
                Ok(())
            });
            drop(entered);
            read.map_err(|fault: Fault| self.raised(py, fault))
        })
    }

    /// Raises the error by which a reader of Arrow got no further, if there is one, as the exception that it is elsewhere.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |left| left.failed.take().map_or(Ok(()), |error| Err(self.raised(py, Fault::Sql(error)))))
    }

    /// Gives up what is left.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |left| {
            if !process::is_child() {
                py.detach(|| left.end());
            }
            Ok(())
        })
    }

    /// The columns: name, SQL's name of the type, digits and decimals of an exact number.
    fn columns(&self) -> Vec<(String, String, Option<u8>, Option<i8>)> {
        self.schema.fields().iter().map(|field| objects::described(field)).collect()
    }

    /// The tag of a statement that has changed rows.
    fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// What is left, as a stream of Arrow batches.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A reader that wants other types casts what it gets, as the interface allows.
        drop(requested_schema);
        let (left, cancel, calls_python) = (self.left.clone(), self.cancel.clone(), self.functions.is_some());
        let own = self.schema.clone();
        let next = move || {
            let read = || next_of(&left, &own, &cancel);
            match calls_python {
                // The reader may hold the interpreter, which the functions need meanwhile.
                true => Python::try_attach(|py| py.detach(read)).flatten(),
                false => read(),
            }
        };
        let schema = objects::plain_schema(&self.schema);
        capsule::of_stream(py, stream_of(schema, Box::new(next)))
    }

    /// The columns as an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = schema_of_rows(&objects::plain_schema(&self.schema)).map_err(PyNotImplementedError::new_err)?;
        capsule::of_schema(py, schema)
    }

    /// The next batch alone, as an object with Arrow data; `None` at the end.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<NativeRows>> {
        self.with(py, |left| {
            if !self.fill(py, left)? {
                return Ok(None);
            }
            let Some(Ok(batch)) = left.next_batch(&self.schema) else { return Ok(None) };
            Ok(Some(NativeRows::of_batch(batch, self.cancel.clone())))
        })
    }
}
