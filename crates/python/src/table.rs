//! Rows of a table by their keys, as words, without a statement.
//!
//! ```text
//! get(key, columns) ──▶ a way of these columns ──▶ engine::PointAccess ──▶ words ──▶ dictionary
//!        │ none, or a row, a session or a value that is not plain
//!        └──▶ `_get` of the Python half: a prepared statement, whose way is noted for the next call
//! ```
//!
//! A way is there as long as the session keeps the statement that it stands for (`statements`): it goes with a change of what names
//! mean, and with the session. What others change is found out by each call, as the table's name means another one then.
use std::sync::Weak;

use engine::{DataType, PointAccess};
use parking_lot::Mutex;
use pyo3::IntoPyObjectExt;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::access::Access;
use crate::errors::Fault;
use crate::objects::object_of;
use crate::session::{NativeSession, Open};

/// How many columns a way has at most.
const COLUMNS_MAX: usize = 32;

/// How columns were named.
enum Given {
    /// Not at all: all are meant.
    All,
    /// By an object that can't change.
    Tuple(Py<PyAny>),
    /// By their names.
    Names,
}

/// The short way to some columns.
struct Way {
    given: Given,
    names: Vec<Py<PyString>>,
    types: Vec<DataType>,
    access: Weak<Access>,
}

/// Whether an object is a name. Only plain texts are compared: no code of others runs.
fn is_same(one: &Bound<'_, PyAny>, other: &Py<PyString>) -> bool {
    let is_equal = || one.cast_exact::<PyString>().is_ok() && one.eq(other.bind(one.py())).unwrap_or(false);
    one.as_ptr() == other.as_ptr() || is_equal()
}

impl Way {
    /// Whether it is the one to these columns.
    fn is_to(&self, columns: Option<&Bound<'_, PyAny>>) -> bool {
        let Some(columns) = columns else { return matches!(self.given, Given::All) };
        match &self.given {
            Given::All => return false,
            Given::Tuple(given) if given.as_ptr() == columns.as_ptr() => return true,
            Given::Tuple(_) | Given::Names => {}
        }
        let mut names = self.names.iter();
        if let Ok(columns) = columns.cast_exact::<PyTuple>() {
            return columns.len() == self.names.len()
                && columns.iter_borrowed().all(|column| names.next().is_some_and(|name| is_same(&column, name)));
        }
        columns.cast_exact::<PyList>().is_ok_and(|columns| {
            columns.len() == self.names.len()
                && columns.iter().all(|column| names.next().is_some_and(|name| is_same(&column, name)))
        })
    }

    /// The words of new values, if it is the way to their columns and each is plainly a value of its column's type.
    fn words(&self, changes: &Bound<'_, PyDict>) -> Option<[u64; COLUMNS_MAX]> {
        let mut words = [0; COLUMNS_MAX];
        for (at, (column, value)) in changes.iter().enumerate() {
            if !is_same(&column, self.names.get(at)?) {
                return None;
            }
            words[at] = word_of(&value, self.types[at])?;
        }
        Some(words)
    }
}

/// The whole number that an object is, if it is exactly one.
fn integer(value: &Bound<'_, PyAny>) -> Option<i64> {
    value.cast_exact::<PyInt>().ok()?.extract().ok()
}

/// The word of a value in a column of this type, if it is plainly one.
fn word_of(value: &Bound<'_, PyAny>, data_type: DataType) -> Option<u64> {
    let fitting = |number: i64, fits: bool| fits.then_some(number as u64);
    match data_type {
        DataType::BigInt => integer(value).map(|number| number as u64),
        DataType::Integer => integer(value).and_then(|number| fitting(number, i32::try_from(number).is_ok())),
        DataType::SmallInt => integer(value).and_then(|number| fitting(number, i16::try_from(number).is_ok())),
        DataType::Double => Some(value.cast_exact::<PyFloat>().ok()?.value().to_bits()),
        DataType::Boolean => Some(u64::from(value.cast_exact::<PyBool>().ok()?.is_true())),
        _ => None,
    }
}

/// Whether words of this type become objects here.
fn is_plain(data_type: DataType) -> bool {
    use DataType::{BigInt, Boolean, Decimal, Double, Integer, Real, SmallInt};

    matches!(data_type, BigInt | Integer | SmallInt | Double | Real | Boolean | Decimal { .. })
}

/// The one number of a key.
fn number_of(key: &Bound<'_, PyAny>) -> Option<i64> {
    integer(key).or_else(|| match key.cast_exact::<PyTuple>() {
        Ok(parts) if parts.len() == 1 => integer(&parts.get_item(0).ok()?),
        _ => None,
    })
}

fn object<'py>(
    py: Python<'py>,
    access: &PointAccess,
    (at, word): (usize, u64),
    data_type: DataType,
) -> PyResult<Bound<'py, PyAny>> {
    match data_type {
        DataType::BigInt | DataType::Integer | DataType::SmallInt => (word as i64).into_bound_py_any(py),
        DataType::Double => f64::from_bits(word).into_bound_py_any(py),
        _ => Ok(object_of(py, &access.value(at, word))?.unwrap_or_else(|| py.None().into_bound(py))),
    }
}

/// The native half of a table: the calls for one row that is in memory.
#[pyclass(frozen, subclass, module = "lstore._lstore")]
pub(crate) struct NativeTable {
    session: Py<NativeSession>,
    reads: Mutex<Vec<Way>>,
    changes: Mutex<Vec<Way>>,
}

impl NativeTable {
    /// The row as a dictionary; `None` where a statement is to find it.
    fn read<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        columns: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(key) = number_of(key) else { return Ok(None) };
        let Some(ways) = self.reads.try_lock() else { return Ok(None) };
        let Some(way) = ways.iter().find(|way| way.is_to(columns)) else { return Ok(None) };
        let Some(access) = way.access.upgrade() else { return Ok(None) };
        let mut words = [0; COLUMNS_MAX];
        let words = &mut words[..way.names.len()];
        // An error comes again where it is read by a statement.
        let read = |open: &mut Open| access.newest(&open.session, key, words);
        let Some(nulls) = self.session.get().at_once(read) else { return Ok(None) };
        let row = PyDict::new(py);
        for (at, name) in way.names.iter().enumerate() {
            let value = match nulls >> at & 1 {
                0 => object(py, access.point(), (at, words[at]), way.types[at])?,
                _ => py.None().into_bound(py),
            };
            row.set_item(name, value)?;
        }
        Ok(Some(row))
    }

    /// Changes columns of a row; whether there is one, `None` where a statement is to change it.
    fn change(&self, py: Python<'_>, key: &Bound<'_, PyAny>, changes: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        let (Some(key), Ok(changes)) = (number_of(key), changes.cast_exact::<PyDict>()) else { return Ok(None) };
        let Some(ways) = self.changes.try_lock() else { return Ok(None) };
        let of_these = |way: &Way| {
            if way.names.len() != changes.len() {
                return None;
            }
            Some((way.words(changes)?, way.access.upgrade()?))
        };
        let Some((words, access)) = ways.iter().find_map(of_these) else { return Ok(None) };
        let words = &words[..changes.len()];
        let changed = self.session.get().at_once(|open| access.change(&open.session, key, words).transpose());
        changed.transpose().map_err(|error| Fault::from(error).raised(py))
    }

    /// Notes the way that a prepared statement stands for.
    fn note(&self, ways: &Mutex<Vec<Way>>, given: Given, names: &[Bound<'_, PyString>], statement: &str) {
        let noted = self.session.get().at_once(|open| {
            let prepared = open.statements.last(statement)?.clone();
            let point = open.session.access_by_key(&prepared)?;
            let types: Vec<DataType> = (0..names.len()).map(|at| point.data_type(at)).collect();
            let fits = names.len() == point.columns().len() && names.len() <= COLUMNS_MAX;
            if !fits || !types.iter().all(|data_type| is_plain(*data_type)) {
                return None;
            }
            Some((types, open.statements.keep(Access::new(point))))
        });
        let (Some((types, access)), Some(mut ways)) = (noted, ways.try_lock()) else { return };
        ways.retain(|way| way.access.strong_count() > 0);
        let names = names.iter().map(|name| name.clone().unbind()).collect();
        ways.push(Way { given, names, types, access });
    }
}

#[pymethods]
impl NativeTable {
    #[new]
    fn new(connection: &Bound<'_, PyAny>, name: &Bound<'_, PyAny>) -> PyResult<NativeTable> {
        // The Python half keeps the name.
        let _ = name;
        let session = connection.getattr(intern!(connection.py(), "_session"))?.cast_into::<NativeSession>()?.unbind();
        Ok(NativeTable { session, reads: Mutex::default(), changes: Mutex::default() })
    }

    /// The row with a key, all of its columns or some; `None` if there is none.
    #[pyo3(signature = (key, columns = None))]
    fn get<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        columns: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().read(slf.py(), key, columns)? {
            Some(row) => Ok(row.into_any()),
            None => slf.call_method1(intern!(slf.py(), "_get"), (key, columns)),
        }
    }

    /// Changes columns of the row with a key; whether there is one.
    fn update<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        changes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().change(slf.py(), key, changes)? {
            Some(is_found) => Ok(PyBool::new(slf.py(), is_found).to_owned().into_any()),
            None => slf.call_method1(intern!(slf.py(), "_update"), (key, changes)),
        }
    }

    /// Notes that `statement` reads these columns of a row by its key, for `get`.
    #[pyo3(signature = (given, names, statement))]
    fn _note_read(&self, given: Option<Bound<'_, PyAny>>, names: Vec<Bound<'_, PyString>>, statement: &str) {
        let given = match given {
            None => Given::All,
            Some(given) if given.cast_exact::<PyTuple>().is_ok() => Given::Tuple(given.unbind()),
            Some(_) => Given::Names,
        };
        self.note(&self.reads, given, &names, statement);
    }

    /// Notes that `statement` sets these columns of a row by its key, for `update`.
    fn _note_change(&self, names: Vec<Bound<'_, PyString>>, statement: &str) {
        self.note(&self.changes, Given::Names, &names, statement);
    }
}
