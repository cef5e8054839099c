//! Names as a reader sees them: by the commit that decides which rows it sees.
//!
//! A statement that looks a name up and then reads the table has to do both by one snapshot. Otherwise it might
//! find the empty table that a commit put in the place of a full one, and read it as of before that commit.
//! [`Database::table`] finds what the name means now, which is right for a caller that takes its snapshot
//! afterwards and reads nothing else; all others use this module.
use types::{Snapshot, Timestamp};

use crate::database::handle::Database;
use crate::error::Result;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::table::read_view::Sight;
use crate::table::seen::SeenTables;

impl Database {
    /// The table, sequence or view that a name means in a snapshot, which is held.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable) if there is none;
    /// [`Error::NameTooOld`](crate::Error::NameTooOld) if it is not known any more, as the snapshot was not held.
    pub fn table_seen<'v>(&self, view: impl Into<Sight<'v>>, name: &str) -> Result<Table> {
        let Sight { snapshot, reads, .. } = view.into();
        let core = &self.shared.core;
        let found = core.catalog.find_kept(&core.transactions, snapshot, name);
        // Only this transaction can change the meaning of a name that it has claimed.
        if let Some(reads) = reads
            && !snapshot.own.is_some_and(|own| core.catalog.is_claimed_by(name, own))
        {
            reads.note_name(name, found.as_ref().ok().map(|data| data.id));
        }
        found.map(|data| Table::of(self.clone(), data).found_as(name, snapshot.own))
    }

    /// As [`table_seen`](Self::table_seen), without the latch of the names where the caller has found the table before, and no name was
    /// about to be changed since.
    ///
    /// # Errors
    /// As [`table_seen`](Self::table_seen).
    pub fn table_seen_again<'v, 's>(
        &self,
        seen: &'s mut SeenTables,
        view: impl Into<Sight<'v>>,
        name: &str,
    ) -> Result<&'s Table> {
        let sight = view.into();
        // What a serializable transaction asks for is noted.
        match seen.find(&self.shared, sight.snapshot, name).filter(|_| sight.reads.is_none()) {
            Some(place) => Ok(seen.at(place)),
            None => Ok(seen.keep(name, self.table_seen(sight, name)?)),
        }
    }

    /// The newest commit that changed what names mean, or tables otherwise than in their rows, since the database was opened. Snapshots
    /// from then on see the same tables until it is another one.
    pub fn names_changed_at(&self) -> Timestamp {
        self.shared.core.catalog.newest_change()
    }

    /// The names of the tables that a snapshot sees, sorted.
    pub fn table_names_seen(&self, seen: Snapshot) -> Vec<String> {
        self.names_seen(seen, TableData::is_plain)
    }

    /// The names of the views that a snapshot sees, sorted.
    pub fn view_names_seen(&self, seen: Snapshot) -> Vec<String> {
        self.names_seen(seen, TableData::is_view)
    }

    /// The names of the sequences that a snapshot sees, sorted.
    pub fn sequence_names_seen(&self, seen: Snapshot) -> Vec<String> {
        self.names_seen(seen, TableData::is_sequence)
    }

    fn names_seen(&self, seen: Snapshot, of: impl Fn(&TableData) -> bool) -> Vec<String> {
        let core = &self.shared.core;
        core.catalog.names(&core.transactions, seen, of)
    }
}
