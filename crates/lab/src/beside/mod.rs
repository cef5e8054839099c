//! Queries here and in another engine, in turns within one run, and their answers compared.
//!
//! ```text
//! for 1 thread, and for as many as there are cores
//!     for each query:   here  there  here  there ...     medians; the rows of both compared
//! ```
//!
//! The other engine is a package of Python, in an environment of its own that the first run makes, with its tables in memory. Times of
//! DuckDB end with the first row, when a query that sorts or adds up has done its work; ours and DataFusion's with the last one.
use std::path::{Path, PathBuf};

use engine::Database;
use sql::{FileAccess, Session, SessionOptions};

use crate::LabError;

mod answers;
mod cpu;
mod report;
mod rival;
mod turns;

#[cfg(test)]
pub(crate) mod recorded;

pub(crate) use report::{Report, wall_ms, write_line, write_pair};
pub use rival::RivalKind;
pub(crate) use rival::{Rival, Run, done, environment, environment_with};
pub(crate) use turns::{Query, Turns, in_all_turns, rows_of, run_here};

/// The folder of what a comparison needs: beside the data, or among the user's caches where the data is in memory.
pub(crate) fn folder(dir: Option<&Path>) -> Result<PathBuf, LabError> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let caches = || std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let dir = match dir {
        Some(dir) => {
            let mut name = dir.to_path_buf().into_os_string();
            name.push(".beside");
            PathBuf::from(name)
        }
        None => caches().unwrap_or_else(std::env::temp_dir).join("lstore").join("beside"),
    };
    let fail = |error| LabError::Failed(format!("the folder {} can't be made: {error}", dir.display()));
    std::fs::create_dir_all(&dir).map_err(fail)?;
    std::path::absolute(&dir).map_err(fail)
}

/// A session that runs queries on so many threads, and copies to and from files.
pub(crate) fn session(db: &Database, threads: usize) -> Session {
    let target_partitions = Some(threads);
    Session::new(db, SessionOptions { target_partitions, files: FileAccess::Allowed, ..SessionOptions::default() })
}

/// A path as a constant of SQL.
pub(crate) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}
