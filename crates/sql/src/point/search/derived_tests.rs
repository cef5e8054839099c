//! Prepared queries with conditions of space and expressions: answered as the planner answers them with the values written out.
use engine::json::Jsonb;
use engine::{ArrayItem, ArrayValue, DataType, Database, Value};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::Outcome;
use crate::names::tables::Tables;
use crate::parsing::ParsedStatement;
use crate::parsing::parse::parse;
use crate::point::both_ways::shown;
use crate::point::{Point, Reading};
use crate::session::{Session, SessionOptions};
use crate::state::outcome::Rows;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT, f FLOAT8, n NUMERIC(8, 2), name TEXT, code CHAR(4), day DATE, \
                     at TIMESTAMPTZ, p POINT, area BOX, span INT8RANGE, net INET, tags TEXT[], nums INT[], doc JSONB)";

const INDEXES: [&str; 9] = [
    "CREATE INDEX ON t USING gist (p)",
    "CREATE INDEX ON t USING gist (area)",
    "CREATE INDEX ON t USING gist (span)",
    "CREATE INDEX ON t USING gist (span, p)",
    "CREATE INDEX ON t USING gist (net)",
    "CREATE INDEX ON t (a)",
    "CREATE INDEX ON t USING gin (tags, nums)",
    "CREATE INDEX ON t USING gin (doc)",
    "CREATE INDEX ON t USING gin (doc jsonb_path_ops)",
];

const ROWS: i32 = 120;

fn planned(session: &Session, text: &str, types: &[DataType]) -> Option<Point> {
    let tables = Tables::published(session.database());
    match parse(text).unwrap() {
        ParsedStatement::Statement(statement) => Point::plan(&statement, &tables, Reading::often(types)),
        ParsedStatement::Locking(query, clauses) => {
            Point::plan_locking(&query, &clauses, &tables, Reading::often(types))
        }
        _ => None,
    }
}

fn cell(random: &mut StdRng, text: String) -> String {
    if random.random_bool(0.1) { "NULL".to_owned() } else { text }
}

fn database(random: &mut StdRng) -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    let mut run = |text: &str| drop(session.execute(text).unwrap_or_else(|error| panic!("{text}: {error}")));
    run(TABLE);
    let mut indexes: Vec<&str> = INDEXES.into_iter().filter(|_| random.random_bool(0.7)).collect();
    let later = indexes.split_off(indexes.len() / 2);
    indexes.iter().for_each(|index| run(index));
    for id in 0..ROWS {
        let mut number = |max: i32| random.random_range(0..max);
        let (x, y, w, h) = (number(20), number(20), number(4), number(4));
        let cells = [
            number(9).to_string(),
            format!("{}.5", number(40)),
            format!("{}.{:02}", number(50), number(100)),
            format!("'{}'", ["x", "Yy", "", "ö"][number(4) as usize]),
            format!("'{}'", ["ab", "c", ""][number(3) as usize]),
            format!("'2024-02-{:02}'", 1 + number(28)),
            format!("'2024-02-{:02} 12:00+00'", 1 + number(28)),
            format!("'({x},{y})'"),
            format!("'({x},{y}),({},{})'", x + w, y + h),
            if w == 0 { "'empty'".to_owned() } else { format!("'[{x},{})'", x + w) },
            format!("'10.{x}.0.0/{}'", 14 + 2 * (w % 2)),
            format!("'{{t{},u{}}}'", number(9), number(3)),
            format!("'{{{},{}}}'", number(9), number(3)),
            format!("'{{\"a\": {}, \"k{}\": [\"x\", {}]}}'", number(9), number(5), number(4)),
        ];
        let cells = cells.map(|text| cell(random, text));
        run(&format!("INSERT INTO t VALUES ({id}, {})", cells.join(", ")));
    }
    later.iter().for_each(|index| run(index));
    session
}

/// A condition that an index leads along, and one that only leaves rows out.
fn condition(random: &mut StdRng) -> String {
    let leading = [
        "area && box(point($1, $2), point($3, $4))",
        "box(point($1, $2), point($3, $4)) && area",
        "area @> point($1, $2)",
        "area <@ box(point($1, $2), point($3, $4))",
        "p <@ box(point($1, $2), point($3, $4))",
        "p <@ circle(point($1, $2), $3)",
        "t.span && int8range($1, $1 + $2)",
        "span @> $1::bigint",
        "span <@ int8range($1, NULL)",
        "net && '10.4.0.0/15'",
        "net <<= '10.8.0.0/13'::inet",
        "a = $1",
        "id BETWEEN $1 AND $1 + 30",
        "tags @> '{t3}'",
        "tags && ARRAY['t1', 'u2']",
        "nums @> ARRAY[$1]::int[]",
        "$2::int = ANY (nums)",
        "doc @> '{\"a\": 3}'",
        "doc ? 'k1'",
        "doc ?| ARRAY['k2', 'k3']",
        "doc @> jsonb_build_object('a', $1)",
    ];
    let leaving = [
        "a + id % 7 > $2",
        "upper(name) = 'YY'",
        "name ILIKE 'y%'",
        "f * 2 < $1",
        "n - $1 BETWEEN -5 AND 20.5",
        "day + $2 > '2024-02-10'",
        "NOT (a = $1 OR name = 'x')",
        "abs(a - $3) IN (1, 2, 3)",
        "coalesce(a, $4) < 5",
        "doc ->> 'a' = '3'",
        "nums[1] = $1",
        "doc @> '{}'",
    ];
    let mut all = vec![*leading.choose(random).unwrap()];
    all.extend(leaving.choose(random).filter(|_| random.random_bool(0.4)));
    all.extend(leading.choose(random).filter(|_| random.random_bool(0.3)));
    all.join(" AND ")
}

/// A query, and whether its rows have one order.
fn query(random: &mut StdRng) -> (String, bool) {
    if random.random_bool(0.2) {
        let from = ["p", "area"].choose(random).unwrap();
        let filter = if random.random_bool(0.4) { format!(" WHERE {}", condition(random)) } else { String::new() };
        // Rows that are as far away as each other come in any order.
        let (limit, distance) = (random.random_range(0..12), format!("{from} <-> point($1, $2)"));
        return (format!("SELECT {distance} AS d FROM t{filter} ORDER BY {distance} LIMIT {limit}"), true);
    }
    let condition = condition(random);
    if random.random_bool(0.25) {
        let totals = ["count(*)", "count(a), sum(n)", "min(a)", "max(day) AS last", "count(DISTINCT name)"];
        return (format!("SELECT {} FROM t WHERE {condition}", totals.choose(random).unwrap()), true);
    }
    let items = [
        "id",
        "t.*",
        "a + 1",
        "upper(name) AS u",
        "n * $2",
        "round((p <-> point($1, $2))::numeric, 3)",
        "area <-> p AS d",
        "name || 'x'",
        "f / 2",
        "day - $1",
        "length(name)",
        "n::numeric(10, 1)",
        "case when a > $1 then 'big' else name end",
        "lower(span)",
        "a = $3",
        "NULL",
        "'text'",
        "$4 + 0",
        "a::bigint",
    ];
    let mut picked: Vec<&str> = (0..random.random_range(1..4)).map(|_| *items.choose(random).unwrap()).collect();
    if random.random_bool(0.15) {
        let plain = ["a + 1", "upper(name) AS u", "a"];
        picked = vec![*plain.choose(random).unwrap()];
        return (format!("SELECT DISTINCT {} FROM t WHERE {condition} ORDER BY 1", picked[0]), true);
    }
    let order = ["", " ORDER BY a % 4, id", " ORDER BY upper(name) DESC, id LIMIT 7", " ORDER BY id LIMIT 5 OFFSET 2"];
    let order = *order.choose(random).unwrap();
    (format!("SELECT {} FROM t WHERE {condition}{order}", picked.join(", ")), !order.is_empty())
}

#[test]
fn random_queries_with_expressions_are_answered_as_by_the_planner() {
    let types = [DataType::Integer; 4];
    let mut short_ones = 0;
    for seed in 0..6 {
        let random = &mut StdRng::seed_from_u64(seed);
        let mut session = database(random);
        for number in 0..50 {
            if number % 5 == 0 {
                let (id, by) = (random.random_range(0..ROWS), random.random_range(1..5));
                let change =
                    format!("UPDATE t SET p = p + point({by}, 0), area = area - point(0, {by}) WHERE id = {id}");
                session.execute(&change).unwrap();
                session.execute(&format!("DELETE FROM t WHERE id = {}", random.random_range(0..ROWS))).unwrap();
            }
            let (text, is_total) = query(random);
            let values: Vec<i32> = (0..4).map(|_| random.random_range(0..20)).collect();
            let mut written = text.clone();
            for (at, value) in values.iter().enumerate() {
                written = written.replace(&format!("${}", at + 1), &format!("CAST({value} AS INTEGER)"));
            }
            let longer = shown(session.execute(&written), is_total);
            let values: Vec<Value> = values.into_iter().map(Value::Integer).collect();
            let Some(point) = planned(&session, &text, &types) else { continue };
            if let Some(outcome) = point.run(&mut session, &values).unwrap_or_else(|error| panic!("{text}: {error}")) {
                short_ones += 1;
                assert_eq!(shown(Ok(outcome), is_total), longer, "seed {seed}: {text} of {values:?}");
            }
        }
    }
    assert!(short_ones > 150, "only {short_ones} of 300 queries went the short way");
}

#[test]
fn expressions_of_rows_and_numbers_are_compiled() {
    let session = database(&mut StdRng::seed_from_u64(7));
    let numbers = DataType::Array(ArrayItem::Integer);
    let types = [
        DataType::Integer,
        DataType::TEXT,
        DataType::Double,
        numbers,
        DataType::Jsonb,
        DataType::Array(ArrayItem::TEXT),
    ];
    for text in [
        "SELECT upper(name), a + $1 FROM t WHERE id = $1",
        "SELECT *, area <-> p FROM t WHERE id BETWEEN 1 AND $1 ORDER BY a * 2",
        "SELECT count(*) FROM t WHERE area && box(point($1, 2), point($3, $1))",
        "SELECT id FROM t WHERE a = 1 AND (name = 'x' OR f > $3)",
        "SELECT id FROM t WHERE id = 1 AND 1 = $1 + a",
        "SELECT id, p <-> point($3, $3) AS d FROM t ORDER BY p <-> point($3, $3) LIMIT 3",
        "SELECT DISTINCT upper(name) FROM t WHERE a = 1",
        "SELECT 1, 'x' FROM t WHERE id = 1",
        "SELECT id FROM t WHERE tags @> '{t3}'",
        "SELECT id FROM t WHERE nums && $4",
        "SELECT id FROM t WHERE tags @> $6",
        "SELECT id FROM t WHERE doc @> $5 AND doc ->> 'a' = '3'",
        "SELECT id, doc FROM t WHERE doc ?| ARRAY['k1', 'k2']",
        "SELECT id FROM t WHERE $1 = ANY (nums)",
    ] {
        assert!(planned(&session, text, &types).is_some(), "{text}");
    }
}

#[test]
fn what_reads_the_session_or_the_clock_is_left_to_the_planner() {
    let session = database(&mut StdRng::seed_from_u64(8));
    let types = [DataType::Integer, DataType::TEXT, DataType::TimestampTz];
    for text in [
        "SELECT now() FROM t WHERE id = 1",
        "SELECT at::text FROM t WHERE id = 1",
        "SELECT at + interval '1 day' FROM t WHERE id = 1",
        "SELECT day::text FROM t WHERE id = 1",
        "SELECT f || 'x' FROM t WHERE id = 1",
        "SELECT concat(f, 'x') FROM t WHERE id = 1",
        "SELECT name::date FROM t WHERE id = 1",
        "SELECT name || $2 FROM t WHERE id = 1",
        "SELECT day > 'today' FROM t WHERE id = 1",
        "SELECT code || 'x' FROM t WHERE id = 1",
        "SELECT random() FROM t WHERE id = 1",
        "SELECT (SELECT 1) FROM t WHERE id = 1",
        "SELECT current_setting('TimeZone') FROM t WHERE id = 1",
        "SELECT tstzrange(day, NULL) IS NULL FROM t WHERE id = 1",
        "SELECT extract(hour FROM $3) FROM t WHERE id = 1",
        "SELECT sum(a) + 1 FROM t WHERE id = 1",
        "SELECT row_number() OVER () FROM t WHERE id = 1",
        "SELECT unnest(ARRAY[a]) FROM t WHERE id = 1",
        "SELECT missing FROM t WHERE id = 1",
        "SELECT id FROM t WHERE id = 1 AND 1 = 1",
        "SELECT id FROM t WHERE upper(name) = 'X'",
        "SELECT upper(name) FROM t WHERE id = 1 FOR UPDATE",
        "SELECT upper(name) FROM t",
        "SELECT id FROM t ORDER BY p <-> point(1, 2)",
        "SELECT DISTINCT a FROM t WHERE id = 1 ORDER BY a + 1",
        "SELECT DISTINCT f * 2 FROM t WHERE id = 1",
    ] {
        assert!(planned(&session, text, &types).is_none(), "{text}");
    }
}

#[test]
fn an_expression_that_fails_is_told_by_the_planner() {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    let mut run = |text: &str| {
        let whole = match session.execute(text) {
            Ok(Outcome::Rows(rows)) => {
                let schema = rows.schema();
                let batches = rows.collect::<Result<Vec<_>, _>>();
                batches.map(|batches| Outcome::Rows(Rows::all(schema, batches)))
            }
            other => other,
        };
        whole.map_or_else(|error| error.sqlstate.to_owned(), |whole| shown(Ok(whole), true))
    };
    run("CREATE TABLE n (id INT PRIMARY KEY, v INT, span INT8RANGE)");
    run("INSERT INTO n VALUES (1, 0, '[1,5)'), (2, 3, '[4,9)')");
    run("CREATE INDEX ON n USING gist (span)");
    run("PREPARE part (INT) AS SELECT $1 / v AS part FROM n WHERE id = 2");
    run("PREPARE none (INT) AS SELECT $1 / v FROM n WHERE id = 1");
    run("PREPARE met (INT, INT) AS SELECT id FROM n WHERE span && int8range($1, $2) ORDER BY id");
    assert!(run("EXECUTE part (7)").contains(r#"Some(\"2\")"#));
    assert!(run("EXECUTE none (7)").contains("22012"));
    assert!(run("EXECUTE met (4, 5)").contains(r#"Some(\"1\")"#));
    assert!(run("EXECUTE met (5, 4)").contains("22000"));
    assert!(!run("EXECUTE met (NULL, NULL)").contains("22000"));
    assert!(run("EXECUTE part (NULL)").contains("None"));
}

#[test]
fn parameters_that_are_arrays_or_documents_lead_along_indexes() {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    for statement in [
        "CREATE TABLE d (id INT PRIMARY KEY, tags TEXT[], nums INT[], doc JSONB)",
        "INSERT INTO d SELECT i, ARRAY['t' || i % 10], ARRAY[i % 10], jsonb_build_object('a', i % 10) \
         FROM generate_series(1, 100) AS g(i)",
        "CREATE INDEX ON d USING gin (tags, nums)",
        "CREATE INDEX ON d USING gin (doc)",
    ] {
        session.execute(statement).unwrap();
    }
    let texts = Value::Array(ArrayValue::of(ArrayItem::TEXT, &[Value::from("t3")]));
    let numbers = Value::Array(ArrayValue::of(ArrayItem::Integer, &[Value::Integer(3)]));
    let document = Value::Jsonb(Jsonb::parse("{\"a\": 3}").unwrap());
    let of_array = |item| DataType::Array(item);
    for (condition, of, value) in [
        ("tags @> $1", of_array(ArrayItem::TEXT), texts.clone()),
        ("$1 <@ tags", of_array(ArrayItem::TEXT), texts.clone()),
        ("tags && $1", of_array(ArrayItem::TEXT), texts),
        ("nums @> $1", of_array(ArrayItem::Integer), numbers),
        ("$1 = ANY (nums)", DataType::Integer, Value::Integer(3)),
        ("doc @> $1", DataType::Jsonb, document),
    ] {
        let text = format!("SELECT count(*) FROM d WHERE {condition}");
        let point = planned(&session, &text, &[of]).unwrap_or_else(|| panic!("{text} is not compiled"));
        let found = point.run(&mut session, &[value]).unwrap().unwrap_or_else(|| panic!("{text} is not short"));
        let found = shown(Ok(found), true);
        assert!(found.contains("10"), "{text}: {found}");
    }
}
