//! Queries by indexes of space against scans: two tables go through the same random changes, one of them with `bwd` and `gist` indexes,
//! and answer the same random queries with the same rows, in snapshots, under merges and after a restart as well. What the table without
//! indexes has to say to many queries it says in one pass over its rows.
use std::collections::BTreeMap;

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

/// What is asked of the table with indexes, and how often its plan was looked at and had what leads to rows by an index.
#[derive(Default)]
struct Plans {
    asked: u32,
    looked_at: u32,
    with: BTreeMap<&'static str, u32>,
}

impl Plans {
    /// The rows of a query of the indexed table. One plan of three is looked at.
    fn ask(&mut self, session: &mut Session, query: &str, signs: &[&'static str]) -> Vec<Vec<Option<String>>> {
        self.asked += 1;
        if self.asked.is_multiple_of(3) {
            let plan = rows(session, &format!("EXPLAIN (OPERATORS) {query}")).unwrap();
            let plan: String = plan.into_iter().flatten().flatten().collect();
            self.looked_at += 1;
            for sign in signs.iter().filter(|sign| plan.contains(**sign)) {
                *self.with.entry(sign).or_default() += 1;
            }
        }
        rows(session, query).unwrap()
    }
}

/// What some expressions are of each row of the table without indexes, in one pass over it: no condition leads it anywhere.
fn columns(session: &mut Session, expressions: &[String]) -> Vec<(i32, Vec<Option<String>>)> {
    let query = format!("SELECT id, {} FROM plain", expressions.join(", "));
    let id = |row: &[Option<String>]| row[0].as_deref().unwrap().parse().unwrap();
    rows(session, &query).unwrap().into_iter().map(|row| (id(&row), row[1..].to_vec())).collect()
}

/// Asks both tables for the rows of some conditions.
fn compare(session: &mut Session, conditions: &[String], plans: &mut Plans) {
    let truths: Vec<String> = conditions.iter().map(|condition| format!("({condition}) IS TRUE")).collect();
    let mut plain = columns(session, &truths);
    plain.sort_unstable();
    for (at, condition) in conditions.iter().enumerate() {
        let of_plain = plain.iter().filter(|(_, truths)| truths[at].as_deref() == Some("t")).map(|(id, _)| *id);
        let query = format!("SELECT id FROM indexed WHERE {condition} ORDER BY id");
        let found = plans.ask(session, &query, &["indexed_bwd", "indexed_gist"]);
        let found = found.iter().map(|row| row[0].as_deref().unwrap().parse::<i32>().unwrap());
        assert!(found.eq(of_plain), "{condition}");
    }
}

/// A question for the rows that are nearest to a point.
struct Nearest {
    distance: String,
    condition: String,
    count: usize,
}

fn nearest(random: &mut StdRng) -> Nearest {
    let [x, y] = [0, 1].map(|_| random.random_range(-5..SIDE));
    let distance = match random.random_range(0..4) {
        0 => format!("area <-> point({x}, {y})"),
        1 => format!("point({x}, {y}) <-> at"),
        2 => format!("point(x, y) <-> point({x}.5, {y})"),
        _ => format!("at <-> point({x}, {y}.25)"),
    };
    let condition = match random.random_range(0..3) {
        0 => format!("x >= {} OR during && {}", SIDE / 2, range(random)),
        1 => "id % 3 = 1 AND room > 5".to_owned(),
        _ => "true".to_owned(),
    };
    Nearest { distance, condition, count: random.random_range(1..12) }
}

/// Asks the indexed table for the nearest rows, and puts all of the other in order.
fn compare_nearest(session: &mut Session, questions: &[Nearest], plans: &mut Plans) {
    let both = |asked: &Nearest| [asked.distance.clone(), format!("({}) IS TRUE", asked.condition)];
    let plain = columns(session, &questions.iter().flat_map(both).collect::<Vec<_>>());
    for (at, Nearest { distance, condition, count }) in questions.iter().enumerate() {
        let passing = plain.iter().filter(|(_, values)| values[2 * at + 1].as_deref() == Some("t"));
        let mut by_distance: Vec<(Option<&str>, i32)> =
            passing.map(|(id, values)| (values[2 * at].as_deref(), *id)).collect();
        // NULL is behind all numbers.
        let far = |text: Option<&str>| text.map_or(f64::INFINITY, |text| text.parse::<f64>().unwrap());
        by_distance.sort_by(|one, other| far(one.0).total_cmp(&far(other.0)).then(one.1.cmp(&other.1)));
        let (offset, condition) =
            (count % 3, if condition == "true" { String::new() } else { format!("WHERE {condition}") });
        let query = format!(
            "SELECT {distance}, id FROM indexed {condition} ORDER BY {distance}, id LIMIT {count} OFFSET {offset}"
        );
        let found = plans.ask(session, &query, &["NearestExec"]);
        let found = found.iter().map(|row| (row[0].as_deref(), row[1].as_deref().unwrap().parse::<i32>().unwrap()));
        assert!(found.eq(by_distance.into_iter().skip(offset).take(*count)), "{query}");
    }
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

/// Asks both tables for a join.
fn compare_join(session: &mut Session, query: &str, plans: &mut Plans) {
    let of = |table: &str| query.replace("$t", table);
    let indexed = plans.ask(session, &of("indexed"), &["SpatialJoinExec"]);
    assert_eq!(indexed, rows(session, &of("plain")).unwrap(), "{query}");
}

fn both(session: &mut Session, statement: &str) {
    TABLES.iter().for_each(|table| run(session, &statement.replacen(" t ", &format!(" {table} "), 1)));
}

/// Asks for rows in every way.
fn compare_all(session: &mut Session, random: &mut StdRng, plans: &mut [Plans; 3]) {
    let [by_condition, by_distance, _] = plans;
    let conditions: Vec<String> = (0..9).map(|_| condition(random)).collect();
    compare(session, &conditions, by_condition);
    let questions: Vec<Nearest> = (0..9).map(|_| nearest(random)).collect();
    compare_nearest(session, &questions, by_distance);
}

/// Rows to begin with, and changes of them, so that there are older versions.
fn fill(session: &mut Session, random: &mut StdRng, next_id: &mut u32) {
    for _ in 0..12 {
        let rows: Vec<String> = (*next_id..*next_id + 30).map(|id| format!("({id}, {})", row(random))).collect();
        both(session, &format!("INSERT INTO t VALUES {}", rows.join(", ")));
        *next_id += 30;
    }
    (0..40).for_each(|_| both(session, &change(random, next_id)));
}

#[test]
fn rows_found_in_space_are_those_that_a_scan_finds() {
    let directory = tempfile::tempdir().unwrap();
    let open =
        || Session::new(&sql::open(directory.path(), OpenOptions::default()).unwrap(), SessionOptions::default());
    let mut session = open();
    let columns = "x INT, y BIGINT, room SMALLINT, during INT4RANGE, at POINT, area BOX";
    both(&mut session, &format!("CREATE TABLE t (id INT PRIMARY KEY, {columns})"));
    let (mut random, mut next_id, mut plans) = (StdRng::seed_from_u64(11), 0, <[Plans; 3]>::default());
    fill(&mut session, &mut random, &mut next_id);
    run(&mut session, "CREATE INDEX indexed_bwd ON indexed USING bwd (x, y) WITH (budget = '4kB')");
    run(&mut session, "CREATE INDEX indexed_gist_x_y ON indexed USING gist (point(x, y))");
    for columns in ["during", "room, at", "area", "room, during"] {
        let name = columns.replace(", ", "_");
        run(&mut session, &format!("CREATE INDEX indexed_gist_{name} ON indexed USING gist ({columns})"));
    }
    run(&mut session, &format!("CREATE TABLE probe (id INT PRIMARY KEY, {columns})"));
    run(&mut session, "INSERT INTO probe SELECT * FROM plain WHERE id % 3 = 0");
    for round in 0..8 {
        let is_rolled_back = round % 3 == 1;
        both(&mut session, "INSERT INTO t SELECT -1, 5, 5, 5, '[5,6)', point(5, 5), box '(5,5),(6,6)'");
        run(&mut session, if is_rolled_back { "BEGIN ISOLATION LEVEL SERIALIZABLE" } else { "BEGIN" });
        (0..12).for_each(|_| both(&mut session, &change(&mut random, &mut next_id)));
        compare_all(&mut session, &mut random, &mut plans);
        (0..6).for_each(|_| compare_join(&mut session, &join(&mut random), &mut plans[2]));
        run(&mut session, if is_rolled_back { "ROLLBACK" } else { "COMMIT" });
        both(&mut session, "DELETE FROM t WHERE id = -1");
        session.database().merge_now();
        compare_all(&mut session, &mut random, &mut plans);
        if round % 4 == 3 {
            drop(session);
            session = open();
        }
    }
    let share =
        |plans: &Plans, sign: &str| f64::from(plans.with.get(sign).copied().unwrap_or(0)) / f64::from(plans.looked_at);
    let shares = [(0, "indexed_bwd"), (0, "indexed_gist"), (1, "NearestExec"), (2, "SpatialJoinExec")]
        .map(|(at, sign)| share(&plans[at], sign));
    assert!(plans.iter().map(|plans| plans.looked_at).eq([48, 48, 16]), "so many plans are looked at");
    assert!(shares.iter().zip([0.1, 0.1, 0.6, 0.4]).all(|(share, least)| *share > least), "{shares:?} by an index");
}
