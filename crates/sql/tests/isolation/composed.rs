//! Statements of several parts beside others: queues of jobs, and rows that others have changed before they are locked.
use std::thread;

use engine::Database;

use crate::sessions::{done, run, session, until_waiting};

fn open() -> Database {
    let db = Database::in_memory();
    let mut session = session(&db);
    done(&mut session, "CREATE TABLE job (id INT PRIMARY KEY, state TEXT, n INT)");
    done(&mut session, "INSERT INTO job VALUES (1, 'new', 0), (2, 'new', 0), (3, 'new', 0)");
    db
}

const TAKE: &str = "UPDATE job SET state = 'taken' WHERE id = (SELECT id FROM job WHERE state = 'new' ORDER BY id \
                    FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id";
const TAKE_BY_WITH: &str = "WITH next AS (SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) \
                            UPDATE job SET state = 'taken' FROM next WHERE job.id = next.id RETURNING job.id";

#[test]
fn two_workers_never_take_the_same_job() {
    let db = open();
    let (mut one, mut two) = (session(&db), session(&db));
    done(&mut one, "BEGIN");
    assert_eq!(done(&mut one, TAKE), "1");
    assert_eq!(done(&mut two, TAKE_BY_WITH), "2");
    done(&mut one, "ROLLBACK");
    assert_eq!(done(&mut two, TAKE), "1");
    assert_eq!(
        done(&mut two, "WITH gone AS (DELETE FROM job WHERE state = 'taken' RETURNING id) SELECT sum(id) FROM gone"),
        "3"
    );
}

#[test]
fn a_row_that_others_have_changed_is_taken_as_it_is_once_it_is_locked() {
    for (statement, expected) in [
        ("UPDATE job SET n = n + 1 WHERE id IN (SELECT id FROM job WHERE id = 1 FOR UPDATE) RETURNING n", "101"),
        (
            "WITH l AS (SELECT id FROM job WHERE id = 1 FOR UPDATE) UPDATE job SET n = n + 1 FROM l WHERE job.id = l.id RETURNING n",
            "101",
        ),
        ("WITH a AS (UPDATE job SET n = n + 1 RETURNING n) SELECT max(n) FROM a", "101"),
        (
            "WITH a AS (UPDATE job SET n = n + 1 WHERE id = 1 AND n = 0), b AS (UPDATE job SET n = n + 5 WHERE id = 1 RETURNING n) \
          SELECT n FROM b",
            "105",
        ),
        (
            "WITH a AS (UPDATE job SET n = n + 1 WHERE id = 2 RETURNING n), b AS (UPDATE job SET n = n + 1 WHERE id = 1 RETURNING n), \
          c AS (SELECT n FROM job WHERE id = 2) SELECT a.n, b.n, c.n FROM a, b, c",
            "1 101 0",
        ),
    ] {
        let db = open();
        let mut other = session(&db);
        done(&mut other, "BEGIN");
        done(&mut other, "UPDATE job SET n = n + 100 WHERE id = 1");
        let answer = thread::scope(|scope| {
            let waiting = scope.spawn(|| run(&mut session(&db), statement));
            until_waiting(&db, 1);
            done(&mut other, "COMMIT");
            waiting.join().unwrap()
        });
        assert_eq!(answer.map_err(|error| error.message), Ok(expected.to_owned()), "{statement}");
    }
}

#[test]
fn above_read_committed_a_row_that_others_have_changed_is_a_conflict() {
    let db = open();
    let (mut own, mut other) = (session(&db), session(&db));
    done(&mut own, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    done(&mut own, "SELECT * FROM job");
    done(&mut other, "UPDATE job SET n = 7 WHERE id = 1");
    let answer = run(&mut own, "WITH a AS (UPDATE job SET n = n + 1 RETURNING n) SELECT max(n) FROM a");
    assert_eq!(answer.map_err(|error| error.sqlstate), Err("40001"));
}
