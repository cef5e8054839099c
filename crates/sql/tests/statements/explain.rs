//! `EXPLAIN` in PostgreSQL's words: what it names, that a run counts what a query gives, and that each form can be read back.
use engine::Database;
use sql::{Session, SessionOptions};

use crate::pushdown::rows;

fn run(session: &mut Session, statement: &str) {
    session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

/// Two tables and an index, in a session of one thread.
fn open() -> Session {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    for statement in [
        "SET lstore.threads = 1",
        "CREATE TABLE e (a int PRIMARY KEY, b text, c numeric(10,2), d date)",
        "CREATE TABLE g (k int PRIMARY KEY, a int, s text)",
        "INSERT INTO e SELECT i, 'x' || i % 7, i / 4.0, date '2024-01-01' + i % 100 FROM generate_series(1, 2000) i",
        "INSERT INTO g SELECT i, i * 3, 'y' || i FROM generate_series(1, 500) i",
        "CREATE INDEX g_a ON g (a)",
    ] {
        run(&mut session, statement);
    }
    session
}

fn lines(session: &mut Session, statement: &str) -> Vec<String> {
    rows(session, statement)
        .unwrap_or_else(|error| panic!("{statement}: {error:?}"))
        .into_iter()
        .flatten()
        .flatten()
        .collect()
}

fn plan(session: &mut Session, query: &str) -> String {
    lines(session, &format!("EXPLAIN (COSTS OFF) {query}")).join("\n")
}

const QUERIES: [&str; 16] = [
    "SELECT 1",
    "SELECT * FROM e WHERE a = 7",
    "SELECT * FROM e WHERE b = 'x3' AND c > 5 AND a + 1 < 100",
    "SELECT * FROM g WHERE a = 9 AND s LIKE 'y%'",
    "SELECT e.b, count(*), sum(c) FROM e JOIN g ON g.a = e.a GROUP BY e.b HAVING count(*) > 2 ORDER BY 2 LIMIT 5",
    "SELECT * FROM e LEFT JOIN g ON e.a = g.k AND g.s > e.b WHERE e.d BETWEEN '2024-02-01' AND '2024-02-10'",
    "SELECT * FROM e WHERE a IN (SELECT a FROM g WHERE s < 'y5')",
    "SELECT * FROM e WHERE a NOT IN (SELECT a FROM g WHERE a IS NOT NULL)",
    "SELECT DISTINCT b FROM e UNION ALL SELECT s FROM g",
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 5) SELECT * FROM r",
    "SELECT b, row_number() OVER (PARTITION BY b ORDER BY a) FROM e ORDER BY c LIMIT 3",
    "SELECT * FROM (VALUES (1, 'a''\"\\b'), (2, 'ü<&>')) t(x, y), generate_series(1, 3) s WHERE y <> '<\"\\>'",
    "SELECT max(a) FROM e WHERE b IN ('x1', 'x2') OR d IS NULL",
    "SELECT e.a FROM e, g WHERE e.a < g.k AND g.k < 20",
    "SELECT x.a FROM e x FULL JOIN e y ON x.a = y.a + 1 ORDER BY x.b NULLS FIRST, y.c DESC OFFSET 3",
    "SELECT b, d, count(*) FROM e GROUP BY ROLLUP (b, d)",
];

#[test]
fn plans_are_shown_in_the_words_of_postgresql() {
    let mut session = open();
    for (query, expected) in [
        (QUERIES[1], "Index Scan using e_pkey on e\n  Index Cond: (a = 7)"),
        (QUERIES[2], "Seq Scan on e\n  Filter: ((b = 'x3'::text) AND (c > 5.00) AND ((a + 1) < 100))"),
        (QUERIES[3], "Index Scan using g_a on g\n  Index Cond: (a = 9)\n  Filter: (s ~~ 'y%'::text)"),
        (
            QUERIES[6],
            "Hash Semi Join\n  Hash Cond: (e.a = g.a)\n  ->  Seq Scan on e\n  ->  Seq Scan on g\n        Filter: (s < 'y5'::text)",
        ),
        (QUERIES[9], "Recursive Union\n  ->  Result\n  ->  WorkTable Scan\n        Filter: (i < 5)"),
        (
            "SELECT s FROM g WHERE s > 'y2' ORDER BY k + 1 DESC, s LIMIT 2",
            "Limit\n  Rows: 2\n  ->  Sort\n        Sort Key: (k + 1) DESC, s\n        ->  Seq Scan on g\n\
             \u{20}             Filter: (s > 'y2'::text)",
        ),
    ] {
        assert_eq!(plan(&mut session, query), expected, "{query}");
    }
    let grouped = plan(&mut session, QUERIES[4]);
    for part in ["Sort Key: count(*)", "Group Key: e.b", "Filter: (count(*) > 2)", "Hash Cond: (e.a = g.a)"] {
        assert!(grouped.contains(part), "{part} is not in {grouped}");
    }
}

#[test]
fn costs_grow_from_the_leaves_to_the_root() {
    let mut session = open();
    for query in QUERIES {
        let text = lines(&mut session, &format!("EXPLAIN {query}"));
        let nodes = text.iter().filter_map(|line| line.split_once("  (cost="));
        let totals: Vec<f64> = nodes
            .map(|(_, costs)| {
                let (range, rest) = costs.split_once(" rows=").unwrap();
                assert!(rest.contains(" width=") && rest.ends_with(')'), "{costs}");
                let (startup, total) = range.split_once("..").unwrap();
                let (startup, total): (f64, f64) = (startup.parse().unwrap(), total.parse().unwrap());
                assert!(0.0 <= startup && startup <= total, "{query}: {costs}");
                total
            })
            .collect();
        assert!(!totals.is_empty() && totals.iter().all(|total| *total <= totals[0]), "{query}: {text:?}");
        assert!(!plan(&mut session, query).contains("cost="));
    }
}

#[test]
fn a_run_counts_the_rows_that_the_query_gives() {
    let mut session = open();
    for query in QUERIES {
        let given = rows(&mut session, query).unwrap().len();
        let text = lines(&mut session, &format!("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) {query}"));
        assert!(text[0].contains(&format!("(actual rows={given} loops=1)")), "{query}: {text:?}");
        let [.., planning, execution] = &text[..] else { panic!("{text:?}") };
        assert!(planning.starts_with("Planning Time: ") && execution.starts_with("Execution Time: "), "{text:?}");
        let timed = lines(&mut session, &format!("EXPLAIN (ANALYZE, SUMMARY OFF) {query}"));
        assert!(
            timed[0].contains("(actual time=")
                && !timed.iter().any(|line| line.contains("-0.0") || line.contains("Time:"))
        );
    }
    let removed = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT a FROM e WHERE a + 1 <= 100";
    let expected =
        ["Seq Scan on e (actual rows=99 loops=1)", "  Filter: ((a + 1) <= 100)", "  Rows Removed by Filter: 1901"];
    assert_eq!(lines(&mut session, removed).iter().map(|line| line.replace("  (", " (")).collect::<Vec<_>>(), expected);
}

#[test]
fn json_has_what_the_text_has_and_is_of_type_json() {
    let mut session = open();
    for query in QUERIES {
        let json = lines(&mut session, &format!("EXPLAIN (ANALYZE, FORMAT JSON) {query}")).remove(0);
        let of = |path: &str| format!("SELECT '{}'::jsonb #>> '{{{path}}}'", json.replace('\'', "''"));
        let mut found = |path: &str| rows(&mut session, &of(path)).unwrap().remove(0).remove(0);
        let kind = found("0,Plan,Node Type").unwrap();
        let count = found("0,Plan,Actual Rows").unwrap();
        assert!(found("0,Execution Time").is_some() && found("0,Plan,Total Cost").is_some(), "{json}");
        assert_eq!(count, rows(&mut session, query).unwrap().len().to_string(), "{query}");
        let title = lines(&mut session, &format!("EXPLAIN {query}")).remove(0);
        let is_named =
            title.contains(&kind) || title.contains(kind.split(' ').next().unwrap()) || title.contains("Aggregate");
        assert!(is_named, "{title} is a {kind}");
    }
    let prepared = session.prepare("EXPLAIN (FORMAT JSON) SELECT 1", &[]).unwrap();
    let schema = session.describe(&prepared).unwrap().unwrap();
    assert_eq!(sql::type_of_field(schema.field(0)), Some(engine::DataType::Json));
}

#[test]
fn yaml_and_xml_have_each_node_once() {
    let mut session = open();
    for query in QUERIES {
        let nodes =
            lines(&mut session, &format!("EXPLAIN {query}")).iter().filter(|line| line.contains("(cost=")).count();
        let yaml = lines(&mut session, &format!("EXPLAIN (FORMAT YAML) {query}")).remove(0);
        assert_eq!(yaml.matches("Node Type: \"").count(), nodes, "{yaml}");
        assert!(
            yaml.starts_with("- Plan: \n    Node Type: ") && yaml.lines().all(|line| !line.trim().is_empty()),
            "{yaml}"
        );
        let xml = lines(&mut session, &format!("EXPLAIN (FORMAT XML) {query}")).remove(0);
        assert_eq!((xml.matches("<Plan>").count(), xml.matches("</Plan>").count()), (nodes, nodes), "{xml}");
        let tags = xml.matches('<').count() - xml.matches("</").count();
        assert_eq!(tags, xml.matches("</").count(), "each tag is closed: {xml}");
    }
}

#[test]
fn changes_of_rows_are_explained_and_not_made() {
    let mut session = open();
    for (statement, expected) in [
        (
            "UPDATE e SET b = 'q' WHERE a = 7",
            "Update on e\n  ->  Index Scan using e_pkey on e\n        Index Cond: (a = 7)",
        ),
        ("DELETE FROM e WHERE b = 'x1'", "Delete on e\n  ->  Seq Scan on e\n        Filter: (b = 'x1'::text)"),
        ("INSERT INTO g SELECT a + 10000, a, b FROM e", "Insert on g\n  ->  Seq Scan on e"),
        ("INSERT INTO g VALUES (-1, 2, 'z')", "Insert on g\n  ->  Values Scan"),
    ] {
        assert_eq!(plan(&mut session, statement), expected);
        assert_eq!(session.execute(&format!("EXPLAIN (OPERATORS) {statement}")).unwrap_err().sqlstate, "0A000");
    }
    let joined = plan(&mut session, "DELETE FROM e USING g WHERE e.a = g.k AND g.s = 'y1'");
    assert!(joined.starts_with("Delete on e\n  ->  Hash Join\n") && joined.contains("(s = 'y1'::text)"), "{joined}");
    let counts = "SELECT (SELECT count(*) FROM e WHERE b <> 'q'), (SELECT count(*) FROM g)";
    assert_eq!(lines(&mut session, counts), ["2000", "500"]);
    let other = session.execute("EXPLAIN CREATE TABLE q (a int)").unwrap_err();
    assert_eq!(other.sqlstate, "0A000");
}

#[test]
fn a_change_that_is_analyzed_is_made_once() {
    let mut session = open();
    let run = |session: &mut Session, change: &str| {
        let all = lines(session, &format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {change}"));
        all.join("\n")
    };
    assert_eq!(
        run(&mut session, "UPDATE e SET c = c + 1 WHERE b = 'x3' AND c < 25"),
        "Update on e  (actual rows=0 loops=1)\n  ->  Seq Scan on e  (actual rows=14 loops=1)\n        \
         Filter: ((b = 'x3'::text) AND (c < 25.00))"
    );
    let changed = rows(&mut session, "SELECT count(*) FROM e WHERE c <> a / 4.0").unwrap();
    assert_eq!(changed, [[Some("14".to_owned())]]);
    let given = run(&mut session, "DELETE FROM g WHERE k > 490 RETURNING k");
    assert!(given.starts_with("Delete on g  (actual rows=10 loops=1)"), "{given}");
    // What does more than give values is not run before.
    session.execute("CREATE SEQUENCE s").unwrap();
    let put = run(&mut session, "INSERT INTO g SELECT nextval('s') + 1000, 0, '' FROM generate_series(1, 3)");
    assert!(put.starts_with("Insert on g  (actual rows=0 loops=1)") && put.matches("actual").count() == 1, "{put}");
    assert_eq!(
        rows(&mut session, "SELECT max(k), nextval('s') FROM g").unwrap(),
        [["1003", "4"].map(|text| Some(text.to_owned()))]
    );
    let whole = lines(&mut session, "EXPLAIN ANALYZE INSERT INTO g VALUES (2000, 1, 'y')").join("\n");
    assert!(whole.contains("(actual time=") && whole.contains("Execution Time: "), "{whole}");
    assert_eq!(session.execute("EXPLAIN ANALYZE INSERT INTO g VALUES (2000, 1, 'y')").unwrap_err().sqlstate, "23505");
}

#[test]
fn operators_are_shown_as_the_engine_has_them_where_they_are_asked_for() {
    let mut session = open();
    let shown = lines(&mut session, "EXPLAIN (OPERATORS) SELECT b FROM e WHERE a = 7");
    assert!(shown.iter().any(|line| line.contains("LookupExec: table=e, columns=[b], key=(7)")), "{shown:?}");
    let with_costs = lines(&mut session, "EXPLAIN (OPERATORS, COSTS) SELECT b FROM e WHERE a = 7").join("\n");
    assert!(with_costs.contains("LookupExec") && with_costs.contains("(cost="), "{with_costs}");
    let refused = session.execute("EXPLAIN (OPERATORS, FORMAT JSON) SELECT 1").unwrap_err();
    assert_eq!(refused.sqlstate, "0A000");
}

#[test]
fn an_execution_of_a_prepared_statement_is_explained_as_what_it_runs() {
    let mut session = open();
    run(&mut session, "PREPARE p (int) AS SELECT b FROM e WHERE a = $1");
    assert_eq!(plan(&mut session, "EXECUTE p(7)"), plan(&mut session, "SELECT b FROM e WHERE a = 7"));
    let json = lines(&mut session, "EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE p(NULL)").join("\n");
    assert!(json.contains("\"Plan\""), "{json}");
    for (wrong, sqlstate) in [("p", "42601"), ("q(1)", "26000")] {
        let error = session.execute(&format!("EXPLAIN EXECUTE {wrong}")).map(drop).unwrap_err();
        assert_eq!(error.sqlstate, sqlstate, "{error}");
    }
}
