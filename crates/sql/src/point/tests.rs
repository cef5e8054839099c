//! Which statements go the short way, and that it leads to where the long one does.
use datafusion::sql::sqlparser::ast::Statement;
use engine::{DataType, Database, Value};

use super::{Point, Reading};
use crate::names::tables::Tables;
use crate::parsing::ParsedStatement;
use crate::parsing::parse::parse;
use crate::session::{Session, SessionOptions};
use crate::syntax::source::Source;
use crate::{Outcome, text_value};

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, big BIGINT, small SMALLINT, name VARCHAR(5), price NUMERIC(8, 2), \
                     ratio DOUBLE PRECISION, day DATE, at TIMESTAMPTZ, ok BOOLEAN NOT NULL, u UUID)";

fn session() -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    for statement in [
        TABLE,
        "INSERT INTO t (id, big, small, name, price, day, ok) VALUES (1, 10, 100, 'one', 1.5, '2020-01-01', true), \
         (2, NULL, 32767, NULL, NULL, NULL, false), (3, 9223372036854775807, -5, 'three', 99.99, '1999-12-31', true)",
        "CREATE TABLE pair (a INT, b TEXT, n INT, PRIMARY KEY (b, a))",
        "INSERT INTO pair VALUES (1, 'x', 5), (2, 'y', 6)",
        "CREATE TABLE no_key (a INT)",
        "CREATE TABLE filled (id SERIAL, a INT, b TEXT DEFAULT 'one', c TIMESTAMP DEFAULT now())",
        "CREATE TABLE computed (id INT GENERATED ALWAYS AS IDENTITY, a INT DEFAULT 1 + 2, b INT)",
    ] {
        session.execute(statement).unwrap();
    }
    session
}

fn point(session: &Session, statement: &str, types: &[DataType]) -> Option<Point> {
    let tables = Tables::published(session.database());
    match parse(statement) {
        Ok(ParsedStatement::Statement(parsed)) => Point::plan(&parsed, &tables, Reading { types, compiles: false }),
        Ok(_) => None,
        Err(error) => panic!("{statement}: {error}"),
    }
}

/// Everything that a user would see of an outcome.
fn shown(outcome: Result<Outcome, crate::SqlError>) -> String {
    let rows = match outcome {
        Err(error) => return format!("{error:?}"),
        Ok(Outcome::Done(command)) => return command.tag,
        Ok(Outcome::Rows(rows)) => rows,
    };
    let mut text: Vec<String> =
        rows.schema().fields().iter().map(|f| format!("{}:{}", f.name(), f.data_type())).collect();
    for batch in rows {
        let batch = batch.unwrap();
        let cell = |row| batch.columns().iter().map(move |array| format!("{:?}", text_value(array.as_ref(), row)));
        text.extend((0..batch.num_rows()).flat_map(cell));
    }
    text.join(" ")
}

#[test]
fn statements_by_key_go_the_short_way() {
    let session = session();
    for statement in [
        "SELECT name FROM t WHERE id = 1",
        "select *, ID as x from public.t where (1 = id)",
        "SELECT x.big FROM t AS x WHERE x.id = 1;",
        "SELECT n FROM pair WHERE a = 1 AND b = 'x'",
        "UPDATE t SET big = big + 1, name = 'z', price = 2 WHERE id = 1",
        "UPDATE t SET big = small - 7, at = now() WHERE id = '1'",
        "UPDATE t SET price = price + 1.25 WHERE id = 1",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM pair AS p WHERE p.b = 'x' AND p.a = 2",
        "INSERT INTO t (id, ok, at) VALUES (7, TRUE, CURRENT_TIMESTAMP), (8, 'f', NULL)",
        "INSERT INTO no_key VALUES (1)",
        "UPDATE t SET big = big + 1 WHERE id = 1 RETURNING *",
        "INSERT INTO filled (a) VALUES (1), (DEFAULT)",
        "INSERT INTO filled (a) VALUES (1) RETURNING id, b AS other, filled.a",
        "INSERT INTO filled VALUES (1, 2, DEFAULT, DEFAULT) RETURNING *",
        "UPDATE t SET id = 1 WHERE id = 1 RETURNING big",
        "UPDATE t SET big = small, small = small - t.id WHERE id = 1",
        "DELETE FROM t WHERE id = 1 RETURNING big, t.*",
        "INSERT INTO no_key VALUES (1) ON CONFLICT DO NOTHING",
        "INSERT INTO pair VALUES (1, 'x', 2) ON CONFLICT (b, a) DO UPDATE SET n = pair.n + EXCLUDED.n RETURNING *",
    ] {
        assert!(point(&session, statement, &[]).is_some(), "{statement}");
    }
}

#[test]
fn queries_of_few_rows_by_any_index_go_the_short_way() {
    let session = session();
    for statement in [
        "SELECT name FROM t WHERE id > 1",
        "SELECT name FROM t WHERE id = 1 AND big = 10",
        "SELECT name FROM t WHERE id = 1 AND id = 1",
        "SELECT name FROM t WHERE id = 1 LIMIT 0",
        "SELECT DISTINCT name FROM t WHERE id = 1",
        "SELECT count(*) FROM t WHERE id = 1",
        "SELECT n FROM pair WHERE a = 1",
        "SELECT a FROM no_key WHERE a = 1",
        "SELECT name FROM t WHERE id IN (1, 2) AND ok ORDER BY name DESC, t.big LIMIT 2 OFFSET 1",
        "SELECT big AS x FROM t WHERE 2 > id AND day IS NULL ORDER BY x",
        "SELECT big FROM t ORDER BY id LIMIT 3",
        "SELECT sum(big), max(day) FROM t WHERE id BETWEEN 1 AND 2",
    ] {
        assert!(point(&session, statement, &[]).is_some(), "{statement}");
    }
}

#[test]
fn whatever_says_more_goes_the_long_way() {
    let session = session();
    for statement in [
        "SELECT name FROM t",
        "SELECT name FROM t WHERE id = 1 OR id = 2",
        "SELECT upper(name) FROM t WHERE id = 1",
        "SELECT name FROM t WHERE id = 1 OR ok",
        "SELECT name FROM t WHERE NOT (id = 1 AND ok)",
        "SELECT name FROM t WHERE ratio = 1",
        "SELECT name FROM t WHERE id IN (1, NULL)",
        "SELECT name FROM t WHERE id NOT IN (1, 2)",
        "SELECT DISTINCT name FROM t WHERE id > 1 ORDER BY id",
        "SELECT DISTINCT ON (name) name FROM t WHERE id > 1",
        "SELECT name FROM t WHERE id > 1 LIMIT 1 + 1",
        "SELECT name, count(*) FROM t WHERE id > 1",
        "SELECT sum(ratio) FROM t WHERE id > 1",
        "SELECT max(name) FROM t WHERE id > 1",
        "SELECT name FROM t WHERE id = 1 GROUP BY name",
        "SELECT name FROM t FOR SYSTEM_TIME AS OF 1 WHERE id = 1",
        "SELECT name FROM t AS x (id) WHERE id = 1",
        "WITH t AS (SELECT 1 AS id) SELECT id FROM t WHERE id = 1",
        "SELECT name FROM t WHERE id = 1.5",
        "SELECT name FROM t WHERE id = 3000000000",
        "SELECT name FROM t WHERE id = NULL",
        "SELECT name FROM t WHERE id = 'x'",
        "SELECT nothing FROM t WHERE id = 1",
        "UPDATE t SET big = big * 2 WHERE id = 1",
        "UPDATE t SET price = big + 1 WHERE id = 1",
        "UPDATE t SET big = 1, big = 2 WHERE id = 1",
        "UPDATE t SET name = 'too long' WHERE id = 1",
        "UPDATE t SET big = n FROM pair WHERE id = 1",
        "DELETE FROM t USING pair WHERE id = 1",
        "DELETE FROM t",
        "INSERT INTO t (id, ok) VALUES (1 + 1, true)",
        "INSERT INTO t (id, id) VALUES (1, 2)",
        "INSERT INTO t (id) VALUES (1, 2)",
        "INSERT INTO no_key SELECT 1",
        "INSERT INTO pair VALUES (1, 'x', 2) ON CONFLICT (a, b) DO UPDATE SET n = pair.n + 1 WHERE pair.n > 1",
        "INSERT INTO pair VALUES (1, 'x', 2) ON CONFLICT (a, b) DO UPDATE SET n = n + 1",
        "INSERT INTO pair VALUES (1, 'x', 2) ON CONFLICT (a, b) DO UPDATE SET n = EXCLUDED.n * 2",
        "INSERT INTO pair VALUES (1, 'x', 2) ON CONFLICT DO UPDATE SET n = 1",
        "INSERT INTO no_key VALUES (1) RETURNING a + 1",
        "INSERT INTO computed (b) VALUES (1)",
        "INSERT INTO computed (id, a) VALUES (1, 1)",
        "INSERT INTO computed (id, a) OVERRIDING SYSTEM VALUE VALUES (1, 1)",
        "UPDATE t SET big = DEFAULT WHERE id = 1",
        "UPDATE t SET big = 1 WHERE id = 1 RETURNING big + 1",
        "DELETE FROM t WHERE id = 1 RETURNING big + 1",
        "UPDATE t SET small = ratio WHERE id = 1",
        "SELECT last_value FROM nowhere WHERE id = 1",
    ] {
        assert!(point(&session, statement, &[]).is_none(), "{statement}");
    }
}

/// Each statement as it is, and with a condition more, which sends it the long way.
#[test]
fn both_ways_lead_to_the_same() {
    let statements = [
        "SELECT * FROM t WHERE id = 1",
        "SELECT name AS a, name AS b, u FROM t WHERE id = 2",
        "SELECT name FROM t WHERE id = 9",
        "SELECT a, b FROM pair WHERE b = 'y' AND a = 2",
        "UPDATE t SET big = big + 1, small = 7 WHERE id = 1",
        "UPDATE t SET big = big + 1 WHERE id = 2",
        "UPDATE t SET big = big + 1 WHERE id = 3",
        "UPDATE t SET small = small + 1 WHERE id = 2",
        "UPDATE t SET small = big WHERE id = 3",
        "UPDATE t SET id = id + 2147483647 WHERE id = 3",
        "UPDATE t SET big = id + 2147483647 WHERE id = 3",
        "UPDATE t SET big = 2 - id WHERE id = 3",
        "UPDATE t SET price = price - 1.25 WHERE id = 1",
        "UPDATE t SET price = 1 + price WHERE id = 2",
        "UPDATE t SET price = price + 0.005 WHERE id = 1",
        "UPDATE t SET price = price + 999999 WHERE id = 3",
        "UPDATE t SET id = 2 WHERE id = 1",
        "UPDATE t SET id = 5, name = 'five ', price = 1.005, ratio = 1, day = '2021-02-03' WHERE id = 1",
        "UPDATE t SET ok = NULL WHERE id = 1",
        "UPDATE t SET ok = 'yes', u = '00000000-0000-0000-0000-00000000000A' WHERE id = 1",
        "UPDATE t SET price = 1000000 WHERE id = 1",
        "UPDATE t SET name = 'x' WHERE id = 9",
        "UPDATE t SET big = small, small = NULL WHERE id = 1",
        "UPDATE t SET big = big + small, price = price - price WHERE id = 1",
        "UPDATE t SET small = small + small WHERE id = 2",
        "UPDATE t SET big = small - big WHERE id = 3",
        "DELETE FROM t WHERE id = 2",
        "DELETE FROM t WHERE id = 9",
        "DELETE FROM t WHERE id = (SELECT min(id) FROM t WHERE ok)",
        "DELETE FROM t WHERE id = (SELECT max(big) FROM t WHERE id > 7)",
        "UPDATE t SET big = 0 WHERE id = (SELECT max(a) FROM pair WHERE b >= 'x') AND NOT ok",
    ];
    for statement in statements {
        if !statement.starts_with("SELECT") {
            let (mut short, mut long) = (session(), session());
            let [returning, longer] = ["", " AND 1 = 1"].map(|more| format!("{statement}{more} RETURNING *, big AS b"));
            assert_eq!(shown(short.execute(&returning)), shown(long.execute(&longer)), "{returning}");
        }
        let (mut short, mut long) = (session(), session());
        let longer = format!("{statement} AND 1 = 1");
        assert!(point(&long, &longer, &[]).is_none(), "{longer}");
        assert_eq!(shown(short.execute(statement)), shown(long.execute(&longer)), "{statement}");
        for all in ["SELECT * FROM t ORDER BY id", "SELECT * FROM pair ORDER BY a"] {
            assert_eq!(shown(short.execute(all)), shown(long.execute(all)), "{all} after {statement}");
        }
    }
    let inserts = [
        "(4, 5, 6, 'abc', 7.899, 1e3, DATE '2020-02-29', '2020-01-01 00:00+01', true, NULL)",
        "(1, 5, 6, 'abc', 7, 8, NULL, NULL, true, NULL)",
        "(4, 5, 6, 'abc', 7, 8, NULL, NULL, NULL, NULL)",
        "(4, 5, 66666, 'abc', 7, 8, NULL, NULL, true, NULL)",
        "(4, 5, 6, 'abcdef', 7, 8, NULL, NULL, true, NULL)",
        "(4, 5, 6, 'abc', 7, 8, 'never', NULL, true, NULL)",
        "(4, 5, 6, 'abc', 7, 8, NULL, NULL, true, NULL), (4, 5, 6, 'abc', 7, 8, NULL, NULL, true, NULL)",
    ];
    for values in inserts {
        let (mut short, mut long) = (session(), session());
        let returning = format!("INSERT INTO t VALUES {values} RETURNING *, price AS p");
        let answers = [shown(short.execute(&returning)), shown(insert_the_long_way(&mut long, &returning))];
        assert_eq!(answers[0], answers[1], "{returning}");
        let (mut short, mut long) = (session(), session());
        let statement = format!("INSERT INTO t VALUES {values}");
        assert_eq!(shown(short.execute(&statement)), shown(insert_the_long_way(&mut long, &statement)), "{values}");
        let all = "SELECT * FROM t ORDER BY id";
        assert_eq!(shown(short.execute(all)), shown(long.execute(all)), "after {values}");
    }
}

fn insert_the_long_way(session: &mut Session, text: &str) -> Result<Outcome, crate::SqlError> {
    let Ok(ParsedStatement::Statement(statement)) = parse(text) else { panic!("{text}") };
    let Statement::Insert(insert) = *statement else { panic!("{text}") };
    crate::statements::insert::run(session, &insert, &Source::new(text))
}

#[test]
fn parameters_are_values_of_their_columns() {
    let mut session = session();
    let types = [DataType::BigInt, DataType::TEXT, DataType::Integer];
    let update = point(&session, "UPDATE t SET name = $2, big = big - $3 WHERE id = $1", &types).unwrap();
    let run =
        |session: &mut Session, values: &[Value]| update.run(session, values).unwrap().map(|done| shown(Ok(done)));
    let values = |key: i64, name: &str, by: i32| [Value::BigInt(key), Value::from(name), Value::Integer(by)];
    assert_eq!(run(&mut session, &values(1, "new", 4)).as_deref(), Some("UPDATE 1"));
    assert_eq!(run(&mut session, &values(9, "new", 4)).as_deref(), Some("UPDATE 0"));
    assert_eq!(run(&mut session, &values(1, "too long", 4)), None, "a text that does not fit");
    assert_eq!(run(&mut session, &values(1 << 40, "new", 4)), None, "a key that is no integer");
    assert_eq!(run(&mut session, &values(3, "new", -4)), None, "a sum that is out of range");
    assert_eq!(run(&mut session, &[Value::Null, Value::Null, Value::Null]), None, "no key");
    assert_eq!(run(&mut session, &[Value::BigInt(2), Value::Null, Value::Null]).as_deref(), Some("UPDATE 1"));
    let seen = shown(session.execute("SELECT id, big, name FROM t ORDER BY id"));
    let rows = "Some(\"1\") Some(\"6\") Some(\"new\") Some(\"2\") None None Some(\"3\") Some(\"9223372036854775807\") Some(\"three\")";
    assert!(seen.ends_with(rows), "{seen}");
    assert!(point(&session, "SELECT name FROM t WHERE id = $1", &[DataType::TEXT]).is_none());
    assert!(point(&session, "SELECT name FROM t WHERE id = $4", &types).is_none());
}

/// As programs write them that put a type behind each parameter.
#[test]
fn casts_that_leave_a_parameter_as_it_is_go_the_short_way() {
    let mut session = session();
    let types = [DataType::SmallInt, DataType::TEXT, DataType::Integer, DataType::Uuid, DataType::Numeric];
    let update = "UPDATE t SET name = $2::varchar, big = big + ($3::bigint), u = CAST($4 AS uuid), price = $5::numeric \
                  WHERE id = $1::int";
    let update = point(&session, update, &types).unwrap();
    let values =
        [Value::SmallInt(1), Value::from("new"), Value::Integer(i32::MAX), Value::Uuid([7; 16]), Value::decimal(15, 1)];
    assert!(update.run(&mut session, &values).unwrap().is_some());
    let seen = shown(session.execute("SELECT name, big, price FROM t WHERE id = 1"));
    assert!(seen.ends_with("Some(\"new\") Some(\"2147483657\") Some(\"1.50\")"), "{seen}");
    assert!(point(&session, "SELECT name FROM t WHERE id BETWEEN $1::int AND $3::integer + 1", &types).is_some());
    for cut in
        ["$2::varchar(2)", "$2::char(3)", "$2::int", "$3::smallint", "$5::numeric(4, 1)", "$3::text", "$1::int[]"]
    {
        for column in ["name", "id", "price"] {
            let text = format!("SELECT ok FROM t WHERE {column} = {cut}");
            assert!(point(&session, &text, &types).is_none(), "{text}");
        }
    }
}

#[test]
fn parameters_of_new_rows_are_values_of_their_columns() {
    let mut session = session();
    session.execute("CREATE TABLE marked (id INT PRIMARY KEY, tag CHAR(3), span INTERVAL, list INT[])").unwrap();
    let types = [DataType::BigInt, DataType::TEXT, DataType::Decimal { precision: 38, scale: 3 }, DataType::Uuid];
    let insert = "INSERT INTO t (id, small, name, price, u, ok) VALUES ($1, $1, $2, $3, $4, true)";
    let insert = point(&session, insert, &types).unwrap();
    let run = |session: &mut Session, id: i64, name: &str, price: i128| {
        let values = [Value::BigInt(id), Value::from(name), Value::decimal(price, 3), Value::Uuid([7; 16])];
        insert.run(session, &values).unwrap().map(|done| shown(Ok(done)))
    };
    assert_eq!(run(&mut session, 1 << 40, "one", 0), None, "a key that is no integer");
    assert_eq!(run(&mut session, 40_000, "one", 0), None, "a number that is no smallint");
    assert_eq!(run(&mut session, 7, "too long", 0), None, "a text that does not fit");
    assert_eq!(run(&mut session, 7, "seven", 1_001), None, "a number that would be rounded");
    assert_eq!(run(&mut session, 7, "seven", 1_500).as_deref(), Some("INSERT 0 1"));
    let seen = shown(session.execute("SELECT small, name, price, u FROM t WHERE id = 7"));
    let row = "Some(\"7\") Some(\"seven\") Some(\"1.50\") Some(\"07070707-0707-0707-0707-070707070707\")";
    assert!(seen.ends_with(row), "{seen}");
    let types = [DataType::Integer, DataType::TEXT, DataType::Interval];
    let put = "INSERT INTO marked (id, tag, span, list) VALUES ($1, $2, $3, '{1,2}') \
               ON CONFLICT (id) DO UPDATE SET tag = excluded.tag, list = '{3}' RETURNING *";
    let put = point(&session, put, &types).unwrap();
    for (tag, list) in [("a ", "{1,2}"), ("b", "{3}")] {
        let span = Value::Interval(engine::Interval { months: 1, days: 2, micros: 0 });
        let given = put.run(&mut session, &[Value::Integer(1), Value::from(tag), span]).unwrap();
        let (given, all) = (shown(Ok(given.unwrap())), shown(session.execute("SELECT * FROM marked")));
        assert_eq!(given, all);
        assert!(given.ends_with(&format!("Some(\"1 mon 2 days\") Some(\"{list}\")")), "{given}");
    }
}

#[test]
fn another_table_of_the_name_is_not_touched() {
    let mut session = session();
    let delete = point(&session, "DELETE FROM t WHERE id = 1", &[]).unwrap();
    let select = point(&session, "SELECT name FROM t WHERE id = 1", &[]).unwrap();
    session.execute("DROP TABLE t").unwrap();
    assert!(delete.run(&mut session, &[]).unwrap().is_none() && select.run(&mut session, &[]).unwrap().is_none());
    session.execute("CREATE TABLE t (name TEXT, id INT PRIMARY KEY)").unwrap();
    session.execute("INSERT INTO t VALUES ('other', 1)").unwrap();
    assert!(delete.run(&mut session, &[]).unwrap().is_none() && select.run(&mut session, &[]).unwrap().is_none());
    assert!(shown(session.execute("SELECT name FROM t WHERE id = 1")).contains("other"));
}

#[test]
fn the_time_is_that_of_the_transaction() {
    let mut session = session();
    session.execute("BEGIN").unwrap();
    session.execute("INSERT INTO t (id, ok, at) VALUES (7, true, now())").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2));
    session
        .execute("INSERT INTO t (id, ok, at) VALUES (8, true, CURRENT_TIMESTAMP), (9, true, now() + INTERVAL '0')")
        .unwrap();
    let times = shown(session.execute("SELECT count(DISTINCT at), min(at) = now() FROM t"));
    assert!(times.ends_with("Some(\"1\") Some(\"t\")"), "{times}");
    session.execute("COMMIT").unwrap();
    assert!(shown(session.execute("SELECT max(at) < now() FROM t")).ends_with("Some(\"t\")"));
}
