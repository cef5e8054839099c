//! The temporary tables of a session: the schema that they are in, and what becomes of them at the end of a transaction and of
//! the session.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::{TEMPORARY_SCHEMA, Transaction, TransactionOptions, schema_and_name};
use parking_lot::Mutex;

use crate::error::Result;
use crate::session::Session;

/// What becomes of a temporary table when the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtCommit {
    /// It loses its rows.
    DeleteRows,
    /// It is gone.
    Drop,
}

/// See the module.
pub(crate) struct Temporary {
    schema: Arc<str>,
    /// Whether the session has made any.
    is_used: AtomicBool,
    /// The tables that do not stay as they are at the end of a transaction.
    at_commit: Mutex<BTreeMap<String, AtCommit>>,
}

impl Default for Temporary {
    fn default() -> Temporary {
        static SESSIONS: AtomicU64 = AtomicU64::new(1);
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let schema = format!("{TEMPORARY_SCHEMA}{number}").into();
        Temporary { schema, is_used: AtomicBool::new(false), at_commit: Mutex::default() }
    }
}

impl Temporary {
    /// The schema, once the session has made something in it.
    pub(crate) fn schema(&self) -> Option<Arc<str>> {
        self.is_used.load(Ordering::Relaxed).then(|| self.schema.clone())
    }

    /// The schema for something that is about to be made.
    pub(crate) fn to_make(&self) -> Arc<str> {
        self.is_used.store(true, Ordering::Relaxed);
        self.schema.clone()
    }

    /// Notes what becomes of a new table when its transaction ends.
    pub(crate) fn note(&self, table: &str, at_commit: Option<AtCommit>) {
        let mut known = self.at_commit.lock();
        match at_commit {
            Some(at_commit) => known.insert(table.to_owned(), at_commit),
            None => known.remove(table),
        };
    }

    /// Does what is to be done at the end of a transaction that is about to commit.
    pub(crate) fn end_transaction(&self, transaction: &mut Transaction) -> Result<()> {
        for (name, at_commit) in self.at_commit.lock().iter() {
            match (transaction.table(name), at_commit) {
                (Ok(table), AtCommit::DeleteRows) if table.is_array() || table.statistics().rows > 0 => {
                    transaction.truncate_table(name)?
                }
                (Ok(_), AtCommit::Drop) => drop_table(transaction, name)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Drops a table with the sequences of its columns.
fn drop_table(transaction: &mut Transaction, name: &str) -> Result<()> {
    let table = transaction.table(name)?;
    let sequences = transaction.settings(&table).defaults.into_iter().flat_map(|default| default.sequences);
    let sequences: Vec<String> = sequences.collect();
    transaction.set_foreign_keys(name, Vec::new())?;
    transaction.drop_table(name)?;
    for sequence in sequences {
        transaction.drop_sequence(&sequence)?;
    }
    Ok(())
}

impl Session {
    /// Drops all that the session has made of temporary tables, outside of a block.
    pub(crate) fn drop_temporary(&mut self) -> Result<()> {
        let Some(schema) = self.temporary.schema() else { return Ok(()) };
        self.temporary.at_commit.lock().clear();
        let own = |names: Vec<String>| names.into_iter().filter(|name| schema_and_name(name).0 == &*schema);
        self.db.run(TransactionOptions::default(), |transaction| -> Result<()> {
            for view in own(transaction.view_names()) {
                transaction.drop_view(&view)?;
            }
            let tables: Vec<String> = own(transaction.table_names()).collect();
            // They may refer to each other.
            for table in &tables {
                transaction.set_foreign_keys(table, Vec::new())?;
            }
            for table in &tables {
                drop_table(transaction, table)?;
            }
            for sequence in own(transaction.sequence_names()) {
                transaction.drop_sequence(&sequence)?;
            }
            Ok(())
        })
    }
}
