//! The common parts of all benchmarks: their errors. Files, progress and figures are those of `lab`.
use std::io;

use lab::figures::Measured;
pub use lab::{Progress, Quiet};
pub(crate) use lab::{Scratch, seconds};

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
