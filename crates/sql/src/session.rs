//! One connection: its settings, its open transaction, and the dispatch of statements.
use std::sync::Arc;

use crate::{Outcome, Progress, SqlError};

/// Whether `COPY` may touch files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// `COPY` from or to a file is refused.
    #[default]
    Denied,
    /// `COPY` reads and writes files with the rights of this process.
    Allowed,
}

/// How a session behaves.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Whether `COPY` may touch files.
    pub files: FileAccess,
    /// How many partitions a query runs in; the number of cores where it is not given.
    pub target_partitions: Option<usize>,
}

/// One connection to a database.
pub struct Session {
    db: engine::Database,
    options: SessionOptions,
    progress: Option<Arc<dyn Progress>>,
}

impl Session {
    /// A connection to `db`.
    pub fn new(db: &engine::Database, options: SessionOptions) -> Session {
        Session { db: db.clone(), options, progress: None }
    }

    /// The database that this session is connected to.
    pub fn database(&self) -> &engine::Database {
        &self.db
    }

    /// Has `progress` told of statements that read or write files.
    pub fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        self.progress = Some(progress);
    }

    /// Runs exactly one statement (a trailing `;` is allowed) and blocks until its first rows or its end.
    pub fn execute(&mut self, statement: &str) -> Result<Outcome, SqlError> {
        let _ = (statement, &self.options, &self.progress);
        Err(SqlError::new("0A000", "not supported yet"))
    }
}
