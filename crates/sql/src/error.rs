//! The one error type of this crate, shaped as PostgreSQL's error message is.
use std::fmt;

/// Why a statement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// What went wrong, in PostgreSQL's words where it has them.
    pub message: String,
    /// The five-character SQLSTATE.
    pub sqlstate: &'static str,
    /// Where in the statement's text, as a byte offset.
    pub position: Option<usize>,
    /// What the user might do about it.
    pub hint: Option<String>,
    /// More about the case at hand.
    pub detail: Option<String>,
}

impl SqlError {
    /// An error with this SQLSTATE and message.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> SqlError {
        SqlError { message: message.into(), sqlstate, position: None, hint: None, detail: None }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlError {}
