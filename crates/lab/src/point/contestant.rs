//! What runs the statements: lstore's library, and SQLite's.
use std::path::Path;
use std::sync::Arc;

use engine::{Database, Value};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params_from_iter};
use sql::{NoInput, PreparedStatement, Session, SessionOptions};

use super::statements::{ACCOUNTS_OF_OWNER, INSERT_ACCOUNT, INSERT_OWNER, SCHEMA, Statement, account, owner};
use crate::LabError;

/// A connection that has the statements prepared.
pub(super) trait Contestant {
    /// Runs a statement, and adds up the numbers in its rows.
    fn run(&mut self, statement: Statement, values: &[i64]) -> Result<i64, LabError>;
}

/// A session of lstore.
pub(super) struct Lstore {
    session: Session,
    prepared: Vec<Arc<PreparedStatement>>,
    /// of the statement that runs
    values: Vec<Value>,
}

fn failed(text: &'static str) -> impl FnOnce(sql::SqlError) -> LabError {
    move |error| LabError::Sql(text.to_owned(), Box::new(error))
}

impl Lstore {
    /// A database with all rows.
    pub(super) fn load(directory: Option<&Path>, rows: u64) -> Result<Database, LabError> {
        let db = match directory {
            Some(directory) => sql::open(directory, engine::OpenOptions::default())?,
            None => Database::in_memory(),
        };
        let mut session = Session::new(&db, SessionOptions::default());
        let mut run = |text: &'static str| session.execute(text).map(drop).map_err(failed(text));
        SCHEMA.iter().try_for_each(|text| run(text))?;
        run("BEGIN")?;
        let inserted = [(INSERT_OWNER, rows / ACCOUNTS_OF_OWNER), (INSERT_ACCOUNT, rows)];
        for (text, count) in inserted {
            let prepared = Arc::new(session.prepare(text, &[]).map_err(failed(text))?);
            for id in 0..count as i64 {
                let values = if text == INSERT_OWNER { owner(id).to_vec() } else { account(id).to_vec() };
                let values: Vec<Value> = values.into_iter().map(Value::from).collect();
                session.execute_prepared(&prepared, &values, &mut NoInput).map_err(failed(text))?;
            }
        }
        session.execute("COMMIT").map_err(failed("COMMIT"))?;
        db.merge_now();
        Ok(db)
    }

    /// A session with the statements prepared.
    pub(super) fn connect(db: &Database) -> Result<Lstore, LabError> {
        let mut session = Session::new(db, SessionOptions::default());
        let no_wait = "SET synchronous_commit = off";
        session.execute(no_wait).map_err(failed(no_wait))?;
        let mut prepare = |statement: &Statement| {
            session.prepare(statement.text(), &[]).map(Arc::new).map_err(failed(statement.text()))
        };
        let prepared = Statement::ALL.iter().map(&mut prepare).collect::<Result<_, _>>()?;
        Ok(Lstore { session, prepared, values: Vec::new() })
    }
}

impl Contestant for Lstore {
    fn run(&mut self, statement: Statement, values: &[i64]) -> Result<i64, LabError> {
        let prepared = &self.prepared[statement as usize];
        self.values.clear();
        self.values.extend(values.iter().map(|value| Value::BigInt(*value)));
        let values = &self.values;
        if statement.is_of_changes() {
            self.session.change(prepared, values).map_err(failed(statement.text()))?;
            return Ok(0);
        }
        let mut sum = 0;
        let add = |row: &[Value]| {
            sum += row.iter().map(number).sum::<i64>();
            Ok(())
        };
        self.session.query_each(prepared, values, add).map_err(failed(statement.text()))?;
        Ok(sum)
    }
}

fn number(value: &Value) -> i64 {
    match value {
        Value::BigInt(number) => *number,
        Value::Decimal(number) => number.unscaled as i64,
        other => unreachable!("the statements give whole numbers, not {other:?}"),
    }
}

/// A connection to SQLite, and the statements in its words.
pub(super) struct Sqlite {
    connection: Connection,
    texts: Vec<String>,
}

/// The statement with its parameters by number: SQLite takes `$1` for a name, and numbers names as they come.
fn numbered(text: &str) -> String {
    text.replace('$', "?")
}

impl From<rusqlite::Error> for LabError {
    fn from(error: rusqlite::Error) -> LabError {
        LabError::Failed(format!("SQLite: {error}"))
    }
}

impl Sqlite {
    /// A database with all rows.
    pub(super) fn load(directory: Option<&Path>, rows: u64) -> Result<Sqlite, LabError> {
        let connection = match directory {
            Some(directory) => Connection::open(directory.join("accounts.sqlite"))?,
            None => Connection::open_in_memory()?,
        };
        connection.set_prepared_statement_cache_capacity(64);
        if directory.is_some() {
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "normal")?;
        }
        SCHEMA.iter().try_for_each(|text| connection.execute_batch(text))?;
        connection.execute_batch("BEGIN")?;
        {
            let mut insert_owner = connection.prepare(&numbered(INSERT_OWNER))?;
            let mut insert_account = connection.prepare(&numbered(INSERT_ACCOUNT))?;
            for id in 0..(rows / ACCOUNTS_OF_OWNER) as i64 {
                insert_owner.execute(params_from_iter(owner(id)))?;
            }
            for id in 0..rows as i64 {
                insert_account.execute(params_from_iter(account(id)))?;
            }
        }
        connection.execute_batch("COMMIT")?;
        let texts = Statement::ALL.iter().map(|statement| numbered(statement.text())).collect();
        Ok(Sqlite { connection, texts })
    }
}

impl Contestant for Sqlite {
    fn run(&mut self, statement: Statement, values: &[i64]) -> Result<i64, LabError> {
        // Kept by its text after its first run.
        let mut prepared = self.connection.prepare_cached(&self.texts[statement as usize])?;
        let columns = prepared.column_count();
        if columns == 0 {
            prepared.execute(params_from_iter(values))?;
            return Ok(0);
        }
        let (mut sum, mut rows) = (0, prepared.query(params_from_iter(values))?);
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                match row.get_ref(column)? {
                    ValueRef::Integer(value) => sum += value,
                    ValueRef::Null => {}
                    other => return Err(LabError::Failed(format!("a column of {:?}", other.data_type()))),
                }
            }
        }
        Ok(sum)
    }
}
