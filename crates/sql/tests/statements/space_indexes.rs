//! Queries by indexes of space against scans: two tables go through the same random changes, one of them with `bwd` and `gist` indexes,
//! and answer the same random queries with the same rows, in snapshots, under merges and after a restart as well.
use engine::OpenOptions;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Session, SessionOptions};

use crate::pushdown::rows;

const TABLES: [&str; 2] = ["plain", "indexed"];
/// Coordinates are below.
const SIDE: i32 = 60;

fn run(session: &mut Session, statement: &str) {
    session.execute(statement).map(drop).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

/// A number as text, now and then NULL.
fn number(random: &mut StdRng) -> String {
    if random.random_range(0..12) == 0 { "NULL".into() } else { random.random_range(0..SIDE).to_string() }
}

fn range(random: &mut StdRng) -> String {
    let low = random.random_range(0..SIDE);
    match random.random_range(0..10) {
        0 => "'empty'".into(),
        1 => format!("'[{low},)'"),
        2 => "NULL".into(),
        _ => format!("'[{low},{})'", low + random.random_range(1..6)),
    }
}

fn shape(random: &mut StdRng) -> String {
    let [x, y] = [0, 1].map(|_| random.random_range(0..SIDE));
    format!("box '({x},{y}),({}.5,{})'", x + random.random_range(0..5), y + random.random_range(0..5))
}

/// The columns of a row after its id.
fn row(random: &mut StdRng) -> String {
    let [x, y, room] = [0, 1, 2].map(|_| number(random));
    let at = format!("point({}, {})", random.random_range(0..SIDE), random.random_range(0..SIDE));
    let at = if random.random_range(0..12) == 0 { "NULL".to_owned() } else { at };
    format!("{x}, {y}, {room}, {}, {at}, {}", range(random), shape(random))
}

fn condition(random: &mut StdRng) -> String {
    let low = random.random_range(0..SIDE);
    let between = |column: &str| format!("{column} BETWEEN {low} AND {}", low + 3);
    match random.random_range(0..14) {
        0 => between("x"),
        1 => between("y"),
        2 => format!("x >= {low} AND x < {} AND y > {}", low + 5, SIDE / 2),
        3 => format!("x = {low} AND {}", between("y")),
        4 => format!("x = {low} AND y IN ({low}, 7, 8)"),
        5 => format!("during && {}", range(random)),
        6 => format!("during @> {low} AND room = {}", number(random)),
        7 => format!("during <@ '[{low},{})'::int4range", low + 9),
        8 => format!("{}::int4range @> during", range(random)),
        9 => format!("at <@ {}", shape(random)),
        10 => format!("area && {}", shape(random)),
        11 => format!("area @> point({low}, {low})"),
        12 => format!("room = {low} AND during && {}", range(random)),
        _ => format!("during = {}::int4range", range(random)),
    }
}

fn change(random: &mut StdRng, next_id: &mut u32) -> String {
    match random.random_range(0..6) {
        0 => format!("DELETE FROM t WHERE id = {}", random.random_range(0..*next_id)),
        1 => format!("UPDATE t SET x = {}, during = {} WHERE {}", number(random), range(random), condition(random)),
        2 => format!("UPDATE t SET y = {}, at = at + point(1, 0) WHERE id % 37 = 3", number(random)),
        _ => {
            *next_id += 3;
            let rows = [3, 2, 1].map(|before| format!("({}, {})", *next_id - before, row(random)));
            format!("INSERT INTO t VALUES {}", rows.join(", "))
        }
    }
}

/// Asks both tables.
fn compare(session: &mut Session, condition: &str, is_by_index: &mut [u32; 2]) {
    let ids = |table: &str| format!("SELECT id FROM {table} WHERE {condition} ORDER BY id");
    let [plain, indexed] = TABLES.map(|table| rows(session, &ids(table)).unwrap());
    assert_eq!(indexed, plain, "{condition}");
    let plan = rows(session, &format!("EXPLAIN {}", ids("indexed"))).unwrap();
    let plan: String = plan.into_iter().flatten().flatten().collect();
    for (count, index) in is_by_index.iter_mut().zip(["indexed_bwd", "indexed_gist"]) {
        *count += u32::from(plan.contains(index));
    }
}

/// The rows that are nearest to a point, in order.
fn nearest(random: &mut StdRng) -> String {
    let [x, y] = [0, 1].map(|_| random.random_range(-5..SIDE));
    let distance = match random.random_range(0..4) {
        0 => format!("area <-> point({x}, {y})"),
        1 => format!("point({x}, {y}) <-> at"),
        2 => format!("point(x, y) <-> point({x}.5, {y})"),
        _ => format!("at <-> point({x}, {y}.25)"),
    };
    let condition = match random.random_range(0..3) {
        0 => format!("WHERE x >= {} OR during && {}", SIDE / 2, range(random)),
        1 => "WHERE id % 3 = 1 AND room > 5".to_owned(),
        _ => String::new(),
    };
    let count = random.random_range(1..12);
    format!("SELECT id, {distance} FROM t {condition} ORDER BY {distance}, id LIMIT {count} OFFSET {}", count % 3)
}

/// Asks both tables for the nearest rows. Tells whether an index led to them.
fn compare_nearest(session: &mut Session, query: &str) -> bool {
    let of = |table: &str| query.replacen(" t ", &format!(" {table} "), 1);
    let [plain, indexed] = TABLES.map(|table| rows(session, &of(table)).unwrap());
    assert_eq!(indexed, plain, "{query}");
    let plan = rows(session, &format!("EXPLAIN {}", of("indexed"))).unwrap();
    plan.into_iter().flatten().flatten().any(|line| line.contains("NearestExec"))
}

/// A join of the table with some shapes and ranges of its own rows, in every kind of join that an index can do.
fn join(random: &mut StdRng) -> String {
    let condition = match random.random_range(0..8) {
        0 => "probe.area && t.area",
        1 => "t.area @> probe.at",
        2 => "t.at <@ probe.area",
        3 => "t.during @> probe.during AND t.id <> probe.id",
        4 => "probe.during @> t.during AND t.x > 9",
        5 => "t.during @> probe.x",
        6 => "probe.at <@ t.area AND probe.room < t.room",
        _ => "t.during && probe.during",
    };
    let of_probe = format!("(SELECT * FROM probe WHERE id % 5 = {}) AS probe", random.random_range(0..5));
    let of_table = match random.random_range(0..3) {
        0 => "(SELECT * FROM $t WHERE id % 7 > 2 AND x + y > 20) AS t",
        _ => "$t AS t",
    };
    match random.random_range(0..4) {
        0 => format!(
            "SELECT probe.id FROM {of_probe} WHERE EXISTS (SELECT 1 FROM {of_table} WHERE {condition}) ORDER BY 1"
        ),
        1 => format!(
            "SELECT probe.id FROM {of_probe} WHERE NOT EXISTS (SELECT 1 FROM {of_table} WHERE {condition}) ORDER BY 1"
        ),
        2 => format!("SELECT probe.id, t.id, t.area FROM {of_probe} LEFT JOIN {of_table} ON {condition} ORDER BY 1, 2"),
        _ => format!("SELECT t.id, probe.id, probe.at FROM {of_table} JOIN {of_probe} ON {condition} ORDER BY 1, 2"),
    }
}

/// Asks both tables for a join. Tells whether an index led to pairs.
fn compare_join(session: &mut Session, query: &str) -> bool {
    let of = |table: &str| query.replace("$t", table);
    let [plain, indexed] = TABLES.map(|table| rows(session, &of(table)).unwrap());
    assert_eq!(indexed, plain, "{query}");
    let plan = rows(session, &format!("EXPLAIN {}", of("indexed"))).unwrap();
    plan.into_iter().flatten().flatten().any(|line| line.contains("SpatialJoinExec"))
}

fn both(session: &mut Session, statement: &str) {
    TABLES.iter().for_each(|table| run(session, &statement.replacen(" t ", &format!(" {table} "), 1)));
}

#[test]
fn rows_found_in_space_are_those_that_a_scan_finds() {
    let directory = tempfile::tempdir().unwrap();
    let mut session =
        Session::new(&sql::open(directory.path(), OpenOptions::default()).unwrap(), SessionOptions::default());
    let columns = "x INT, y BIGINT, room SMALLINT, during INT4RANGE, at POINT, area BOX";
    both(&mut session, &format!("CREATE TABLE t (id INT PRIMARY KEY, {columns})"));
    let (mut random, mut next_id, mut is_by_index) = (StdRng::seed_from_u64(11), 0, [0, 0]);
    let changes = |session: &mut Session, random: &mut StdRng, next_id: &mut u32, count: usize| {
        (0..count).for_each(|_| both(session, &change(random, next_id)));
    };
    changes(&mut session, &mut random, &mut next_id, 240);
    run(&mut session, "CREATE INDEX indexed_bwd ON indexed USING bwd (x, y) WITH (budget = '4kB')");
    run(&mut session, "CREATE INDEX indexed_gist_x_y ON indexed USING gist (point(x, y))");
    for columns in ["during", "at", "area", "room, during"] {
        let name = columns.replace(", ", "_");
        run(&mut session, &format!("CREATE INDEX indexed_gist_{name} ON indexed USING gist ({columns})"));
    }
    run(&mut session, &format!("CREATE TABLE probe (id INT PRIMARY KEY, {columns})"));
    run(&mut session, "INSERT INTO probe SELECT * FROM plain WHERE id % 3 = 0");
    let (mut nearest_by_index, mut joined_by_index) = (0, 0);
    for round in 0..8 {
        let is_rolled_back = round % 3 == 1;
        both(&mut session, "INSERT INTO t SELECT -1, 5, 5, 5, '[5,6)', point(5, 5), box '(5,5),(6,6)'");
        run(&mut session, if is_rolled_back { "BEGIN ISOLATION LEVEL SERIALIZABLE" } else { "BEGIN" });
        changes(&mut session, &mut random, &mut next_id, 20);
        (0..9).for_each(|_| compare(&mut session, &condition(&mut random), &mut is_by_index));
        joined_by_index += (0..6).filter(|_| compare_join(&mut session, &join(&mut random))).count();
        nearest_by_index += (0..9).filter(|_| compare_nearest(&mut session, &nearest(&mut random))).count();
        run(&mut session, if is_rolled_back { "ROLLBACK" } else { "COMMIT" });
        both(&mut session, "DELETE FROM t WHERE id = -1");
        session.database().merge_now();
        (0..9).for_each(|_| compare(&mut session, &condition(&mut random), &mut is_by_index));
        nearest_by_index += (0..9).filter(|_| compare_nearest(&mut session, &nearest(&mut random))).count();
        if round % 4 == 3 {
            drop(session);
            session =
                Session::new(&sql::open(directory.path(), OpenOptions::default()).unwrap(), SessionOptions::default());
        }
    }
    assert!(nearest_by_index > 100, "{nearest_by_index} plans by distance");
    assert!(joined_by_index > 20, "{joined_by_index} joins by an index");
    assert!(is_by_index.iter().all(|count| *count > 15), "{is_by_index:?} plans by indexes");
}
