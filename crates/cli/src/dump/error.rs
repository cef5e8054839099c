//! Why a dump fails.
use std::io;

use sql::SqlError;

/// Why there is no dump, or a part of one.
#[derive(Debug)]
pub enum DumpError {
    /// What the user is told.
    Told(String),
    /// The output does not take more.
    Output(io::Error),
}

impl From<SqlError> for DumpError {
    fn from(error: SqlError) -> DumpError {
        DumpError::Told(error.to_string())
    }
}

impl From<io::Error> for DumpError {
    fn from(error: io::Error) -> DumpError {
        DumpError::Output(error)
    }
}

/// What a part of a dump gives.
pub(super) type Result<T> = std::result::Result<T, DumpError>;
