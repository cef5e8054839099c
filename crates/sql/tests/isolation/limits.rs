//! A serializable transaction that reads the first rows of an order depends on these and on what would come before them, and on
//! nothing behind.
use engine::Database;

use crate::sessions::{done, run, session};

/// Rows 10, 20, ..., 200, `n` in the same order.
fn open() -> Database {
    let db = Database::in_memory();
    let mut session = session(&db);
    done(&mut session, "CREATE TABLE t (id int PRIMARY KEY, n int, state text)");
    done(&mut session, "CREATE INDEX t_n ON t (n)");
    done(&mut session, "CREATE INDEX t_state_n ON t (state, n)");
    done(&mut session, "INSERT INTO t SELECT i * 10, i * 10, 'new' FROM generate_series(1, 20) i");
    db
}

/// What a transaction reads, whether the order goes downward, and how many rows.
const READS: [(&str, bool, usize); 10] = [
    ("SELECT id FROM t ORDER BY id LIMIT 1", false, 1),
    ("SELECT id, n FROM t ORDER BY id LIMIT 3", false, 3),
    ("SELECT id FROM t WHERE id > 5 ORDER BY id LIMIT 2", false, 2),
    ("SELECT id FROM t WHERE id BETWEEN 10 AND 190 ORDER BY id LIMIT 2", false, 2),
    ("SELECT id FROM t ORDER BY id DESC LIMIT 1", true, 1),
    ("SELECT id FROM t WHERE id < 999 ORDER BY id DESC LIMIT 2", true, 2),
    ("SELECT id, n FROM t WHERE n > 0 ORDER BY n LIMIT 2", false, 2),
    ("SELECT id, n FROM t WHERE state = 'new' ORDER BY n LIMIT 1", false, 1),
    ("SELECT id, n FROM t WHERE state = 'new' ORDER BY n DESC LIMIT 2", true, 2),
    ("SELECT id FROM t WHERE id > 0 ORDER BY id LIMIT 2 OFFSET 1", false, 3),
];

/// Whether a transaction that has read commits after others have done a statement, and whether it would have read the same.
fn commits(read: &str, other: &str) -> (bool, bool) {
    let db = open();
    let (mut first, mut second) = (session(&db), session(&db));
    done(&mut first, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    let before = done(&mut first, read);
    done(&mut first, "INSERT INTO t VALUES (100000, NULL, 'mine')");
    done(&mut second, "BEGIN");
    done(&mut second, other);
    done(&mut second, "COMMIT");
    let same = done(&mut second, read) == before;
    (run(&mut first, "COMMIT").is_ok(), same)
}

#[test]
fn what_lies_behind_the_last_row_read_is_free_and_what_lies_before_it_is_not() {
    for (read, downward, rows) in READS {
        for row in 1..=rows + 2 {
            let id = 10 * if downward { 21 - row } else { row };
            let before = if downward { id + 1 } else { id - 1 };
            let others = [
                format!("DELETE FROM t WHERE id = {id}"),
                format!("UPDATE t SET n = n + 1, state = 'old' WHERE id = {id}"),
                format!("UPDATE t SET id = {id} + 1000000 WHERE id = {id}"),
                format!("INSERT INTO t VALUES ({before}, {before}, 'new')"),
            ];
            for other in others {
                let (commits, same) = commits(read, &other);
                assert!(same || !commits, "{read} / {other}: it has read what is no more, and commits");
                assert!(commits || !same || row <= rows, "{read} / {other}: it has not read that, and fails");
            }
        }
    }
}

#[test]
fn what_lies_behind_the_last_row_locked_is_free() {
    let db = open();
    let (mut first, mut second) = (session(&db), session(&db));
    done(&mut first, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    assert_eq!(done(&mut first, "SELECT id FROM t WHERE id > 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"), "10");
    done(&mut first, "DELETE FROM t WHERE id = 10");
    done(&mut second, "UPDATE t SET n = 0 WHERE id = 20");
    done(&mut second, "INSERT INTO t VALUES (15, 15, 'new')");
    assert_eq!(done(&mut first, "COMMIT"), "COMMIT");
}
