//! Sections of plans on a device: random queries give the rows of the CPU, whatever fails there and whatever others change meanwhile;
//! what goes there is chosen by cost, shown and noted.
mod choice;
mod loops;
mod queries;
mod residents;

use std::sync::atomic::{AtomicBool, Ordering};

use engine::Database;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{DeviceError, Offload, Session, SessionOptions};

use crate::join_order::{self, Generator};
use loops::{Fault, Loops};
use queries::{Queries, orders, plan, rows, run, sorted};

/// A session with a device, which takes all that it can.
fn forced(db: &Database, offload: Offload, partitions: usize) -> Session {
    let options =
        SessionOptions { target_partitions: Some(partitions), offload: Some(offload), ..SessionOptions::default() };
    let mut session = Session::new(db, options);
    run(&mut session, "SET gpu.enabled = force");
    session
}

#[test]
fn random_queries_give_the_rows_of_the_cpu() {
    // A table of two ranges is read in two partitions.
    for (partitions, count, queries) in [(1, 3_000, 60), (2, 70_000, 12)] {
        let (db, device) = (orders(count), Loops::new(true));
        let mut session = forced(&db, device.offload(), partitions);
        let mut alone = Session::new(&db, SessionOptions::default());
        let mut answered = 0;
        for seed in 0..queries {
            let query = Queries(StdRng::seed_from_u64(seed)).next();
            let expected = sorted(&mut alone, &query);
            assert_eq!(sorted(&mut session, &query), expected, "seed {seed}: {query}");
            answered += u64::from(plan(&mut session, &query).contains("device=loops (emulated)"));
        }
        assert!(answered * 2 > queries, "{answered} plans of {queries} use the device");
        assert!(device.calls() * 3 > queries, "{} calls", device.calls());
    }
}

#[test]
fn random_joins_give_the_rows_of_the_cpu() {
    let (mut alone, device) = (join_order::open(), Loops::new(true));
    let mut session = forced(alone.database(), device.offload(), 2);
    for seed in 0..60 {
        let query = format!("SELECT * FROM ({}) q LIMIT 200000", Generator(StdRng::seed_from_u64(seed)).query());
        assert_eq!(sorted(&mut session, &query), sorted(&mut alone, &query), "seed {seed}: {query}");
    }
    assert!(device.calls() > 20, "{} calls", device.calls());
}

#[test]
fn whatever_fails_on_the_device_the_rows_are_those_of_the_cpu() {
    let db = orders(3_000);
    let mut alone = Session::new(&db, SessionOptions::default());
    let mut went_on = 0;
    for seed in 0..40 {
        let device = Loops::new(true);
        let mut session = forced(&db, device.offload(), 1);
        // Portions of the least size, so that some are answered before one is not.
        run(&mut session, "SET gpu.memory_limit = '60kB'");
        let why = "no answer".to_owned();
        let error = [DeviceError::Declined(why.clone()), DeviceError::Full(why.clone()), DeviceError::Lost(why)];
        device.fail(Fault::Every(1 + seed % 4, error[seed as usize % 3].clone()));
        for query in 0..3 {
            let query = Queries(StdRng::seed_from_u64(seed * 3 + query)).next();
            assert_eq!(sorted(&mut session, &query), sorted(&mut alone, &query), "seed {seed}: {query}");
        }
        let continued =
            "SELECT count(*) FROM lstore_device_decisions WHERE continued_on_cpu = 'no answer' AND portions > 0";
        went_on += rows(&mut session, continued).unwrap()[0][0].as_ref().unwrap().parse::<u64>().unwrap();
    }
    assert!(went_on > 2, "{went_on} sections went on after a portion of the device's");
}

#[test]
fn a_lost_device_is_asked_no_more() {
    let (db, device) = (orders(3_000), Loops::new(true));
    let mut session = forced(&db, device.offload(), 2);
    let query = "SELECT small, sum(price) FROM orders GROUP BY small";
    device.fail(Fault::Every(1, DeviceError::Lost("it fell off the bus".to_owned())));
    let lost = sorted(&mut session, query).unwrap();
    device.fail(Fault::Never);
    assert!(!plan(&mut session, query).contains("device="));
    assert!(sorted(&mut session, query).unwrap() == lost && device.calls() == 1);
    let told = rows(&mut session, "SELECT lost, calls, calls_refused FROM lstore_devices").unwrap();
    assert_eq!(told, [[Some("it fell off the bus".to_owned()), Some("0".to_owned()), Some("1".to_owned())]]);
    let noted = "SELECT reason, continued_on_cpu FROM lstore_device_decisions ORDER BY number";
    let noted = rows(&mut session, noted).unwrap();
    assert_eq!(noted[0], [Some("forced".to_owned()), Some("it fell off the bus".to_owned())]);
    assert_eq!(noted[1], [Some("the device is lost".to_owned()), None]);
}

/// Ends the writer of a test, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_table_under_update_is_read_as_of_the_snapshot() {
    let (db, device) = (Database::in_memory(), Loops::new(true));
    let mut session = forced(&db, device.offload(), 2);
    run(&mut session, "CREATE TABLE account (id int PRIMARY KEY, branch int, amount numeric(15,2))");
    run(&mut session, "INSERT INTO account SELECT i, i % 10, 100 FROM generate_series(1, 5000) s (i)");
    db.merge_now();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let change = || {
            let mut random = StdRng::seed_from_u64(7);
            let mut writer = Session::new(&db, SessionOptions::default());
            while !is_over.load(Ordering::Relaxed) {
                let (from, to) = (random.random_range(1..=5000), random.random_range(1..=5000));
                // Amounts move between accounts, and accounts between branches; their sum stays.
                run(&mut writer, "BEGIN");
                run(&mut writer, &format!("UPDATE account SET amount = amount - 7 WHERE id = {from}"));
                run(
                    &mut writer,
                    &format!("UPDATE account SET amount = amount + 7, branch = branch % 9 + 1 WHERE id = {to}"),
                );
                run(&mut writer, "COMMIT");
                if random.random_range(0..20) == 0 {
                    db.merge_now();
                }
            }
        };
        scope.spawn(change);
        let over = Over(&is_over);
        for _ in 0..15 {
            run(&mut session, "BEGIN ISOLATION LEVEL REPEATABLE READ");
            let query = "SELECT branch, sum(amount), count(*), min(amount), max(id) FROM account GROUP BY branch";
            let here = sorted(&mut session, query).unwrap();
            run(&mut session, "SET LOCAL gpu.enabled = off");
            assert_eq!(sorted(&mut session, query).unwrap(), here);
            run(&mut session, "COMMIT");
            let all =
                "SELECT sum(s), sum(c) FROM (SELECT branch, sum(amount) s, count(*) c FROM account GROUP BY branch) q";
            assert_eq!(rows(&mut session, all).unwrap()[0], [Some("500000.00".to_owned()), Some("5000".to_owned())]);
        }
        drop(over);
    });
    assert!(device.calls() >= 30, "{} calls", device.calls());
    assert!(device.resident_calls() >= 20, "{} calls", device.resident_calls());
}
