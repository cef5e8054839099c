//! Columns that are set to expressions go the short way where the statement comes again, and get what the planner gives them.
use engine::{DataType, Database, Value};

use super::both_ways::shown;
use super::{Point, Reading};
use crate::names::tables::Tables;
use crate::parsing::ParsedStatement;
use crate::parsing::parse::parse;
use crate::session::{Session, SessionOptions};

fn session() -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    for statement in [
        "CREATE TABLE t (id INT PRIMARY KEY, big BIGINT, small SMALLINT, name VARCHAR(5), code CHAR(3), price NUMERIC(8, 2), \
         ratio DOUBLE PRECISION, day DATE, ok BOOLEAN)",
        "INSERT INTO t VALUES (1, 10, 100, 'one', 'a', 1.55, 2.5, '2020-01-01', true), \
         (2, NULL, 32767, NULL, NULL, NULL, NULL, NULL, NULL), (3, 7, -5, 'three', 'abc', 999999.99, 1e300, '1999-12-31', false)",
    ] {
        session.execute(statement).unwrap();
    }
    session
}

/// With one parameter of a kind of integers.
fn prepared(session: &Session, text: &str) -> Option<Point> {
    let tables = Tables::published(session.database());
    match parse(text) {
        Ok(ParsedStatement::Statement(parsed)) => Point::plan(&parsed, &tables, Reading::often(&[DataType::Integer])),
        _ => panic!("{text}"),
    }
}

/// Runs a statement both ways, with `$1` as this number, and holds the tables against each other. Whether the short way was enough.
fn both_ways(text: &str, number: i32) -> bool {
    let (mut short, mut long) = (session(), session());
    let point = prepared(&short, text).unwrap_or_else(|| panic!("{text} is planned"));
    let done = point.run(&mut short, &[Value::Integer(number)]).unwrap();
    let is_done = done.is_some();
    // A text with a literal is not compiled, and more than the short way understands.
    let written = text.replace("$1", &format!("({number})"));
    let longer = match written.split_once(" WHERE ") {
        Some((what, condition)) => format!("{what} WHERE ({condition}) AND 1 = 1"),
        None => written.replacen("VALUES ", "SELECT * FROM (VALUES ", 1) + ") v",
    };
    let answer = long.execute(&longer);
    match done {
        Some(done) => assert_eq!(shown(Ok(done), true), shown(answer, true), "{text} with {number}"),
        None => assert!(answer.is_err(), "{text} with {number} has to be planned"),
    }
    let all = "SELECT * FROM t ORDER BY id";
    assert_eq!(shown(short.execute(all), true), shown(long.execute(all), true), "{all} after {text} with {number}");
    is_done
}

#[test]
fn columns_get_what_the_planner_gives_them() {
    let values = [
        "price = price * 1.1",
        "price = price / 3",
        "price = big + $1",
        "big = big * 2 % 7",
        "big = $1 % 5",
        "big = coalesce(big, 0) + $1",
        "big = CASE WHEN ok THEN big ELSE $1 END",
        "small = ratio",
        "small = small + price",
        "ratio = price",
        "ratio = ratio / $1",
        "name = upper(name)",
        "name = name || '!'",
        "name = left(name, $1)",
        "code = lower(name)",
        "ok = NOT ok",
        "ok = big > $1",
        "big = 100 / $1",
        "big = big / $1",
        "big = small * 2, small = small + 1, price = price + $1 * 0.125",
    ];
    let (mut done, mut refused) = (0, 0);
    for value in values {
        for condition in ["id = 1", "id = 2", "id = 3", "id = 9", "id BETWEEN 1 AND 3"] {
            for number in [0, 1, 3, -40_000] {
                let is_done = both_ways(&format!("UPDATE t SET {value} WHERE {condition}"), number);
                (done, refused) = (done + usize::from(is_done), refused + usize::from(!is_done));
            }
        }
    }
    assert!(done > 300 && refused > 20, "{done} went the short way, {refused} are errors");
}

#[test]
fn new_rows_get_what_the_planner_gives_them() {
    for (values, number, is_short) in [
        ("(4, $1 % 5, $1 * 2, 'x', 'y', $1 / 8.0, 1, NULL, $1 > 3)", 7, true),
        ("(3 + $1, 1, 1, lower('ABC'), 'y', 1, 1, NULL, true)", 2, true),
        ("(4, 1, 1, 'x', 'y', 1.005 + 1, 1, NULL, true)", 2, true),
        ("(4, 1, 1, 'x', 'y', 1, sqrt($1), NULL, true)", 2, true),
        ("(4, 1, $1 * 2, 'x', 'y', 1, 1, NULL, true)", 20_000, false),
        ("(4, 1, 10 / $1, 'x', 'y', 1, 1, NULL, true)", 0, false),
        ("(4, 1, 1, lower('TOO LONG'), 'y', 1, 1, NULL, true)", 0, false),
    ] {
        assert_eq!(both_ways(&format!("INSERT INTO t VALUES {values}"), number), is_short, "{values}");
    }
}

#[test]
fn what_is_not_the_row_s_own_is_planned() {
    let session = session();
    for statement in [
        "UPDATE t SET big = (SELECT max(big) FROM t) WHERE id = $1",
        "UPDATE t SET ratio = random() WHERE id = $1",
        "UPDATE t SET name = to_char(day, 'Day') WHERE id = $1",
        "UPDATE t SET day = name WHERE id = $1",
        "UPDATE t SET big = other WHERE id = $1",
        "INSERT INTO t (id, big) VALUES ($1, big)",
    ] {
        assert!(prepared(&session, statement).is_none(), "{statement}");
    }
}
