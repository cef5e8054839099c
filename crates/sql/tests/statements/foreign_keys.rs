//! Foreign keys beside a model, one statement after the other: what breaks none is never refused; and after restarts and backups.
use std::collections::BTreeMap;

use engine::Referential as Action;
use engine::{Database, OpenOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Session, SessionOptions};

use crate::answers::{ask, run};

fn session(db: &Database) -> Session {
    Session::new(db, SessionOptions::default())
}

const ACTIONS: [(Action, &str); 5] = [
    (Action::NoAction, "NO ACTION"),
    (Action::Restrict, "RESTRICT"),
    (Action::Cascade, "CASCADE"),
    (Action::SetNull, "SET NULL"),
    (Action::SetDefault, "SET DEFAULT"),
];

/// The tables: keys of `p`, and rows of `c` with what they refer to.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tables {
    keys: Vec<i64>,
    rows: BTreeMap<i64, Option<i64>>,
}

impl Tables {
    fn is_right(&self) -> bool {
        self.rows.values().flatten().all(|key| self.keys.contains(key))
    }

    /// What becomes of rows when keys change to others, or go; `None` if that is refused.
    fn change(&mut self, change: &dyn Fn(i64) -> Option<i64>, action: Action) -> Option<()> {
        let changed = |key: i64| change(key) != Some(key);
        let new: Vec<i64> = self.keys.iter().filter_map(|key| change(*key)).collect();
        let concerned: Vec<(i64, i64)> =
            self.rows.iter().filter_map(|(row, key)| Some((*row, (*key)?))).filter(|(_, key)| changed(*key)).collect();
        let concerned: Vec<(i64, i64)> = concerned.into_iter().filter(|(_, key)| self.keys.contains(key)).collect();
        self.keys = new;
        for (row, key) in concerned {
            match (action, change(key)) {
                (Action::NoAction, _) if self.keys.contains(&key) => {}
                (Action::NoAction | Action::Restrict, _) => return None,
                (Action::Cascade, None) => drop(self.rows.remove(&row)),
                (Action::Cascade, new) => drop(self.rows.insert(row, new)),
                (Action::SetNull, _) => drop(self.rows.insert(row, None)),
                (Action::SetDefault, _) => drop(self.rows.insert(row, Some(0))),
            }
        }
        self.is_right().then_some(())
    }
}

/// A statement as text, and what it leaves behind; `None` if it is refused.
fn statement(random: &mut StdRng, before: &Tables, [delete, update]: [Action; 2]) -> (String, Option<Tables>) {
    let mut after = before.clone();
    let (key, row) = (random.random_range(0..6_i64), random.random_range(0..10_i64));
    let (text, done) = match random.random_range(0..8) {
        0 | 1 => {
            if !after.keys.contains(&key) {
                after.keys.push(key);
            }
            (format!("INSERT INTO p VALUES ({key}) ON CONFLICT DO NOTHING"), Some(()))
        }
        2 => {
            let text = format!("DELETE FROM p WHERE id = {key}");
            (text, after.change(&|known| (known != key).then_some(known), delete))
        }
        3 => {
            let text = format!("DELETE FROM p WHERE id < {key}");
            (text, after.change(&|known| (known >= key).then_some(known), delete))
        }
        4 => {
            let new = 20 + random.random_range(0..100);
            let text = format!("UPDATE p SET id = {new} WHERE id = {key}");
            (text, after.change(&|known| Some(if known == key { new } else { known }), update))
        }
        5 if !before.rows.contains_key(&row) => {
            after.rows.insert(row, Some(key));
            (format!("INSERT INTO c VALUES ({row}, {key})"), Some(()))
        }
        6 => {
            after.rows.remove(&row);
            (format!("DELETE FROM c WHERE id = {row}"), Some(()))
        }
        _ => {
            after.rows.entry(row).and_modify(|known| *known = Some(key));
            (format!("UPDATE c SET p = {key} WHERE id = {row}"), Some(()))
        }
    };
    let is_right = done.is_some() && after.is_right();
    (text, is_right.then_some(after))
}

#[test]
fn one_after_the_other_statements_do_what_the_constraint_says_and_nothing_right_is_refused() {
    let mut seed = 0;
    for (delete, on_delete) in ACTIONS {
        for (update, on_update) in ACTIONS {
            seed += 1;
            let mut random = StdRng::seed_from_u64(seed);
            let mut session = session(&Database::in_memory());
            let key = format!("p INT DEFAULT 0 REFERENCES p ON DELETE {on_delete} ON UPDATE {on_update}");
            run(
                &mut session,
                &["CREATE TABLE p (id INT PRIMARY KEY)", &format!("CREATE TABLE c (id INT PRIMARY KEY, {key})")],
            );
            if seed % 2 == 0 {
                run(&mut session, &["CREATE INDEX ON c (p)"]);
            }
            let mut tables = Tables::default();
            for _ in 0..30 {
                let (text, after) = statement(&mut random, &tables, [delete, update]);
                let done = session.execute(&text).map(drop).map_err(|error| error.sqlstate);
                let expected = if after.is_some() { Ok(()) } else { Err("23503") };
                assert_eq!(done, expected, "{on_delete}, {on_update}: {text}, {tables:?}");
                tables = after.unwrap_or(tables);
            }
            let shown = |key: Option<i64>| key.map_or("NULL".to_owned(), |key| key.to_string());
            let rows: Vec<String> = tables.rows.iter().map(|(row, key)| format!("{row},{}", shown(*key))).collect();
            assert_eq!(ask(&mut session, "SELECT * FROM c ORDER BY id"), rows, "{on_delete}, {on_update}");
        }
    }
}

#[test]
fn foreign_keys_are_there_again() {
    let directory = tempfile::tempdir().unwrap();
    let backup = tempfile::tempdir().unwrap();
    let refused = |session: &mut Session, statement: &str| {
        let error = session.execute(statement).map(drop).unwrap_err();
        assert_eq!(error.sqlstate, "23503", "{statement}: {error:?}");
    };
    // Read from the log, from a checkpoint, and from both.
    for round in 0..4 {
        let db = sql::open(directory.path(), OpenOptions::default()).unwrap();
        let mut session = session(&db);
        if round == 0 {
            run(&mut session, &["CREATE TABLE p (id INT PRIMARY KEY)", "CREATE TABLE c (p INT REFERENCES p)"]);
            run(&mut session, &["INSERT INTO p VALUES (1), (2)", "INSERT INTO c VALUES (1)"]);
        }
        let [p, c] = if round < 3 { ["p", "c"] } else { ["parents", "children"] };
        refused(&mut session, &format!("INSERT INTO {c} VALUES (3)"));
        refused(&mut session, &format!("DELETE FROM {p} WHERE id = 1"));
        match round {
            1 => drop(db.checkpoint().unwrap()),
            2 => run(&mut session, &["ALTER TABLE p RENAME TO parents", "ALTER TABLE c RENAME TO children"]),
            3 => drop(db.backup(backup.path().join("copy")).unwrap()),
            _ => {}
        }
    }
    for directory in [directory.path().to_owned(), backup.path().join("copy")] {
        let db = sql::open(&directory, OpenOptions::default()).unwrap();
        let mut session = session(&db);
        refused(&mut session, "INSERT INTO children VALUES (3)");
        refused(&mut session, "UPDATE parents SET id = 7 WHERE id = 1");
        run(&mut session, &["DELETE FROM parents WHERE id = 2", "DROP TABLE children", "DELETE FROM parents"]);
    }
}

#[test]
fn what_goes_before_it_is_looked_at_asks_nothing() {
    let db = Database::in_memory();
    for gone in
        ["ALTER TABLE c DROP CONSTRAINT waits", "DROP TABLE c", "TRUNCATE c", "DROP TABLE p CASCADE", "ROLLBACK TO s"]
    {
        let mut session = session(&db);
        run(&mut session, &["DROP TABLE IF EXISTS c", "DROP TABLE IF EXISTS p", "CREATE TABLE p (id INT PRIMARY KEY)"]);
        let waits = "CREATE TABLE c (p INT CONSTRAINT waits REFERENCES p DEFERRABLE INITIALLY DEFERRED)";
        run(&mut session, &[waits, "INSERT INTO p VALUES (1)", "INSERT INTO c VALUES (1)"]);
        run(&mut session, &["BEGIN", "SAVEPOINT s", "INSERT INTO c VALUES (2)", "DELETE FROM p", gone, "COMMIT"]);
    }
}
