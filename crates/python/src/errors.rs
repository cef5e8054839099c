//! Errors as Python's exceptions: `lstore.errors` has the classes, by SQLSTATE.
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use sql::SqlError;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// SQL or the engine refused it.
    Sql(SqlError),
    /// The object was used in a way that it does not allow: it is closed, or belongs to another process.
    Interface(&'static str),
}

impl From<SqlError> for Fault {
    fn from(error: SqlError) -> Fault {
        Fault::Sql(error)
    }
}

impl From<engine::Error> for Fault {
    fn from(error: engine::Error) -> Fault {
        Fault::Sql(error.into())
    }
}

pub(crate) const CLOSED: Fault = Fault::Interface("the connection is closed");
pub(crate) const FORKED: Fault = Fault::Interface(
    "this process was forked from one that had opened lstore: start processes with the method \"spawn\"",
);

/// A function of `lstore.errors`.
fn function<'py>(
    py: Python<'py>,
    kept: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let found = kept.get_or_try_init(py, || py.import("lstore.errors")?.getattr(name).map(Bound::unbind))?;
    Ok(found.bind(py))
}

fn sql_exception<'py>(py: Python<'py>, error: &SqlError) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let more = PyDict::new(py);
    more.set_item("position", error.position)?;
    more.set_item("hint", &error.hint)?;
    more.set_item("detail", &error.detail)?;
    if let Some(about) = &error.about {
        more.set_item("table", &about.table)?;
        more.set_item("column", &about.column)?;
        more.set_item("constraint", &about.constraint)?;
    }
    function(py, &MAKE, "of_sqlstate")?.call((error.sqlstate, &error.message), Some(&more))
}

fn interface_exception<'py>(py: Python<'py>, message: &str) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    function(py, &MAKE, "InterfaceError")?.call1((message,))
}

impl Fault {
    /// The message alone, for readers without Python.
    pub(crate) fn text(&self) -> String {
        match self {
            Fault::Sql(error) => format!("{} (SQLSTATE {})", error.message, error.sqlstate),
            Fault::Interface(message) => (*message).to_owned(),
        }
    }

    /// The exception; the one of a signal's handler where that is why a statement was cancelled.
    pub(crate) fn raised(self, py: Python<'_>) -> PyErr {
        let made = match &self {
            Fault::Sql(error) => {
                if error.sqlstate == "57014"
                    && let Err(raised) = py.check_signals()
                {
                    return raised;
                }
                sql_exception(py, error)
            }
            Fault::Interface(message) => interface_exception(py, message),
        };
        made.map_or_else(|error| error, PyErr::from_value)
    }
}

/// An exception of class `InterfaceError`.
pub(crate) fn interface(py: Python<'_>, message: &str) -> PyErr {
    interface_exception(py, message).map_or_else(|error| error, PyErr::from_value)
}

/// An exception of the class that a SQLSTATE has.
pub(crate) fn with_sqlstate(py: Python<'_>, sqlstate: &'static str, message: impl Into<String>) -> PyErr {
    Fault::Sql(SqlError::new(sqlstate, message)).raised(py)
}
