//! Queries of `WITH` that are read several times: random queries give the rows that they give where the query is worked out once and
//! whole, as `MATERIALIZED` says, and plans work out what is asked for.
//!
//! `LSTORE_COMMON_TABLES=10000` runs so many queries.
use engine::{Database, OpenOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Session, SessionOptions};

use crate::pushdown::rows;

/// How many queries a plain run of the tests makes.
const QUERIES: u64 = 120;

/// Queries with columns `x`, `y`, `c` and `n`; the last gives more rows than it reads.
const BODIES: [&str; 8] = [
    "SELECT x, y, count(*) AS c, sum(n) AS n FROM a GROUP BY x, y",
    "SELECT a.x, d.y, a.id AS c, d.n FROM a JOIN d ON a.x = d.x",
    "SELECT a.x, d.y, a.id AS c, d.n FROM a LEFT JOIN d ON a.id = d.id",
    "SELECT x, y, id AS c, n FROM a UNION ALL SELECT x, 1, id, n FROM d WHERE y = 1",
    "SELECT x, y, c, n FROM (SELECT x, y, id AS c, n FROM d ORDER BY x, y, id LIMIT 9) l",
    "SELECT x, y, row_number() OVER (PARTITION BY x ORDER BY id) AS c, n FROM a",
    "SELECT x, y, max(c) AS c, n FROM (SELECT x, y, id % 3 AS c, n FROM a) g GROUP BY ROLLUP (x, y), n",
    "SELECT p.x, q.y, p.id AS c, q.n FROM large p JOIN large q ON p.k = q.k AND p.id <> q.id",
];

fn run(session: &mut Session, statement: &str) {
    session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

fn open() -> Session {
    let db = Database::in_memory_with(&OpenOptions { range_records: Some(64), ..OpenOptions::default() });
    let mut session = Session::new(&db, SessionOptions { target_partitions: Some(2), ..SessionOptions::default() });
    for (table, count) in [("a", 60), ("d", 30), ("large", 260)] {
        run(
            &mut session,
            &format!("CREATE TABLE {table} (id int PRIMARY KEY, k int, x int, y bigint, n numeric(8, 2))"),
        );
        let columns = "i, i % 4, CASE WHEN i % 7 <> 3 THEN i % 5 END, CASE WHEN i % 5 <> 4 THEN i % 3 END, i % 4 + 0.5";
        run(&mut session, &format!("INSERT INTO {table} SELECT {columns} FROM generate_series(0, {count} - 1) s(i)"));
    }
    db.merge_now();
    run(&mut session, "UPDATE a SET x = 1 WHERE id % 9 = 0");
    session
}

struct Generator(StdRng);

impl Generator {
    fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    /// Conditions of a reader, each with `AND` before it.
    fn conditions(&mut self, reader: &str) -> String {
        let mut text = String::new();
        for _ in 0..self.below(4) {
            let condition = self.pick(&[
                "@.x = 1",
                "2 = @.x",
                "@.x = 1 + 1",
                "@.x IN (0, 4)",
                "@.x BETWEEN 1 AND 3",
                "@.x IS NULL",
                "(@.x < 3 OR @.x IS NULL)",
                "NOT (@.x = 2)",
                "@.y = 2",
                "@.y <> 1",
                "@.y IS NOT NULL",
                "@.c > 1",
                "@.n > 1.5",
                "@.x + @.y > 2",
                "(@.x = 1 AND @.y = 2 OR @.x = 3)",
                "12 / (@.x + 1) > 3",
            ]);
            text.push_str(" AND ");
            text.push_str(&condition.replace('@', reader));
        }
        text
    }

    /// A query, with `#` where `MATERIALIZED` may stand.
    fn query(&mut self) -> String {
        let body = self.pick(&BODIES);
        let (first, second) = (self.conditions("r"), self.conditions("s"));
        let answer = match self.below(8) {
            kind @ 0..3 => {
                let joined = [
                    format!("t r, t s WHERE r.c = s.c AND r.x = s.x{first}{second}"),
                    format!("t r JOIN t s ON r.c = s.c{second} WHERE true{first}"),
                    format!("t r LEFT JOIN t s ON r.c = s.c AND r.n = s.n{second} WHERE true{first}"),
                ];
                format!("SELECT r.x, s.y, s.c, count(*) FROM {} GROUP BY r.x, s.y, s.c", joined[kind])
            }
            3 => format!(
                "SELECT count(*), max(r.n) FROM t r WHERE r.x IN (SELECT s.x FROM t s WHERE true{second}){first}"
            ),
            4 => format!("SELECT r.x, r.c FROM t r WHERE EXISTS (SELECT FROM t s WHERE s.x = r.y{second}){first}"),
            5 => {
                let value = format!("(SELECT max(s.c) FROM t s WHERE s.x = d.x{second})");
                format!("SELECT d.id, {value} FROM d WHERE d.id IN (SELECT r.c FROM t r WHERE true{first})")
            }
            6 => {
                let of_first = "(SELECT u.x AS y, u.y AS x, u.c, u.n FROM t AS u ORDER BY u.c) r";
                let of_second = "(SELECT DISTINCT x, y, c, n FROM t) s";
                format!(
                    "SELECT r.c, r.n, s.y FROM {of_first} JOIN {of_second} ON r.c = s.c WHERE r.x = s.x{first}{second}"
                )
            }
            _ => {
                let parts = format!(
                    "SELECT r.x, r.n FROM t r WHERE true{first} UNION ALL SELECT s.x, s.n FROM t s WHERE true{second}"
                );
                format!("SELECT x, count(*), sum(n) FROM ({parts}) sides GROUP BY x")
            }
        };
        format!("WITH t AS # ({body}) {answer}")
    }
}

#[test]
fn what_is_worked_out_of_a_query_that_is_read_twice_is_what_its_readers_ask_for() {
    let count = std::env::var("LSTORE_COMMON_TABLES").ok().and_then(|count| count.parse().ok()).unwrap_or(QUERIES);
    let mut session = open();
    let (mut answered, mut with_rows) = (0, 0);
    for seed in 0..count {
        let query = Generator(StdRng::seed_from_u64(seed)).query();
        let mut answer = |said: &str| {
            let mut lines = rows(&mut session, &query.replace('#', said));
            lines.iter_mut().for_each(|lines| lines.sort_unstable());
            lines
        };
        let (whole, asked) = (answer("MATERIALIZED"), answer(""));
        answered += u64::from(whole.is_ok());
        with_rows += u64::from(whole.as_ref().is_ok_and(|lines| !lines.is_empty()));
        assert_eq!(whole, asked, "seed {seed}: {query}");
    }
    assert!(answered * 10 >= count * 9 && with_rows * 3 > count, "{answered} and {with_rows} of {count}");
}

/// The plan, and of each query that is worked out once what is asked of its rows.
fn plan(session: &mut Session, query: &str) -> String {
    let lines = rows(session, &format!("EXPLAIN (OPERATORS) {query}")).unwrap();
    lines.into_iter().flatten().flatten().collect()
}

#[test]
fn rows_that_no_reader_asks_for_are_not_worked_out() {
    let mut session = open();
    let mut asked = |said: &str, conditions: &str| {
        let body = "SELECT x, y, sum(n) AS n FROM a GROUP BY x, y";
        let plan = plan(
            &mut session,
            &format!("WITH t AS {said} ({body}) SELECT r.n, s.n FROM t r, t s WHERE r.y = s.y AND {conditions}"),
        );
        assert_eq!(plan.matches("SharedExec: t").count(), 2, "{plan}");
        let of_first = plan.split("SharedExec: t").nth(1).unwrap();
        of_first.strip_prefix(", asked=[").and_then(|text| text.split(']').next()).map(str::to_owned)
    };
    assert_eq!(asked("", "r.x = 1 AND s.x = 1 + 1").as_deref(), Some("a.x = Int32(1) OR a.x = Int32(2)"));
    let both = asked("", "r.x = 1 AND s.x = 1 AND r.y > 0 AND s.y > 1");
    assert_eq!(both.as_deref(), Some("a.x = Int32(1) AND (a.y > Int64(0) OR a.y > Int64(1))"));
    assert_eq!(asked("", "r.x = 1"), None, "the other reader asks for all");
    assert_eq!(asked("", "r.x = 1 AND s.y = 2"), None);
    assert_eq!(asked("", "r.x + 1 = 2 AND 10 / s.x = 2"), None, "an operator may fail for rows that are not asked for");
    assert_eq!(asked("MATERIALIZED", "r.x = 1 AND s.x = 2"), None);
}

#[test]
fn a_join_with_more_rows_than_its_tables_is_worked_out_for_each_reader() {
    let mut session = open();
    let pairs = "SELECT p.id, q.id AS other FROM large p JOIN large q ON p.k = q.k AND p.id <> q.id";
    let readers = "SELECT count(*) FROM a WHERE n = 1.5 AND id IN (SELECT id FROM t) AND id + 1 IN (SELECT id FROM t)";
    let mut plan =
        |said: &str, pairs: &str, readers: &str| plan(&mut session, &format!("WITH t AS {said} ({pairs}) {readers}"));
    let inlined = plan("", pairs, readers);
    assert!(!inlined.contains("SharedExec"), "{inlined}");
    assert!(inlined.contains("IN (keys of a join)"), "{inlined}");
    assert!(plan("MATERIALIZED", pairs, readers).contains("SharedExec"));
    let groups = "SELECT id FROM large GROUP BY id";
    assert!(plan("", groups, readers).contains("SharedExec"), "groups are fewer than their rows");
    let repeated = "SELECT (SELECT count(*) FROM t WHERE t.id < a.id), (SELECT count(*) FROM t) FROM a";
    assert!(plan("", pairs, repeated).contains("SharedExec"), "one reader reads it again and again");
}
