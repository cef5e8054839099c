//! Why a measurement did not come to its end.
use std::io;

/// Why a measurement did not come to its end.
#[derive(Debug)]
pub enum LabError {
    /// The output does not take more.
    Output(io::Error),
    /// The engine refused something.
    Engine(engine::Error),
    /// A statement failed; its name and why.
    Sql(String, Box<sql::SqlError>),
    /// A measurement is wrong or impossible.
    Failed(String),
}

impl std::fmt::Display for LabError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LabError::Output(error) => error.fmt(f),
            LabError::Engine(error) => error.fmt(f),
            LabError::Sql(name, error) => write!(f, "{name}: {error}"),
            LabError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LabError {}

impl From<engine::Error> for LabError {
    fn from(error: engine::Error) -> LabError {
        LabError::Engine(error)
    }
}

impl From<io::Error> for LabError {
    fn from(error: io::Error) -> LabError {
        LabError::Output(error)
    }
}
