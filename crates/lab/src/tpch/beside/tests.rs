//! The comparison with a program in DuckDB's place that knows the answers beforehand.
use std::fs;

use clap::{Args, Command, FromArgMatches};
use serde_json::Value;

use super::*;
use crate::Quiet;
use crate::beside::recorded;
use crate::tpch::load::load;

const SF: f64 = 0.0031;
const ALL: [usize; 22] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22];

/// A database, and a folder with a Python whose DuckDB gives the database's answers, the first query's changed by `change`.
fn prepared(change: fn(&mut Vec<Vec<Option<String>>>)) -> (Database, tempfile::TempDir) {
    let db = Database::in_memory();
    load(&db, SF, &Quiet).unwrap();
    let folder = tempfile::tempdir().unwrap();
    recorded::python(&db, folder.path(), &queries(SF, &ALL), change);
    (db, folder)
}

fn compare(db: &Database, folder: &Path, more: &[&str]) -> (Result<(), LabError>, String) {
    let (sf, dir, python) = (SF.to_string(), folder.join("data"), folder.join("python"));
    let args = ["tpch", "--sf", &sf, "--beside", "duckdb", "--runs", "1", "--dir", dir.to_str().unwrap()];
    let python = ["--python", python.to_str().unwrap()];
    let command = TpchArgs::augment_args(Command::new("tpch"));
    let found = command.try_get_matches_from(args.iter().chain(&python).chain(more)).unwrap();
    let args = TpchArgs::from_arg_matches(&found).unwrap();
    let mut out = Vec::new();
    let ended = bench_beside(&args, args.beside.unwrap(), db, &Quiet, &mut out);
    (ended, String::from_utf8(out).unwrap())
}

#[test]
fn both_run_in_turns_and_equal_answers_are_told_to_be_the_same() {
    let (db, folder) = prepared(|_| {});
    let (ended, out) = compare(&db, folder.path(), &["--writer"]);
    ended.unwrap();
    assert!(out.contains("beside DuckDB of a test in memory") && out.contains("\nThreads: 1\n"), "{out}");
    let cores = std::thread::available_parallelism().unwrap().get();
    let times = if cores > 1 { 2 } else { 1 };
    assert_eq!(out.matches("| same").count(), 22 * times, "{out}");
    assert!(out.contains("under updates; DuckDB's rows") && out.contains(" a second beside them; "), "{out}");
    assert!(folder.path().join("data.beside").join("lineitem.parquet").is_file());

    let (ended, out) = compare(&db, folder.path(), &["--json", "--writer"]);
    assert!(ended.is_err(), "a writer has changed the data");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let compared = |line: &&Value| line["baseline"] == "DuckDB" && line["metric"] == "time";
    assert_eq!(lines.iter().filter(compared).count(), 22 * 3 * times, "{out}");
}

#[test]
fn an_answer_that_differs_is_an_error_that_names_the_query() {
    let (db, folder) = prepared(|rows| rows[0][2] = Some("1.00".to_owned()));
    let (ended, out) = compare(&db, folder.path(), &[]);
    let why = ended.unwrap_err().to_string();
    assert!(why.contains("q01 has another answer in DuckDB: the row (A, F, "), "{why}");
    assert!(out.contains("| differs"), "{out}");
}

#[test]
fn a_python_without_duckdb_is_told_with_the_remedy() {
    let (db, folder) = prepared(|_| {});
    fs::write(folder.path().join("python"), "#!/bin/sh\necho nothing >&2\nexit 1\n").unwrap();
    let why = compare(&db, folder.path(), &[]).0.unwrap_err().to_string();
    assert!(why.contains("DuckDB does not start in ") && why.contains("it says nothing more"), "{why}");
}
