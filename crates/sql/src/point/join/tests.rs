//! Random joins by both ways: as they are, and with a condition more, which sends them to the planner.
use engine::Database;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::point::both_ways::{by_the_short_way, plan, shown};
use crate::session::{Session, SessionOptions};

const ROWS: i32 = 40;

const TABLES: [&str; 4] = [
    "CREATE TABLE a (id INT PRIMARY KEY, b_id BIGINT, name VARCHAR(9), n SMALLINT, day DATE)",
    "CREATE TABLE b (id BIGINT PRIMARY KEY, a_id INT, name TEXT, n INT, price NUMERIC(6, 2))",
    "CREATE TABLE c (a_id INT, b_id BIGINT, n INT, name TEXT, PRIMARY KEY (b_id, a_id))",
    "CREATE TABLE d (id SMALLINT PRIMARY KEY, n BIGINT, name TEXT, day DATE)",
];

const INDEXES: [&str; 7] = [
    "CREATE INDEX ON a (n, name)",
    "CREATE INDEX ON b (a_id)",
    "CREATE INDEX ON c (a_id, n)",
    "CREATE INDEX ON c USING hash (name)",
    "CREATE INDEX ON d (name)",
    "CREATE INDEX ON d (n, day)",
    "CREATE INDEX ON b (name, n)",
];

fn columns(table: &str) -> &'static [&'static str] {
    match table {
        "a" => &["id", "b_id", "name", "n", "day"],
        "b" => &["id", "a_id", "name", "n", "price"],
        "c" => &["a_id", "b_id", "n", "name"],
        _ => &["id", "n", "name", "day"],
    }
}

fn literal(random: &mut StdRng, column: &str) -> String {
    match column {
        "id" | "a_id" | "b_id" => random.random_range(0..ROWS).to_string(),
        "name" => format!("'{}'", ["", "x", "xy", "y", "ö"].choose(random).unwrap()),
        "n" => random.random_range(0..30).to_string(),
        "price" => format!("{}.{:02}", random.random_range(0..3), random.random_range(0..100)),
        _ => format!("'2024-01-{:02}'", random.random_range(1..9)),
    }
}

fn nullable(random: &mut StdRng, column: &str) -> String {
    if random.random_bool(0.15) { "NULL".to_owned() } else { literal(random, column) }
}

fn database(random: &mut StdRng) -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    let mut run = |text: &str| drop(session.execute(text).unwrap_or_else(|error| panic!("{text}: {error}")));
    TABLES.into_iter().for_each(&mut run);
    INDEXES.into_iter().filter(|_| random.random_bool(0.7)).for_each(&mut run);
    for id in 0..ROWS {
        for table in ["a", "b", "d"] {
            let values: Vec<String> = columns(table)[1..].iter().map(|column| nullable(random, column)).collect();
            run(&format!("INSERT INTO {table} VALUES ({id}, {})", values.join(", ")));
        }
        let (keys, others) =
            (["a_id", "b_id"].map(|key| literal(random, key)), ["n", "name"].map(|one| nullable(random, one)));
        run(&format!("INSERT INTO c VALUES ({}, {}) ON CONFLICT DO NOTHING", keys.join(", "), others.join(", ")));
    }
    session
}

/// An equality of columns that the second table is reached by.
fn link(random: &mut StdRng, (left, left_table): (&str, &str), (right, right_table): (&str, &str)) -> String {
    let is_number = |column: &&&str| ["id", "a_id", "b_id", "n"].contains(*column);
    let is_alike =
        |number: bool| move |column: &&&'static str| if number { is_number(column) } else { **column == "name" };
    let is_number = random.random_bool(0.85);
    let pick = |table: &str, random: &mut StdRng| {
        let alike: Vec<&str> = columns(table).iter().filter(is_alike(is_number)).copied().collect();
        alike[..alike.len().min(2)].choose(random).unwrap().to_string()
    };
    let sides = [format!("{left}.{}", pick(left_table, random)), format!("{right}.{}", pick(right_table, random))];
    let turn = usize::from(random.random_bool(0.5));
    format!("{} = {}", sides[turn], sides[1 - turn])
}

fn condition(random: &mut StdRng, label: &str, table: &str) -> String {
    let column = columns(table).choose(random).unwrap();
    let name = format!("{label}.{column}");
    match random.random_range(0..8) {
        0..=2 => format!("{name} = {}", literal(random, column)),
        3 => format!("{name} {} {}", ["<", ">=", "<>"].choose(random).unwrap(), literal(random, column)),
        4 => format!("{name} BETWEEN {} AND {}", literal(random, column), literal(random, column)),
        5 => format!("{name} IN ({}, {})", literal(random, column), literal(random, column)),
        6 => format!("{name} IS NULL"),
        _ => format!("{name} IS NOT NULL"),
    }
}

/// Tables with labels, and the text of their `FROM`, with what is left to be said in `WHERE`.
fn from(random: &mut StdRng) -> (Vec<(String, &'static str)>, String, Vec<String>) {
    let count = random.random_range(2..=4);
    let mut tables: Vec<(String, &str)> = Vec::new();
    let (mut text, mut conditions) = (String::new(), Vec::new());
    for at in 0..count {
        let table = *["a", "b", "c", "d"].choose(random).unwrap();
        let new = (format!("{table}{at}"), table);
        let partner = tables.choose(random).cloned();
        let name = format!("{table} AS {}", new.0);
        match partner {
            None => text = name,
            Some((label, other)) if random.random_bool(0.3) && !text.contains("LEFT") => {
                text += &format!(", {name}");
                conditions.push(link(random, (&label, other), (&new.0, table)));
            }
            Some(_) if random.random_bool(0.1) && at == 1 => text += &format!(" JOIN {name} USING (n)"),
            Some((label, other)) => {
                let kind = [" JOIN", " LEFT JOIN", " LEFT OUTER JOIN", " INNER JOIN"].choose(random).unwrap();
                let mut on = link(random, (&label, other), (&new.0, table));
                if random.random_bool(0.3) {
                    on += &format!(" AND {}", condition(random, &new.0, table));
                }
                text += &format!("{kind} {name} ON {on}");
            }
        }
        tables.push(new);
    }
    (tables, text, conditions)
}

/// A query with the conditions open at its end, what comes after them, and whether its rows have one order.
fn query(random: &mut StdRng) -> (String, String, bool) {
    let (tables, from, mut conditions) = from(random);
    conditions.push({
        let (label, table) = tables.first().unwrap();
        let key = columns(table)[0];
        format!("{label}.{key} {} {}", ["=", "<", "="].choose(random).unwrap(), literal(random, key))
    });
    for _ in 0..random.random_range(0..2) {
        let (label, table) = tables.choose(random).unwrap();
        conditions.push(condition(random, label, table));
    }
    let conditions = conditions.join(" AND ");
    let column = |random: &mut StdRng| {
        let (label, table) = tables.choose(random).unwrap();
        format!("{label}.{}", columns(table).choose(random).unwrap())
    };
    if random.random_bool(0.25) {
        let total = |random: &mut StdRng| {
            let form = ["count(*)", "count(#)", "count(DISTINCT #)"].choose(random).unwrap();
            form.replace('#', &column(random))
        };
        let totals = [total(random), total(random), format!("sum({}.n)", tables[0].0)];
        return (format!("SELECT {} FROM {from} WHERE {conditions}", totals.join(", ")), String::new(), true);
    }
    let is_distinct = random.random_bool(0.15);
    let mut items: Vec<String> = (0..random.random_range(1..4)).map(|_| column(random)).collect();
    if random.random_bool(0.1) && !is_distinct {
        items = vec![["*".to_owned(), format!("{}.*", tables[0].0)].choose(random).unwrap().clone()];
    }
    let mut end = String::new();
    let is_total = !is_distinct && random.random_bool(0.5);
    if is_total {
        let key = |(label, table): &(String, &str)| {
            columns(table)[..2].iter().map(move |key| format!("{label}.{key}")).collect::<Vec<_>>()
        };
        let places = ["", " DESC", " NULLS FIRST"];
        let keys: Vec<String> =
            tables.iter().flat_map(key).map(|key| format!("{key}{}", places.choose(random).unwrap())).collect();
        end = format!(" ORDER BY {}", keys.join(", "));
        if random.random_bool(0.5) {
            end += &format!(" LIMIT {} OFFSET {}", random.random_range(0..9), random.random_range(0..3));
        }
    }
    let distinct = if is_distinct { "DISTINCT " } else { "" };
    (format!("SELECT {distinct}{} FROM {from} WHERE {conditions}", items.join(", ")), end, is_total)
}

#[test]
fn random_joins_are_answered_by_indexes_as_by_the_planner() {
    let (mut planned, mut short_ones, mut left_ones) = (0, 0, 0);
    for seed in 0..6 {
        let random = &mut StdRng::seed_from_u64(seed);
        let mut session = database(random);
        for _ in 0..40 {
            let (start, end, is_total) = query(random);
            let text = format!("{start}{end}");
            let longer = shown(session.execute(&format!("{start} AND 1 = 1{end}")), is_total);
            planned += usize::from(plan(&session, &text).is_some());
            if let Some(outcome) = by_the_short_way(&mut session, &text) {
                short_ones += 1;
                left_ones += usize::from(text.contains("LEFT"));
                assert_eq!(shown(Ok(outcome), is_total), longer, "seed {seed}, by the short way: {text}");
            }
        }
    }
    assert!(short_ones > 60 && left_ones > 20, "{planned} planned, {short_ones} short, {left_ones} of LEFT JOIN");
}

fn small() -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    for text in [
        "CREATE TABLE w (id INT PRIMARY KEY, tax NUMERIC(4, 2))",
        "CREATE TABLE u (w_id INT, id INT, name TEXT, PRIMARY KEY (w_id, id))",
        "INSERT INTO w VALUES (1, 0.1), (2, 0.2)",
        "INSERT INTO u VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 1, 'c')",
    ] {
        session.execute(text).unwrap();
    }
    session
}

#[test]
fn joins_of_few_rows_go_the_short_way() {
    let mut session = small();
    for (text, rows) in [
        ("SELECT name, tax FROM u, w WHERE w.id = 1 AND w_id = w.id AND u.id = 2", "b"),
        ("SELECT name, tax FROM w, u WHERE w.id = 2 AND w_id = 2 AND u.id = 1", "c"),
        ("SELECT name FROM w JOIN u ON u.w_id = w.id WHERE w.id = 2", "c"),
        ("SELECT name FROM w LEFT JOIN u ON u.w_id = w.id AND u.id = 3 WHERE w.id = 2 AND u.id IS NULL", "None"),
        ("SELECT max(w.tax), count(*) FROM w CROSS JOIN u WHERE w.id = 2 AND w_id = w.id", "0.20"),
    ] {
        let outcome = by_the_short_way(&mut session, text).unwrap_or_else(|| panic!("{text}"));
        let given = shown(Ok(outcome), true);
        assert!(given.contains(rows), "{text}: {given}");
    }
}

#[test]
fn joins_that_say_more_go_the_long_way() {
    let session = small();
    for text in [
        "SELECT name FROM u, w WHERE w_id = w.id",
        "SELECT id FROM u, w WHERE w_id = w.id AND w.id = 1",
        "SELECT name FROM u JOIN w ON w_id > w.id WHERE u.id = 1",
        "SELECT name FROM u RIGHT JOIN w ON w_id = w.id WHERE w.id = 1",
        "SELECT name FROM u NATURAL JOIN w WHERE w_id = 1",
        "SELECT name FROM w LEFT JOIN u ON w_id = w.id AND w.tax = 1 WHERE w.id = 1",
        "SELECT name FROM u JOIN w ON tax = w_id WHERE w_id = 1",
        "SELECT name FROM u JOIN (SELECT 1 AS one) AS s ON one = w_id WHERE w_id = 1",
        "SELECT name FROM u, w WHERE w.id = 1 AND w_id = w.id GROUP BY name",
        "SELECT name FROM u AS x, w AS x WHERE w_id = 1",
        "SELECT * FROM u JOIN w USING (id) WHERE w_id = 1",
    ] {
        assert!(plan(&session, text).is_none(), "{text}");
    }
}

#[test]
fn a_serializable_join_notes_the_rows_that_are_not_there() {
    for (level, fails) in [("SERIALIZABLE", true), ("REPEATABLE READ", false)] {
        let mut session = small();
        let mut other = Session::new(session.database(), SessionOptions::default());
        session.execute(&format!("BEGIN ISOLATION LEVEL {level}")).unwrap();
        let join = "SELECT name FROM w LEFT JOIN u ON u.w_id = w.id AND u.id = 9 WHERE w.id = 2";
        assert!(plan(&session, join).is_some());
        assert!(shown(session.execute(join), true).contains("None"));
        session.execute("INSERT INTO w VALUES (3, 0.3)").unwrap();
        for text in ["BEGIN ISOLATION LEVEL SERIALIZABLE", "INSERT INTO u VALUES (2, 9, 'new')", "COMMIT"] {
            other.execute(text).unwrap();
        }
        let ended = session.execute("COMMIT");
        assert_eq!(ended.is_err_and(|error| error.sqlstate == "40001"), fails, "{level}");
    }
}

#[test]
fn a_prepared_join_sees_its_tables_and_rows_as_they_are() {
    let mut session = small();
    let mut run = |text: &str| shown(session.execute(text), true);
    run("PREPARE j (BIGINT) AS SELECT name FROM w JOIN u ON w_id = w.id WHERE w.id = $1 AND tax > 0 ORDER BY name");
    assert!(run("EXECUTE j (1)").contains("[\"Some(\\\"a\\\")\", \"Some(\\\"b\\\")\"]"));
    run("DELETE FROM u WHERE id = 1");
    assert!(run("EXECUTE j (1)").contains("[\"Some(\\\"b\\\")\"]") && run("EXECUTE j (5)").ends_with("[]"));
    run("DROP TABLE u");
    assert!(run("EXECUTE j (1)").contains("42P01"));
    run("CREATE TABLE u (name TEXT, w_id INT)");
    run("INSERT INTO u VALUES ('new', 1)");
    assert!(run("EXECUTE j (1)").contains("new"));
}
