//! `lstore.SnapshotArray`: numbers in memory that are updated in place and read as of one instant (crate `snapshot`).
//!
//! A child of a fork has the memory of its parent before its eyes, and not only a copy; it uses no array that it has inherited.
use std::sync::Arc;

use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use snapshot::{Mechanism, Options, Pages, Snapshot, SnapshotArray, SnapshotError, Stop};
use sql::SqlError;

use crate::c_data::export::stream_of;
use crate::capsule;
use crate::errors::{FORKED, Fault};
use crate::process::{self, OfProcess};

/// An array, or a snapshot of one, of any of the types.
enum Any<I32, I64, F32, F64> {
    I32(I32),
    I64(I64),
    F32(F32),
    F64(F64),
}

type AnyArray = Any<SnapshotArray<i32>, SnapshotArray<i64>, SnapshotArray<f32>, SnapshotArray<f64>>;
type AnySnapshot = Any<Snapshot<i32>, Snapshot<i64>, Snapshot<f32>, Snapshot<f64>>;

/// Does something with what is there, whatever the type of its numbers.
macro_rules! with_any {
    ($any:expr, $found:ident => $action:expr) => {
        match $any {
            Any::I32($found) => $action,
            Any::I64($found) => $action,
            Any::F32($found) => $action,
            Any::F64($found) => $action,
        }
    };
}

/// Does the same of every type, and wraps it as it was.
macro_rules! map_any {
    ($any:expr, $found:ident => $action:expr) => {
        match $any {
            Any::I32($found) => Any::I32($action),
            Any::I64($found) => Any::I64($action),
            Any::F32($found) => Any::F32($action),
            Any::F64($found) => Any::F64($action),
        }
    };
}

fn raised(fault: Fault) -> PyErr {
    Python::attach(|py| fault.raised(py))
}

fn failed(error: SnapshotError) -> PyErr {
    match error {
        SnapshotError::OutOfRange { .. } => PyIndexError::new_err(error.to_string()),
        SnapshotError::BadOptions { .. } => PyValueError::new_err(error.to_string()),
        error => raised(Fault::Sql(SqlError::new("53200", error.to_string()))),
    }
}

/// The place that an index of Python means.
fn place(index: isize, len: usize) -> PyResult<usize> {
    let place = if index < 0 { index.checked_add_unsigned(len) } else { Some(index) };
    let place = place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < len);
    place.ok_or_else(|| PyIndexError::new_err(format!("index {index} of an array of {len} numbers")))
}

fn check_process() -> PyResult<()> {
    if process::is_child() { Err(raised(FORKED)) } else { Ok(()) }
}

/// Numbers that are updated in place and read as of one instant.
#[pyclass(frozen, module = "lstore", name = "SnapshotArray")]
pub(crate) struct NativeArray(OfProcess<AnyArray>);

#[pymethods]
impl NativeArray {
    #[new]
    #[pyo3(signature = (length, dtype = "int64", mechanism = "rewire", *, huge_pages = false, protected = false))]
    fn new(length: usize, dtype: &str, mechanism: &str, huge_pages: bool, protected: bool) -> PyResult<NativeArray> {
        check_process()?;
        let all = Mechanism::ALL;
        let found = all.into_iter().find(|known| known.name() == mechanism);
        let Some(found) = found else {
            let known: Vec<String> = all.iter().map(ToString::to_string).collect();
            let message = format!("no mechanism is called {mechanism:?}; use one of {}", known.join(", "));
            return Err(PyValueError::new_err(message));
        };
        let options = Options {
            pages: if huge_pages { Pages::Huge } else { Pages::Small },
            stop: if protected { Stop::Protected } else { Stop::Announced },
            ..Options::of(found)
        };
        let array = match dtype {
            "int32" => SnapshotArray::new(length, &options).map(Any::I32),
            "int64" => SnapshotArray::new(length, &options).map(Any::I64),
            "float32" => SnapshotArray::new(length, &options).map(Any::F32),
            "float64" => SnapshotArray::new(length, &options).map(Any::F64),
            other => {
                let message = format!("no numbers of type {other:?}; use int32, int64, float32 or float64");
                return Err(PyValueError::new_err(message));
            }
        };
        process::opens();
        Ok(NativeArray(OfProcess::new(array.map_err(failed)?)))
    }

    fn __len__(&self) -> usize {
        with_any!(&*self.0, array => array.len())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        check_process()?;
        let at = place(index, self.__len__())?;
        with_any!(&*self.0, array => Ok(array.get(at).map_err(failed)?.into_pyobject(py)?.into_any()))
    }

    fn __setitem__(&self, index: isize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        check_process()?;
        let at = place(index, self.__len__())?;
        with_any!(&*self.0, array => array.writer().set(at, value.extract()?).map_err(failed))
    }

    /// Adds to a number and returns what it was.
    fn add<'py>(&self, py: Python<'py>, index: isize, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        check_process()?;
        let at = place(index, self.__len__())?;
        with_any!(&*self.0, array => {
            let before = array.writer().add(at, value.extract()?).map_err(failed)?;
            Ok(before.into_pyobject(py)?.into_any())
        })
    }

    /// Sets numbers, of which a snapshot has all or none.
    fn update(&self, indexes: Vec<isize>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        check_process()?;
        let len = self.__len__();
        let places = indexes.into_iter().map(|index| place(index, len)).collect::<PyResult<Vec<usize>>>()?;
        with_any!(&*self.0, array => {
            let values: Vec<_> = values.extract()?;
            if values.len() != places.len() {
                let message = format!("{} values for {} indexes", values.len(), places.len());
                return Err(PyValueError::new_err(message));
            }
            let set = |batch: &mut snapshot::Batch<'_, '_, _>| {
                places.iter().zip(values).try_for_each(|(at, value)| batch.set(*at, value))
            };
            array.writer().batch(set).map_err(failed)
        })
    }

    /// All numbers as of now.
    fn snapshot(&self) -> PyResult<NativeArraySnapshot> {
        check_process()?;
        let taken: AnySnapshot = map_any!(&*self.0, array => array.snapshot().map_err(failed)?);
        Ok(NativeArraySnapshot(OfProcess::new(taken)))
    }
}

/// An array as it was at one instant.
#[pyclass(frozen, module = "lstore", name = "ArraySnapshot")]
pub(crate) struct NativeArraySnapshot(OfProcess<AnySnapshot>);

#[pymethods]
impl NativeArraySnapshot {
    fn __len__(&self) -> usize {
        with_any!(&*self.0, taken => taken.len())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        check_process()?;
        let at = place(index, self.__len__())?;
        with_any!(&*self.0, taken => Ok(taken.get(at).map_err(failed)?.into_pyobject(py)?.into_any()))
    }

    /// The sum of the numbers from `start` to before `stop`.
    #[pyo3(signature = (start = 0, stop = None))]
    fn sum<'py>(&self, py: Python<'py>, start: usize, stop: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        check_process()?;
        let stop = stop.unwrap_or_else(|| self.__len__());
        with_any!(&*self.0, taken => {
            let sum = py.detach(|| taken.sum(start..stop)).map_err(failed)?;
            Ok(sum.into_pyobject(py)?.into_any())
        })
    }

    /// The smallest number from `start` to before `stop`; `None` if there is none.
    #[pyo3(signature = (start = 0, stop = None))]
    fn min<'py>(&self, py: Python<'py>, start: usize, stop: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        check_process()?;
        let stop = stop.unwrap_or_else(|| self.__len__());
        with_any!(&*self.0, taken => {
            Ok(py.detach(|| taken.min(start..stop)).map_err(failed)?.into_pyobject(py)?.into_any())
        })
    }

    /// The largest number from `start` to before `stop`; `None` if there is none.
    #[pyo3(signature = (start = 0, stop = None))]
    fn max<'py>(&self, py: Python<'py>, start: usize, stop: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        check_process()?;
        let stop = stop.unwrap_or_else(|| self.__len__());
        with_any!(&*self.0, taken => {
            Ok(py.detach(|| taken.max(start..stop)).map_err(failed)?.into_pyobject(py)?.into_any())
        })
    }

    /// The numbers as a stream of one Arrow batch with the column `value`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        check_process()?;
        // A reader that wants other types casts what it gets, as the interface allows.
        drop(requested_schema);
        let (data_type, array): (DataType, ArrayRef) = match &*self.0 {
            Any::I32(taken) => (DataType::Int32, arrow::<arrow_array::types::Int32Type>(taken)?),
            Any::I64(taken) => (DataType::Int64, arrow::<arrow_array::types::Int64Type>(taken)?),
            Any::F32(taken) => (DataType::Float32, arrow::<arrow_array::types::Float32Type>(taken)?),
            Any::F64(taken) => (DataType::Float64, arrow::<arrow_array::types::Float64Type>(taken)?),
        };
        let schema = Arc::new(Schema::new(vec![Field::new("value", data_type, false)]));
        let batch = RecordBatch::try_new(schema.clone(), vec![array]);
        let batch = batch.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut left = Some(batch);
        capsule::of_stream(py, stream_of(schema, Box::new(move || left.take().map(Ok))))
    }
}

/// The numbers of a snapshot as an Arrow array.
fn arrow<T>(taken: &Snapshot<T::Native>) -> PyResult<ArrayRef>
where
    T: arrow_array::ArrowPrimitiveType,
    T::Native: snapshot::Item,
{
    let numbers = taken.to_vec(..).map_err(failed)?;
    Ok(Arc::new(PrimitiveArray::<T>::new(numbers.into(), None)))
}
