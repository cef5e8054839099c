//! Searches of indexes on the emulated device of crate `gpu`: joins by `gist` indexes and batches of `bwd` windows find what the CPU
//! finds, in tables under update, with images larger than the device may have, and where the device fails.

use std::ops::Bound;
use std::sync::{Arc, Mutex};

use engine::{Database, IndexPairs, IndexWindow, ScanOptions, SearchDevice, Value};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Session, SessionOptions};

use super::machine::Build;
use super::queries::{plan, rows, run, sorted};
use super::{forced_on, on_device};

/// Places with a shape, ranges and coordinates, and others that are looked for.
fn places(count: usize) -> Database {
    let db = Database::in_memory_with(&sql::with_expressions(engine::OpenOptions::default()));
    let mut session = Session::new(&db, SessionOptions::default());
    for statement in [
        "CREATE TABLE place (id int PRIMARY KEY, area box, during int4range, x int, y bigint)",
        "CREATE TABLE wanted (id int PRIMARY KEY, area box, during int4range)",
    ] {
        run(&mut session, statement);
    }
    let area = "box(point(i * 37 % 503, i * 53 % 307), point(i * 37 % 503 + i % 9, i * 53 % 307 + i % 5))";
    let during = "CASE i % 40 WHEN 0 THEN NULL WHEN 1 THEN 'empty' WHEN 2 THEN int4range(i, NULL)
                  ELSE int4range(i * 29 % 4001, i * 29 % 4001 + i % 17) END";
    run(
        &mut session,
        &format!(
            "INSERT INTO place SELECT i, {area}, {during}, i * 37 % 503, CASE WHEN i % 50 > 0 THEN i * 7919 % 100003 END
             FROM generate_series(1, {count}) s (i)"
        ),
    );
    run(&mut session, &format!("INSERT INTO wanted SELECT i, {area}, {during} FROM generate_series(1, 300) s (i)"));
    run(&mut session, "CREATE TABLE pane (id int PRIMARY KEY, low int, high int, y bigint, top bigint)");
    run(
        &mut session,
        "INSERT INTO pane SELECT i, i * 3, i * 3 + i % 11, nullif(i * 331, 3310), i * 331 + 900 FROM generate_series(1, 150) s (i)",
    );
    for statement in [
        "CREATE INDEX place_area ON place USING gist (area)",
        "CREATE INDEX place_during ON place USING gist (during)",
        "CREATE INDEX place_both ON place USING gist (x, area, during)",
        "CREATE INDEX place_xy ON place USING bwd (x, y)",
        "CREATE INDEX place_y ON place USING bwd (y)",
    ] {
        run(&mut session, statement);
    }
    db
}

const JOINS: [&str; 5] = [
    "SELECT w.id, p.id FROM wanted w JOIN place p ON w.area && p.area",
    "SELECT w.id, p.id, p.y FROM wanted w LEFT JOIN place p ON p.area @> w.area AND p.x < 400",
    "SELECT w.id, p.id FROM wanted w JOIN place p ON w.during && p.during",
    "SELECT w.id FROM wanted w WHERE NOT EXISTS (SELECT FROM place p WHERE p.during @> w.during)",
    "SELECT w.id, p.x FROM wanted w JOIN place p ON p.area <@ w.area",
];

const CHANGES: [&str; 6] = [
    "UPDATE place SET area = box(point(x, 3), point(x + 4, 9)) WHERE id % 7 = 0",
    "DELETE FROM place WHERE id % 11 = 5",
    "INSERT INTO place SELECT i, box(point(i % 600, i % 300), point(i % 600 + 2, i % 300 + 2)), int4range(i, i + 5), i % 600, -i
     FROM generate_series(10001, 10200) s (i)",
    "UPDATE place SET during = int4range(x, x + 3), y = y - 5000 WHERE id % 13 = 1",
    "UPDATE place SET x = x + 10, during = NULL WHERE id % 17 = 2",
    "DELETE FROM place WHERE id > 10100",
];

const WINDOWS: [&str; 2] = [
    "SELECT w.id, p.id FROM pane w JOIN place p ON p.x >= w.low AND p.x < w.high AND p.y > w.y",
    "SELECT w.id, count(p.id) FROM pane w LEFT JOIN place p ON p.y >= w.y AND p.y <= w.top GROUP BY w.id",
];

/// What `lstore_devices` and the decisions tell: answered and refused calls, answered batches, sections that went on.
fn told(session: &mut Session) -> [u64; 4] {
    let query = "SELECT calls, calls_refused, (SELECT sum(portions) FROM lstore_device_decisions),
                 (SELECT count(continued_on_cpu) FROM lstore_device_decisions) FROM lstore_devices";
    let told = rows(session, query).expect("the views").remove(0);
    [0, 1, 2, 3].map(|at| told[at].as_ref().map_or(0, |text| text.parse().expect("a number")))
}

/// Joins on the device and without, before changes and after each.
fn compare(db: &Database, session: &mut Session, joins: &[&str]) {
    let mut alone = Session::new(db, SessionOptions::default());
    for change in [""].iter().chain(&CHANGES) {
        if !change.is_empty() {
            run(&mut alone, change);
        }
        for query in joins {
            let found = sorted(session, query).expect("the rows");
            assert_eq!(found, sorted(&mut alone, query).expect("the rows"), "{query} after {change}");
        }
    }
}

#[test]
fn joins_of_tables_under_update_find_what_the_cpu_finds() {
    on_device("searches::joins_of_tables_under_update_find_what_the_cpu_finds", Build::Races, &[], || {
        let (db, offload) = (places(1_500), devices::open().expect("the device is in place"));
        let mut session = forced_on(&db, &offload, 2);
        for query in JOINS {
            let plan = plan(&mut session, query);
            assert!(plan.contains("SpatialJoinExec") && plan.contains("device=emulated"), "{plan}");
        }
        compare(&db, &mut session, &JOINS);
        let [calls, refused, batches, continued] = told(&mut session);
        assert!(calls > 30 && batches > 30, "{calls} calls, {batches} batches");
        assert_eq!((refused, continued), (0, 0));
        let there = "SELECT DISTINCT column_name FROM lstore_device_residents WHERE table_name = 'place' AND uses > 0";
        assert!(sorted(&mut session, there).expect("the residents").len() >= 2);
        let analyzed = rows(&mut session, &format!("EXPLAIN (ANALYZE, OPERATORS) {}", JOINS[0])).expect("a plan");
        assert!(format!("{analyzed:?}").contains("device_batches="), "{analyzed:?}");
        run(&mut session, "SET gpu.enabled = on");
        assert!(!plan(&mut session, JOINS[0]).contains("device="), "its times mean nothing");
        // An index of four dimensions, of which a join asks for some.
        run(&mut session, "DROP INDEX place_area, place_during");
        run(&mut session, "SET gpu.enabled = force");
        let mut alone = Session::new(&db, SessionOptions::default());
        for query in JOINS {
            assert_eq!(sorted(&mut session, query), sorted(&mut alone, query), "{query}");
        }
        // Plans that are kept may keep an index that was dropped, and its image.
        let left = rows(&mut session, there).expect("the residents");
        assert!(left.contains(&vec![Some("place_both".to_owned())]), "{left:?}");
    });
}

#[test]
fn an_index_that_is_larger_than_its_room_is_there_in_part() {
    on_device("searches::an_index_that_is_larger_than_its_room_is_there_in_part", Build::Addresses, &[], || {
        let (db, offload) = (places(1_500), devices::open().expect("the device is in place"));
        let mut session = forced_on(&db, &offload, 2);
        run(&mut session, "SET gpu.memory_limit = '40kB'");
        compare(&db, &mut session, &JOINS[..1]);
        let [_, _, batches, _] = told(&mut session);
        assert!(batches > 3, "{batches} batches");
        let bytes = rows(&mut session, "SELECT resident_bytes <= 20480 FROM lstore_devices").expect("the device");
        assert_eq!(bytes, [[Some("t".to_owned())]]);
        run(&mut session, "SET gpu.memory_limit = '1kB'");
        let mut alone = Session::new(&db, SessionOptions::default());
        assert_eq!(sorted(&mut session, JOINS[0]), sorted(&mut alone, JOINS[0]));
    });
}

/// Windows about the places, in terms of x and y or of y alone.
fn windows(random: &mut StdRng, columns: usize) -> Vec<IndexWindow> {
    let mut side = |end: i64| {
        let low = random.random_range(-5..end);
        let (low, high) = (Value::from(low), Value::from(low + random.random_range(0..end / 3)));
        match random.random_range(0..6) {
            0 => (Bound::Unbounded, Bound::Excluded(high)),
            1 => (Bound::Included(low), Bound::Unbounded),
            _ => (Bound::Included(low), Bound::Included(high)),
        }
    };
    let mut window = || match columns {
        1 => vec![side(100_000)],
        _ => vec![side(500), side(100_000)],
    };
    (0..200).map(|_| IndexWindow::Between(window())).collect()
}

/// The ids of rows that windows find among those that they may find.
fn found(pairs: &IndexPairs) -> Vec<(u32, String)> {
    let id = |row: u32| format!("{:?}", pairs.rows.slice(row as usize, 1));
    pairs.pairs.iter().map(|(window, row)| (*window, id(*row))).collect()
}

#[test]
fn batches_of_windows_find_what_the_cpu_finds() {
    on_device("searches::batches_of_windows_find_what_the_cpu_finds", Build::Races, &[], || {
        let (db, offload) = (places(1_500), devices::open().expect("the device is in place"));
        let (mut alone, mut random) = (Session::new(&db, SessionOptions::default()), StdRng::seed_from_u64(1));
        let table = db.table("place").expect("the table");
        let options = ScanOptions { columns: vec![0], ..ScanOptions::default() };
        for change in [""].iter().chain(&CHANGES) {
            if !change.is_empty() {
                run(&mut alone, change);
            }
            for (name, columns) in [("place_xy", 2), ("place_y", 1)] {
                let index = table.indexes().into_iter().find(|index| index.definition().name == name);
                let index = index.expect("the index");
                let (windows, view) = (windows(&mut random, columns), db.read_view().expect("a view"));
                let device = offload.searches("place", name, true);
                let there = table.index_pairs_on(Some(&*device), &view, &index, &windows, &options).expect("pairs");
                let here = table.index_pairs(&view, &index, &windows, &options).expect("pairs");
                assert_eq!(found(&there), found(&here), "{name} after {change}");
            }
        }
        let mut session = forced_on(&db, &offload, 2);
        for query in WINDOWS {
            let plan = plan(&mut session, query);
            assert!(plan.contains("index=place_") && plan.contains("device=emulated"), "{plan}");
            assert_eq!(sorted(&mut session, query), sorted(&mut alone, query), "{query}");
        }
        let [calls, refused, batches, _] = told(&mut session);
        assert!(calls > 20 && refused == 0 && batches >= 2, "{calls} calls, {refused} refused, {batches} batches");
    });
}

/// Joins where the device fails, with what the log is told.
fn with_fault(test: &str, settings: &[(&str, &str)], is_lost: bool) {
    on_device(test, Build::Addresses, settings, || {
        let (db, offload) = (places(700), devices::open().expect("the device is in place"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = lines.clone();
        offload.log_to(move |line| log.lock().expect("the log").push(line.to_owned()));
        compare(&db, &mut forced_on(&db, &offload, 2), &JOINS[..2]);
        let table = db.table("place").expect("the table");
        let index = table.indexes().into_iter().find(|index| index.definition().name == "place_xy").expect("the index");
        let device: Arc<dyn SearchDevice> = offload.searches("place", "place_xy", true);
        let (windows, view) = (windows(&mut StdRng::seed_from_u64(2), 2), db.read_view().expect("a view"));
        let options = ScanOptions { columns: vec![0], ..ScanOptions::default() };
        let there = table.index_pairs_on(Some(&*device), &view, &index, &windows, &options).expect("pairs");
        let here = table.index_pairs(&view, &index, &windows, &options).expect("pairs");
        assert_eq!(found(&there), found(&here));
        let lines = lines.lock().expect("the log");
        assert!(
            !(is_lost && lines.is_empty()) && lines.iter().all(|line| line.contains("goes on without the device")),
            "{lines:?}"
        );
    });
}

#[test]
fn without_memory_the_cpu_searches() {
    for allocation in ["1", "4", "20"] {
        let settings = [("EMULATED_FAIL_ALLOC", allocation)];
        with_fault("searches::without_memory_the_cpu_searches", &settings, false);
    }
}

#[test]
fn after_a_kernel_that_fails_the_cpu_searches_and_the_log_says_so() {
    for launch in ["1", "5"] {
        let settings = [("EMULATED_FAIL_LAUNCH", launch)];
        with_fault("searches::after_a_kernel_that_fails_the_cpu_searches_and_the_log_says_so", &settings, true);
    }
}
