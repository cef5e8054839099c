//! While SQL calls a function of Python's: the thread that does so is marked, as the function can't use the package, and the exception by
//! which it ended a statement is kept until that is raised.
use std::cell::Cell;
use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::prelude::*;
use sql::SqlError;

use crate::errors::Fault;

/// A function uses the package.
pub(crate) const INSIDE: Fault =
    Fault::Interface("a function that SQL calls can't use lstore: it would wait for the statement that called it");

/// The exception by which a function of a session ended a statement, until that is raised.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// A fault as an exception, with the one that a function has raised as its cause.
    pub(crate) fn explain(&self, py: Python<'_>, fault: Fault) -> PyErr {
        let is_of_function = matches!(&fault, Fault::Sql(error) if error.sqlstate == "38000");
        let error = fault.raised(py);
        if is_of_function {
            error.set_cause(py, self.0.lock().take());
        }
        error
    }

    /// Keeps the exception of a function; the error that ends its statement.
    pub(crate) fn failed(&self, py: Python<'_>, error: PyErr) -> SqlError {
        let name = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
        let failed = SqlError::new("38000", format!("{name}: {}", error.value(py)));
        *self.0.lock() = Some(error);
        failed
    }
}

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a function that SQL has called.
pub(crate) fn is_inside() -> bool {
    IS_INSIDE.get()
}

/// Marks this thread as in a function while it lives.
pub(crate) struct Inside;

impl Inside {
    pub(crate) fn enter() -> Inside {
        IS_INSIDE.set(true);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}
