//! The benchmark on a few rows, beside a program in DuckDB's place that knows the answers beforehand.
use std::fs;
use std::path::Path;

use clap::{Args, Command, FromArgMatches};

use super::tables::TABLES;
use super::*;
use crate::Quiet;
use crate::beside::{Query, quoted, recorded, session};

const QUERIES: [&str; 2] = [
    "SELECT ib_lower_bound, avg(ib_upper_bound) FROM income_band GROUP BY 1 ORDER BY 1",
    "SELECT count(*), max(d_date) FROM date_dim",
];

/// A folder with the files that a first run makes, of a row a table, and a Python whose DuckDB gives the answers.
fn prepared(change: fn(&mut Vec<Vec<Option<String>>>)) -> tempfile::TempDir {
    let (db, folder) = (Database::in_memory(), tempfile::tempdir().unwrap());
    let files = folder.path().join("data.beside").join("tpcds-sf0.01");
    fs::create_dir_all(&files).unwrap();
    let mut session = session(&db, 1);
    let mut run = |text: &str| drop(session.execute(text).unwrap_or_else(|error| panic!("{text}: {error}")));
    for table in &TABLES {
        run(&format!("CREATE TABLE {} ({}, PRIMARY KEY ({}))", table.name, table.columns, table.key));
        let key: Vec<&str> = table.key.split(", ").collect();
        let ones = vec!["1"; key.len()].join(", ");
        run(&format!("INSERT INTO {} ({}) VALUES ({ones})", table.name, table.key));
    }
    run("UPDATE income_band SET ib_lower_bound = 7, ib_upper_bound = 9");
    let mut queries: Vec<Query> =
        QUERIES.iter().map(|text| Query { name: String::new(), text: (*text).to_owned() }).collect();
    for table in &TABLES {
        run(&format!("COPY {} TO {} (FORMAT parquet)", table.name, quoted(&data::file(&files, table))));
        queries.push(Query { name: String::new(), text: format!("SELECT count(*) FROM {}", table.name) });
    }
    recorded::python(&db, folder.path(), &queries, change);
    let texts = serde_json::to_string(&QUERIES).unwrap();
    fs::write(folder.path().join("data.beside").join("tpcds-queries.json"), texts).unwrap();
    folder
}

fn run(db: &Database, folder: &Path, more: &[&str]) -> (Result<(), LabError>, String) {
    let (dir, python) = (folder.join("data"), folder.join("python"));
    let args =
        ["tpcds", "--sf", "0.01", "--runs", "1", "--dir", dir.to_str().unwrap(), "--python", python.to_str().unwrap()];
    let command = TpcdsArgs::augment_args(Command::new("tpcds"));
    let found = command.try_get_matches_from(args.iter().chain(more)).unwrap();
    let args = TpcdsArgs::from_arg_matches(&found).unwrap();
    let mut out = Vec::new();
    let ended = bench(&args, db, &Quiet, &mut out);
    (ended, String::from_utf8(out).unwrap())
}

#[test]
fn the_queries_run_in_turns_on_tables_that_are_loaded_once() {
    let (db, folder) = (Database::in_memory(), prepared(|_| {}));
    let (ended, out) = run(&db, folder.path(), &[]);
    ended.unwrap();
    assert!(out.starts_with("TPC-DS, scale factor 0.01, beside DuckDB of a test in memory"), "{out}");
    assert!(out.contains(" q01 ") && out.contains(" q02 ") && !out.contains("differs"), "{out}");
    let (ended, out) = run(&db, folder.path(), &["--only", "2", "--json"]);
    ended.unwrap();
    assert!(out.starts_with("{\"bench\":\"tpcds\",\"case\":\"q02 threads 1\",\"metric\":\"time\""), "{out}");
    assert!(!out.contains("q01"), "{out}");
}

#[test]
fn what_differs_and_what_fails_is_told_by_query() {
    let (db, folder) = (Database::in_memory(), prepared(|rows| rows[0][0] = Some("8".to_owned())));
    let path = folder.path().join("data.beside").join("tpcds-queries.json");
    let texts = serde_json::to_string(&[QUERIES[0], QUERIES[1], "SELECT nothing"]).unwrap();
    fs::write(path, texts).unwrap();
    let (ended, out) = run(&db, folder.path(), &[]);
    let why = ended.unwrap_err().to_string();
    let lines: Vec<&str> = why.lines().collect();
    assert!(lines[0].starts_with("q01 has another answer in DuckDB: the row (7, 9.0"), "{why}");
    assert!(lines[1].starts_with("q03 fails here: ") && lines.len() == 2, "{why}");
    assert!(out.contains("| differs") && out.contains("| same") && out.contains("| fails here"), "{out}");
}

#[test]
fn tables_of_another_use_are_left_alone_and_other_rows_are_replaced_on_demand() {
    let (db, folder) = (Database::in_memory(), prepared(|_| {}));
    let mut other = session(&db, 1);
    other.execute("CREATE TABLE customer (c_custkey int PRIMARY KEY)").unwrap();
    let why = run(&db, folder.path(), &[]).0.unwrap_err().to_string();
    assert_eq!(why, "table \"customer\" exists and is not that of TPC-DS; choose another directory");
    other.execute("DROP TABLE customer").unwrap();
    run(&db, folder.path(), &[]).0.unwrap();
    other.execute("DELETE FROM reason").unwrap();
    let why = run(&db, folder.path(), &[]).0.unwrap_err().to_string();
    assert!(why.contains("table \"reason\" has 0 rows where 1 are expected") && why.contains("--reload"), "{why}");
    run(&db, folder.path(), &["--reload"]).0.unwrap();
}
