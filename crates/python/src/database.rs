//! Databases as Python holds them. Those of a directory are shared within the process: the second that opens a directory gets the
//! first one's database.
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use engine::{Database, OpenOptions};
use parking_lot::Mutex;
use pyo3::prelude::*;
use sql::{FileAccess, Session, SessionOptions, SqlError, parse_memory_limit};

use crate::calls::{INSIDE, is_inside};
use crate::errors::{FORKED, Fault};
use crate::process::{self, OfProcess};
use crate::session::NativeSession;

/// The databases of this process by their directories.
static OPEN: Mutex<Option<HashMap<PathBuf, Weak<OfProcess<Database>>>>> = Mutex::new(None);

/// A database.
#[pyclass(frozen, module = "lstore._lstore")]
pub(crate) struct NativeDatabase(Arc<OfProcess<Database>>);

fn opened(path: &str, read_only: bool, memory_limit: Option<&str>) -> Result<Database, Fault> {
    let limit = memory_limit.map(parse_memory_limit).transpose();
    let memory_limit_bytes = limit.map_err(|why| SqlError::new("22023", why))?.flatten();
    let options = OpenOptions { read_only, memory_limit_bytes, ..OpenOptions::default() };
    process::opens();
    if path == ":memory:" {
        if read_only {
            return Err(SqlError::new("22023", "a new database in memory has nothing to be read").into());
        }
        return Ok(Database::in_memory_with(&options));
    }
    Ok(sql::open(path, options)?)
}

/// The database in a directory, which is opened if it is not open.
fn shared(path: &str, read_only: bool, memory_limit: Option<&str>) -> Result<Arc<OfProcess<Database>>, Fault> {
    if path == ":memory:" {
        return opened(path, read_only, memory_limit).map(|database| Arc::new(OfProcess::new(database)));
    }
    let mut open = OPEN.lock();
    let open = open.get_or_insert_default();
    let place = |path: &str| std::fs::canonicalize(path).ok();
    let known = place(path).and_then(|place| open.get(&place)?.upgrade());
    if let Some(known) = known {
        if read_only || memory_limit.is_some() {
            let message = format!("the database \"{path}\" is open in this process with other settings");
            let hint = Some("Close its connections first, or leave out read_only and memory_limit.".to_owned());
            return Err(SqlError { hint, ..SqlError::new("55006", message) }.into());
        }
        return Ok(known);
    }
    let database = Arc::new(OfProcess::new(opened(path, read_only, memory_limit)?));
    open.retain(|_, known| known.strong_count() > 0);
    if let (Some(place), false) = (place(path), read_only) {
        open.insert(place, Arc::downgrade(&database));
    }
    Ok(database)
}

#[pymethods]
impl NativeDatabase {
    /// Opens the database in a directory, or a new one in memory.
    #[new]
    fn new(py: Python<'_>, path: &str, read_only: bool, memory_limit: Option<&str>) -> PyResult<NativeDatabase> {
        if is_inside() {
            return Err(INSIDE.raised(py));
        }
        if process::is_child() {
            return Err(FORKED.raised(py));
        }
        let database = py.detach(|| shared(path, read_only, memory_limit));
        database.map(NativeDatabase).map_err(|fault| fault.raised(py))
    }

    /// A session of its own.
    fn session(&self, py: Python<'_>) -> PyResult<NativeSession> {
        if process::is_child() {
            return Err(FORKED.raised(py));
        }
        let options = SessionOptions { files: FileAccess::Allowed, ..SessionOptions::default() };
        Ok(NativeSession::new(self.0.clone(), Session::new(&self.0, options)))
    }

    /// The number of the newest commit.
    fn newest_commit(&self, py: Python<'_>) -> PyResult<u64> {
        if process::is_child() {
            return Err(FORKED.raised(py));
        }
        Ok(self.0.newest_commit().0)
    }
}
