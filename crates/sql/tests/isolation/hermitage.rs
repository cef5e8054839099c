//! The Hermitage catalogue (Martin Kleppmann, "Hermitage: testing transaction isolation levels"): for each anomaly a few
//! statements in two or three sessions, and what comes of them at each isolation level.
//!
//! ```text
//! [rc] 2 | update test set value = 12 where id = 1 | blocks
//!  ^   ^   ^                                          ^
//!  |   |   statement, empty for the outcome of one    what comes of it: ok, blocks, an SQLSTATE, or rows as id:value,
//!  |   session that blocked                           empty for none
//!  the levels that the line is for; all if it is missing
//! ```
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use engine::Database;
use sql::{Outcome, Session, SessionOptions};

/// A statement that takes longer waits for another transaction.
const BLOCKED: Duration = Duration::from_millis(60);
/// A statement that takes longer hangs.
const HANGS: Duration = Duration::from_secs(20);

const LEVELS: [(&str, &str); 3] = [("rc", "read committed"), ("rr", "repeatable read"), ("ser", "serializable")];

/// A session on a thread of its own.
struct Actor {
    statements: Sender<String>,
    outcomes: Receiver<String>,
}

impl Actor {
    fn new(db: &Database) -> Actor {
        let (statements, received) = channel::<String>();
        let (done, outcomes) = channel();
        let db = db.clone();
        thread::spawn(move || {
            let mut session = Session::new(&db, SessionOptions::default());
            for statement in received {
                if done.send(outcome(&mut session, &statement)).is_err() {
                    return;
                }
            }
        });
        Actor { statements, outcomes }
    }

    fn outcome(&self, time: Duration) -> String {
        match self.outcomes.recv_timeout(time) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => "blocks".to_owned(),
            Err(RecvTimeoutError::Disconnected) => "panicked".to_owned(),
        }
    }
}

/// The result of a statement, as scripts write it.
fn outcome(session: &mut Session, statement: &str) -> String {
    let rows = match session.execute(statement) {
        Ok(Outcome::Done(_)) => return "ok".to_owned(),
        Ok(Outcome::Rows(rows)) => rows,
        Err(error) => return error.sqlstate.to_owned(),
    };
    let mut shown = Vec::new();
    for batch in rows {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return error.sqlstate.to_owned(),
        };
        let column = |at: usize| batch.column(at).as_primitive::<Int32Type>().values();
        shown.extend(column(0).iter().zip(column(1)).map(|(id, value)| (*id, *value)));
    }
    shown.sort_unstable();
    shown.iter().map(|(id, value)| format!("{id}:{value}")).collect::<Vec<_>>().join(" ")
}

/// Runs a script at every level.
fn catalogue(script: &str) {
    for (short, level) in LEVELS {
        let db = Database::in_memory();
        let mut setup = Session::new(&db, SessionOptions::default());
        for statement in
            ["create table test (id int primary key, value int)", "insert into test values (1, 10), (2, 20)"]
        {
            setup.execute(statement).unwrap();
        }
        let actors = [(); 3].map(|()| Actor::new(&db));
        for actor in &actors {
            actor.statements.send(format!("begin isolation level {level}")).unwrap();
            assert_eq!(actor.outcome(HANGS), "ok");
        }
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (levels, line) = match line.strip_prefix('[').and_then(|line| line.split_once(']')) {
                Some((levels, line)) => (Some(levels), line),
                None => (None, line),
            };
            if levels.is_some_and(|levels| levels.split(' ').all(|known| known != short)) {
                continue;
            }
            let mut parts = line.split('|').map(str::trim);
            let [session, statement, expected] = [(); 3].map(|()| parts.next().unwrap_or_else(|| panic!("{line}")));
            let actor = &actors[session.parse::<usize>().unwrap() - 1];
            if !statement.is_empty() {
                actor.statements.send(statement.to_owned()).unwrap();
            }
            let time = if expected == "blocks" { BLOCKED } else { HANGS };
            assert_eq!(actor.outcome(time), expected, "at {level}: {line}");
        }
    }
}

/// Write cycles.
#[test]
fn g0() {
    catalogue(
        "
              1 | update test set value = 11 where id = 1 | ok
        [rc]  2 | update test set value = 12 where id = 1 | blocks
        [rr ser] 2 | update test set value = 12 where id = 1 | 40001
              1 | update test set value = 21 where id = 2 | ok
              1 | commit | ok
        [rc]  2 | | ok
        [rc]  3 | select * from test | 1:11 2:21
        [rc]  2 | update test set value = 22 where id = 2 | ok
        [rc]  2 | commit | ok
        [rc]  3 | select * from test | 1:12 2:22
        [rr ser] 2 | rollback | ok
        [rr ser] 3 | commit | ok
        [rr ser] 3 | select * from test | 1:11 2:21
        ",
    );
}

/// Aborted reads.
#[test]
fn g1a() {
    catalogue(
        "
        1 | update test set value = 101 where id = 1 | ok
        2 | select * from test | 1:10 2:20
        1 | rollback | ok
        2 | select * from test | 1:10 2:20
        2 | commit | ok
        ",
    );
}

/// Intermediate reads.
#[test]
fn g1b() {
    catalogue(
        "
        1 | update test set value = 101 where id = 1 | ok
        2 | select * from test | 1:10 2:20
        1 | update test set value = 11 where id = 1 | ok
        1 | commit | ok
        [rc] 2 | select * from test | 1:11 2:20
        [rr ser] 2 | select * from test | 1:10 2:20
        2 | commit | ok
        ",
    );
}

/// Circular information flow.
#[test]
fn g1c() {
    catalogue(
        "
        1 | update test set value = 11 where id = 1 | ok
        2 | update test set value = 22 where id = 2 | ok
        1 | select * from test where id = 2 | 2:20
        2 | select * from test where id = 1 | 1:10
        1 | commit | ok
        [rc rr] 2 | commit | ok
        [ser] 2 | commit | 40001
        ",
    );
}

/// Observed transaction vanishes.
#[test]
fn otv() {
    catalogue(
        "
        1 | update test set value = 11 where id = 1 | ok
        1 | update test set value = 19 where id = 2 | ok
        [rc] 2 | update test set value = 12 where id = 1 | blocks
        [rr ser] 2 | update test set value = 12 where id = 1 | 40001
        1 | commit | ok
        [rc] 2 | | ok
        [rc] 3 | select * from test where id = 1 | 1:11
        [rc] 2 | update test set value = 18 where id = 2 | ok
        [rc] 3 | select * from test where id = 2 | 2:19
        [rc] 2 | commit | ok
        [rc] 3 | select * from test | 1:12 2:18
        [rr ser] 3 | select * from test | 1:11 2:19
        3 | commit | ok
        ",
    );
}

/// Predicate-many-preceders, reading.
#[test]
fn pmp() {
    catalogue(
        "
        1 | select * from test where value = 30 |
        2 | insert into test values (3, 30) | ok
        2 | commit | ok
        [rc] 1 | select * from test where value % 3 = 0 | 3:30
        [rr ser] 1 | select * from test where value % 3 = 0 |
        1 | commit | ok
        ",
    );
}

/// Predicate-many-preceders, writing: the row that was 20 is 30 when it is free, and the row that is 20 then was not.
#[test]
fn pmp_write() {
    catalogue(
        "
        1 | update test set value = value + 10 | ok
        2 | select * from test where value = 20 | 2:20
        [rc] 2 | delete from test where value = 20 | blocks
        [rr ser] 2 | delete from test where value = 20 | 40001
        1 | commit | ok
        [rc] 2 | | ok
        [rc] 2 | select * from test where value = 20 | 1:20
        [rc] 2 | commit | ok
        [rc] 3 | select * from test | 1:20 2:30
        ",
    );
}

/// Lost update.
#[test]
fn p4() {
    catalogue(
        "
        1 | select * from test where id = 1 | 1:10
        2 | select * from test where id = 1 | 1:10
        1 | update test set value = 11 where id = 1 | ok
        [rc] 2 | update test set value = 11 where id = 1 | blocks
        1 | commit | ok
        [rc] 2 | | ok
        [rr ser] 2 | update test set value = 11 where id = 1 | 40001
        [rc] 2 | commit | ok
        ",
    );
}

/// Read skew.
#[test]
fn g_single() {
    catalogue(
        "
        1 | select * from test where id = 1 | 1:10
        2 | select * from test where id = 1 | 1:10
        2 | select * from test where id = 2 | 2:20
        2 | update test set value = 12 where id = 1 | ok
        2 | update test set value = 18 where id = 2 | ok
        2 | commit | ok
        [rc] 1 | select * from test where id = 2 | 2:18
        [rr ser] 1 | select * from test where id = 2 | 2:20
        1 | commit | ok
        ",
    );
}

/// Read skew through predicates.
#[test]
fn g_single_predicate() {
    catalogue(
        "
        1 | select * from test where value % 5 = 0 | 1:10 2:20
        2 | update test set value = 12 where value = 10 | ok
        2 | commit | ok
        [rc] 1 | select * from test where value % 3 = 0 | 1:12
        [rr ser] 1 | select * from test where value % 3 = 0 |
        1 | commit | ok
        ",
    );
}

/// Read skew through a predicate of a write.
#[test]
fn g_single_write() {
    catalogue(
        "
        1 | select * from test where id = 1 | 1:10
        2 | select * from test | 1:10 2:20
        2 | update test set value = 12 where id = 1 | ok
        2 | update test set value = 18 where id = 2 | ok
        2 | commit | ok
        [rc] 1 | delete from test where value = 20 | ok
        [rc] 1 | select * from test | 1:12 2:18
        [rr ser] 1 | delete from test where value = 20 | 40001
        ",
    );
}

/// Write skew.
#[test]
fn g2_item() {
    catalogue(
        "
        1 | select * from test where id in (1, 2) | 1:10 2:20
        2 | select * from test where id in (1, 2) | 1:10 2:20
        1 | update test set value = 11 where id = 1 | ok
        2 | update test set value = 21 where id = 2 | ok
        1 | commit | ok
        [rc rr] 2 | commit | ok
        [ser] 2 | commit | 40001
        ",
    );
}

/// Write skew through phantoms.
#[test]
fn g2() {
    catalogue(
        "
        1 | select * from test where value % 3 = 0 |
        2 | select * from test where value % 3 = 0 |
        1 | insert into test values (3, 30) | ok
        2 | insert into test values (4, 42) | ok
        1 | commit | ok
        [rc rr] 2 | commit | ok
        [ser] 2 | commit | 40001
        ",
    );
}

/// A transaction that only reads, and sees an order that the others contradict (Fekete, O'Neil, O'Neil).
#[test]
fn g2_two_edges() {
    catalogue(
        "
        1 | select * from test | 1:10 2:20
        2 | update test set value = value + 5 where id = 2 | ok
        2 | commit | ok
        3 | commit | ok
        3 | begin isolation level serializable | ok
        3 | select * from test | 1:10 2:25
        3 | commit | ok
        1 | update test set value = 0 where id = 1 | ok
        [rc rr] 1 | commit | ok
        [ser] 1 | commit | 40001
        ",
    );
}
