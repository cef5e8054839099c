//! Opening a database for SQL.
//!
//! A database may have indexes of expressions, which SQL works out and the engine can't: it refuses to open such a
//! database without. So a program with sessions opens the database here, or with options that went through
//! [`with_expressions`].
use std::path::Path;
use std::sync::Arc;

use engine::{Database, OpenOptions};

use crate::planning::index_define::Expressions;

/// Opens the database in a directory, which is made if it is missing.
///
/// # Errors
/// As [`Database::open_with`].
pub fn open(directory: impl AsRef<Path>, options: OpenOptions) -> engine::Result<Database> {
    Database::open_with(directory, with_expressions(options))
}

/// Adds to the options what a database needs that may have indexes of expressions: to open it, or to verify it.
pub fn with_expressions(options: OpenOptions) -> OpenOptions {
    OpenOptions { expressions: Some(Arc::new(Expressions)), ..options }
}

/// Makes sure that indexes of expressions can be made in a database, however it was opened.
pub(crate) fn supply(db: &Database) {
    db.supply_expressions(|| Arc::new(Expressions));
}
