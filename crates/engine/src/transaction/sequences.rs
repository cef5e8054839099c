//! Making, changing and dropping sequences within a transaction, and the rows of those that it has made.
//!
//! A sequence is changed as a table is emptied: a new one takes its name, and goes on where the old one stood.
use std::sync::Arc;

use lineage::Change;
use types::{Rid, Timestamp, TxnId};

use super::change::Done;
use super::{CatalogStep, Transaction};
use crate::error::{Error, Result};
use crate::state::numbers::{Numbers, RowCells, row_cells};
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::terms::sequence_options::SequenceOptions;
use crate::terms::settings::{Retention, TableSettings};
use crate::terms::table_lock::Standing;
use crate::transaction::sequence::{self, Sequence};

impl Transaction {
    /// The sequence that a table is, if it is one, for this transaction.
    pub fn sequence(&self, table: &Table) -> Option<Sequence> {
        Sequence::of(table, Some(self.id()))
    }

    /// The names of the sequences that the transaction sees, sorted.
    pub fn sequence_names(&self) -> Vec<String> {
        self.names(TableData::is_sequence)
    }

    /// Makes a sequence.
    ///
    /// # Errors
    /// [`Error::BadSequence`] for options that contradict each other.
    pub fn create_sequence(&mut self, name: &str, options: SequenceOptions) -> Result<()> {
        options.check()?;
        self.change_catalog(|transaction| {
            transaction.claim_free(name)?;
            transaction.make_sequence(name, options, (options.start, false), None)
        })
    }

    /// Gives a sequence other options; lets it go on with `restart`, if given, or else where it stands. Waits for
    /// transactions that have taken numbers from it only while they write its row.
    ///
    /// # Errors
    /// - [`Error::BadSequence`] if the options contradict each other, or the number to go on with.
    /// - [`Error::NoSuchTable`] if the transaction sees no such sequence; [`Error::WrongKind`] if it is a table;
    ///   [`Error::TableChanged`] if others have changed the meaning of the name since the transaction's snapshot.
    /// - Those of a write and of a wait.
    pub fn alter_sequence(&mut self, name: &str, options: SequenceOptions, restart: Option<i64>) -> Result<()> {
        options.check()?;
        self.change_catalog(|transaction| {
            let old = transaction.claim_sequence(name)?;
            transaction.lock_whole(&old)?;
            let old = transaction.table_of(old);
            let gone = || Error::NoSuchTable(name.into());
            let stands = transaction.sequence(&old).ok_or_else(gone)?.position()?;
            let (value, is_called) = restart.map_or((stands.last_value, stands.is_called), |value| (value, false));
            let (min, max) = (options.min, options.max);
            if value < min {
                let why = format!("RESTART value ({value}) cannot be less than MINVALUE ({min})");
                return Err(Error::BadSequence(why));
            }
            if value > max {
                let why = format!("RESTART value ({value}) cannot be greater than MAXVALUE ({max})");
                return Err(Error::BadSequence(why));
            }
            transaction.remove(old.data.clone())?;
            transaction.make_sequence(name, options, (value, is_called), Some(&old.data))
        })
    }

    /// Removes a sequence.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table); [`Error::WrongKind`] if it is a table.
    pub fn drop_sequence(&mut self, name: &str) -> Result<()> {
        self.change_catalog(|transaction| {
            let data = transaction.claim_sequence(name)?;
            transaction.drop_claimed(name, data)
        })
    }

    fn make_sequence(
        &mut self,
        name: &str,
        options: SequenceOptions,
        (value, is_called): (i64, bool),
        before: Option<&TableData>,
    ) -> Result<()> {
        let settings =
            TableSettings { sequence: Some(options), retention: Retention::None, ..TableSettings::default() };
        let data = self.make(name, SequenceOptions::schema(), settings)?;
        if let Some(numbers) = &data.numbers {
            numbers.note_origin(self.id(), data.id, before);
        }
        if let Some(before) = before.and_then(|before| before.numbers.as_ref()) {
            before.note_successor(&data);
        }
        self.enter(&data)?;
        let row = self.insert_cells(&data, &row_cells(value, is_called), None)?;
        debug_assert_eq!(row, sequence::row(), "nothing else was ever put in");
        Ok(())
    }

    fn claim_sequence(&mut self, name: &str) -> Result<Arc<TableData>> {
        let data = self.claim_table(name)?;
        match data.is_sequence() {
            true => Ok(data),
            false => Err(Error::WrongKind { name: name.into(), expected: "sequence" }),
        }
    }

    /// Lets the transaction write the row of a sequence, in the name of another one if that has it for itself.
    pub(crate) fn enter_sequence(&mut self, data: &Arc<TableData>, owner: Option<TxnId>) -> Result<()> {
        match data.lock.standing() {
            // The owner is at a statement that waits for this, so it neither ends nor looks for users of the table.
            Standing::Locked(other) if Some(other) == owner => {
                self.position(data);
                Ok(())
            }
            _ => self.enter(data),
        }
    }

    /// Writes the row of a sequence that the transaction has entered.
    pub(crate) fn write_sequence(&mut self, data: &Arc<TableData>, row: &RowCells) -> Result<()> {
        let values = [0, 1, 2].map(|column| (column, row[column]));
        let row: Rid = sequence::row();
        debug_assert!(self.has_entered(data), "the sequence could go while its row is written");
        let done = self.change(data, row, Timestamp::MAX, Change::Update(&values))?;
        debug_assert_eq!(done, Done::Changed, "invariant 8: the row stays, and its numbers would come again");
        Ok(())
    }

    /// Writes the rows of the sequences that the transaction has made, as it commits.
    pub(super) fn settle_sequences(&mut self) -> Result<()> {
        let own = self.steps().iter().filter_map(|step| match step {
            CatalogStep::Made(table) if !self.has_dropped(table) => Some(table),
            _ => None,
        });
        let own: Vec<Arc<TableData>> = own.filter(|table| table.is_sequence()).cloned().collect();
        for data in own {
            if let Some(row) = data.numbers.as_ref().and_then(Numbers::take_owed) {
                self.enter(&data)?;
                self.write_sequence(&data, &row)?;
            }
        }
        Ok(())
    }
}
