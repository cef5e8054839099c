//! Random statements on an array table and on an ordinary one of the same rows: both answer alike, within transactions, after
//! rollbacks, and when the directory is opened again.
//!
//! `LSTORE_ARRAY_SEEDS=200` runs more seeds; a failure prints its seed and statement.
use engine::{Database, OpenOptions};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use sql::{Outcome, Session, SessionOptions, text_value};

const SEEDS: u64 = 3;
const STATEMENTS: usize = 70;

const COLUMNS: &str = "(id int PRIMARY KEY, n bigint NOT NULL DEFAULT 5, r real NOT NULL DEFAULT 0, ok boolean NOT NULL DEFAULT true, \
     p numeric(8, 2) NOT NULL DEFAULT 1, d date NOT NULL DEFAULT '2026-01-01', CHECK (n < 1000))";

/// What came of a statement: its rows or its tag, or the code of its error.
fn run(session: &mut Session, statement: &str) -> Result<Vec<String>, String> {
    let refused = |error: sql::SqlError| format!("{} {}", error.sqlstate, error.message.replace("sensor", "plain"));
    match session.execute(statement).map_err(refused)? {
        Outcome::Done(command) => Ok(vec![command.tag]),
        Outcome::Rows(rows) => {
            let mut found = Vec::new();
            for batch in rows {
                let batch = batch.map_err(refused)?;
                for row in 0..batch.num_rows() {
                    let values = batch.columns().iter().map(|column| text_value(column, row).unwrap_or("NULL".into()));
                    found.push(values.collect::<Vec<_>>().join("|"));
                }
            }
            Ok(found)
        }
    }
}

fn condition(random: &mut StdRng) -> String {
    let n = random.random_range(-5..130);
    let forms = [
        format!("id = {n}"),
        format!("id BETWEEN {n} AND {n} + 20"),
        format!("id IN ({n}, 3, 64, 65)"),
        format!("n > {n}"),
        format!("id % 7 = 3 AND r < {n}"),
        "NOT ok".to_owned(),
        "p > 2 OR d > '2026-02-01'".to_owned(),
        format!("id = (SELECT max(id) FROM $t WHERE id < {n})"),
        "true".to_owned(),
    ];
    forms.choose(random).cloned().unwrap_or_default()
}

/// A statement about the table `$t`.
fn statement(random: &mut StdRng) -> String {
    let (n, m) = (random.random_range(-2..140), random.random_range(-50..1100));
    let condition = condition(random);
    let returning = *["", " RETURNING id, n, p"].choose(random).unwrap_or(&"");
    match random.random_range(0..13) {
        0 | 1 => format!("INSERT INTO $t (id, n) VALUES ({n}, {m}), ({n} + 1, 2){returning}"),
        2 => format!("INSERT INTO $t (id, r) SELECT g, g / 2.0 FROM generate_series({n}, {n} + 9) AS s(g)"),
        3 => format!("UPDATE $t SET n = n + {m}, ok = NOT ok WHERE {condition}{returning}"),
        4 => format!("UPDATE $t SET r = id, p = p + 0.25, d = d + 1 WHERE {condition}{returning}"),
        5 => format!("DELETE FROM $t WHERE {condition}{returning}"),
        6 => format!(
            "INSERT INTO $t (id, n) VALUES ({n}, 1) ON CONFLICT (id) DO UPDATE SET n = $t.n + EXCLUDED.n{returning}"
        ),
        7 => format!("INSERT INTO $t (id) SELECT g FROM generate_series(0, {n}, 3) AS s(g) ON CONFLICT DO NOTHING"),
        8 => "BEGIN".to_owned(),
        9 => "COMMIT".to_owned(),
        10 => ["ROLLBACK", "SAVEPOINT s", "ROLLBACK TO SAVEPOINT s"].choose(random).unwrap_or(&"").to_string(),
        11 => format!("SELECT count(*), sum(n), min(p), max(d), bool_and(ok) FROM $t WHERE {condition}"),
        _ => {
            format!("SELECT a.*, b.n FROM $t AS a LEFT JOIN $t AS b ON b.id = a.id + 1 WHERE a.id < {n} ORDER BY a.id")
        }
    }
}

#[test]
fn an_array_table_answers_as_an_ordinary_table_does() {
    let seeds = std::env::var("LSTORE_ARRAY_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        let (random, directory) = (&mut StdRng::seed_from_u64(seed), tempfile::tempdir().unwrap());
        let open = || sql::open(directory.path(), OpenOptions::default()).unwrap();
        let sessions = |db: &Database| [(); 2].map(|()| Session::new(db, SessionOptions::default()));
        let mut db = open();
        let mut both = sessions(&db);
        run(&mut both[0], &format!("CREATE TABLE sensor {COLUMNS} WITH (layout = array)")).unwrap();
        run(&mut both[1], &format!("CREATE TABLE plain {COLUMNS}")).unwrap();
        for number in 0..STATEMENTS {
            let statement = statement(random);
            let [mut array, mut plain] = [("sensor", 0), ("plain", 1)].map(|(table, session)| {
                let done = run(&mut both[session], &statement.replace("$t", table));
                // A key that is no place is refused for that.
                done.map_err(|error| if error.starts_with("22003 key -") { "key".to_owned() } else { error })
            });
            if array == Err("key".to_owned()) {
                // The ordinary table takes it, and is made equal again.
                both.iter_mut().for_each(|session| drop(run(session, "ROLLBACK")));
                run(&mut both[1], "DELETE FROM plain").unwrap();
                run(&mut both[1], "INSERT INTO plain SELECT * FROM sensor").unwrap();
                continue;
            }
            [&mut array, &mut plain].into_iter().flatten().for_each(|rows| rows.sort());
            assert_eq!(array, plain, "seed {seed}, statement {number}: {statement}");
            if number % 20 == 19 {
                both.iter_mut().for_each(|session| drop(run(session, "COMMIT")));
                let differ = "SELECT * FROM sensor EXCEPT ALL SELECT * FROM plain";
                assert_eq!(run(&mut both[0], differ), Ok(Vec::new()), "seed {seed}, after statement {number}");
                if random.random() {
                    run(&mut both[0], "CHECKPOINT").unwrap();
                }
                drop((both, db));
                db = open();
                both = sessions(&db);
                let counts = "SELECT (SELECT count(*) FROM sensor) - (SELECT count(*) FROM plain)";
                assert_eq!(run(&mut both[1], counts), Ok(vec!["0".to_owned()]), "seed {seed}, opened again");
            }
        }
    }
}

#[test]
fn statements_with_parameters_reach_an_array_by_its_keys() {
    let db = Database::in_memory();
    let mut session = Session::new(&db, SessionOptions::default());
    run(&mut session, "CREATE TABLE sensor (id bigint PRIMARY KEY, n int NOT NULL) WITH (layout = array)").unwrap();
    for statement in [
        "PREPARE put (bigint, int) AS INSERT INTO sensor VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n",
        "PREPARE more (bigint) AS UPDATE sensor SET n = n + 1 WHERE id = $1",
        "PREPARE look (bigint) AS SELECT n FROM sensor WHERE id = $1",
        "PREPARE away (bigint) AS DELETE FROM sensor WHERE id = $1",
        "EXECUTE put(3, 1)",
        "EXECUTE put(3, 7)",
        "EXECUTE more(3)",
        "EXECUTE more(4)",
    ] {
        run(&mut session, statement).unwrap();
    }
    assert_eq!(run(&mut session, "EXECUTE look(3)"), Ok(vec!["8".to_owned()]));
    assert_eq!(run(&mut session, "EXECUTE away(3)"), Ok(vec!["DELETE 1".to_owned()]));
    assert_eq!(run(&mut session, "EXECUTE look(3)"), Ok(Vec::new()));
}

#[test]
fn an_update_under_the_lock_of_a_definition_loses_no_other() {
    let db = Database::in_memory();
    let (mut own, mut other) =
        (Session::new(&db, SessionOptions::default()), Session::new(&db, SessionOptions::default()));
    for statement in [
        "CREATE TABLE sensor (id int PRIMARY KEY, n bigint NOT NULL) WITH (layout = array)",
        "INSERT INTO sensor VALUES (1, 10)",
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "SELECT n FROM sensor WHERE id = 1",
    ] {
        run(&mut own, statement).unwrap();
    }
    run(&mut other, "UPDATE sensor SET n = 20 WHERE id = 1").unwrap();
    run(&mut own, "ALTER TABLE sensor ADD CONSTRAINT c CHECK (n < 1000)").unwrap();
    let lost = run(&mut own, "UPDATE sensor SET n = 11 WHERE id = 1").unwrap_err();
    assert!(lost.starts_with("40001"), "{lost}");
    run(&mut own, "ROLLBACK").unwrap();
    assert_eq!(run(&mut own, "SELECT n FROM sensor").unwrap(), ["20"]);
}

#[test]
fn a_temporary_array_table_loses_its_rows_at_commit() {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    let temporary =
        "CREATE TEMP TABLE s (id int PRIMARY KEY, n int NOT NULL) WITH (layout = array) ON COMMIT DELETE ROWS";
    run(&mut session, temporary).unwrap();
    run(&mut session, "INSERT INTO s VALUES (1, 1)").unwrap();
    assert_eq!(run(&mut session, "SELECT count(*) FROM s").unwrap(), ["0"]);
}

#[test]
fn a_table_with_only_high_keys_left_may_be_altered() {
    let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
    run(&mut session, "CREATE TABLE s (id int PRIMARY KEY, n int NOT NULL) WITH (layout = array)").unwrap();
    for first in (0..1_200_000).step_by(400_000) {
        let last = first + 399_999;
        run(&mut session, &format!("INSERT INTO s SELECT i, 1 FROM generate_series({first}, {last}) t (i)")).unwrap();
    }
    run(&mut session, "DELETE FROM s WHERE id < 1199990").unwrap();
    run(&mut session, "ALTER TABLE s ADD COLUMN level int NOT NULL DEFAULT 0").unwrap();
    assert_eq!(run(&mut session, "SELECT count(*), max(id) FROM s").unwrap(), ["10|1199999"]);
}
