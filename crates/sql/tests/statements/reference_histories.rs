//! Foreign keys under random transactions of several threads, at every isolation level: no row is left that refers to nothing.
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::Database;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Session, SessionOptions};

use crate::answers::{ask, run};

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// Errors of transactions that get in each other's way, or ask for what is not there by then.
const MAY_FAIL: [&str; 4] = ["23503", "23505", "40001", "40P01"];

fn session(db: &Database) -> Session {
    Session::new(db, SessionOptions { target_partitions: Some(1), ..SessionOptions::default() })
}

fn open(action: &str) -> Database {
    let db = Database::in_memory();
    let referring = format!("CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p {action})");
    run(&mut session(&db), &["CREATE TABLE p (id INT PRIMARY KEY, n INT)", &referring]);
    db
}

/// A statement of a random history. Most find what they ask for.
fn statement(random: &mut StdRng) -> String {
    let (key, other, row) = (random.random_range(0..3), random.random_range(0..3), random.random_range(0..12));
    match random.random_range(0..12) {
        0..3 => format!("INSERT INTO p VALUES ({key}, 0) ON CONFLICT DO NOTHING"),
        3 => format!("DELETE FROM p WHERE id = {key}"),
        4 => format!("UPDATE p SET id = {other} WHERE id = {key}"),
        5 => format!("DELETE FROM p WHERE id IN ({key}, {other})"),
        6..9 => format!("INSERT INTO c VALUES ({row}, {key}) ON CONFLICT (id) DO UPDATE SET p = excluded.p"),
        9 => format!("UPDATE c SET p = {key} WHERE id = {row}"),
        _ => format!("DELETE FROM c WHERE p = {key}"),
    }
}

fn orphans(session: &mut Session) -> Vec<String> {
    ask(session, "SELECT c.id, c.p FROM c LEFT JOIN p ON c.p = p.id WHERE c.p IS NOT NULL AND p.id IS NULL")
}

/// Transactions of a few random statements, each of which may fail as such statements may.
fn run_history(db: &Database, level: &str, seed: u64) {
    let (mut random, mut session) = (StdRng::seed_from_u64(seed), session(db));
    for _ in 0..16 {
        run(&mut session, &[&format!("BEGIN ISOLATION LEVEL {level}")]);
        let mut has_failed = false;
        for _ in 0..random.random_range(1..4) {
            let text = statement(&mut random);
            if let Err(error) = session.execute(&text).map(drop) {
                assert!(MAY_FAIL.contains(&error.sqlstate), "{level}, seed {seed}: {text}: {error:?}");
                has_failed = true;
                break;
            }
            // Others come between.
            thread::yield_now();
        }
        let end = if has_failed || random.random_bool(0.2) { "ROLLBACK" } else { "COMMIT" };
        if let Err(error) = session.execute(end).map(drop) {
            assert!(MAY_FAIL.contains(&error.sqlstate), "{level}, seed {seed}: {end}: {error:?}");
        }
    }
}

#[test]
fn no_history_leaves_a_row_that_refers_to_nothing() {
    for (round, level) in (0..).zip(LEVELS) {
        let waits = "DEFERRABLE INITIALLY DEFERRED";
        for (at, action) in ["", "ON DELETE CASCADE ON UPDATE CASCADE", waits].iter().enumerate() {
            let (db, is_over) = (open(action), AtomicBool::new(false));
            thread::scope(|scope| {
                let looking = scope.spawn(|| {
                    let mut reader = session(&db);
                    while !is_over.load(Ordering::Acquire) {
                        assert_eq!(orphans(&mut reader), [""; 0], "{level} {action}");
                    }
                });
                let seed = |thread: u64| round * 100 + at as u64 * 10 + thread;
                let db = &db;
                let writers: Vec<_> =
                    (0..3).map(|thread| scope.spawn(move || run_history(db, level, seed(thread)))).collect();
                let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
                is_over.store(true, Ordering::Release);
                looking.join().unwrap();
                assert!(ended.iter().all(Result::is_ok), "{level} {action}");
            });
            assert_eq!(orphans(&mut session(&db)), [""; 0], "{level} {action}");
        }
    }
}
