//! Data that goes in, stays and comes out; and bad data, which is one clear error and changes nothing.
#![cfg(feature = "program")]
mod common;

use std::fs;
use std::path::Path;

use common::{answer, sql};

const TABLE: &str = "create table t (id bigint primary key, small smallint, name text not null, price numeric(10,2), \
                     day date, ok boolean, ratio double precision);";
const ROWS: &str = "insert into t values (1, 10, 'one', 1.50, date '2024-02-29', true, 0.25), \
                    (2, -20, 'a \"quoted\", text', -0.05, null, false, null), \
                    (3, null, '', null, date '1970-01-01', null, -1e100), (4, 0, '日本', 0, null, null, 0);";
const ALL: &str = "select * from t order by id";

/// A database with the table and its rows.
fn filled(dir: &Path) {
    assert_eq!(sql(dir, &format!("{TABLE}{ROWS}")).ok().out, "CREATE TABLE\nINSERT 0 4\n");
}

#[test]
fn what_is_committed_is_there_in_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    filled(&dir);
    let before = answer(&dir, ALL);
    assert_eq!(before.lines().count(), 4);
    sql(&dir, "update t set price = price + 1 where id = 1; delete from t where id = 2").ok();
    let after = answer(&dir, "select id, price from t order by id");
    assert_eq!(after, "1,2.50\n3,\n4,0.00\n");
    sql(&dir, "drop table t").ok();
    assert!(sql(&dir, ALL).failed(1).contains("\"t\" does not exist"));
}

#[test]
fn rows_survive_the_way_through_csv_and_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    filled(&dir);
    let before = answer(&dir, ALL);
    for (format, options) in [("csv", "format csv, header true"), ("parquet", "format parquet")] {
        let file = folder.path().join(format!("t.{format}"));
        let file = file.display();
        assert_eq!(sql(&dir, &format!("copy t to '{file}' ({options})")).ok().out, "COPY 4\n");
        sql(&dir, "delete from t").ok();
        assert_eq!(sql(&dir, &format!("copy t from '{file}' ({options})")).ok().out, "COPY 4\n");
        assert_eq!(answer(&dir, ALL), before, "{format}");
    }
}

/// Each of these statements fails with a message that has these words in it, and leaves the table as it was.
#[test]
fn bad_statements_are_one_clear_error_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    filled(&dir);
    let before = answer(&dir, ALL);
    let cases = [
        ("insert into t (id, nosuch) values (9, 1)", "nosuch"),
        ("select nosuch from t", "nosuch"),
        ("select * from nosuch", "nosuch"),
        ("insert into t (id, name) values (8, 'new'), (1, 'again')", "duplicate key"),
        ("insert into t (id, name) values (null, 'x')", "null value in column \"id\""),
        ("insert into t (id, name) values (9, null)", "null value in column \"name\""),
        ("insert into t (id, small, name) values (9, 40000, 'x')", "out of range"),
        ("insert into t (id, name, price) values (9, 'x', 123456789.00)", "overflow"),
        ("insert into t (id, name, day) values (9, 'x', '2023-02-29')", "2023-02-29"),
        ("update t set id = 1 where id = 2", "duplicate key"),
        ("update t set name = null", "null value in column \"name\""),
        ("create table t (a int)", "already exists"),
        ("selec 1", "selec"),
    ];
    for (statement, words) in cases {
        let ran = sql(&dir, statement);
        assert_eq!(ran.out, "", "{statement}");
        let err = ran.failed(1);
        assert!(err.starts_with("ERROR:  ") && err.matches("ERROR").count() == 1, "{statement}: {err}");
        assert!(err.to_lowercase().contains(&words.to_lowercase()), "{statement}: {err}");
        assert_eq!(answer(&dir, ALL), before, "{statement}");
    }
}

#[test]
fn bad_files_are_one_clear_error_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    filled(&dir);
    let before = answer(&dir, ALL);
    let path = |name: &str| folder.path().join(name);
    let header = "id,small,name,price,day,ok,ratio\n";
    let files = [
        ("short.csv", format!("{header}7,1,x,1.00,2024-01-01,t,1\n8,1,x\n"), "csv, header true"),
        ("quote.csv", format!("{header}7,1,x,1.00,2024-01-01,t,1\n8,1,\"never closed"), "csv, header true"),
        ("value.csv", format!("{header}7,1,x,1.00,2024-01-01,t,1\n8,many,x,1,,,\n"), "csv, header true"),
        ("double.csv", format!("{header}7,1,x,1.00,2024-01-01,t,1\n7,1,x,1,,,\n"), "csv, header true"),
        ("no.parquet", "PAR1 is not enough".to_owned(), "parquet"),
    ];
    for (name, content, _) in &files {
        fs::write(path(name), content).unwrap();
    }
    let other = path("other.parquet");
    let make = format!(
        "create table o (name text, x double precision); insert into o values ('a', 1);
                        copy o to '{}' (format parquet)",
        other.display()
    );
    sql(&folder.path().join("other"), &make).ok();
    let missing = ("missing.csv", String::new(), "csv");
    let others = [missing, ("other.parquet", String::new(), "parquet")];
    for (name, _, options) in files.iter().chain(&others) {
        let err = sql(&dir, &format!("copy t from '{}' (format {options})", path(name).display())).failed(1);
        assert!(err.starts_with("ERROR:  ") && err.matches("ERROR").count() == 1, "{name}: {err}");
        assert_eq!(answer(&dir, ALL), before, "{name}");
    }
}

/// Labels and names of types are known to a process once it has read a catalog: so each step is a process of its own.
#[test]
fn labels_that_expressions_name_are_known_when_a_directory_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    sql(&dir, "create type mood as enum ('sad', 'happy'); create table t (id int primary key, m mood)").ok();
    sql(&dir, "alter type mood add value 'ok' before 'happy'; create index t_ok on t (id) where m = 'ok'").ok();
    sql(&dir, "insert into t values (1, 'ok'), (2, 'sad'), (3, 'happy')").ok();
    assert_eq!(answer(&dir, "select id, m from t where m = 'ok'"), "1,ok\n");
    sql(
        &dir,
        "checkpoint; alter type mood rename value 'sad' to 'blue'; create index t_blue on t (id) where m = 'blue'",
    )
    .ok();
    assert_eq!(answer(&dir, "select id, m from t order by m"), "2,blue\n1,ok\n3,happy\n");
}
