//! For tests: a program in DuckDB's place that knows the answers beforehand.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use engine::Database;
use serde_json::{Map, Value};

use super::answers::Row;
use super::session;
use super::turns::{Query, rows_here};

/// A package `duckdb` for Python that gives recorded rows.
const RECORDED: &str = r#"
import json, os
__version__ = "of a test"
KNOWN = json.load(open(os.path.join(os.path.dirname(__file__), "answers.json")))
class Connection:
    def execute(self, text):
        self.rows = KNOWN.get(text, [])
        return self
    def fetchone(self):
        return self.rows[0] if self.rows else None
    def fetchall(self):
        return self.rows
def connect():
    return Connection()
"#;

/// Makes a program `python` in a folder, with a DuckDB that gives the answers of a database, those of the first query changed by
/// `change`.
pub(crate) fn python(db: &Database, folder: &Path, queries: &[Query], change: fn(&mut Vec<Row>)) {
    let mut known = Map::new();
    let mut session = session(db, 1);
    for (at, query) in queries.iter().enumerate() {
        let mut rows = rows_here(&mut session, query).unwrap();
        if at == 0 {
            change(&mut rows);
        }
        known.insert(query.text.clone(), serde_json::to_value(rows).unwrap());
    }
    let package = folder.join("package");
    fs::create_dir(&package).unwrap();
    fs::write(package.join("duckdb.py"), RECORDED).unwrap();
    fs::write(package.join("answers.json"), Value::Object(known).to_string()).unwrap();
    let python = folder.join("python");
    fs::write(&python, format!("#!/bin/sh\nPYTHONPATH='{}' exec python3 \"$@\"\n", package.display())).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
}
