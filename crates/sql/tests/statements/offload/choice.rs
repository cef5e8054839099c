//! What goes to a device, what does not, and what is told of it.
use engine::{Database, OpenOptions};
use sql::{Session, SessionOptions};

use super::forced;
use super::loops::Loops;
use super::queries::{orders, plan, rows, run, sorted};

const GROUPING: &str = "SELECT small, sum(price), max(far) FROM orders GROUP BY small";
const JOIN: &str = "SELECT sum(region) FROM orders JOIN customer ON customer = customer.id";

fn session(db: &Database, device: Option<&std::sync::Arc<Loops>>) -> Session {
    let offload = device.map(|device| device.offload());
    Session::new(db, SessionOptions { target_partitions: Some(1), offload, ..SessionOptions::default() })
}

fn last_reason(session: &mut Session) -> Option<String> {
    let newest = "SELECT reason FROM lstore_device_decisions ORDER BY number DESC LIMIT 1";
    rows(session, newest).unwrap().into_iter().flatten().next().flatten()
}

#[test]
fn what_is_cheaper_on_the_device_goes_there() {
    let (db, device) = (orders(60_000), Loops::new(false));
    let mut session = session(&db, Some(&device));
    for query in [GROUPING, JOIN] {
        assert!(plan(&mut session, query).contains("device=loops, "), "{}", plan(&mut session, query));
        assert_eq!(last_reason(&mut session).as_deref(), Some("cheaper"));
    }
    run(&mut session, "SET gpu.enabled = off");
    assert!(!plan(&mut session, GROUPING).contains("device="));
}

#[test]
fn point_queries_and_few_rows_stay_with_the_cpu() {
    let (db, device) = (orders(60_000), Loops::new(false));
    let mut session = session(&db, Some(&device));
    for query in [
        "SELECT small, count(*) FROM orders WHERE id = 77 GROUP BY small",
        "SELECT small, count(*) FROM orders WHERE id BETWEEN 10 AND 20 GROUP BY small",
        "SELECT price, name FROM orders JOIN customer ON customer = customer.id WHERE orders.id = 70",
        "SELECT region, count(*) FROM customer GROUP BY region",
    ] {
        assert!(!plan(&mut session, query).contains("device="), "{}", plan(&mut session, query));
        assert_eq!(last_reason(&mut session), None, "not worth a note: {query}");
    }
    assert_eq!(device.calls(), 0);
}

#[test]
fn tables_on_disk_stay_with_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let options = OpenOptions { range_records: Some(4096), ..OpenOptions::default() };
    let db = Database::open_with(folder.path(), sql::with_expressions(options)).unwrap();
    let device = Loops::new(false);
    let mut session = session(&db, Some(&device));
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x int, y bigint)");
    run(&mut session, "INSERT INTO t SELECT g, g % 1000, g FROM generate_series(1, 40000) g");
    db.merge_now();
    run(&mut session, "CHECKPOINT");
    let query = "SELECT x, sum(y) FROM t GROUP BY x";
    assert!(plan(&mut session, query).contains("device="));
    let mut evicted = db.evict_now(u64::MAX);
    // Pages that another thread reads at the moment stay.
    for _ in 0..100 {
        if !plan(&mut session, query).contains("device=") {
            break;
        }
        run(&mut session, "CHECKPOINT");
        evicted += db.evict_now(u64::MAX);
    }
    assert!(evicted > 0 && !plan(&mut session, query).contains("device="));
    assert_eq!(last_reason(&mut session).as_deref(), Some("the tables are on disk"));
    sorted(&mut session, "SELECT * FROM t").unwrap();
    assert!(plan(&mut session, query).contains("device="), "it is in memory again");
}

#[test]
fn an_emulated_device_is_used_by_force_alone() {
    let (db, device) = (orders(60_000), Loops::new(true));
    let mut session = session(&db, Some(&device));
    assert!(!plan(&mut session, GROUPING).contains("device="));
    assert_eq!(last_reason(&mut session).as_deref(), Some("the times of an emulated device mean nothing"));
    run(&mut session, "SET gpu.enabled = force");
    assert!(plan(&mut session, GROUPING).contains("device=loops (emulated)"));
    sorted(&mut session, GROUPING).unwrap();
    let spent = "SELECT count(device_ms_spent), max(portions) FROM lstore_device_decisions";
    assert_eq!(rows(&mut session, spent).unwrap()[0], [Some("0".to_owned()), Some("1".to_owned())]);
}

#[test]
fn a_device_that_turns_out_slow_is_used_no_more() {
    let (db, device) = (orders(60_000), Loops::new(false));
    let mut session = session(&db, Some(&device));
    device.take_longer(1_000_000_000);
    let mut runs = 0;
    while plan(&mut session, GROUPING).contains("device=") {
        sorted(&mut session, GROUPING).unwrap();
        runs += 1;
        assert!(runs < 20, "it is never given up");
    }
    assert!(runs > 0);
    assert_eq!(last_reason(&mut session).as_deref(), Some("the CPU is cheaper"));
}

#[test]
fn the_limit_of_memory_makes_portions_or_leaves_all_to_the_cpu() {
    let (db, device) = (orders(20_000), Loops::new(true));
    let mut session = forced(&db, device.offload(), 1);
    for (query, limit, calls) in [(JOIN, "60kB", 2..6), (GROUPING, "200kB", 5..9), (GROUPING, "1kB", 0..1)] {
        run(&mut session, "RESET gpu.memory_limit");
        let expected = sorted(&mut session, query).unwrap();
        run(&mut session, &format!("SET gpu.memory_limit = '{limit}'"));
        let before = device.calls();
        assert_eq!(sorted(&mut session, query).unwrap(), expected);
        assert!(calls.contains(&(device.calls() - before)), "{limit}: {} calls", device.calls() - before);
    }
    let why = "SELECT continued_on_cpu FROM lstore_device_decisions ORDER BY number DESC LIMIT 1";
    let why = rows(&mut session, why).unwrap().remove(0).remove(0).unwrap();
    assert!(why.ends_with("bytes of the device's memory are needed, 0 of 1024 are in use"), "{why}");
    assert_eq!(rows(&mut session, "SELECT used_bytes FROM lstore_devices").unwrap()[0], [Some("0".to_owned())]);
}

#[test]
fn a_run_that_is_explained_tells_the_times_on_the_device() {
    let (db, device) = (orders(20_000), Loops::new(true));
    let mut session = forced(&db, device.offload(), 2);
    for query in [GROUPING, JOIN] {
        let text = rows(&mut session, &format!("EXPLAIN (ANALYZE, OPERATORS) {query}")).unwrap();
        let text: String = text.into_iter().flatten().flatten().collect();
        let line = text.split("Device").nth(1).unwrap();
        for time in ["device_transfer=", "device_kernels=", "device_results="] {
            assert!(line.contains(time), "{text}");
        }
    }
}

#[test]
fn without_a_device_plans_are_as_ever_and_the_settings_may_be_set() {
    let db = orders(3_000);
    let mut session = session(&db, None);
    for value in ["force", "off", "true", "on"] {
        run(&mut session, &format!("SET gpu.enabled = {value}"));
        assert!(!plan(&mut session, GROUPING).contains("Device"));
    }
    assert_eq!(rows(&mut session, "SHOW gpu.enabled").unwrap()[0][0].as_deref(), Some("on"));
    for view in ["lstore_devices", "lstore_device_decisions"] {
        assert!(rows(&mut session, &format!("SELECT * FROM {view}")).unwrap().is_empty());
    }
    assert_eq!(session.execute("SET gpu.speed = 1").unwrap_err().sqlstate, "42704");
    assert_eq!(session.execute("SET gpu.enabled = perhaps").unwrap_err().sqlstate, "22023");
}
