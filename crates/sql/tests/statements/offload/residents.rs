//! Groupings of tables whose columns stay on the device: whatever was changed, rolled back or merged meanwhile, they give the rows of
//! the CPU.
use std::sync::{Arc, Mutex};

use engine::{Database, OpenOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Session, SessionOptions};

use super::forced;
use super::loops::Loops;
use super::queries::{plan, rows, run, sorted};

/// A table of several ranges, all of them merged.
fn merged(count: u64) -> Database {
    let options = OpenOptions { range_records: Some(1024), ..OpenOptions::default() };
    let db = Database::in_memory_with(&sql::with_expressions(options));
    let mut session = Session::new(&db, SessionOptions::default());
    run(
        &mut session,
        "CREATE TABLE sale (id int PRIMARY KEY, shop int, day smallint, amount bigint, price numeric(12,2))",
    );
    let rows = "SELECT i, i % 7, i % 5, i * 3, nullif(i % 100, 50) * 0.25 FROM generate_series";
    run(&mut session, &format!("INSERT INTO sale {rows}(1, {count}) s (i)"));
    db.merge_now();
    db
}

/// A query on the device and on the CPU, of one snapshot.
fn compare(session: &mut Session, query: &str) {
    run(session, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    let here = sorted(session, query).unwrap();
    run(session, "SET LOCAL gpu.enabled = off");
    assert_eq!(here, sorted(session, query).unwrap(), "{query}");
    run(session, "COMMIT");
}

const BY_SHOP: &str = "SELECT shop, count(*), sum(amount), min(amount), max(id) FROM sale GROUP BY shop";

fn residents(session: &mut Session) -> Vec<Vec<Option<String>>> {
    rows(session, "SELECT table_name, column_name, ranges, uses FROM lstore_device_residents ORDER BY 2").unwrap()
}

#[test]
fn columns_of_base_pages_stay_and_what_was_changed_is_read_beside_them() {
    let (db, device) = (merged(5_000), Loops::new(true));
    let mut session = forced(&db, device.offload(), 2);
    assert!(plan(&mut session, BY_SHOP).contains("resident=[shop, amount, id]"), "{}", plan(&mut session, BY_SHOP));
    compare(&mut session, BY_SHOP);
    let known = residents(&mut session);
    assert_eq!(known.len(), 3, "{known:?}");
    let ranges: u64 = known[0][2].as_ref().unwrap().parse().unwrap();
    assert!(ranges >= 4, "{known:?}");
    assert_eq!(device.resident_calls(), 1);
    let before = device.written();
    compare(&mut session, BY_SHOP);
    assert_eq!(device.written(), before, "the columns are there");
    for change in [
        "UPDATE sale SET amount = -amount WHERE id % 9 = 0",
        "UPDATE sale SET shop = shop + 1 WHERE id BETWEEN 1500 AND 1600",
        "DELETE FROM sale WHERE id % 11 = 3",
        "INSERT INTO sale SELECT i, i % 9, 1, i, NULL FROM generate_series(6001, 6100) s (i)",
    ] {
        run(&mut session, change);
        compare(&mut session, BY_SHOP);
        compare(&mut session, "SELECT shop, sum(amount) FROM sale WHERE day IN (1, 3) AND id < 4000 GROUP BY shop");
    }
    db.merge_now();
    compare(&mut session, BY_SHOP);
    assert!(device.written() > before, "the merge has made new pages");
    run(&mut session, "DROP TABLE sale");
    run(&mut session, "CREATE TABLE sale (id int PRIMARY KEY, shop int, day smallint, amount bigint)");
    compare(&mut session, BY_SHOP);
}

#[test]
fn two_readers_of_different_ages_find_their_own_pages() {
    let (db, device) = (merged(3_000), Loops::new(true));
    let offload = device.offload();
    let [mut old, mut new] = [(); 2].map(|()| forced(&db, offload.clone(), 1));
    run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    let expected = sorted(&mut old, BY_SHOP).unwrap();
    for round in 0..4 {
        run(&mut new, &format!("UPDATE sale SET amount = amount + {round} WHERE id % 3 = 0"));
        db.merge_now();
        compare(&mut new, BY_SHOP);
        assert_eq!(sorted(&mut old, BY_SHOP).unwrap(), expected, "round {round}");
    }
    run(&mut old, "COMMIT");
    compare(&mut old, BY_SHOP);
    assert!(device.resident_calls() >= 9, "{} calls", device.resident_calls());
}

#[test]
fn whatever_happens_to_the_table_the_rows_are_those_of_the_cpu() {
    for seed in 0..6 {
        let (db, device) = (merged(2_500), Loops::new(true));
        let (mut session, mut random) = (forced(&db, device.offload(), 2), StdRng::seed_from_u64(seed));
        for _ in 0..25 {
            let id = random.random_range(1..2_600);
            let change = match random.random_range(0..9) {
                0 => format!("DELETE FROM sale WHERE id % 40 = {}", id % 40),
                1 => format!("INSERT INTO sale VALUES ({id}, {}, 1, {id}, 4) ON CONFLICT DO NOTHING", id % 11),
                2 => format!("UPDATE sale SET shop = NULL WHERE id BETWEEN {id} AND {}", id + 3),
                3 => format!("UPDATE sale SET amount = amount + 5, day = 6 WHERE id > {id}"),
                4 => format!("BEGIN; DELETE FROM sale WHERE id < {id}; ROLLBACK"),
                5 => format!("UPDATE sale SET price = price * 2 WHERE id % 17 = {}", id % 17),
                _ => "SELECT 1".to_owned(),
            };
            change.split("; ").for_each(|text| run(&mut session, text));
            if random.random_range(0..3) == 0 {
                db.merge_now();
            }
            let keys = ["shop", "day", "shop, day", "id"][random.random_range(0..4)];
            let test = ["", "WHERE id % 2 = 0", "WHERE amount > 3000", "WHERE day = 2"][random.random_range(0..4)];
            let totals = ["sum(price), count(price)", "avg(amount)", "min(price), max(day)"][random.random_range(0..3)];
            compare(&mut session, &format!("SELECT {keys}, count(*), {totals} FROM sale {test} GROUP BY {keys}"));
        }
        assert!(device.resident_calls() > 3, "seed {seed}: {} calls", device.resident_calls());
    }
}

#[test]
fn columns_that_nobody_uses_make_room_for_others() {
    let (db, device) = (merged(5_000), Loops::new(true));
    let offload = device.offload();
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = told.clone();
    offload.log_to(move |line| log.lock().unwrap().push(line.to_owned()));
    let mut session = forced(&db, offload, 1);
    run(&mut session, "CREATE TABLE other AS SELECT id AS k, shop AS a, amount AS b FROM sale");
    db.merge_now();
    run(&mut session, "SET gpu.memory_limit = '200kB'");
    for _ in 0..3 {
        compare(&mut session, BY_SHOP);
        assert!(residents(&mut session).iter().all(|line| line[0].as_deref() == Some("sale")));
        compare(&mut session, "SELECT a, sum(b), max(k) FROM other GROUP BY a");
        assert!(residents(&mut session).iter().all(|line| line[0].as_deref() == Some("other")));
    }
    assert_eq!(device.resident_calls(), 6);
    let bytes = "SELECT resident_bytes <= 204800 AND resident_bytes > 0 FROM lstore_devices";
    assert_eq!(rows(&mut session, bytes).unwrap()[0], [Some("t".to_owned())]);
    assert_eq!(told.lock().unwrap()[..], [""; 0]);
    run(&mut session, "SET gpu.memory_limit = '1kB'");
    compare(&mut session, BY_SHOP);
    let told = told.lock().unwrap();
    assert!(
        told.iter().any(|line| line.contains("goes on without the device") && line.contains("of 1024 are in use")),
        "{told:?}"
    );
}

#[test]
fn the_second_statement_that_asks_for_columns_brings_them() {
    let (db, device) = (merged(40_000), Loops::new(false));
    let options =
        SessionOptions { target_partitions: Some(4), offload: Some(device.offload()), ..SessionOptions::default() };
    let mut session = Session::new(&db, options);
    for (calls, reason) in [(0, "the CPU is cheaper"), (1, "cheaper"), (2, "cheaper")] {
        sorted(&mut session, BY_SHOP).unwrap();
        assert_eq!(device.resident_calls(), calls);
        let newest = "SELECT reason FROM lstore_device_decisions ORDER BY number DESC LIMIT 1";
        assert_eq!(rows(&mut session, newest).unwrap()[0], [Some(reason.to_owned())]);
    }
}
