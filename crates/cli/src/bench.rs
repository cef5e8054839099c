//! The common parts of all benchmarks: their errors and their files. Progress and figures are those of `lab`.
use std::io;
use std::path::{Path, PathBuf};

use lab::figures::Measured;
pub use lab::{Progress, Quiet};

/// Why a benchmark did not come to its end.
#[derive(Debug)]
pub enum BenchError {
    /// The engine refused something.
    Engine(engine::Error),
    /// A statement failed; its name and why.
    Sql(String, Box<sql::SqlError>),
    /// The output does not take more.
    Output(io::Error),
    /// A measurement is wrong or impossible.
    Failed(String),
}

impl std::fmt::Display for BenchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BenchError::Engine(error) => error.fmt(f),
            BenchError::Sql(name, error) => write!(f, "{name}: {error}"),
            BenchError::Output(error) => error.fmt(f),
            BenchError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<engine::Error> for BenchError {
    fn from(error: engine::Error) -> BenchError {
        BenchError::Engine(error)
    }
}

impl From<lab::LabError> for BenchError {
    fn from(error: lab::LabError) -> BenchError {
        match error {
            lab::LabError::Output(error) => BenchError::Output(error),
            lab::LabError::Failed(why) => BenchError::Failed(why),
        }
    }
}

impl From<io::Error> for BenchError {
    fn from(error: io::Error) -> BenchError {
        BenchError::Output(error)
    }
}

/// [`lab::figures::in_turns`] with the errors of the benchmarks here.
pub(crate) fn in_turns(
    progress: &dyn Progress,
    runs: u32,
    case: &str,
    participants: usize,
    measure: impl FnMut(usize, u64) -> Result<Vec<f64>, BenchError>,
) -> Result<Measured, BenchError> {
    lab::figures::in_turns(progress, runs, case, participants, measure)
}

/// The folder of a benchmark's files, removed at the end.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A folder in `parent`, or where the program was started, for the benchmark of this name.
    pub(crate) fn new(parent: Option<PathBuf>, bench: &str) -> Result<Scratch, BenchError> {
        let parent = parent.unwrap_or_else(|| PathBuf::from("."));
        let path = parent.join(format!("lstore-bench-{bench}-{}", std::process::id()));
        let fail = |error| BenchError::Failed(format!("cannot make the folder {}: {error}", path.display()));
        std::fs::create_dir_all(&path).map_err(fail)?;
        Ok(Scratch { path })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path in it.
    pub(crate) fn sub(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory that can't be removed is left for people to see.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
