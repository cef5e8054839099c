//! Archiving and recovery to a moment from the command line.
#![cfg(feature = "program")]
mod common;

use common::{answer, lstore, sql};

#[test]
fn a_backup_and_an_archive_bring_back_any_commit_and_what_can_be_reached_is_told() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let text = |name: &str| path(name).display().to_string();
    let [data, archive, backup] = ["data", "archive", "backup"].map(text);
    lstore([&data, "--archive", &archive, "-c", "create table t (id int primary key); insert into t values (1)"]).ok();
    lstore(["backup", &data, &backup]).ok();
    // The archive is remembered.
    let commit = answer(&path("data"), "insert into t values (2); select lstore_commit()");
    sql(&path("data"), "drop table t").ok();
    let wanted = commit.trim();
    let restored = lstore(["restore", &backup, &text("then"), "--archive", &archive, "--to-lsn", wanted]).ok();
    assert!(restored.out.contains(&format!("every commit up to {wanted}")), "{restored:?}");
    assert!(restored.out.contains("no fault"), "{restored:?}");
    assert_eq!(answer(&path("then"), "select sum(id) from t"), "3\n");
    lstore(["restore", &backup, &text("backed-up")]).ok();
    assert_eq!(answer(&path("backed-up"), "select sum(id) from t"), "1\n");
    let latest = lstore(["restore", &backup, &text("latest"), "--archive", &archive]).ok();
    // The dropped table is gone, but verified nevertheless: its past can be read.
    assert!(latest.out.contains("1 tables"), "{latest:?}");
    assert!(sql(&path("latest"), "select sum(id) from t").failed(1).contains("does not exist"));
    let to_1970 = ["restore", &backup, &text("x"), "--archive", &archive, "--to-time", "1970-01-02 03:04:05"];
    let refused = lstore(to_1970).failed(2);
    assert!(refused.contains("can't restore to 1970-01-02 03:04:05+00: what is there goes from commit"), "{refused}");
    assert!(lstore(["restore", &backup, &text("x"), "--to-time", "noon"]).failed(2).contains("noon"));
    let seen = lstore(["inspect", &archive]).ok().out;
    assert!(seen.contains("commits") && seen.contains("1 to "), "{seen}");
    assert!(lstore(["inspect", &archive, "--json"]).ok().out.starts_with("{\"bytes\":"));
    assert!(lstore(["inspect", &backup]).ok().out.starts_with("Backup of log "));
    // Archived no longer.
    lstore([&data, "--no-archive", "-c", "create table u (id int)"]).ok();
    let refused = lstore(["restore", &backup, &text("y"), "--archive", &archive, "--to-lsn", "999"]).failed(2);
    assert!(refused.contains("can't restore to commit 999"), "{refused}");
}
