//! Foreign keys in the settings of tables: each stands at both ends, by the names of the tables, which these are told when they change.
use crate::error::{Error, Result};
use crate::terms::constraints::{ForeignKey, Referrer};
use crate::terms::settings::TableSettings;
use crate::transaction::Transaction;

const NO_REFERENCES: &str = "Only tables of the layouts column and row have foreign keys, or are referred to.";

impl Transaction {
    /// Changes the foreign keys of a table. Both ends are locked for this transaction alone, so that no row is written meanwhile that would
    /// not be looked at. Whether the rows that are there meet a new one is for the caller to look at
    /// ([`check_references`](Self::check_references)).
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table); [`Error::NoKeyToReference`] if a table that is referred to has no such key.
    pub fn set_foreign_keys(&mut self, name: &str, keys: Vec<ForeignKey>) -> Result<()> {
        self.change_catalog(|transaction| {
            let table = transaction.table(name)?;
            if !keys.is_empty() {
                table.data.check_no_array("a foreign key", NO_REFERENCES)?;
            }
            let width = table.schema().columns().len();
            debug_assert!(
                keys.iter().all(|key| key.columns.iter().all(|column| *column < width)),
                "a key of no column"
            );
            let before = transaction.settings(&table).foreign_keys;
            let mut others: Vec<&String> = before.iter().chain(&keys).map(|key| &key.table).collect();
            others.sort();
            others.dedup();
            for other in others {
                let new: Vec<&ForeignKey> = keys.iter().filter(|key| key.table == *other).collect();
                transaction.set_referrers(other, name, &new)?;
            }
            transaction.lock_table(name)?;
            transaction.change_settings(name, |settings| settings.foreign_keys = keys)
        })
    }

    /// Tells a table by which keys another one refers to it.
    fn set_referrers(&mut self, name: &str, by: &str, keys: &[&ForeignKey]) -> Result<()> {
        debug_assert!(keys.iter().all(|key| key.table == name), "a key that refers to another table than \"{name}\"");
        let table = match self.table(name) {
            // It goes before what refers to it.
            Err(Error::NoSuchTable(_)) if keys.is_empty() => return Ok(()),
            found => found?,
        };
        if !keys.is_empty() {
            table.data.check_no_array("a foreign key that refers to it", NO_REFERENCES)?;
        }
        for key in keys {
            self.key_over(&table, &key.referenced)?;
        }
        self.lock_table(name)?;
        let referrer = |key: &&ForeignKey| Referrer {
            table: by.to_owned(),
            constraint: key.name.clone(),
            columns: key.referenced.clone(),
        };
        self.change_settings(name, |settings| {
            settings.referrers.retain(|known| known.table != by);
            settings.referrers.extend(keys.iter().map(referrer));
        })
    }

    /// Ends what a table refers to, as it is about to go; refuses that where another table refers to it.
    pub(in crate::transaction) fn leave_references(&mut self, name: &str) -> Result<()> {
        let settings = self.settings(&self.table(name)?);
        if let Some(referrer) = settings.referrers.iter().find(|referrer| referrer.table != name) {
            return Err(Error::TableReferenced { table: name.to_owned(), by: referrer.table.clone() });
        }
        if settings.foreign_keys.is_empty() { Ok(()) } else { self.set_foreign_keys(name, Vec::new()) }
    }

    /// Takes all constraints but keys from a table, without a word to the tables at their other ends: they are to be given to the table
    /// that takes its place.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table).
    pub fn take_constraints(&mut self, name: &str) -> Result<TableSettings> {
        let settings = self.settings(&self.table(name)?);
        self.give_constraints(name, &TableSettings::default())?;
        Ok(settings)
    }

    /// Gives a table the constraints that were taken from another one.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table).
    pub fn give_constraints(&mut self, name: &str, taken: &TableSettings) -> Result<()> {
        let TableSettings { checks, foreign_keys, referrers, references_off, .. } = taken.clone();
        self.change_settings(name, |settings| {
            (settings.checks, settings.foreign_keys, settings.referrers) = (checks, foreign_keys, referrers);
            settings.references_off = references_off;
        })
    }

    /// Says whether what changes rows of a table looks at its foreign keys, and at what refers to it. Nobody else writes to it
    /// meanwhile; rows that are there are not looked at.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table).
    pub fn set_references_off(&mut self, name: &str, are_off: bool) -> Result<()> {
        self.change_catalog(|transaction| {
            transaction.lock_table(name)?;
            transaction.change_settings(name, |settings| settings.references_off = are_off)
        })
    }

    /// Tells the other ends of a table's foreign keys that the table is called otherwise from here on.
    pub(in crate::transaction) fn rename_in_references(&mut self, name: &str, to: &str) -> Result<()> {
        let settings = self.settings(&self.table(name)?);
        for key in &settings.foreign_keys {
            if key.table != name {
                self.change_settings(&key.table, |settings| {
                    let known = settings.referrers.iter_mut().filter(|known| known.table == name);
                    known.for_each(|known| to.clone_into(&mut known.table));
                })?;
            }
        }
        for referrer in &settings.referrers {
            self.change_settings(&referrer.table, |settings| {
                settings
                    .foreign_keys
                    .iter_mut()
                    .filter(|key| key.table == name)
                    .for_each(|key| to.clone_into(&mut key.table));
                settings
                    .referrers
                    .iter_mut()
                    .filter(|known| known.table == name)
                    .for_each(|known| to.clone_into(&mut known.table));
            })?;
        }
        Ok(())
    }
}
