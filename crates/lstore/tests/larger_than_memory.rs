//! A database of several times the memory limit, from the command line: it is filled, read, changed, opened again and verified.
#![cfg(feature = "program")]
mod common;

use std::path::Path;

use common::{Ran, lstore};

const LIMIT: &str = "4MB";
const ROWS: u64 = 9_000;

/// A text of 1,024 characters that no encoding makes shorter than half.
fn text_of(id: &str) -> String {
    let parts = (1..=32).map(|part| format!("md5(cast({id} * {part} as text))"));
    parts.collect::<Vec<_>>().join(" || ")
}

fn run(dir: &Path, statement: &str) -> Ran {
    let dir = dir.display().to_string();
    lstore([&dir, "--memory-limit", LIMIT, "--format", "csv", "--no-header", "-c", statement])
}

/// Every row, the sum of versions, and a few rows by key and as of a commit.
fn check(dir: &Path, loaded: &str, changed: u64) {
    let all = run(dir, "select count(*), sum(version), sum(length(what)), count(distinct id) from t").ok().out;
    assert_eq!(all, format!("{ROWS},{changed},{},{ROWS}\n", ROWS * 1_024));
    let text = text_of("id");
    let differing = run(dir, &format!("select count(*) from t where what <> {text} and id % 50 = 0")).ok().out;
    assert_eq!(differing, "0\n");
    for id in [1, 777, 8_345, ROWS] {
        let found = run(dir, &format!("select version, what = {text} from t where id = {id}")).ok().out;
        assert_eq!(found, format!("{},t\n", u64::from(changed > 0 && id % 3 == 0)));
    }
    let before = format!("select sum(version) from t for system_time as of {loaded}");
    assert_eq!(run(dir, &before).ok().out, "0\n");
}

#[test]
fn a_table_of_several_times_the_limit_is_filled_read_changed_opened_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    let text = text_of("i");
    let mut script = "create table t (id bigint primary key, version bigint, what text);".to_owned();
    for from in (1..=ROWS).step_by(1_000) {
        let to = from + 999;
        script += &format!("insert into t select i, 0, {text} from generate_series({from}, {to}) as g(i);");
    }
    run(&dir, &script).ok();
    let loaded = run(&dir, "select lstore_commit()").ok().out;
    check(&dir, loaded.trim(), 0);
    run(&dir, "update t set version = 1 where id % 3 = 0").ok();
    check(&dir, loaded.trim(), ROWS / 3);
    let away = "select count(*) from t; select bytes > 4000000 from lstore_memory where kind = 'evicted'";
    assert_eq!(run(&dir, away).ok().out.lines().last(), Some("t"));
    let verified = lstore(["verify", &dir.display().to_string(), "--memory-limit", LIMIT]).ok().out;
    assert!(verified.contains("9,000 rows in 12,000 versions") && verified.contains("no fault"), "{verified}");
    // Uncommitted rows can't be evicted.
    let refused = run(&dir, &format!("insert into t select i, 0, {text} from generate_series(30001, 40000) as g(i)"));
    let refused = refused.failed(1);
    assert!(refused.contains("out of memory") && refused.contains("commit smaller transactions"), "{refused}");
    check(&dir, loaded.trim(), ROWS / 3);
}

#[test]
fn a_database_is_opened_with_the_limit_that_it_remembers_unless_another_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db").display().to_string();
    let limit = |more: &[&str]| {
        let asked = [&[&*dir, "--format", "csv", "--no-header", "-c", "show memory_limit"], more].concat();
        lstore(asked).ok().out.trim().to_owned()
    };
    lstore([&dir, "-c", "alter database lstore set memory_limit = '64MB'"]).ok();
    assert_eq!((limit(&[]), limit(&["--memory-limit", "96MB"])), ("64MB".to_owned(), "96MB".to_owned()));
    lstore([&dir, "-c", "alter database lstore reset memory_limit"]).ok();
    assert_ne!(limit(&[]), "64MB");
}
