//! Sessions of one database, what their statements give as text, and how to know that one waits.
use std::thread;

use engine::Database;
use sql::{FileAccess, Outcome, Rows, Session, SessionOptions, SqlError, text_value};

/// A session that computes on one thread.
pub(crate) fn session(db: &Database) -> Session {
    Session::new(
        db,
        SessionOptions { files: FileAccess::Allowed, target_partitions: Some(1), ..SessionOptions::default() },
    )
}

/// The tag of a statement, or its rows.
pub(crate) fn run(session: &mut Session, statement: &str) -> Result<String, SqlError> {
    match session.execute(statement)? {
        Outcome::Done(command) => Ok(command.tag),
        Outcome::Rows(rows) => read(rows),
    }
}

/// Rows as text, with blanks between columns and commas between rows.
pub(crate) fn read(rows: Rows) -> Result<String, SqlError> {
    let mut lines = Vec::new();
    for batch in rows {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let cell = |array: &arrow_array::ArrayRef| text_value(array.as_ref(), row).unwrap_or("NULL".to_owned());
            lines.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(" "));
        }
    }
    Ok(lines.join(","))
}

/// What a statement gives that succeeds.
pub(crate) fn done(session: &mut Session, statement: &str) -> String {
    run(session, statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"))
}

/// Returns once so many transactions wait for a row.
pub(crate) fn until_waiting(db: &Database, count: usize) {
    while db.running_transactions().iter().filter(|running| running.waits.is_some()).count() < count {
        thread::yield_now();
    }
}
