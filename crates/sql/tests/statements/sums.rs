//! `SELECT sum(x)` while another thread updates at full speed returns a value that some snapshot really had, and
//! one no older than what was committed before the statement began.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use engine::{Database, OpenOptions, Value};
use sql::{Outcome, Session, SessionOptions};

const ROWS: i64 = 2_000;
const STATEMENTS: usize = 1_000;

fn open() -> Database {
    let options =
        OpenOptions { range_records: Some(1 << 10), merge_tail_records: Some(1 << 7), ..OpenOptions::default() };
    let db = Database::in_memory_with(&options);
    let mut session = Session::new(&db, SessionOptions::default());
    session.execute("create table t (id bigint primary key, x bigint not null)").unwrap();
    session.execute(&format!("insert into t select i, 0 from generate_series(0, {}) as s(i)", ROWS - 1)).unwrap();
    db
}

/// Adds growing amounts to changing rows, so that no two totals are alike.
fn update_until(db: &Database, done: &AtomicBool, committed: &AtomicI64, totals: &Mutex<HashSet<i64>>) {
    let table = db.table("t").unwrap();
    let (mut total, mut amount) = (0, 0);
    while !done.load(Ordering::Relaxed) {
        amount += 1;
        let key = [Value::from(amount * 7_919 % ROWS)];
        let mut transaction = db.begin().unwrap();
        let row = transaction.get(&table, &key).unwrap().expect("no row was deleted");
        let Value::BigInt(x) = row[1] else { panic!("x is a bigint") };
        transaction.update(&table, &key, &[("x", Value::from(x + amount))]).unwrap();
        total += amount;
        totals.lock().unwrap().insert(total);
        transaction.commit().unwrap();
        committed.store(total, Ordering::Release);
    }
}

fn sum(session: &mut Session) -> i64 {
    let Outcome::Rows(rows) = session.execute("select cast(sum(x) as numeric(38, 0)) from t").unwrap() else {
        panic!("a query has rows")
    };
    let batches: Vec<_> = rows.map(Result::unwrap).filter(|batch| batch.num_rows() > 0).collect();
    i64::try_from(batches[0].column(0).as_primitive::<Decimal128Type>().value(0)).unwrap()
}

#[test]
fn a_thousand_sums_under_a_full_speed_updater_are_sums_of_snapshots() {
    let db = open();
    let (done, committed) = (AtomicBool::new(false), AtomicI64::new(0));
    let totals = Mutex::new(HashSet::from([0]));
    std::thread::scope(|scope| {
        scope.spawn(|| update_until(&db, &done, &committed, &totals));
        let mut session = Session::new(&db, SessionOptions::default());
        let mut last = 0;
        for _ in 0..STATEMENTS {
            let before = committed.load(Ordering::Acquire);
            let sum = sum(&mut session);
            if !totals.lock().unwrap().contains(&sum) || sum < before || sum < last {
                done.store(true, Ordering::Relaxed);
                panic!("{sum} is no snapshot's total; committed before: {before}, seen before: {last}");
            }
            last = sum;
        }
        done.store(true, Ordering::Relaxed);
    });
    let stats = db.table("t").unwrap().stats();
    println!("{STATEMENTS} sums, {} updates, {} merges", totals.lock().unwrap().len() - 1, stats.merges);
    assert!(stats.merges > 0, "merges ran meanwhile");
}
