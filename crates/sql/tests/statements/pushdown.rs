//! Conditions and aggregates that the storage answers itself, against the same ones answered by the plan above a scan.
//! `(condition) IS TRUE` keeps a condition above the scan, and a LIMIT that cuts nothing keeps an aggregate there.

use engine::{Database, OpenOptions};
use sql::{Outcome, Session, SessionOptions, text_value};

/// A column, its type, the values that rows have, and what it is compared with.
const COLUMNS: [(&str, &str, &[&str], &[&str]); 12] = [
    ("s", "SMALLINT", &["-32768", "-1", "0", "7", "32767"], &["0", "7", "40000", "0.5", "-32768", "'7'"]),
    ("i", "INT", &["-2147483648", "-1", "0", "7", "2147483647"], &["0", "7", "2.5", "99999999999", "7.0", "1e0"]),
    ("l", "BIGINT", &["-9223372036854775808", "-1", "0", "7", "9223372036854775807"], &["0", "7", "1e19", "7.5"]),
    ("r", "REAL", &["'-0'", "0", "0.1", "-7.5", "'NaN'"], &["0", "0.1", "7.5", "'NaN'", "0.1::real"]),
    ("d", "DOUBLE PRECISION", &["'-0'", "0", "0.1", "-7.5", "'NaN'"], &["0", "0.1", "7.5", "'NaN'", "'-0'"]),
    (
        "m",
        "NUMERIC(10, 2)",
        &["-0.01", "0", "1.5", "7.25", "99999999.99"],
        &["0", "1.5", "1.505", "7", "1e20", "'1.50'"],
    ),
    ("t", "TEXT", &["''", "'a'", "'B'", "'ab'", "'ä '"], &["''", "'a'", "'a '", "'b'", "'ä '"]),
    ("v", "VARCHAR(3)", &["''", "'a'", "'B'", "'ab '", "'äöü'"], &["''", "'a'", "'ab'", "'ab '", "'abcdef'"]),
    ("y", "BYTEA", &["'\\x'", "'\\x00'", "'\\x7f'", "'\\x80'", "'\\xffff'"], &["'\\x'", "'\\x7f'", "'\\xff'"]),
    (
        "day",
        "DATE",
        &["'0044-03-15 BC'", "'1969-12-31'", "'1970-01-01'", "'2020-02-29'", "'9999-12-31'"],
        &["'1970-01-01'", "DATE '2020-02-29'", "TIMESTAMP '2020-02-29 00:00:01'", "TIMESTAMP '1970-01-01'"],
    ),
    (
        "at",
        "TIMESTAMP",
        &["'0044-03-15 BC'", "'1969-12-31 23:59:59.999999'", "'1970-01-01'", "'2020-02-29 12:00'", "'9999-12-31'"],
        &[
            "'1970-01-01'",
            "TIMESTAMP '2020-02-29 12:00'",
            "DATE '2020-02-29'",
            "TIMESTAMP '1970-01-01 00:00:00.0000001'",
        ],
    ),
    (
        "u",
        "UUID",
        &[
            "'00000000-0000-0000-0000-000000000000'",
            "'10000000-0000-0000-0000-000000000000'",
            "'7f000000-0000-0000-0000-000000000000'",
            "'80000000-0000-0000-0000-00000000000a'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        ],
        &["'7F000000-0000-0000-0000-000000000000'", "'80000000000000000000000000000000'"],
    ),
];

/// Rows partly merged into encoded pages, partly updated since, some of them deleted.
fn open() -> Session {
    let options = OpenOptions { range_records: Some(16), ..OpenOptions::default() };
    let db = Database::in_memory_with(&options);
    let mut session = Session::new(&db, SessionOptions::default());
    let columns: Vec<String> = COLUMNS.iter().map(|(name, data_type, ..)| format!("{name} {data_type}")).collect();
    let mut run = |statement: &str| {
        session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    };
    run(&format!("CREATE TABLE t (k INT PRIMARY KEY, b BOOLEAN, {})", columns.join(", ")));
    for k in 0..60 {
        let value = |(at, (.., values, _)): (usize, &(_, _, &[&str], _))| match (k + at) % 6 {
            5 => "NULL".to_owned(),
            at => values[at].to_owned(),
        };
        let values: Vec<String> = COLUMNS.iter().enumerate().map(value).collect();
        let truth = ["NULL", "true", "false"][k % 3];
        run(&format!("INSERT INTO t VALUES ({k}, {truth}, {})", values.join(", ")));
    }
    db.merge_now();
    run("UPDATE t SET s = 7, t = 'a', d = 7.5, m = NULL WHERE k % 7 = 3");
    run("UPDATE t SET i = NULL, day = '1970-01-01', u = NULL WHERE k % 11 = 5");
    run("DELETE FROM t WHERE k % 13 = 4");
    session
}

pub(crate) fn rows(session: &mut Session, query: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    let failed = |error: sql::SqlError| format!("{} {}", error.sqlstate, error.message);
    let Outcome::Rows(rows) = session.execute(query).map_err(failed)? else { panic!("{query} gave no rows") };
    let mut lines = Vec::new();
    for batch in rows {
        let batch = batch.map_err(failed)?;
        for row in 0..batch.num_rows() {
            lines.push(batch.columns().iter().map(|array| text_value(array.as_ref(), row)).collect());
        }
    }
    Ok(lines)
}

fn plan(session: &mut Session, query: &str) -> String {
    let lines = rows(session, &format!("EXPLAIN (OPERATORS) {query}")).unwrap();
    lines.into_iter().flatten().flatten().collect()
}

/// Both ways to answer a condition.
fn check(session: &mut Session, condition: &str) {
    let pushed = format!("SELECT k FROM t WHERE {condition} ORDER BY k");
    let kept = format!("SELECT k FROM t WHERE ({condition}) IS TRUE ORDER BY k");
    assert_eq!(rows(session, &pushed), rows(session, &kept), "{condition}");
}

fn is_pushed(session: &mut Session, condition: &str) -> bool {
    plan(session, &format!("SELECT k FROM t WHERE {condition}")).contains("tests=[")
}

#[test]
fn what_the_storage_tests_is_what_a_filter_would() {
    let mut session = open();
    assert!(!is_pushed(&mut session, "(i = 7) IS TRUE"));
    for (name, _, _, literals) in COLUMNS {
        for literal in literals {
            for op in ["=", "<>", "<", ">="] {
                check(&mut session, &format!("{name} {op} {literal}"));
            }
        }
        let (first, second) = (literals[0], literals[1]);
        check(&mut session, &format!("{second} > {name}"));
        check(&mut session, &format!("{name} BETWEEN {first} AND {second}"));
        check(&mut session, &format!("{name} IN ({first}, {second})"));
        check(&mut session, &format!("{name} NOT IN ({first}, NULL)"));
        check(&mut session, &format!("{name} IN ({})", [first, second, "NULL", first, second].join(", ")));
        check(&mut session, &format!("{name} IS NULL OR {name} = {first}"));
        for condition in [format!("{name} > {first}"), format!("{name} IS NULL"), format!("{name} IS NOT NULL")] {
            check(&mut session, &condition);
            assert!(is_pushed(&mut session, &condition), "{condition}");
        }
    }
}

#[test]
fn patterns_truths_and_several_conditions_at_once_are_tested_as_a_filter_would() {
    let mut session = open();
    for condition in ["b", "NOT b", "b = true", "b <> true", "b IS NULL", "b IS NOT TRUE", "b IN (true, false)"] {
        check(&mut session, condition);
    }
    for pattern in ["a%", "%", "", "a", "ä%", "_%", "%a", "a\\%", "\\%%", "A%"] {
        check(&mut session, &format!("t LIKE '{pattern}'"));
        check(&mut session, &format!("v NOT LIKE '{pattern}'"));
        check(&mut session, &format!("t ILIKE '{pattern}'"));
    }
    for condition in [
        "k = 7 AND s = 0",
        "k = 8 AND t IS NULL",
        "k = 9 AND k = 10",
        "k = 9 AND k >= 9 AND i IS NOT NULL",
        "i = 7 OR i = 0 OR i IS NULL",
        "i = 7 OR l = 7",
        "i > 0 AND l > 0 AND t < 'b'",
        "s > i",
        "i = NULL",
        "k > 10 AND k < 5",
    ] {
        check(&mut session, condition);
    }
    assert!(is_pushed(&mut session, "t LIKE 'a%'"));
}

/// Both ways to aggregate; says whether the storage did it.
fn check_totals(session: &mut Session, aggregates: &str, condition: &str) -> bool {
    let pushed = format!("SELECT {aggregates} FROM t WHERE {condition}");
    let kept = format!("SELECT {aggregates} FROM (SELECT * FROM t WHERE {condition} LIMIT 1000000) AS t");
    assert!(!plan(session, &kept).contains("TotalsExec"));
    assert_eq!(rows(session, &pushed), rows(session, &kept), "{pushed}");
    plan(session, &pushed).contains("TotalsExec")
}

#[test]
fn what_the_storage_adds_up_is_what_a_plan_would() {
    let mut session = open();
    for condition in ["true", "k <> 20", "k <> 1000", "i = 7", "b AND k <> 10", "t LIKE 'a%'"] {
        assert!(check_totals(&mut session, "count(*)", condition));
        for (name, ..) in COLUMNS {
            let extremes = format!("count({name}), min({name}), max({name})");
            let is_pushed = check_totals(&mut session, &extremes, condition);
            assert!(is_pushed, "{name}");
        }
        for name in ["s", "i", "m"] {
            let sums = format!("sum({name}), avg({name}), count(*)");
            assert!(check_totals(&mut session, &sums, condition), "{name}");
        }
        check_totals(&mut session, "avg(l), sum(d), avg(d), sum(r), avg(r), min(b), max(b)", condition);
        check_totals(
            &mut session,
            "count(DISTINCT i), sum(DISTINCT i), sum(i + 1), sum(i) FILTER (WHERE b), bool_and(b)",
            condition,
        );
    }
    assert!(check_totals(&mut session, "sum(l)", "true"), "no bigint holds this sum, a numeric does");
}

#[test]
fn the_storage_sees_a_transactions_own_writes_and_no_others() {
    let mut session = open();
    let mut other = Session::new(session.database(), SessionOptions::default());
    let totals = "SELECT count(*), sum(i), max(t) FROM t WHERE t LIKE 'z%'";
    session.execute("BEGIN").unwrap();
    session.execute("INSERT INTO t (k, i, t) VALUES (1000, 1, 'zz'), (1001, 2, 'z')").unwrap();
    session.execute("UPDATE t SET i = 5 WHERE k = 1001").unwrap();
    let found = rows(&mut session, totals).unwrap();
    assert_eq!(found, [[Some("2".to_owned()), Some("6".to_owned()), Some("zz".to_owned())]]);
    assert_eq!(rows(&mut other, totals).unwrap(), [[Some("0".to_owned()), None, None]]);
    assert!(plan(&mut session, totals).contains("TotalsExec"));
    session.execute("ROLLBACK").unwrap();
}
