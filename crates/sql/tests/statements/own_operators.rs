//! Random groupings give the same rows by our operators as by the library's.
use std::fmt::Write as _;

use engine::Database;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Outcome, Session, SessionOptions};

/// So many random queries; `LSTORE_GROUPINGS` says how many instead.
const QUERIES: u64 = 60;

fn run(session: &mut Session, text: &str) {
    session.execute(text).map(drop).unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// The rows of a query as texts in order, or its error.
fn rows(session: &mut Session, text: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    let Outcome::Rows(batches) = session.execute(text).map_err(|error| error.to_string())? else { panic!("{text}") };
    let mut lines = Vec::new();
    for batch in batches {
        let batch = batch.map_err(|error| error.to_string())?;
        let line = |at| batch.columns().iter().map(|column| sql::text_value(column, at)).collect();
        lines.extend((0..batch.num_rows()).map(line));
    }
    lines.sort_unstable();
    Ok(lines)
}

/// A table with keys of all kinds, and amounts of which some are too large for 64 bits together.
fn open(partitions: usize, count: u64) -> Session {
    let db = Database::in_memory();
    let mut session =
        Session::new(&db, SessionOptions { target_partitions: Some(partitions), ..SessionOptions::default() });
    run(
        &mut session,
        "CREATE TABLE t (id bigint PRIMARY KEY, near integer, far bigint, small smallint, day date, flag text, name text, \
         yes boolean, price numeric(15,2), rate numeric(6,4), large numeric(30,2))",
    );
    run(
        &mut session,
        &format!(
            "INSERT INTO t SELECT i, nullif(i % 1000, 7), (i % 300) * 12345678901, i % 50, DATE '2020-01-01' + (i % 40)::integer, \
         chr((65 + i % 3)::integer), nullif('a name that is long ' || (i % 20), 'a name that is long 3'), nullif(i % 3, 1) = 2, \
         nullif(i % 10007, 5) * 1.25, (i % 100) * 0.0125, (i % 77) * 1234567890123456789.25 FROM generate_series(1, {count}) s (i)"
        ),
    );
    // Statistics come from merges.
    db.merge_now();
    session
}

struct Generator(StdRng);

impl Generator {
    fn of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.0.random_range(0..from.len())]
    }

    fn query(&mut self) -> String {
        let keys: Vec<&str> = (0..self.0.random_range(1..=4))
            .map(|_| self.of(&["near", "far", "small", "day", "flag", "name", "yes", "price", "near / 10"]))
            .collect();
        let functions: Vec<String> = (0..self.0.random_range(0..=3)).map(|_| self.function()).collect();
        let columns: Vec<String> = keys.iter().map(|key| (*key).to_owned()).chain(functions).collect();
        let mut text = format!("SELECT {} FROM t", columns.join(", "));
        if self.0.random_range(0..2) == 0 {
            let condition = self.of(&[
                "id % 7 = 1",
                "near < 20",
                "day > DATE '2020-01-20'",
                "id < 0",
                "rate * price > 20.5",
                "name NOT LIKE '%is%g 1%'",
                "substr(name, 1, 18) = 'a name that is lon'",
                "substring(name FROM 1 FOR 21) NOT IN ('a name that is long 4', 'a name that is long 19', 'b')",
            ]);
            write!(text, " WHERE {condition}").unwrap();
        }
        write!(text, " GROUP BY {}", keys.join(", ")).unwrap();
        if self.0.random_range(0..4) == 0 {
            text.push_str(" HAVING count(*) > 3");
        }
        text
    }

    fn function(&mut self) -> String {
        let number = self.of(&[
            "near",
            "far",
            "small",
            "price",
            "price * (1 - rate)",
            "price * (1 - rate) * (1 + rate)",
            "large * rate",
            "large + price",
        ]);
        let mut text = match self.of(&["sum", "avg", "count", "min", "max", "rows", "texts", "distinct"]) {
            "rows" => "count(*)".to_owned(),
            "texts" => "max(name)".to_owned(),
            "distinct" => format!("count(DISTINCT {number})"),
            name => format!("{name}({number})"),
        };
        if self.0.random_range(0..5) == 0 {
            text.push_str(" FILTER (WHERE small > 10)");
        }
        text
    }
}

#[test]
fn random_groupings_give_the_rows_of_the_library() {
    let count = std::env::var("LSTORE_GROUPINGS").ok().and_then(|count| count.parse().ok()).unwrap_or(QUERIES);
    // A table of two ranges is read in two partitions.
    let mut sessions = [open(1, 4_000), open(2, 70_000)];
    let mut answered = 0;
    for seed in 0..count {
        let mut generator = Generator(StdRng::seed_from_u64(seed));
        let query = generator.query();
        let session = &mut sessions[usize::from(seed % 6 == 0)];
        run(session, "SET lstore.own_operators = off");
        let expected = rows(session, &query);
        run(session, "SET lstore.own_operators = on");
        assert_eq!(rows(session, &query), expected, "seed {seed}: {query}");
        answered += u64::from(expected.is_ok());
    }
    assert!(answered * 10 >= count * 9, "{answered} of {count} were answered");
}

#[test]
fn rows_that_are_groups_of_their_own_are_passed_on() {
    let mut session = open(2, 120_000);
    let query = "SELECT id, sum(price), avg(rate), count(near), min(day), max(far), sum(price) FILTER (WHERE small > 20) \
                 FROM t GROUP BY id";
    let found = rows(&mut session, query).unwrap();
    run(&mut session, "SET lstore.own_operators = off");
    assert!(found.len() == 120_000 && found == rows(&mut session, query).unwrap());
}

#[test]
fn plans_show_the_operators_and_the_setting_takes_them_out() {
    let mut session = open(2, 70_000);
    let query = "EXPLAIN (OPERATORS) SELECT near, sum(price * (1 - rate)) FROM t GROUP BY near";
    let text: String = rows(&mut session, query).unwrap().into_iter().flatten().flatten().collect();
    assert!(text.contains("DirectGroupsExec: step=") && text.contains("aggr=[Sum(short("), "{text}");
    run(&mut session, "SET lstore.own_operators = off");
    let text: String = rows(&mut session, query).unwrap().into_iter().flatten().flatten().collect();
    assert!(!text.contains("DirectGroupsExec") && !text.contains("short("), "{text}");
}

/// The plan of a query as one text.
fn plan(session: &mut Session, query: &str) -> String {
    rows(session, &format!("EXPLAIN (OPERATORS) {query}")).unwrap().into_iter().flatten().flatten().collect()
}

#[test]
fn distinct_values_are_counted_in_one_step_where_two_would_not_make_rows_fewer() {
    let known = "aggr=[count(DISTINCT far@";
    // Of one partition in any case.
    let mut session = open(1, 4_000);
    assert!(plan(&mut session, "SELECT flag, count(DISTINCT far) FROM t GROUP BY flag").contains(known));
    let mut session = open(2, 70_000);
    for (query, is_one_step) in [
        ("SELECT near, day, count(DISTINCT far) FROM t GROUP BY near, day", true),
        (
            "SELECT day, near, count(DISTINCT far) AS c FROM t WHERE small > 3 GROUP BY near, day ORDER BY c, near, day",
            true,
        ),
        ("SELECT near, small, count(DISTINCT far), count(DISTINCT far) + 1 FROM t GROUP BY near, small", true),
        ("SELECT near + 1, count(DISTINCT near) FROM t GROUP BY near + 1", false),
        // There are too few groups for two threads.
        ("SELECT flag, count(DISTINCT far) FROM t GROUP BY flag", false),
        // The first step makes rows fewer.
        ("SELECT near, count(DISTINCT small) FROM t GROUP BY near", false),
        // Each group would have a set of its own.
        ("SELECT near, day, count(DISTINCT name) FROM t GROUP BY near, day", false),
        ("SELECT near, day, sum(DISTINCT far) FROM t GROUP BY near, day", false),
        ("SELECT near, day, count(DISTINCT far), max(far) FROM t GROUP BY near, day", false),
    ] {
        let text = plan(&mut session, query);
        assert_eq!(text.contains(known), is_one_step, "{query}: {text}");
        let own = rows(&mut session, query);
        run(&mut session, "SET lstore.own_operators = off");
        assert!(!plan(&mut session, query).contains(known), "{query}");
        assert_eq!(own, rows(&mut session, query), "{query}");
        run(&mut session, "SET lstore.own_operators = on");
    }
}

#[test]
fn beginnings_of_texts_are_seen_in_the_texts() {
    let mut session = open(1, 4_000);
    run(&mut session, "INSERT INTO t (id, name) VALUES (-1, 'äb'), (-2, 'äbc'), (-3, 'ä'), (-4, ''), (-5, NULL)");
    for (condition, is_own) in [
        ("substring(name from 1 for 2) IN ('äb', 'ä', 'a ')", true),
        ("substr(name, 1, 2) NOT IN ('äb', '')", true),
        ("substr(name, 1, 2) = 'äb'", true),
        ("substr(name, 1, 2) <> 'ä' AND price / rate > 1", true),
        ("substr(name, 1, 2) IN ('äb', NULL)", false),
        ("substr(name, 2, 2) = 'b'", false),
        ("substr(name, 1, 2) > 'a'", false),
        ("substr(name, 1, small) = 'a'", false),
    ] {
        let query = format!("SELECT id FROM t WHERE {condition}");
        let text = plan(&mut session, &query);
        assert_eq!(text.contains("prefixes("), is_own, "{query}: {text}");
        let own = rows(&mut session, &query);
        run(&mut session, "SET lstore.own_operators = off");
        assert_eq!(own, rows(&mut session, &query), "{query}");
        run(&mut session, "SET lstore.own_operators = on");
    }
}

/// Groups of rows that lie side by side, more than are numbered by their keys.
#[test]
fn runs_of_a_key_are_grouped_as_by_the_library() {
    (1..=2).for_each(compare_runs);
}

fn compare_runs(partitions: usize) {
    let mut session = open(partitions, 10);
    run(&mut session, "CREATE TABLE line (n bigint PRIMARY KEY, ord bigint, part integer, amount numeric(12,2))");
    let insert =
        "INSERT INTO line SELECT i, nullif(i / 4, 100), i % 3, (i % 1009) * 1.5 FROM generate_series(1, 300000) s (i)";
    run(&mut session, insert);
    session.database().merge_now();
    let of = |keys: &str, rest: &str| {
        format!("SELECT {keys}, count(*), sum(amount), min(n), max(part) FROM line {rest} GROUP BY {keys}")
    };
    for (text, is_run) in [
        (of("ord", ""), true),
        (of("ord", "WHERE amount > 700"), true),
        // So few groups are expected that they are numbered by their keys.
        (of("ord", "WHERE n % 2 = 1 OR n > 250000") + " HAVING count(*) > 2", false),
        (of("ord + 1", ""), false),
        (of("n", "WHERE n < 1000"), false),
    ] {
        run(&mut session, "SET lstore.own_operators = on");
        let plan = format!("{:?}", rows(&mut session, &format!("EXPLAIN (OPERATORS) {text}")).unwrap());
        assert_eq!(plan.contains("of=runs"), is_run, "{text}: {plan}");
        let own = rows(&mut session, &text);
        run(&mut session, "SET lstore.own_operators = off");
        assert_eq!(own, rows(&mut session, &text), "{text}");
    }
    // What was side by side at first is not any more.
    run(&mut session, "INSERT INTO line SELECT n + 1000000, (n * 7919) % 75000, part, amount FROM line");
    let text = of("ord", "");
    let library = rows(&mut session, &text);
    run(&mut session, "SET lstore.own_operators = on");
    assert_eq!(rows(&mut session, &text), library);
}
