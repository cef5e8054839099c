//! Random queries and changes by both ways: as they are, and with a condition more, which sends them to the planner.
use engine::Database;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::point::both_ways::{by_the_short_way, plan, shown};
use crate::session::{Session, SessionOptions};

const ROWS: u32 = 150;

const COLUMNS: [&str; 7] = ["id", "a", "b", "name", "price", "day", "ok"];

const INDEXES: [&str; 7] = [
    "CREATE INDEX ON t (a)",
    "CREATE INDEX ON t (a, b)",
    "CREATE INDEX ON t USING hash (name)",
    "CREATE INDEX ON t (ok, id)",
    "CREATE INDEX ON t (name, price)",
    "CREATE UNIQUE INDEX ON t (day, id)",
    "CREATE INDEX ON t (price) WHERE ok",
];

fn literal(random: &mut StdRng, column: &str) -> String {
    match column {
        "id" => random.random_range(0..ROWS + 50).to_string(),
        "a" => random.random_range(-3..12).to_string(),
        "b" => random.random_range(0..40).to_string(),
        "name" => format!("'{}'", ["", "x", "xy", "y", "Z", "ö"].choose(random).unwrap()),
        "price" => format!("{}.{:02}", random.random_range(0..5), random.random_range(0..100)),
        "day" => format!("'2024-01-{:02}'", random.random_range(1..9)),
        _ => ["true", "false"].choose(random).unwrap().to_string(),
    }
}

fn nullable(random: &mut StdRng, column: &str) -> String {
    if random.random_bool(0.15) { "NULL".to_owned() } else { literal(random, column) }
}

fn database(random: &mut StdRng) -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    let mut run = |text: &str| session.execute(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    run(
        "CREATE TABLE t (id INT PRIMARY KEY, a SMALLINT, b BIGINT, name TEXT, price NUMERIC(6, 2), day DATE, ok BOOL NOT NULL)",
    );
    let mut indexes: Vec<&str> = INDEXES.into_iter().filter(|_| random.random_bool(0.5)).collect();
    let later = indexes.split_off(indexes.len() / 2);
    indexes.iter().for_each(|index| drop(run(index)));
    for id in 0..ROWS {
        let mut values: Vec<String> =
            ["a", "b", "name", "price", "day"].map(|column| nullable(random, column)).to_vec();
        values.push(literal(random, "ok"));
        run(&format!("INSERT INTO t VALUES ({id}, {})", values.join(", ")));
    }
    later.iter().for_each(|index| drop(run(index)));
    session
}

fn condition(random: &mut StdRng) -> String {
    let column = COLUMNS.choose(random).unwrap();
    let value = |random: &mut StdRng| literal(random, column);
    match random.random_range(0..9) {
        0..=2 if *column == "ok" => ["ok", "NOT ok", "ok = false", "(t.ok)"].choose(random).unwrap().to_string(),
        0..=2 => format!("{column} = {}", value(random)),
        3 => format!("{column} {} {}", ["<", "<=", ">", ">=", "<>"].choose(random).unwrap(), value(random)),
        4 => format!("{} {} {column}", value(random), ["<", "<=", ">", ">=", "="].choose(random).unwrap()),
        5 => format!("{column} BETWEEN {} AND {}", value(random), value(random)),
        6 => {
            let values: Vec<String> = (0..random.random_range(1..5)).map(|_| value(random)).collect();
            format!("{column} IN ({})", values.join(", "))
        }
        7 => format!("{column} IS NULL"),
        _ => format!("{column} IS NOT NULL"),
    }
}

fn conditions(random: &mut StdRng) -> String {
    let all: Vec<String> = (0..random.random_range(1..4)).map(|_| condition(random)).collect();
    all.join(" AND ")
}

/// A query with the conditions open at its end, what comes after them, and whether its rows have one order.
fn query(random: &mut StdRng) -> (String, String, bool) {
    let conditions = conditions(random);
    if random.random_bool(0.25) {
        let totals = [
            "count(*)",
            "count(a)",
            "count(DISTINCT name)",
            "count(distinct b) AS n",
            "sum(a)",
            "sum(b)",
            "sum(price)",
            "min(id)",
            "max(price)",
            "min(day)",
            "max(b)",
        ];
        if random.random_bool(0.3) {
            let extremes = ["min(a)", "max(b)", "max(id)", "min(price)", "max(a) AS m", "min(day)"];
            let extreme = extremes.choose(random).unwrap();
            return (format!("SELECT {extreme} FROM t WHERE {conditions}"), String::new(), true);
        }
        let picked: Vec<&str> = (0..random.random_range(1..4)).map(|_| *totals.choose(random).unwrap()).collect();
        return (format!("SELECT {} FROM t WHERE {conditions}", picked.join(", ")), String::new(), true);
    }
    let is_distinct = random.random_bool(0.2);
    let mut items: Vec<&str> = (0..random.random_range(1..4)).map(|_| *COLUMNS.choose(random).unwrap()).collect();
    items.dedup();
    let mut order: Vec<&str> = match is_distinct {
        true => items.clone(),
        false => (0..random.random_range(0..3)).map(|_| *COLUMNS.choose(random).unwrap()).collect(),
    };
    if !is_distinct && random.random_bool(0.8) {
        order.push("id");
    }
    let is_total = is_distinct || order.contains(&"id");
    let places = ["", " ASC", " DESC", " DESC NULLS LAST", " NULLS FIRST"];
    let order: Vec<String> = order.iter().map(|key| format!("{key}{}", places.choose(random).unwrap())).collect();
    let mut end = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
    if is_total && random.random_bool(0.5) {
        end += &format!(" LIMIT {}", random.random_range(0..20));
        if random.random_bool(0.3) {
            end += &format!(" OFFSET {}", random.random_range(0..10));
        }
    }
    if !is_distinct && random.random_bool(0.2) {
        end += [" FOR UPDATE", " FOR SHARE SKIP LOCKED", " FOR NO KEY UPDATE NOWAIT"].choose(random).unwrap();
    }
    let distinct = if is_distinct { "DISTINCT " } else { "" };
    (format!("SELECT {distinct}{} FROM t WHERE {conditions}", items.join(", ")), end, is_total)
}

#[test]
fn random_queries_are_answered_by_an_index_as_by_the_planner() {
    let mut short_ones = 0;
    for seed in 0..5 {
        let random = &mut StdRng::seed_from_u64(seed);
        let mut session = database(random);
        for number in 0..40 {
            if number % 6 == 0 {
                let (id, column) = (random.random_range(0..ROWS), *["a", "name", "ok", "day"].choose(random).unwrap());
                let change = format!("UPDATE t SET {column} = {} WHERE id = {id}", literal(random, column));
                session.execute(&change).unwrap();
                session.execute(&format!("DELETE FROM t WHERE id = {}", random.random_range(0..ROWS))).unwrap();
            }
            let (start, end, is_total) = query(random);
            let longer = shown(session.execute(&format!("{start} AND 1 = 1{end}")), is_total);
            let text = format!("{start}{end}");
            assert_eq!(shown(session.execute(&text), is_total), longer, "seed {seed}: {text}");
            if let Some(outcome) = by_the_short_way(&mut session, &text) {
                short_ones += 1;
                assert_eq!(shown(Ok(outcome), is_total), longer, "seed {seed}, by the short way: {text}");
            }
        }
    }
    assert!(short_ones > 120, "only {short_ones} of 200 queries went the short way");
}

fn change(random: &mut StdRng) -> String {
    let conditions = conditions(random);
    if random.random_bool(0.25) {
        return format!("DELETE FROM t WHERE id < 40 AND {conditions}");
    }
    if random.random_bool(0.1) {
        let sets = ["a = b", "b = a + b", "b = id - a", "price = price + price"].choose(random).unwrap();
        return format!("UPDATE t SET {sets} WHERE {conditions}");
    }
    let column = *COLUMNS[1..].choose(random).unwrap();
    let value = match column {
        "a" | "b" | "price" if random.random_bool(0.6) => {
            let by = match column {
                "price" => literal(random, "price"),
                _ => ["1", "40", "32700", "9223372036854775000"].choose(random).unwrap().to_string(),
            };
            format!("{column} {} {by}", ["+", "-"].choose(random).unwrap())
        }
        _ => literal(random, column),
    };
    let key = ["", ", id = id + 1000"][usize::from(random.random_bool(0.1))];
    format!("UPDATE t SET {column} = {value}{key} WHERE {conditions}")
}

#[test]
fn random_changes_by_an_index_do_what_the_planner_does() {
    let mut short_ones = 0;
    for seed in 0..4 {
        let random = &mut StdRng::seed_from_u64(seed);
        let (mut short, mut long) = (database(random), database(&mut StdRng::seed_from_u64(seed)));
        for _ in 0..30 {
            let text = change(random);
            let end = ["", " RETURNING *, b AS c", " RETURNING id, t.price, name"].choose(random).unwrap();
            let (longer, text) = (format!("{text} AND 1 = 1{end}"), format!("{text}{end}"));
            short_ones += usize::from(plan(&short, &text).is_some());
            let answers = [short.execute(&text), long.execute(&longer)].map(|outcome| shown(outcome, false));
            assert_eq!(answers[0], answers[1], "seed {seed}: {text}");
            let rows =
                [&mut short, &mut long].map(|session| shown(session.execute("SELECT * FROM t ORDER BY id"), true));
            assert_eq!(rows[0], rows[1], "seed {seed}: after {text}");
        }
    }
    assert!(short_ones > 60, "only {short_ones} of 120 changes went the short way");
}

#[test]
fn a_prepared_change_knows_what_its_table_fills_and_values_that_do_not_fit() {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    let mut run = |text: &str| shown(session.execute(text), true);
    run("CREATE TABLE n (id INT PRIMARY KEY, v SMALLINT NOT NULL, w INT)");
    run("CREATE INDEX ON n (w)");
    run("INSERT INTO n VALUES (1, 1, 2)");
    run("PREPARE many (BIGINT) AS UPDATE n SET v = $1 WHERE w = 2");
    run("PREPARE one (BIGINT) AS UPDATE n SET v = $1 WHERE id = 1");
    run("PREPARE none (BIGINT) AS UPDATE n SET v = $1 WHERE w = 3");
    assert!(run("EXECUTE many (5)").contains("UPDATE 1") && run("EXECUTE none (5)").contains("UPDATE 0"));
    assert!(run("EXECUTE none (70000)").contains("22003"));
    run("ALTER TABLE n ALTER v ADD GENERATED ALWAYS AS IDENTITY");
    assert!(run("EXECUTE many (6)").contains("428C9"));
    assert!(run("EXECUTE one (6)").contains("428C9"));
}

#[test]
fn a_change_that_meets_a_value_for_the_long_way_leaves_nothing_half_done() {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    let mut run = |text: &str| shown(session.execute(text), true);
    run("CREATE TABLE n (id INT PRIMARY KEY, v SMALLINT)");
    run("INSERT INTO n VALUES (1, 1), (2, 32767), (3, 3)");
    assert!(run("UPDATE n SET v = v + 1 WHERE id > 0").contains("22003"));
    assert!(run("SELECT sum(v) FROM n WHERE id > 0").contains("32771"));
}

#[test]
fn a_query_by_its_one_index_is_right_however_many_rows_there_are() {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    let mut run = |text: &str| shown(session.execute(text), true);
    run("CREATE TABLE n (id INT PRIMARY KEY, v INT)");
    run("CREATE INDEX ON n (v)");
    run("INSERT INTO n SELECT i, i / 3000 FROM generate_series(0, 6002) AS s (i)");
    run("PREPARE those (INT) AS SELECT id FROM n WHERE v = $1 ORDER BY id");
    // More rows than an index is walked for, before and after that is known, and few.
    for v in [1, 2, 0, 2, 7, 1] {
        let planned = run(&format!("SELECT id FROM n WHERE v = {v} AND 1 = 1 ORDER BY id"));
        assert_eq!(run(&format!("EXECUTE those ({v})")), planned);
    }
}

#[test]
fn the_first_row_of_a_query_comes_as_values() {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    session.execute("CREATE TABLE n (id INT PRIMARY KEY, v TEXT, w NUMERIC(6, 2), a INT[])").unwrap();
    session.execute("INSERT INTO n VALUES (1, 'one', 1.50, '{1,2}'), (2, NULL, NULL, NULL)").unwrap();
    let mut first = |text: &str, id: i32| {
        let prepared = std::sync::Arc::new(session.prepare(text, &[]).unwrap());
        session.query_row(&prepared, &[engine::Value::Integer(id)])
    };
    for text in ["SELECT v, w, id, a FROM n WHERE id = $1", "SELECT v, w, id, a FROM n WHERE id + 0 = $1"] {
        let shown = |row: Option<Vec<engine::Value>>| {
            row.map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(shown(first(text, 1).unwrap()).as_deref(), Some("one 1.50 1 {1,2}"), "{text}");
        assert_eq!(shown(first(text, 2).unwrap()).as_deref(), Some("NULL NULL 2 NULL"), "{text}");
        assert_eq!(first(text, 3).unwrap(), None, "{text}");
    }
    assert_eq!(first("UPDATE n SET v = 'x' WHERE id = $1", 1).unwrap_err().sqlstate, "42601");
    assert!(first("SELECT v FROM n WHERE id = $1", 1).unwrap().is_some_and(|row| row[0].to_string() == "one"));
}

/// Outside of a block no statement is begun for them; within one there is.
#[test]
fn rows_side_by_side_are_the_same_with_and_without_a_statement_around_them() {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    session.execute("CREATE TABLE n (id BIGINT PRIMARY KEY, g INT, at TIMESTAMPTZ)").unwrap();
    session.execute("CREATE INDEX ON n (g)").unwrap();
    session.execute("INSERT INTO n SELECT i, i / 8, '2024-01-01 00:00+00' FROM generate_series(0, 199) i").unwrap();
    session.execute("SET TimeZone = 'Asia/Tokyo'").unwrap();
    for (text, values, has_changed) in [
        ("SELECT * FROM n WHERE id BETWEEN $1 AND $2 ORDER BY id", vec![70_i64, 77], true),
        ("SELECT id, at FROM n WHERE g = $1", vec![5], false),
        ("SELECT count(*), sum(g), max(at) FROM n WHERE id >= $1 AND id < $2", vec![3, 90], true),
        ("SELECT at FROM n WHERE id BETWEEN $1 AND $2", vec![400, 500], false),
    ] {
        let prepared = std::sync::Arc::new(session.prepare(text, &[]).unwrap());
        let values: Vec<engine::Value> = values.into_iter().map(engine::Value::from).collect();
        let run = |session: &mut Session| {
            let outcome = session.execute_prepared(&prepared, &values, &mut crate::NoInput);
            let Ok(crate::Outcome::Rows(rows)) = outcome else { panic!("{text}: {outcome:?}") };
            let _zone = rows.in_zone();
            shown(Ok(crate::Outcome::Rows(rows)), false)
        };
        let alone = run(&mut session);
        session.execute("BEGIN").unwrap();
        let within = run(&mut session);
        session.execute("DELETE FROM n WHERE id = 75").unwrap();
        let changed = run(&mut session);
        session.execute("ROLLBACK").unwrap();
        assert_eq!(alone, within, "{text}");
        assert_eq!(changed != within, has_changed, "{text}");
        assert!(!alone.contains("2024") || alone.contains("09:00:00+09"), "{alone}");
        assert_eq!(run(&mut session), alone, "{text}");
    }
}
