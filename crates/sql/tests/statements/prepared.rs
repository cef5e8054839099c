//! Prepared statements, statements that belong together, rows from a client, and the catalog that drivers ask.
use std::io::{self, Cursor, Read};
use std::sync::Arc;

use engine::{ArrayItem, DataType, Database, Value};
use sql::{
    CopyInput, NoInput, Origin, Outcome, PreparedStatement, Session, SessionOptions, SqlError, TransactionStatus,
    text_value,
};

fn session() -> Session {
    Session::new(&Database::in_memory(), SessionOptions::default())
}

fn run(session: &mut Session, text: &str) -> Result<String, &'static str> {
    told(session.execute(text))
}

/// The rows as text, or the tag; the state of an error, whether it comes at once or among the rows.
fn told(outcome: Result<Outcome, SqlError>) -> Result<String, &'static str> {
    let read = |outcome| match outcome {
        Outcome::Done(command) => Ok(command.tag),
        Outcome::Rows(rows) => {
            let mut lines = Vec::new();
            for batch in rows {
                let batch = batch?;
                for row in 0..batch.num_rows() {
                    let cell = |column| text_value(column, row).unwrap_or_else(|| "NULL".to_owned());
                    let cells: Vec<String> = batch.columns().iter().map(|column| cell(column.as_ref())).collect();
                    lines.push(cells.join(","));
                }
            }
            Ok(lines.join(";"))
        }
    };
    outcome.and_then(read).map_err(|error: SqlError| error.sqlstate)
}

fn prepare(session: &mut Session, text: &str) -> Arc<PreparedStatement> {
    Arc::new(session.prepare(text, &[]).unwrap())
}

fn execute(session: &mut Session, prepared: &Arc<PreparedStatement>, values: &[Value]) -> Result<String, &'static str> {
    told(session.execute_prepared(prepared, values, &mut NoInput))
}

fn with_table() -> Session {
    let mut session = session();
    let table = "CREATE TABLE t (id int PRIMARY KEY, a bigint, m numeric(8,2), at timestamp, s text)";
    run(&mut session, table).unwrap();
    run(&mut session, "INSERT INTO t VALUES (1, 10, 1.5, '2020-01-02', 'one'), (2, 20, NULL, NULL, 'two')").unwrap();
    session
}

#[test]
fn parameters_beside_arrays_and_documents_are_what_postgresql_takes_them_for() {
    let mut session = session();
    run(&mut session, "CREATE TABLE d (id int PRIMARY KEY, tags text[], nums int[], body jsonb)").unwrap();
    let (texts, numbers) = (DataType::Array(ArrayItem::TEXT), DataType::Array(ArrayItem::Integer));
    for (condition, data_type) in [
        ("tags @> $1", texts),
        ("$1 <@ tags", texts),
        ("nums && $1", numbers),
        ("$1 && nums", numbers),
        ("nums || $1 = nums", numbers),
        ("nums = $1", numbers),
        ("$1 = ANY (nums)", DataType::Integer),
        ("$1 = ANY (tags)", DataType::TEXT),
        ("body @> $1", DataType::Jsonb),
        ("body <@ $1", DataType::Jsonb),
        ("body -> 'a' @> $1", DataType::Jsonb),
        ("body || $1 = body", DataType::Jsonb),
        ("body ? $1", DataType::TEXT),
        ("body ?| $1", texts),
        ("body ?& $1", texts),
        ("body -> $1 = body", DataType::TEXT),
        ("body #> $1 = body", texts),
        ("body ->> 'a' = $1", DataType::TEXT),
    ] {
        let text = format!("SELECT id FROM d WHERE {condition}");
        assert_eq!(prepare(&mut session, &text).parameters(), [data_type], "{text}");
    }
}

#[test]
fn parameters_take_the_type_of_what_they_stand_beside() {
    let mut session = with_table();
    let number = DataType::Numeric;
    let cases: [(&str, &[DataType]); 9] = [
        ("SELECT * FROM t WHERE id = $1 AND a > $2", &[DataType::Integer, DataType::BigInt]),
        ("SELECT * FROM t x WHERE x.m BETWEEN $1 AND $2", &[number, number]),
        ("SELECT s FROM t WHERE at < $1 OR s IN ($2, 'x')", &[DataType::Timestamp, DataType::TEXT]),
        ("INSERT INTO t (s, id) VALUES ($2, $1)", &[DataType::Integer, DataType::TEXT]),
        ("UPDATE t SET a = a + $1, at = $2 WHERE id = $3", &[DataType::BigInt, DataType::Timestamp, DataType::Integer]),
        ("DELETE FROM t WHERE id = $1", &[DataType::Integer]),
        ("SELECT $1::date, $2, id FROM t LIMIT $3", &[DataType::Date, DataType::TEXT, DataType::BigInt]),
        ("SELECT count(*) FROM t WHERE id IN (SELECT id FROM t u WHERE u.a = $1)", &[DataType::BigInt]),
        ("SELECT 1", &[]),
    ];
    for (text, types) in cases {
        assert_eq!(prepare(&mut session, text).parameters(), types, "{text}");
    }
    let given = session.prepare("SELECT * FROM t WHERE id = $1", &[Some(DataType::BigInt)]).unwrap();
    assert_eq!(given.parameters(), [DataType::BigInt]);
    assert_eq!(session.prepare("SELECT $0", &[]).err().map(|error| error.sqlstate), Some("42P02"));
}

#[test]
fn a_prepared_statement_runs_with_ever_other_values() {
    let mut session = with_table();
    let select = prepare(&mut session, "SELECT s, m FROM t WHERE id = $1");
    assert_eq!(execute(&mut session, &select, &[Value::from(1)]).as_deref(), Ok("one,1.50"));
    assert_eq!(execute(&mut session, &select, &[Value::from(2)]).as_deref(), Ok("two,NULL"));
    assert_eq!(execute(&mut session, &select, &[Value::Null]).as_deref(), Ok(""));
    let update = prepare(&mut session, "UPDATE t SET m = m * $1, s = s || $2 WHERE a >= $3");
    let values = [Value::decimal(20, 1), Value::from("!"), Value::from(10i64)];
    assert_eq!(execute(&mut session, &update, &values).as_deref(), Ok("UPDATE 2"));
    assert_eq!(run(&mut session, "SELECT m, s FROM t ORDER BY id").as_deref(), Ok("3.00,one!;NULL,two!"));
    let insert = prepare(&mut session, "INSERT INTO t VALUES ($1, $2, $3, $4, $5)");
    let row = [Value::from(3), Value::Null, Value::decimal(5, 0), Value::Timestamp(0), Value::from("drei")];
    assert_eq!(execute(&mut session, &insert, &row).as_deref(), Ok("INSERT 0 1"));
    assert_eq!(execute(&mut session, &insert, &row), Err("23505"));
    let paged = prepare(&mut session, "SELECT id FROM t ORDER BY id LIMIT $1 OFFSET $2");
    assert_eq!(execute(&mut session, &paged, &[Value::from(1i64), Value::from(1i64)]).as_deref(), Ok("2"));
    let locking = prepare(&mut session, "SELECT id FROM t WHERE id > $1 ORDER BY id FOR UPDATE");
    assert_eq!(execute(&mut session, &locking, &[Value::from(1)]).as_deref(), Ok("2;3"));
}

#[test]
fn what_a_statement_gives_is_known_before_it_runs() {
    let mut session = with_table();
    let mut names = |text: &str| {
        let prepared = prepare(&mut session, text);
        let schema = session.describe(&prepared).unwrap();
        schema.map(|schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join(","))
    };
    assert_eq!(names("SELECT id, a + $1 AS sum, $2 FROM t WHERE id = $3").as_deref(), Some("id,sum,?column?"));
    assert_eq!(names("SELECT s FROM t WHERE id = $1").as_deref(), Some("s"));
    assert_eq!(names("SELECT id FROM t FOR UPDATE").as_deref(), Some("id"));
    assert_eq!(names("SHOW timezone").as_deref(), Some("TimeZone"));
    assert_eq!(names("EXPLAIN SELECT 1").as_deref(), Some("QUERY PLAN"));
    assert_eq!(names("DELETE FROM t WHERE id = $1"), None);
    let wrong = prepare(&mut session, "SELECT nothing FROM t");
    assert_eq!(session.describe(&wrong).err().map(|error| error.sqlstate), Some("42703"));
}

#[test]
fn columns_of_an_answer_tell_the_tables_they_come_from() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, v varchar(20), n numeric(10,2), c char(5))").unwrap();
    run(&mut session, "CREATE TABLE u (id int PRIMARY KEY, t int)").unwrap();
    let oid = |session: &mut Session, name: &str| {
        run(session, &format!("SELECT '{name}'::regclass::oid")).unwrap().parse::<u32>().unwrap()
    };
    let tables = [0, oid(&mut session, "t"), oid(&mut session, "u")];
    let mut origins = |text: &str| {
        let prepared = prepare(&mut session, text);
        let described = session.describe(&prepared).unwrap().unwrap();
        let Ok(Outcome::Rows(rows)) = session.execute(text) else { panic!("{text} gives no rows") };
        let of = |fields: &arrow_schema::Fields| fields.iter().map(|field| Origin::of_field(field)).collect::<Vec<_>>();
        assert_eq!(of(described.fields()), of(rows.schema().fields()), "{text}");
        let table = |origin: &Origin| tables.iter().position(|oid| *oid == origin.table).unwrap();
        let all = of(described.fields());
        all.iter().map(|origin| (table(origin), origin.column, origin.modifier)).collect::<Vec<_>>()
    };
    let numeric = (10 << 16 | 2) + 4;
    let (id, v, n, c) = ((1, 1, -1), (1, 2, 24), (1, 3, numeric), (1, 4, 9));
    let none = |modifier| (0, 0, modifier);
    // PostgreSQL's answers.
    for (text, expected) in [
        ("SELECT * FROM t", vec![id, v, n, c]),
        ("SELECT v AS x, id FROM t WHERE id = 1", vec![v, id]),
        ("SELECT id, n + 1, max(n) FROM t GROUP BY id, n ORDER BY n", vec![id, none(-1), none(-1)]),
        (
            "SELECT x.a, u.t, x.n FROM (SELECT id AS a, n FROM t WHERE id > 0) x JOIN u ON x.a = u.id",
            vec![id, (2, 2, -1), n],
        ),
        ("WITH w AS (SELECT id, c FROM t) SELECT w.c, x.id FROM w LEFT JOIN w x ON w.id = x.id", vec![c, id]),
        ("SELECT v, n FROM t UNION ALL SELECT v, 1 FROM t", vec![none(24), none(-1)]),
        ("SELECT DISTINCT n, c FROM t LIMIT 1", vec![n, c]),
        (
            "SELECT n::numeric(5,1), v::varchar(3), (SELECT v FROM t WHERE id = 1), 1 FROM t",
            vec![none((5 << 16 | 1) + 4), none(7), none(24), none(-1)],
        ),
        ("SELECT row_number() OVER (ORDER BY id), v FROM t", vec![none(-1), v]),
        ("SELECT CASE WHEN true THEN v::text ELSE 'x' END FROM t", vec![none(-1)]),
    ] {
        assert_eq!(origins(text), expected, "{text}");
    }
}

#[test]
fn statements_are_kept_under_names() {
    let mut session = with_table();
    run(&mut session, "PREPARE p (int) AS SELECT s FROM t WHERE id = $1").unwrap();
    assert_eq!(run(&mut session, "EXECUTE p(2)").as_deref(), Ok("two"));
    assert_eq!(run(&mut session, "EXECUTE p(1 + 0)").as_deref(), Ok("one"));
    assert_eq!((run(&mut session, "EXECUTE p"), run(&mut session, "EXECUTE q(1)")), (Err("42601"), Err("26000")));
    assert_eq!(run(&mut session, "PREPARE p AS SELECT 1"), Err("42P05"));
    assert_eq!(run(&mut session, "DEALLOCATE p").as_deref(), Ok("DEALLOCATE"));
    assert_eq!(run(&mut session, "EXECUTE p(1)"), Err("26000"));
    run(&mut session, "PREPARE r AS INSERT INTO t (id) VALUES ($1)").unwrap();
    assert_eq!(run(&mut session, "EXECUTE r('9')").as_deref(), Ok("INSERT 0 1"));
    run(&mut session, "SET lock_timeout = '1s'").unwrap();
    assert_eq!(run(&mut session, "DISCARD ALL").as_deref(), Ok("DISCARD ALL"));
    assert_eq!(run(&mut session, "SHOW lock_timeout").as_deref(), Ok("0"));
    assert_eq!(run(&mut session, "EXECUTE r(10)"), Err("26000"));
}

#[test]
fn statements_that_come_together_take_effect_together() {
    let mut session = with_table();
    session.begin_implicit().unwrap();
    run(&mut session, "DELETE FROM t WHERE id = 1").unwrap();
    assert_eq!(run(&mut session, "SELECT 1/0"), Err("22012"));
    session.end_implicit().unwrap();
    assert_eq!(run(&mut session, "SELECT count(*) FROM t").as_deref(), Ok("2"));
    session.begin_implicit().unwrap();
    run(&mut session, "DELETE FROM t WHERE id = 1").unwrap();
    assert_eq!(run(&mut session, "SAVEPOINT s"), Err("25P01"));
    session.end_implicit().unwrap();
    session.begin_implicit().unwrap();
    run(&mut session, "DELETE FROM t WHERE id = 1").unwrap();
    run(&mut session, "BEGIN").unwrap();
    session.end_implicit().unwrap();
    assert_eq!(session.transaction_status(), TransactionStatus::InBlock);
    run(&mut session, "ROLLBACK").unwrap();
    assert_eq!(run(&mut session, "SELECT count(*) FROM t").as_deref(), Ok("2"));
}

/// Sends what it has, and then gives up if it is to.
struct Sends(Cursor<&'static [u8]>, bool);

impl Read for Sends {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out) {
            Ok(0) if self.1 => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "given up")),
            read => read,
        }
    }
}

impl CopyInput for Sends {
    fn begin(&mut self, columns: usize, _: bool) -> io::Result<()> {
        assert_eq!(columns, 2);
        Ok(())
    }
}

#[test]
fn rows_come_from_whoever_holds_the_session() {
    let mut session = with_table();
    let mut copy = |text: &str, rows: &'static [u8], gives_up| {
        told(session.execute_with_input(text, &mut Sends(Cursor::new(rows), gives_up)))
    };
    assert_eq!(copy("COPY t (id, s) FROM STDIN", b"3\tx\\ty\n4\t\\N\n\\.\n", false).as_deref(), Ok("COPY 2"));
    assert_eq!(copy("COPY t (id, s) FROM STDIN (FORMAT csv)", b"5,\"\"\n6,\n", false).as_deref(), Ok("COPY 2"));
    assert_eq!(copy("COPY t (id, s) FROM STDIN", b"7\tx\n", true), Err("57014"));
    assert_eq!(copy("COPY t (id, s) FROM STDIN", b"8\n", false), Err("22P04"));
    assert_eq!(copy("COPY t (id, s) FROM STDIN", b"x\ty\n", false), Err("22P02"));
    let rows = run(&mut session, "SELECT id, s FROM t WHERE id > 2 ORDER BY id");
    assert_eq!(rows.as_deref(), Ok("3,x\ty;4,NULL;5,;6,NULL"));
    assert_eq!(run(&mut session, "COPY t FROM STDIN"), Err("0A000"));
}

#[test]
fn a_table_gets_its_key_later() {
    let mut session = session();
    run(&mut session, "CREATE TABLE k (a int, b text) WITH (fillfactor = 90)").unwrap();
    run(&mut session, "INSERT INTO k VALUES (1, 'x'), (2, 'y')").unwrap();
    run(&mut session, "ALTER TABLE k ADD PRIMARY KEY (a)").unwrap();
    assert_eq!(run(&mut session, "INSERT INTO k VALUES (1, 'z')"), Err("23505"));
    assert_eq!(run(&mut session, "ALTER TABLE k ADD PRIMARY KEY (b)"), Err("42P16"));
    run(&mut session, "CREATE TABLE twice (a int)").unwrap();
    run(&mut session, "INSERT INTO twice VALUES (1), (1)").unwrap();
    assert_eq!(run(&mut session, "ALTER TABLE twice ADD PRIMARY KEY (a)"), Err("23505"));
    run(&mut session, "CREATE TABLE hole (a int)").unwrap();
    run(&mut session, "INSERT INTO hole VALUES (NULL)").unwrap();
    assert_eq!(run(&mut session, "ALTER TABLE hole ADD CONSTRAINT c PRIMARY KEY (a)"), Err("23502"));
    assert_eq!(run(&mut session, "SELECT a, b FROM k ORDER BY a").as_deref(), Ok("1,x;2,y"));
    assert_eq!(run(&mut session, "VACUUM ANALYZE k, twice").as_deref(), Ok("VACUUM"));
    assert_eq!(run(&mut session, "ANALYZE nowhere"), Err("42P01"));
}

#[test]
fn the_catalog_tells_of_tables_columns_and_keys() {
    let mut session = with_table();
    let mut ask = |text: &str| told(session.execute(text)).unwrap_or_else(|state| panic!("{state}: {text}"));
    assert_eq!(ask("SELECT relname FROM pg_catalog.pg_class WHERE relkind = 'r'"), "t");
    let columns = "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, \
        (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid) \
        FROM pg_catalog.pg_attribute a WHERE a.attrelid = 't'::regclass AND a.attnum > 2 ORDER BY a.attnum";
    assert_eq!(ask(columns), "m,numeric(8,2),f,NULL;at,timestamp without time zone,f,NULL;s,text,f,NULL");
    let key = "SELECT i.indisprimary, pg_get_indexdef(i.indexrelid, 0, true), pg_get_constraintdef(c.oid, true) \
        FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid";
    assert_eq!(ask(key), "t,CREATE UNIQUE INDEX t_pkey ON t USING btree (id),PRIMARY KEY (id)");
    let by_pattern =
        "SELECT relname FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default";
    assert_eq!(ask(by_pattern), "t");
    assert_eq!(ask("SELECT polname, array(SELECT 1) FROM pg_catalog.pg_policy pol"), "");
    assert_eq!(ask("SELECT rolname FROM pg_roles WHERE rolcanlogin"), ask("SELECT current_user"));
    assert_eq!(ask("SELECT current_database(), current_schema()"), "lstore,public");
    assert_eq!(run(&mut session, "SELECT 'x'::regclass"), Err("42P01"));
}

#[test]
fn a_statement_may_have_as_many_parameters_as_the_protocol_counts() {
    let mut session = session();
    run(&mut session, "CREATE TABLE wide (id int PRIMARY KEY, a bigint, s text)").unwrap();
    let list =
        |from: usize, width: usize| (from..from + width).map(|at| format!("${at}")).collect::<Vec<_>>().join(", ");
    let rows: Vec<String> = (0..21_845).map(|row| format!("({})", list(row * 3 + 1, 3))).collect();
    let insert = prepare(&mut session, &format!("INSERT INTO wide VALUES {}", rows.join(", ")));
    assert_eq!(insert.parameters().len(), 65_535);
    let values: Vec<Value> = (0..21_845)
        .flat_map(|row| [Value::Integer(row), Value::BigInt(i64::from(row)), Value::Text(row.to_string())])
        .collect();
    assert_eq!(execute(&mut session, &insert, &values).as_deref(), Ok("INSERT 0 21845"));
    let count = prepare(&mut session, &format!("SELECT count(*) FROM wide WHERE id IN ({})", list(1, 65_535)));
    let ids: Vec<Value> = (0..65_535).map(Value::Integer).collect();
    assert_eq!(execute(&mut session, &count, &ids).as_deref(), Ok("21845"));
    assert!(session.prepare("SELECT $65536", &[]).is_err());
}
