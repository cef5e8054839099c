//! The native half of the Python package `lstore`: sessions, rows and values, and Arrow data across the border without copies.
//!
//! The package's other half is Python (`crates/python/lstore`): it has the interfaces that people use, and calls this one.
//!
//! ```text
//! lstore.Connection ── Python ──▶ NativeSession ── sql::Session ──▶ rows ──▶ NativeRows ──▶ tuples, or Arrow by C structures
//!          parameters ──▶ Parameter ──▶ Value      (no interpreter lock from here on)
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `c_data` | Arrow's C data interface: schemas, arrays and streams in both directions; all pointers are here |
//! | `errors` | errors of SQL and the engine as Python's exceptions |
//! | `process` | which process a database belongs to: a fork has none of its threads |
//! | `interrupt` | Ctrl-C ends the statement of the main thread |
//! | `progress` | how far a long statement has come |
//! | `parameter`, `placeholders` | parameters from Python's values, and where they stand in a statement |
//! | `calls`, `functions` | Python's functions as functions of SQL, and what holds while one is called |
//! | `objects` | values of Arrow arrays as Python's objects |
//! | `arrays` | arrays in memory with snapshots |
//! | `database`, `statements`, `session`, `rows`, `append` | what the Python half holds |
//! | `access`, `table` | rows by their keys, without a statement |
mod access;
mod append;
mod arrays;
mod c_data;
mod calls;
mod capsule;
mod database;
mod errors;
mod functions;
mod interrupt;
mod objects;
mod parameter;
mod placeholders;
mod process;
mod progress;
mod rows;
mod session;
mod statements;
mod table;

use pyo3::prelude::*;

/// The native half of the package `lstore`.
#[pymodule]
mod _lstore {
    use super::{Bound, PyModule, PyModuleMethods, PyResult};
    #[pymodule_export]
    use crate::arrays::{NativeArray, NativeArraySnapshot};
    #[pymodule_export]
    use crate::database::NativeDatabase;
    #[pymodule_export]
    use crate::placeholders::numbered;
    #[pymodule_export]
    use crate::process::forked;
    #[pymodule_export]
    use crate::rows::NativeRows;
    #[pymodule_export]
    use crate::session::NativeSession;
    #[pymodule_export]
    use crate::table::NativeTable;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
