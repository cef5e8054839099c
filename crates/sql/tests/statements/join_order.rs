//! Orders of joins and keys for scans: random queries give the rows that they give in the order in which they are written and without
//! such keys, and plans have the order that costs least.
//!
//! `LSTORE_JOIN_ORDERS=10000` runs so many queries.
use std::fmt::Write;

use engine::{Database, OpenOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Session, SessionOptions};

use crate::pushdown::rows;

/// How many queries a plain run of the tests makes.
const QUERIES: u64 = 80;

/// Tables and their rows.
const TABLES: [(&str, usize); 5] = [("a", 40), ("b", 12), ("c", 3), ("d", 25), ("e", 0)];

fn run(session: &mut Session, statement: &str) {
    session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

/// Tables of a few rows, most of them merged, with NULLs, keys that meet and keys that don't.
pub(crate) fn open() -> Session {
    let db = Database::in_memory_with(&OpenOptions { range_records: Some(16), ..OpenOptions::default() });
    let mut session = Session::new(&db, SessionOptions { target_partitions: Some(2), ..SessionOptions::default() });
    for (table, count) in TABLES {
        run(
            &mut session,
            &format!("CREATE TABLE {table} (id int PRIMARY KEY, x int, y bigint, s text, n numeric(8, 2))"),
        );
        for id in 0..count {
            let x = if id % 7 == 3 { "NULL".to_owned() } else { (id % 5).to_string() };
            let y = if id % 5 == 4 { "NULL".to_owned() } else { (id % 3).to_string() };
            let s = ["'u'", "'v'", "NULL", "'w'"][id % 4];
            run(&mut session, &format!("INSERT INTO {table} VALUES ({id}, {x}, {y}, {s}, {}.50)", id % 4));
        }
    }
    db.merge_now();
    run(&mut session, "UPDATE a SET x = 1 WHERE id % 9 = 0");
    run(&mut session, "DELETE FROM d WHERE id % 8 = 1");
    session
}

pub(crate) struct Generator(pub(crate) StdRng);

impl Generator {
    fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    /// Two columns that are set equal, most often of the same type.
    fn equality(&mut self, left: &str, right: &str) -> String {
        let (one, other) = match self.below(8) {
            0 => ("x", "y"),
            1 => ("id", "y"),
            2 => ("s", "s"),
            3 => ("n", "n"),
            4 => ("y", "y"),
            5 => ("id", "x"),
            6 => ("x", "x"),
            _ => ("id", "id"),
        };
        format!("{left}.{one} = {right}.{other}")
    }

    fn condition(&mut self, aliases: &[String]) -> String {
        let (left, right) = (aliases[self.below(aliases.len())].clone(), aliases[self.below(aliases.len())].clone());
        let table = TABLES[self.below(TABLES.len())].0;
        let inner = self.equality("q", &left);
        let more = self.pick(&["", " AND q.x > 1", " AND q.s <> 'u'"]).to_owned();
        let correlated = format!("q.y <> {right}.y");
        match self.below(12) {
            0 => format!("{left}.x < {right}.y"),
            1 => format!("{left}.s LIKE 'u%'"),
            2 => format!("{left}.x IN (1, 2)"),
            3 => format!("({left}.x = 1 AND {right}.x = 2 OR {left}.x = 2 AND {right}.x = 1)"),
            4 => format!("EXISTS (SELECT 1 FROM {table} q WHERE {inner}{more})"),
            5 => format!("NOT EXISTS (SELECT 1 FROM {table} q WHERE {inner}{more})"),
            6 => format!("EXISTS (SELECT 1 FROM {table} q WHERE {inner} AND {correlated})"),
            7 => format!("NOT EXISTS (SELECT 1 FROM {table} q WHERE {inner} AND {correlated})"),
            8 => format!("{left}.x IN (SELECT q.x FROM {table} q WHERE q.id > 2)"),
            9 => format!("{left}.x NOT IN (SELECT q.id FROM {table} q{})", self.pick(&["", " WHERE q.x IS NOT NULL"])),
            10 => format!("{left}.n > (SELECT avg(q.n) FROM {table} q WHERE {inner})"),
            _ => format!("{left}.id + {right}.id > 3"),
        }
    }

    pub(crate) fn query(&mut self) -> String {
        let count = 2 + self.below(5);
        let aliases: Vec<String> = (0..count).map(|at| format!("t{at}")).collect();
        let source = |generator: &mut Generator, alias: &str| match generator.below(10) {
            0 => {
                let table = TABLES[generator.below(TABLES.len())].0;
                format!(
                    "(SELECT x AS id, max(id) AS x, count(*) AS y, min(s) AS s, sum(n) AS n FROM {table} GROUP BY x) {alias}"
                )
            }
            1 => {
                let [one, other] = [0; 2].map(|_| TABLES[generator.below(TABLES.len())].0);
                let literal = generator.pick(&["x", "2"]);
                format!(
                    "(SELECT id, x, y, s, n FROM {one} UNION ALL SELECT id, {literal}, y, 'u', n FROM {other}) {alias}"
                )
            }
            _ => format!("{} {alias}", TABLES[generator.below(TABLES.len())].0),
        };
        let mut text =
            format!("SELECT t0.id, {}.s, {}.x FROM {}", aliases[count - 1], aliases[count / 2], source(self, "t0"));
        let mut conditions = Vec::new();
        for at in 1..count {
            let other = aliases[self.below(at)].clone();
            let (alias, equality) = (&aliases[at], self.equality(&other, &aliases[at]));
            let table = source(self, alias);
            match self.below(10) {
                0 => write!(text, " LEFT JOIN {table} ON {equality}").unwrap(),
                1 => write!(text, " RIGHT JOIN {table} ON {equality}").unwrap(),
                2 => write!(text, " FULL JOIN {table} ON {equality}").unwrap(),
                3 => write!(text, " CROSS JOIN {table}").unwrap(),
                4 => write!(text, " JOIN {table} ON {equality} AND {}.x <= {alias}.x", aliases[at - 1]).unwrap(),
                _ => {
                    write!(text, " CROSS JOIN {table}").unwrap();
                    conditions.push(equality);
                }
            }
        }
        for _ in 0..self.below(4) {
            let condition = self.condition(&aliases);
            conditions.push(condition);
        }
        if !conditions.is_empty() {
            write!(text, " WHERE {}", conditions.join(" AND ")).unwrap();
        }
        text
    }
}

#[test]
fn joins_in_any_order_give_the_same_rows() {
    let count = std::env::var("LSTORE_JOIN_ORDERS").ok().and_then(|count| count.parse().ok()).unwrap_or(QUERIES);
    let mut session = open();
    let (mut answered, mut with_rows) = (0, 0);
    for seed in 0..count {
        // Few rows of many tables are many rows of their product.
        let query = format!("SELECT * FROM ({}) all_rows LIMIT 200000", Generator(StdRng::seed_from_u64(seed)).query());
        let mut answers = [("off", "off"), ("on", "off"), ("off", "on"), ("on", "on")].map(|(order, filters)| {
            run(&mut session, &format!("SET lstore.join_order = {order}"));
            run(&mut session, &format!("SET lstore.run_time_filters = {filters}"));
            rows(&mut session, &query)
        });
        answers.iter_mut().flatten().for_each(|lines| lines.sort_unstable());
        let [written, ordered, filtered, both] = answers;
        answered += u64::from(written.is_ok());
        with_rows += usize::from(written.as_ref().is_ok_and(|lines| !lines.is_empty()));
        assert_eq!(written, ordered, "in order, seed {seed}: {query}");
        assert_eq!(written, filtered, "with keys, seed {seed}: {query}");
        assert_eq!(written, both, "in order and with keys, seed {seed}: {query}");
    }
    assert!(answered * 10 >= count * 9 && with_rows as u64 * 5 > count, "{answered} and {with_rows} of {count}");
}

/// The tables in the order in which a plan names them.
fn order(session: &mut Session, query: &str) -> Vec<String> {
    let lines = rows(session, &format!("EXPLAIN (OPERATORS) {query}")).unwrap();
    let text: String = lines.into_iter().flatten().flatten().collect();
    let name = |part: &str| part.chars().take_while(|sign| sign.is_alphanumeric()).collect();
    text.split("table=").skip(1).map(name).collect()
}

#[test]
fn small_tables_are_joined_before_large_ones_and_kept_in_memory() {
    let mut session = open();
    // Each alone has more rows than the join of the two small ones.
    let query = "SELECT count(*) FROM a, d, b, c WHERE a.id = d.id AND d.x = b.id AND b.x = c.id AND c.s = 'u'";
    assert_eq!(order(&mut session, query), ["c", "b", "d", "a"]);
    run(&mut session, "SET lstore.join_order = off");
    assert_ne!(order(&mut session, query), ["c", "b", "d", "a"]);
    run(&mut session, "RESET lstore.join_order");
    // What takes rows of one table away does so before that is joined to others.
    let query = "SELECT count(*) FROM a, d WHERE a.x = d.x AND a.id IN (SELECT id FROM c)";
    assert_eq!(order(&mut session, query), ["c", "a", "d"]);
}

#[test]
fn scans_get_the_keys_of_joins_above_them_where_rows_without_a_partner_are_of_no_matter() {
    let mut session = open();
    let mut tests = |query: &str| {
        let lines = rows(&mut session, &format!("EXPLAIN (OPERATORS) {query}")).unwrap();
        let text: String = lines.into_iter().flatten().flatten().collect();
        text.matches("IN (keys of a join)").count()
    };
    let of_groups = "(SELECT x, sum(n) AS n FROM a GROUP BY x) g";
    assert_eq!(tests("SELECT count(*) FROM a, c WHERE a.id = c.id AND c.s = 'u'"), 1);
    assert_eq!(tests(&format!("SELECT g.n FROM c JOIN {of_groups} ON g.x = c.id WHERE c.s = 'u'")), 1);
    assert_eq!(tests("SELECT count(*) FROM a JOIN d ON a.x = d.x JOIN c ON c.id = a.id WHERE c.s = 'u'"), 2);
    let of_parts = |columns: &str| format!("(SELECT id, n FROM a UNION ALL SELECT {columns} FROM d) u");
    assert_eq!(tests(&format!("SELECT u.n FROM c JOIN {} ON u.id = c.id WHERE c.s = 'u'", of_parts("id, n"))), 2);
    assert_eq!(tests(&format!("SELECT u.n FROM c JOIN {} ON u.id = c.id WHERE c.s = 'u'", of_parts("7, n"))), 0);
    let of_pairs = "(SELECT a.id, sum(d.n) AS n FROM a JOIN d ON a.id = d.id GROUP BY a.id) p";
    assert_eq!(
        tests(&format!("SELECT p.n FROM c JOIN {of_pairs} ON p.id = c.id WHERE c.s = 'u'")),
        2,
        "both sides lose rows"
    );
    assert_eq!(tests("SELECT count(*) FROM a, c WHERE a.id = c.id"), 0, "all keys of a table take no rows away");
    assert_eq!(tests("SELECT count(*) FROM a FULL JOIN c ON a.id = c.id AND c.s = 'u'"), 0);
    assert_eq!(tests("SELECT a.id FROM a LEFT JOIN c ON a.id = c.id AND c.s = 'u'"), 0);
    assert_eq!(tests("SELECT a.id FROM (SELECT * FROM a ORDER BY n LIMIT 9) a JOIN c ON a.id = c.id AND c.s = 'u'"), 0);
}

#[test]
fn outer_joins_are_inner_ones_where_rows_without_a_partner_are_dropped_later() {
    let mut session = open();
    let mut kinds = |query: &str| {
        let lines = rows(&mut session, &format!("EXPLAIN (OPERATORS) {query}")).unwrap();
        let text: String = lines.into_iter().flatten().flatten().collect();
        ["Left", "Right", "Full"].map(|kind| text.matches(&format!("join_type={kind},")).count()).iter().sum::<usize>()
    };
    assert_eq!(kinds("SELECT a.id, d.n FROM a LEFT JOIN d ON a.id = d.id, c WHERE d.x = c.id"), 0);
    assert_eq!(kinds("SELECT a.id, d.n FROM c, a LEFT JOIN d ON a.id = d.id WHERE d.x = c.id AND c.s = 'u'"), 0);
    assert_eq!(
        kinds("SELECT a.id, d.n FROM a FULL JOIN d ON a.id = d.id JOIN b ON a.x = b.id JOIN c ON d.x = c.id"),
        0
    );
    assert_eq!(
        kinds("SELECT f.id, f.n FROM (SELECT a.id, d.x, d.n FROM a LEFT JOIN d ON a.id = d.id) f JOIN c ON f.x = c.id"),
        0
    );
    assert_eq!(kinds("SELECT a.id, d.n FROM a LEFT JOIN d ON a.id = d.id, c WHERE a.x = c.id"), 1);
    assert_eq!(kinds("SELECT a.id, d.n, c.s FROM a LEFT JOIN d ON a.id = d.id LEFT JOIN c ON d.x = c.id"), 2);
    assert_eq!(kinds("SELECT a.id FROM a LEFT JOIN d ON a.id = d.id, c WHERE coalesce(d.x, 1) = c.id"), 1);
}

#[test]
fn conditions_that_may_fail_stay_where_they_are() {
    let mut session = open();
    let query = "SELECT a.id FROM a, b, c WHERE a.id = b.id AND b.id = c.id AND a.x <> 0 AND 10 / a.x > b.x ORDER BY 1";
    let ordered = rows(&mut session, query);
    run(&mut session, "SET lstore.join_order = off");
    assert_eq!(ordered, rows(&mut session, query));
    assert!(ordered.is_ok(), "{ordered:?}");
}

/// Half a group is a group that the table does not have: what is worked out of it might be an error.
#[test]
fn a_scan_with_keys_gives_a_group_whole_or_not_at_all() {
    let db = Database::in_memory();
    let mut session = Session::new(&db, SessionOptions { target_partitions: Some(1), ..SessionOptions::default() });
    run(&mut session, "CREATE TABLE b (id int PRIMARY KEY, g int, x int)");
    run(&mut session, "CREATE TABLE a (g int PRIMARY KEY, tag text)");
    run(&mut session, "INSERT INTO a VALUES (1, 'u'), (7, 'v')");
    run(&mut session, "INSERT INTO b VALUES (0, 2, 5)");
    run(&mut session, "INSERT INTO b SELECT i, 1, 1 FROM generate_series(1, 80000) AS s(i)");
    run(&mut session, "INSERT INTO b VALUES (90001, 2, 1), (90002, 2, -1)");
    db.merge_now();
    // A filter that keeps nearly all rows is of no use, and would be switched off in the middle of the table.
    let query = "SELECT a.g, r FROM a JOIN (SELECT g, 1000000 / sum(x) AS r FROM b GROUP BY g) AS s ON s.g = a.g WHERE tag = 'u'";
    assert_eq!(rows(&mut session, query).map(|rows| rows.len()), Ok(1));
}
