//! The texts that a database remembers from one opening to the next, by name, such as the settings that its
//! sessions begin with.
//!
//! They are rows of a table, as a sequence is, so all that holds for rows holds for them: transactions, savepoints, the log,
//! checkpoints, backups. The table is made when something is remembered for the first time. Its name is one that SQL
//! has no way to say, and no list has it. The memory limit does not hold for it: the limit itself is remembered here, and has to
//! be raised where there is no room.
use std::collections::BTreeMap;

use arrow_array::{Array, RecordBatch, StringViewArray};
use types::{Column, DataType, Schema, Value};

use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::state::table_data::ScanOptions;
use crate::table::read_view::Sight;
use crate::table::{Table, TableScan};
use crate::terms::table_name::REMEMBERED;
use crate::transaction::Transaction;

const COLUMNS: [&str; 2] = ["name", "text"];

impl Transaction {
    /// Has the database remember a text under a name once this transaction commits, or forget it.
    ///
    /// # Errors
    /// [`Error::Conflict`] when another transaction has just done so, as for any row.
    pub fn remember(&mut self, name: &str, text: Option<&str>) -> Result<()> {
        let table = match self.table_to_write(REMEMBERED) {
            Err(Error::NoSuchTable(_)) if text.is_none() => return Ok(()),
            Err(Error::NoSuchTable(_)) => self.make_remembered()?,
            found => found?,
        };
        let key = [Value::from(name)];
        let Some(text) = text else { return self.delete(&table, &key).map(drop) };
        if !self.update(&table, &key, &[(COLUMNS[1], Value::from(text))])? {
            self.insert(&table, &[Value::from(name), Value::from(text)])?;
        }
        Ok(())
    }

    /// The texts that the database remembers, as this transaction sees them.
    ///
    /// # Errors
    /// [`Error::Page`] if an evicted page cannot be read back.
    pub fn remembered(&self) -> Result<BTreeMap<String, String>> {
        let table = match self.table(REMEMBERED) {
            Err(Error::NoSuchTable(_)) => return Ok(BTreeMap::new()),
            found => found?,
        };
        all_of(self.scan(&table, &COLUMNS)?)
    }

    fn make_remembered(&mut self) -> Result<Table> {
        let columns = COLUMNS.map(|name| Column { nullable: false, ..Column::new(name, DataType::TEXT) });
        match self.create_table(REMEMBERED, Schema::new(columns.into(), &COLUMNS[..1])?) {
            // Another transaction remembered the first thing meanwhile.
            Err(Error::TableExists(_)) => Err(Error::Conflict),
            made => made,
        }
    }
}

impl Database {
    /// The texts that the database remembers, as a snapshot sees them, which is held.
    ///
    /// # Errors
    /// [`Error::Page`] if an evicted page cannot be read back.
    pub fn remembered_seen<'v>(&self, view: impl Into<Sight<'v>> + Copy) -> Result<BTreeMap<String, String>> {
        match self.table_seen(view, REMEMBERED) {
            Err(Error::NoSuchTable(_) | Error::NameTooOld { .. }) => Ok(BTreeMap::new()),
            found => {
                let table = found?;
                debug_assert_eq!(table.schema().columns().len(), COLUMNS.len(), "a name and a text");
                all_of(table.scan(view, ScanOptions { columns: vec![0, 1], ..ScanOptions::default() })?)
            }
        }
    }
}

fn all_of(scan: TableScan) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for batch in scan.batches() {
        all.extend(pairs(&batch?));
    }
    Ok(all)
}

fn pairs(batch: &RecordBatch) -> impl Iterator<Item = (String, String)> {
    debug_assert_eq!(batch.num_columns(), COLUMNS.len(), "a name and a text");
    let texts = |column: usize| batch.column(column).as_any().downcast_ref::<StringViewArray>();
    let (names, texts) = (texts(0).expect("text is read as views"), texts(1).expect("text is read as views"));
    names.iter().zip(texts).filter_map(|(name, text)| Some((name?.to_owned(), text?.to_owned())))
}

#[cfg(test)]
mod tests {
    use crate::Database;

    fn remembered(db: &Database) -> Vec<(String, String)> {
        db.remembered().unwrap().into_iter().collect()
    }

    fn remember(db: &Database, name: &str, text: Option<&str>) {
        let mut transaction = db.begin().unwrap();
        transaction.remember(name, text).unwrap();
        transaction.commit().unwrap();
    }

    #[test]
    fn what_is_remembered_survives_and_is_no_table_of_anybody() {
        let directory = tempfile::tempdir().unwrap();
        let db = Database::open(directory.path()).unwrap();
        assert!(remembered(&db).is_empty());
        remember(&db, "nothing", None);
        remember(&db, "a", Some("1"));
        remember(&db, "b", Some("2"));
        remember(&db, "a", Some("3"));
        db.checkpoint().unwrap();
        remember(&db, "b", None);
        drop(db);
        let db = Database::open(directory.path()).unwrap();
        assert_eq!(remembered(&db), [("a".to_owned(), "3".to_owned())]);
        let own = db.begin().unwrap();
        assert!(db.table_names().is_empty() && own.table_names().is_empty() && db.memory().is_empty());
    }

    #[test]
    fn it_is_part_of_its_transaction() {
        let db = Database::in_memory();
        let mut first = db.begin().unwrap();
        first.remember("a", Some("1")).unwrap();
        let start = first.savepoint();
        first.remember("a", Some("2")).unwrap();
        first.rollback_to(start).unwrap();
        assert!(remembered(&db).is_empty());
        first.commit().unwrap();
        let mut second = db.begin().unwrap();
        second.remember("a", None).unwrap();
        second.rollback();
        assert_eq!(remembered(&db), [("a".to_owned(), "1".to_owned())]);
    }
}
