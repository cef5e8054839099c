//! Tables that a caller has found by their names, to find them again without the latch of the names, and without a count that all
//! threads share: a statement by key takes less time than they do where several threads run such statements.
//!
//! ```text
//! transaction that changes a name:  claims it (turn + 1) ... commits at c ... publishes its meaning
//! caller:                           takes its snapshot s ... reads the turn
//! ```
//!
//! A name that nobody had claimed at some turn has its meaning there for all snapshots since the commit that gave it, until it is
//! claimed. If a caller reads that turn again, the next claim came after its snapshot, and so did the commit of it: `c > s`.
use std::sync::Arc;

use types::{Snapshot, Timestamp};

use crate::database::shared::DatabaseState;
use crate::state::catalog::SettledName;
use crate::table::Table;

/// So many tables are kept.
const TABLES_MAX: usize = 16;

/// The tables of one database that a caller has found before. It holds on to them: one that was dropped is let go with the next table
/// that is looked up.
#[derive(Default)]
pub struct SeenTables {
    tables: Vec<SeenTable>,
}

struct SeenTable {
    name: Box<str>,
    table: Table,
    /// `None` where the table was found for one statement only.
    settled: Option<Settled>,
}

/// See the module.
struct Settled {
    from: Timestamp,
    turn: u64,
}

impl SeenTables {
    /// Where the table is that a name means to a snapshot, if it is known to mean that still.
    #[inline]
    pub(crate) fn find(&self, database: &DatabaseState, seen: Snapshot, name: &str) -> Option<usize> {
        let turn = database.core.catalog.turn();
        let is_it = |known: &SeenTable| {
            let holds = |settled: &Settled| settled.turn == turn && settled.from <= seen.at;
            *known.name == *name && known.settled.as_ref().is_some_and(holds)
        };
        let found = self.tables.iter().position(is_it)?;
        debug_assert!(
            std::ptr::eq::<DatabaseState>(&*self.tables[found].table.database.shared, database),
            "the tables of one database"
        );
        Some(found)
    }

    /// Keeps a table that was found by its name.
    pub(crate) fn keep(&mut self, name: &str, table: Table) -> &Table {
        let settled = table.database.shared.core.catalog.settled(name);
        let is_it = |settled: &SettledName| Arc::ptr_eq(&settled.table, &table.data);
        let settled = settled.filter(is_it).map(|SettledName { from, turn, .. }| Settled { from, turn });
        let turn = table.database.shared.core.catalog.turn();
        self.tables
            .retain(|known| *known.name != *name && known.settled.as_ref().is_some_and(|settled| settled.turn == turn));
        if self.tables.len() == TABLES_MAX {
            self.tables.remove(0);
        }
        debug_assert!(self.tables.len() < TABLES_MAX, "more tables are held than are asked for again");
        self.tables.push(SeenTable { name: name.into(), table, settled });
        &self.tables[self.tables.len() - 1].table
    }

    pub(crate) fn at(&self, place: usize) -> &Table {
        &self.tables[place].table
    }
}
