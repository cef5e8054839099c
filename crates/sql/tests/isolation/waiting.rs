//! Sessions beside each other: which waits for which, what a waiting session goes on from, and which gives up.
use std::thread;
use std::time::Duration;

use engine::Database;
use sql::{Outcome, Session, SqlError, TransactionStatus};

use crate::sessions::{done, read, run, session, until_waiting};

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, n BIGINT, state TEXT)";

fn open() -> Database {
    let db = Database::in_memory();
    let mut session = session(&db);
    done(&mut session, TABLE);
    done(&mut session, "INSERT INTO t VALUES (1, 10, 'new'), (2, 20, 'new'), (3, 30, 'new')");
    db
}

fn sqlstate(session: &mut Session, statement: &str) -> &'static str {
    run(session, statement).err().map_or("", |error| error.sqlstate)
}

/// Runs `statement` in a session of its own while `first` goes on with `then`, once the statement waits.
fn while_waiting(db: &Database, statement: &str, first: &mut Session, then: &[&str]) -> Result<String, SqlError> {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&mut session(db), statement));
        until_waiting(db, 1);
        then.iter().for_each(|statement| drop(done(first, statement)));
        waiting.join().unwrap()
    })
}

/// Every statement that writes or locks goes on with the table that has taken the place of the one that it waited for.
#[test]
fn who_waited_for_a_table_that_was_replaced_goes_on_with_the_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.csv");
    std::fs::write(&file, "8,80,new\n").unwrap();
    let copy = format!("COPY t FROM '{}'", file.display());
    let cases = [
        ("INSERT INTO t VALUES (8, 80, 'new')", "INSERT 0 1"),
        ("UPDATE t SET n = n + 1", "UPDATE 1"),
        ("DELETE FROM t", "DELETE 1"),
        ("SELECT id FROM t FOR UPDATE", "9"),
        (&copy, "COPY 1"),
    ];
    for (statement, expected) in cases {
        let db = open();
        let mut first = session(&db);
        done(&mut first, "BEGIN");
        done(&mut first, "TRUNCATE t");
        done(&mut first, "INSERT INTO t VALUES (9, 90, 'new')");
        let answer = while_waiting(&db, statement, &mut first, &["COMMIT"]);
        assert_eq!(answer.unwrap(), expected, "{statement}");
    }
}

#[test]
fn a_writer_waits_and_goes_on_from_the_newest_version() {
    let db = open();
    let mut first = session(&db);
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = n + 5 WHERE id = 1");
    let second = while_waiting(&db, "UPDATE t SET n = n * 2 WHERE id = 1", &mut first, &["COMMIT"]);
    assert_eq!((second.unwrap(), done(&mut first, "SELECT n FROM t WHERE id = 1")), ("UPDATE 1".into(), "30".into()));
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = 0");
    let second = while_waiting(&db, "UPDATE t SET n = n * 2 WHERE id = 1", &mut first, &["ROLLBACK"]);
    assert_eq!((second.unwrap(), done(&mut first, "SELECT n FROM t WHERE id = 1")), ("UPDATE 1".into(), "60".into()));
}

#[test]
fn a_row_that_no_longer_qualifies_is_left_alone_and_none_joins_in() {
    let db = open();
    let mut first = session(&db);
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = 99 WHERE id = 1");
    done(&mut first, "UPDATE t SET n = 10 WHERE id = 2");
    // Row 1 was found and is 99 now; row 2 is 10 now and was not found.
    let second = while_waiting(&db, "DELETE FROM t WHERE n = 10", &mut first, &["COMMIT"]);
    assert_eq!(second.unwrap(), "DELETE 0");
    assert_eq!(done(&mut first, "SELECT id, n FROM t ORDER BY id"), "1 99,2 10,3 30");
    done(&mut first, "BEGIN");
    done(&mut first, "DELETE FROM t WHERE id = 1");
    let second = while_waiting(&db, "UPDATE t SET n = n + 1 WHERE id < 3", &mut first, &["COMMIT"]);
    assert_eq!(second.unwrap(), "UPDATE 1");
    assert_eq!(done(&mut first, "SELECT id, n FROM t ORDER BY id"), "2 11,3 30");
}

#[test]
fn a_statement_looks_at_the_other_tables_again_too() {
    let db = open();
    let mut first = session(&db);
    done(&mut first, "CREATE TABLE rate (id INT PRIMARY KEY, factor INT)");
    done(&mut first, "INSERT INTO rate VALUES (1, 2), (2, 3)");
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = n + 1");
    done(&mut first, "UPDATE rate SET factor = 100 WHERE id = 1");
    done(&mut first, "DELETE FROM rate WHERE id = 2");
    let statement = "UPDATE t SET n = t.n * factor FROM rate WHERE rate.id = t.id";
    assert_eq!(while_waiting(&db, statement, &mut first, &["COMMIT"]).unwrap(), "UPDATE 1");
    assert_eq!(done(&mut first, "SELECT id, n FROM t ORDER BY id"), "1 1100,2 21,3 31");
}

#[test]
fn above_read_committed_the_second_writer_fails() {
    let db = open();
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let (mut first, mut second) = (session(&db), session(&db));
        for session in [&mut first, &mut second] {
            done(session, &format!("BEGIN ISOLATION LEVEL {level}"));
            done(session, "SELECT sum(n) FROM t");
        }
        done(&mut first, "UPDATE t SET n = n + 1 WHERE id = 1");
        done(&mut first, "COMMIT");
        assert_eq!(sqlstate(&mut second, "UPDATE t SET n = n + 1 WHERE id = 1"), "40001", "{level}");
        assert_eq!(done(&mut second, "COMMIT"), "ROLLBACK");
    }
    assert_eq!(done(&mut session(&db), "SELECT n FROM t WHERE id = 1"), "12");
}

#[test]
fn serializable_reads_of_every_kind_are_known_to_the_engine() {
    let db = open();
    let reads = [
        "SELECT n FROM t WHERE id = 2",
        "SELECT sum(n) FROM t WHERE id > 1",
        "SELECT count(*) FROM t",
        "SELECT * FROM t WHERE n BETWEEN 15 AND 25",
        "SELECT n + 1 FROM t WHERE n % 7 = 6",
        "SELECT n FROM lstore_history('t', 2)",
        "SELECT * FROM lstore_changes('t', 0)",
        "SELECT id FROM t WHERE id = 9",
    ];
    for read in reads {
        let (mut first, mut second) = (session(&db), session(&db));
        done(&mut first, "BEGIN ISOLATION LEVEL SERIALIZABLE");
        done(&mut first, read);
        done(&mut first, "INSERT INTO t VALUES (100, 0, 'mine')");
        done(&mut second, "UPDATE t SET n = n + 1 WHERE id = 2");
        done(&mut second, "INSERT INTO t VALUES (9, 21, 'theirs')");
        assert_eq!(sqlstate(&mut first, "COMMIT"), "40001", "{read}");
        assert_eq!(done(&mut first, "SELECT 1"), "1", "the block is over");
        done(&mut second, "DELETE FROM t WHERE id = 9");
        done(&mut second, "UPDATE t SET n = 20 WHERE id = 2");
    }
}

#[test]
fn of_two_that_wait_for_each_other_one_goes_on() {
    let db = open();
    let (mut first, mut second) = (session(&db), session(&db));
    for session in [&mut first, &mut second] {
        done(session, "BEGIN");
    }
    done(&mut first, "UPDATE t SET n = 1 WHERE id = 1");
    done(&mut second, "UPDATE t SET n = 2 WHERE id = 2");
    let finish = |session: &mut Session, statement: &str| {
        let state = sqlstate(session, statement);
        let tag = done(session, "COMMIT");
        assert_eq!(tag, if state.is_empty() { "COMMIT" } else { "ROLLBACK" });
        state
    };
    let states = thread::scope(|scope| {
        let other = scope.spawn(|| finish(&mut first, "UPDATE t SET n = 1 WHERE id = 2"));
        let state = finish(&mut second, "UPDATE t SET n = 2 WHERE id = 1");
        [other.join().unwrap(), state]
    });
    assert!(states == ["", "40P01"] || states == ["40P01", ""], "{states:?}");
    let ns = done(&mut session(&db), "SELECT n FROM t WHERE id < 3 ORDER BY id");
    assert_eq!(ns, if states[0].is_empty() { "1,1" } else { "2,2" });
}

#[test]
fn a_locked_row_is_looked_at_again() {
    let db = open();
    let mut first = session(&db);
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET state = 'old', n = 11 WHERE id = 1");
    let queue = "SELECT id, n FROM t WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE";
    assert_eq!(while_waiting(&db, queue, &mut first, &["COMMIT"]).unwrap(), "2 20");
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = n + 1");
    let joined = "SELECT a.n, b.n FROM t a JOIN t b ON b.id = a.id + 1 ORDER BY a.id FOR SHARE OF a";
    assert_eq!(while_waiting(&db, joined, &mut first, &["COMMIT"]).unwrap(), "12 21,21 31");
    done(&mut first, "BEGIN");
    done(&mut first, "DELETE FROM t WHERE id = 2");
    assert_eq!(while_waiting(&db, "SELECT id FROM t FOR UPDATE", &mut first, &["COMMIT"]).unwrap(), "1,3");
}

#[test]
fn a_queue_gives_each_job_to_one() {
    let db = Database::in_memory();
    done(&mut session(&db), "CREATE TABLE job (id INT PRIMARY KEY, state TEXT)");
    done(&mut session(&db), "INSERT INTO job SELECT generate_series, 'new' FROM generate_series(1, 40)");
    let take = || {
        let (mut session, mut taken) = (session(&db), Vec::new());
        loop {
            done(&mut session, "BEGIN");
            let next = "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
            let id = done(&mut session, next);
            if id.is_empty() {
                done(&mut session, "COMMIT");
                // Those that were locked may have been given back.
                match done(&mut session, "SELECT count(*) FROM job WHERE state = 'new'").as_str() {
                    "0" => return taken,
                    _ => continue,
                }
            }
            done(&mut session, &format!("UPDATE job SET state = 'done' WHERE id = {id}"));
            done(&mut session, "COMMIT");
            taken.push(id.parse::<u32>().unwrap());
        }
    };
    let mut all: Vec<u32> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    all.sort_unstable();
    assert_eq!(all, (1..=40).collect::<Vec<_>>());
}

#[test]
fn increments_outside_of_blocks_all_count() {
    for level in ["read committed", "repeatable read", "serializable"] {
        let db = open();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut session = session(&db);
                    done(&mut session, &format!("SET default_transaction_isolation = '{level}'"));
                    for _ in 0..20 {
                        assert_eq!(done(&mut session, "UPDATE t SET n = n + 1 WHERE id = 1"), "UPDATE 1");
                    }
                });
            }
        });
        assert_eq!(done(&mut session(&db), "SELECT n FROM t WHERE id = 1"), "170", "{level}");
    }
}

#[test]
fn an_open_query_gives_the_rows_of_its_moment() {
    let db = open();
    let mut session = session(&db);
    done(&mut session, "INSERT INTO t SELECT generate_series, 0, 'new' FROM generate_series(4, 12000)");
    for level in ["READ COMMITTED", "REPEATABLE READ"] {
        done(&mut session, &format!("BEGIN ISOLATION LEVEL {level}"));
        let Outcome::Rows(rows) = session.execute("SELECT state FROM t").unwrap() else { panic!("no rows") };
        assert_eq!(done(&mut session, "UPDATE t SET state = 'old'"), "UPDATE 12000");
        done(&mut session, "DELETE FROM t WHERE id > 100");
        let states = read(rows).unwrap();
        assert_eq!((states.matches("new").count(), states.contains("old")), (12_000, false), "{level}");
        // A statement does not see what it writes itself.
        assert_eq!(done(&mut session, "INSERT INTO t SELECT id + 1000, n, state FROM t"), "INSERT 0 100");
        done(&mut session, "ROLLBACK");
    }
}

#[test]
fn rows_of_what_was_rolled_back_end_with_an_error() {
    let db = open();
    let mut session = session(&db);
    done(&mut session, "BEGIN");
    let Outcome::Rows(before) = session.execute("SELECT n FROM t").unwrap() else { panic!("no rows") };
    done(&mut session, "SAVEPOINT a");
    done(&mut session, "UPDATE t SET n = 0");
    let Outcome::Rows(after) = session.execute("SELECT n FROM t").unwrap() else { panic!("no rows") };
    done(&mut session, "ROLLBACK TO a");
    assert_eq!(read(before).unwrap(), "10,20,30");
    assert_eq!(read(after).unwrap_err().sqlstate, "24000");
    assert_eq!(done(&mut session, "SELECT sum(n) FROM t"), "60", "the block has not failed");
}

#[test]
fn a_failure_gives_locks_free_down_to_the_savepoint() {
    let db = open();
    let (mut first, mut second) = (session(&db), session(&db));
    let nowait = |id: u32| format!("SELECT id FROM t WHERE id = {id} FOR UPDATE NOWAIT");
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = 0 WHERE id = 1");
    done(&mut first, "SAVEPOINT a");
    done(&mut first, "UPDATE t SET n = 0 WHERE id = 2");
    assert_eq!(sqlstate(&mut second, &nowait(2)), "55P03");
    assert_eq!(sqlstate(&mut first, "SELECT 1 / 0"), "22012");
    assert_eq!(done(&mut second, &nowait(2)), "2");
    assert_eq!(sqlstate(&mut second, &nowait(1)), "55P03");
    done(&mut first, "ROLLBACK TO a");
    done(&mut first, "RELEASE a");
    assert_eq!(sqlstate(&mut first, "SELECT 1 / 0"), "22012");
    assert_eq!(done(&mut second, &nowait(1)), "1", "without a savepoint nothing is held by a block that failed");
    assert_eq!(done(&mut first, "COMMIT"), "ROLLBACK");
}

#[test]
fn a_lock_timeout_fails_the_statement_only() {
    let db = open();
    let (mut first, mut second) = (session(&db), session(&db));
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = 0 WHERE id = 1");
    done(&mut second, "SET lock_timeout = '20ms'");
    for statement in ["UPDATE t SET n = 1 WHERE id = 1", "SELECT n FROM t FOR UPDATE", "DELETE FROM t"] {
        let error = run(&mut second, statement).unwrap_err();
        assert_eq!((error.sqlstate, error.message.as_str()), ("55P03", "canceling statement due to lock timeout"));
    }
    assert_eq!(done(&mut second, "SELECT count(*) FROM t"), "3");
    done(&mut first, "COMMIT");
    assert_eq!(done(&mut second, "UPDATE t SET n = n + 1 WHERE id = 1"), "UPDATE 1");
}

#[test]
fn a_statement_timeout_ends_waits_and_queries() {
    let db = open();
    let (mut first, mut second) = (session(&db), session(&db));
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = 0 WHERE id = 1");
    done(&mut second, "SET statement_timeout = '30ms'");
    let long = "SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 100000000) b";
    for statement in ["UPDATE t SET n = 1 WHERE id = 1", long] {
        let error = run(&mut second, statement).unwrap_err();
        let message = "canceling statement due to statement timeout";
        assert_eq!((error.sqlstate, error.message.as_str()), ("57014", message), "{statement}");
    }
    done(&mut second, "RESET statement_timeout");
    done(&mut second, "BEGIN");
    done(&mut second, "SET LOCAL statement_timeout = 20");
    done(&mut second, "SAVEPOINT a");
    assert_eq!(sqlstate(&mut second, "DELETE FROM t WHERE id = 1"), "57014");
    done(&mut second, "ROLLBACK TO a");
    assert_eq!(sqlstate(&mut second, long), "57014");
    done(&mut second, "ROLLBACK TO a");
    done(&mut second, "SET LOCAL statement_timeout = 0");
    done(&mut second, "SET LOCAL lock_timeout = 20");
    assert_eq!(sqlstate(&mut second, "DELETE FROM t WHERE id = 1"), "55P03", "no interrupt is left over");
    done(&mut second, "ROLLBACK TO a");
    done(&mut second, "SET LOCAL statement_timeout = 0");
    done(&mut first, "COMMIT");
    assert_eq!(done(&mut second, "DELETE FROM t WHERE id = 1"), "DELETE 1");
    done(&mut second, "COMMIT");
}

#[test]
fn a_handle_cancels_from_another_thread() {
    let db = open();
    let (mut first, mut second) = (session(&db), session(&db));
    let handle = second.cancel_handle();
    assert!(!handle.cancel(), "nothing runs");
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = 0 WHERE id = 1");
    let error = thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&mut second, "UPDATE t SET n = 1 WHERE id = 1"));
        until_waiting(&db, 1);
        assert!(handle.cancel());
        waiting.join().unwrap().unwrap_err()
    });
    assert_eq!((error.sqlstate, error.message.as_str()), ("57014", "canceling statement due to user request"));
    let Outcome::Rows(rows) = second.execute("SELECT a.n FROM t a, t b").unwrap() else { panic!("no rows") };
    assert!(handle.cancel());
    assert_eq!(read(rows).map_err(|error| error.sqlstate), Err("57014"));
    assert_eq!(done(&mut second, "SELECT count(*) FROM t"), "3");
}

#[test]
fn a_statement_that_was_cancelled_works_no_more() {
    let db = open();
    let (mut worker, mut looker) = (session(&db), session(&db));
    done(&mut looker, "CREATE SEQUENCE worked");
    let handle = worker.cancel_handle();
    // Each number is given out once, so that those which the looker misses were the worker's.
    let mut next = || done(&mut looker, "SELECT nextval('worked')").parse::<u64>().unwrap();
    thread::scope(|scope| {
        let text = "SELECT count(nextval('worked')) FROM generate_series(1, 1000000000) g(n)";
        let working = scope.spawn(|| run(&mut worker, text).map_err(|error| error.sqlstate));
        let mut last = next();
        loop {
            let now = next();
            if now > last + 1 {
                break;
            }
            last = now;
        }
        assert!(handle.cancel());
        assert_eq!(working.join().unwrap(), Err("57014"));
    });
    // A batch that is under way comes to its end.
    let (mut last, mut undisturbed) = (next(), 0);
    while undisturbed < 100 {
        thread::sleep(Duration::from_millis(1));
        let now = next();
        undisturbed = if now == last + 1 { undisturbed + 1 } else { 0 };
        last = now;
    }
    assert!(last < 1_000_000_000, "it has worked to its end");
}

#[test]
fn a_cancellation_holds_for_a_statement_that_is_still_being_read() {
    let db = open();
    let mut reader = session(&db);
    let handle = reader.cancel_handle();
    reader.set_asked(true);
    assert!(handle.cancel(), "a statement is on its way");
    assert_eq!(run(&mut reader, "SELECT count(*) FROM t").map_err(|error| error.sqlstate), Err("57014"));
    assert_eq!(done(&mut reader, "SELECT count(*) FROM t"), "3");
    assert!(handle.cancel());
    reader.set_asked(false);
    assert!(!handle.cancel(), "nothing runs");
    reader.set_asked(true);
    assert_eq!(done(&mut reader, "SELECT count(*) FROM t"), "3");
}

/// Begins a block with such a time limit, and runs a statement in it: with more and more time, as a busy machine
/// may need too much of it.
fn within_limit(session: &mut Session, limit: &str, begin: &str, statement: &str) -> Outcome {
    for millis in [30, 100, 500, 2_500, 10_000] {
        done(session, &format!("SET {limit} = {millis}"));
        done(session, begin);
        match session.execute(statement) {
            Ok(outcome) => return outcome,
            Err(_) => drop(session.execute("ROLLBACK")),
        }
        done(session, "RESET ALL");
    }
    panic!("{statement} takes too long");
}

#[test]
fn an_idle_block_is_rolled_back_and_its_locks_go() {
    let db = open();
    let (mut first, mut second) = (session(&db), session(&db));
    let (limit, begin) = ("idle_in_transaction_session_timeout", "BEGIN ISOLATION LEVEL REPEATABLE READ");
    drop(within_limit(&mut first, limit, begin, "UPDATE t SET n = 0 WHERE id = 1"));
    // It waits until the block is taken back, which no statement asks for.
    assert_eq!(done(&mut second, "UPDATE t SET n = n + 1 WHERE id = 1"), "UPDATE 1");
    // Its snapshot goes too.
    while !db.running_transactions().is_empty() {
        thread::yield_now();
    }
    let error = run(&mut first, "SELECT 1").unwrap_err();
    assert_eq!((error.sqlstate, error.message.contains("idle-in-transaction timeout")), ("25P03", true));
    assert_eq!(sqlstate(&mut first, "SELECT 1"), "25P02", "what was meant for the block does not happen outside of it");
    assert_eq!(done(&mut first, "ROLLBACK"), "ROLLBACK");
    assert_eq!(done(&mut first, "SELECT n FROM t WHERE id = 1"), "11");
    done(&mut first, "SET idle_in_transaction_session_timeout = 1");
    done(&mut first, "BEGIN");
    thread::sleep(Duration::from_millis(100));
    assert_eq!(sqlstate(&mut first, "COMMIT"), "25P03", "nor is a block left open that has done nothing");
}

#[test]
fn while_rows_are_read_a_session_is_not_idle() {
    let db = open();
    let mut session = session(&db);
    let limit = "idle_in_transaction_session_timeout";
    let Outcome::Rows(rows) = within_limit(&mut session, limit, "BEGIN", "SELECT n FROM t") else { panic!("no rows") };
    // The limit is what it was when the statement ended.
    thread::sleep(Duration::from_millis(100));
    assert!(db.running_transactions().iter().any(|running| running.isolation.is_some()), "the block is there");
    assert_eq!(read(rows).unwrap(), "10,20,30");
}

#[test]
fn a_transaction_that_takes_too_long_is_rolled_back() {
    let db = open();
    let (mut first, mut second) = (session(&db), session(&db));
    drop(within_limit(&mut first, "transaction_timeout", "BEGIN", "UPDATE t SET n = 0 WHERE id = 1"));
    assert_eq!(done(&mut second, "UPDATE t SET n = n + 1 WHERE id = 1"), "UPDATE 1");
    assert_eq!(sqlstate(&mut first, "COMMIT"), "25P04", "what was rolled back is not said to be committed");
    done(&mut first, "SET transaction_timeout = '30ms'");
    assert_eq!(done(&mut second, "SELECT n FROM t WHERE id = 1"), "11");
    assert_eq!(first.transaction_status(), TransactionStatus::Idle, "the end of the block was its end");
    done(&mut second, "BEGIN");
    done(&mut second, "UPDATE t SET n = 0 WHERE id = 2");
    done(&mut first, "BEGIN");
    assert_eq!(sqlstate(&mut first, "UPDATE t SET n = 1 WHERE id = 2"), "25P04");
    assert_eq!(sqlstate(&mut first, "SELECT 1"), "25P02");
    assert_eq!(done(&mut first, "ROLLBACK"), "ROLLBACK");
    assert_eq!(sqlstate(&mut first, "UPDATE t SET n = 1 WHERE id = 2"), "25P04", "a statement alone is a transaction");
}

#[test]
fn a_session_tells_where_it_stands() {
    let db = open();
    let mut session = session(&db);
    let status = |session: &mut Session, statement: &str| {
        drop(run(session, statement));
        session.transaction_status()
    };
    assert_eq!(status(&mut session, "SELECT 1"), TransactionStatus::Idle);
    assert_eq!(status(&mut session, "BEGIN"), TransactionStatus::InBlock);
    assert_eq!(status(&mut session, "SAVEPOINT a"), TransactionStatus::InBlock);
    assert_eq!(status(&mut session, "SELECT 1 / 0"), TransactionStatus::Failed, "it fails while it is read");
    assert_eq!(status(&mut session, "ROLLBACK TO a"), TransactionStatus::InBlock);
    assert_eq!(status(&mut session, "COMMIT AND CHAIN"), TransactionStatus::InBlock);
    assert_eq!(status(&mut session, "SELEC"), TransactionStatus::Failed);
    assert_eq!(status(&mut session, "COMMIT"), TransactionStatus::Idle);
}

#[test]
fn a_session_that_goes_takes_its_block_along() {
    let db = open();
    let mut first = session(&db);
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = 0");
    let Outcome::Rows(rows) = first.execute("SELECT n FROM t").unwrap() else { panic!("no rows") };
    drop(first);
    assert_eq!(done(&mut session(&db), "SELECT sum(n) FROM t FOR SYSTEM_TIME AS OF 2"), "60");
    assert_eq!(done(&mut session(&db), "SELECT n FROM t ORDER BY id FOR UPDATE NOWAIT"), "10,20,30");
    assert_eq!(read(rows).unwrap_err().sqlstate, "24000");
}

#[test]
fn who_waits_for_whom_is_shown() {
    let db = open();
    let (mut first, mut third) = (session(&db), session(&db));
    done(&mut first, "BEGIN");
    done(&mut first, "UPDATE t SET n = 0 WHERE id = 1");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&mut session(&db), "UPDATE t SET n = 1 WHERE id = 1"));
        until_waiting(&db, 1);
        let query = "SELECT w.state, split_part(w.waits_on, ',', 1), w.waiting <= w.age, h.state \
                     FROM lstore_transactions w JOIN lstore_transactions h ON h.id = w.waits_for";
        assert_eq!(done(&mut third, query), "waiting t t idle in transaction");
        done(&mut first, "COMMIT");
        assert_eq!(waiting.join().unwrap().unwrap(), "UPDATE 1");
    });
}
