//! What a statement gives back: rows that stream, or a command tag.
use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::SqlError;

/// The result of one statement.
#[derive(Debug)]
pub enum Outcome {
    /// A query's rows.
    Rows(Rows),
    /// What a command did.
    Done(Command),
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// PostgreSQL's command tag, such as `INSERT 0 3`.
    pub tag: String,
    /// Messages for the user beside the tag.
    pub notices: Vec<String>,
}

/// The rows of a query, batch by batch as they are computed.
pub struct Rows {
    schema: SchemaRef,
}

impl Rows {
    /// The names and types of the columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("schema", &self.schema).finish_non_exhaustive()
    }
}
