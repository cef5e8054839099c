//! Bodies of fuzz targets: whatever a client sends is refused or done, and nothing panics.
//!
//! `fuzz/` runs them on what it invents, `tests/fuzz.rs` on the kept corpus. Nothing else calls them.
use std::cell::RefCell;
use std::io::{self, Read};

use engine::Database;

use crate::statements::copy::input::CopyInput;
use crate::{Session, SessionOptions};

/// The tables that statements may name.
const TABLES: [&str; 3] = [
    "CREATE TABLE t (id bigint PRIMARY KEY, n integer, price numeric(12, 2), name text, at timestamptz, ok boolean)",
    "CREATE TABLE u (id integer PRIMARY KEY, t_id bigint, code char(3), day date, raw bytea, x double precision)",
    "CREATE TABLE rows (id integer, n integer, price numeric(12, 2), name varchar(20), day date, ok boolean)",
];

/// The forms of rows, by the first byte.
const FORMS: [&str; 6] = [
    "",
    "(NULL 'none', DELIMITER '|')",
    "(FORMAT csv)",
    "(FORMAT csv, HEADER)",
    "(FORMAT csv, DELIMITER ';', NULL 'none', QUOTE '''')",
    "(FORMAT csv, FORCE_NOT_NULL (name))",
];

thread_local! {
    /// The session of the thread, for the sake of speed.
    static SESSION: RefCell<Session> = RefCell::new(session());
}

fn session() -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    for table in TABLES {
        session.execute(table).expect("a table of types that there are");
    }
    session
}

/// A statement, parsed and planned against three tables, and not run.
pub fn statements(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    SESSION.with_borrow_mut(|session| {
        let _ = session.prepare(&text, &[]).and_then(|prepared| session.describe(&prepared));
    });
    let _ = crate::split(&text);
}

/// Rows for `COPY FROM STDIN`: their form (8), and their bytes.
///
/// # Panics
/// If the transaction in which they came can't be rolled back.
pub fn copy(data: &[u8]) {
    let Some((form, rows)) = data.split_first() else { return };
    let form = FORMS[usize::from(*form) % FORMS.len()];
    SESSION.with_borrow_mut(|session| {
        session.execute("BEGIN").expect("no transaction goes on");
        let _ = session.execute_with_input(&format!("COPY rows FROM STDIN {form}"), &mut Rows(rows));
        session.execute("ROLLBACK").expect("a transaction goes on");
    });
}

/// The rows that a client sends.
struct Rows<'a>(&'a [u8]);

impl Read for Rows<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

impl CopyInput for Rows<'_> {
    fn begin(&mut self, _: usize, _: bool) -> io::Result<()> {
        Ok(())
    }
}
