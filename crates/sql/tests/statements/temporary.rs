//! Temporary tables and schemas across sessions, restarts and checkpoints.
use engine::{Database, OpenOptions};
use sql::{FileAccess, Outcome, Session, SessionOptions, SqlError, text_value};

fn session(db: &Database) -> Session {
    Session::new(
        db,
        SessionOptions { files: FileAccess::Allowed, target_partitions: Some(1), ..SessionOptions::default() },
    )
}

fn run(session: &mut Session, statement: &str) -> Result<String, SqlError> {
    let rows = match session.execute(statement)? {
        Outcome::Done(command) => return Ok(command.tag),
        Outcome::Rows(rows) => rows,
    };
    let mut lines = Vec::new();
    for batch in rows {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| text_value(column.as_ref(), row).unwrap_or_default());
            lines.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    Ok(lines.join(","))
}

fn done(session: &mut Session, statement: &str) -> String {
    run(session, statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"))
}

#[test]
fn temporary_tables_leave_nothing_on_disk_and_schemas_stay() {
    // What is in the second folder is what a crash leaves.
    let (directory, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for close in [false, true] {
        let db = sql::open(directory.path(), OpenOptions::default()).unwrap();
        let mut own = session(&db);
        if !close {
            done(&mut own, "CREATE SCHEMA s");
            done(&mut own, "CREATE TABLE s.t (id SERIAL PRIMARY KEY, a TEXT)");
            done(&mut own, "CREATE VIEW s.v AS SELECT a FROM s.t");
        }
        done(&mut own, "CREATE TEMP TABLE t (id SERIAL PRIMARY KEY, a TEXT)");
        done(&mut own, "CREATE INDEX ON t (a)");
        done(&mut own, "BEGIN");
        done(&mut own, "INSERT INTO t (a) SELECT 'secret ' || x FROM generate_series(1, 2000) AS g (x)");
        done(&mut own, "INSERT INTO s.t (a) VALUES ('kept')");
        done(&mut own, "UPDATE t SET a = a || '!' WHERE id < 10");
        done(&mut own, "DELETE FROM t WHERE id = 11");
        done(&mut own, "COMMIT");
        if close {
            db.checkpoint().unwrap();
        }
        done(&mut own, "UPDATE t SET a = 'secret' WHERE id = 12");
        assert_eq!(done(&mut own, "SELECT count(*), max(id) FROM t"), "1999 2000");
        if close {
            copy(directory.path(), crashed.path());
        }
    }
    let db = sql::open(crashed.path(), OpenOptions::default()).unwrap();
    let mut own = session(&db);
    assert_eq!(done(&mut own, "SELECT a FROM s.t"), "kept,kept");
    assert_eq!(done(&mut own, "SELECT * FROM s.v LIMIT 1"), "kept");
    assert_eq!(done(&mut own, "SELECT nextval('s.t_id_seq') > 2"), "t");
    assert_eq!(done(&mut own, "SELECT relname FROM pg_class WHERE relpersistence = 't'"), "");
    assert_eq!(done(&mut own, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pg_temp%'"), "");
    for entry in walk(crashed.path()) {
        let bytes = std::fs::read(&entry).unwrap();
        assert!(!bytes.windows(6).any(|part| part == b"secret"), "{entry:?} has what was temporary");
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    for path in walk(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(&path, &target).unwrap();
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn temporary_tables_end_with_their_session() {
    let db = Database::in_memory();
    let mut own = session(&db);
    done(&mut own, "CREATE TEMP TABLE a (id SERIAL PRIMARY KEY)");
    done(&mut own, "CREATE TEMP TABLE b (id INT PRIMARY KEY REFERENCES a)");
    let count = "SELECT count(*) FROM pg_class WHERE relpersistence = 't'";
    let mut other = session(&db);
    assert_ne!(done(&mut other, count), "0");
    assert_eq!(run(&mut other, "SELECT * FROM a").map_err(|error| error.sqlstate), Err("42P01"));
    done(&mut own, "BEGIN");
    done(&mut own, "INSERT INTO a VALUES (1)");
    drop(own);
    assert_eq!(done(&mut other, count), "0");
}

#[test]
fn what_is_made_in_a_schema_and_what_drops_it_wait_for_each_other() {
    let db = Database::in_memory();
    let (mut maker, mut dropper) = (session(&db), session(&db));
    done(&mut maker, "CREATE SCHEMA s");
    done(&mut maker, "BEGIN");
    done(&mut maker, "CREATE TABLE s.t (a INT)");
    done(&mut dropper, "SET lock_timeout = '50ms'");
    assert_eq!(run(&mut dropper, "DROP SCHEMA s").map_err(|error| error.sqlstate), Err("55P03"));
    done(&mut maker, "COMMIT");
    assert_eq!(run(&mut dropper, "DROP SCHEMA s").map_err(|error| error.sqlstate), Err("2BP01"));
    done(&mut dropper, "DROP SCHEMA s CASCADE");
    assert_eq!(run(&mut maker, "CREATE TABLE s.t (a INT)").map_err(|error| error.sqlstate), Err("3F000"));
}
