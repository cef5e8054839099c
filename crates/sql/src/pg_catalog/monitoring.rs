//! What programs that watch a database ask for: its locks, and statistics of tables, indexes and the database.
//!
//! What is not counted here, such as how often an index was used, is NULL.
use engine::{Database, SessionNumber};

use super::cells::{Cell, Row, text};
use super::objects::{IndexObject, Objects, TableObject};
use super::oids::DATABASE_OID;
use crate::names::schemas::{is_temporary, schema_of};
use crate::names::tables::CATALOG;
use crate::state::activity;
use crate::state::advisory::{self, Held, Number};

use Cell::{Number as Count, Truth};

fn many(count: u64) -> Cell {
    Count(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The rows of a relation that tells of the tables.
pub(super) fn tables(objects: &Objects) -> Vec<Row> {
    let row = |table: &TableObject| {
        let rows = table.table.statistics().rows;
        let mut row = vec![("relid", Count(table.oid)), ("schemaname", text(schema_of(&table.key)))];
        row.extend([("relname", text(&table.name)), ("n_live_tup", many(rows)), ("n_dead_tup", Count(0))]);
        row
    };
    objects.tables.iter().filter(|table| !is_temporary(schema_of(&table.key))).map(row).collect()
}

/// The rows of a relation that tells of the indexes.
pub(super) fn indexes(objects: &Objects) -> Vec<Row> {
    let row = |(table, index): (&TableObject, &IndexObject)| {
        let mut row = vec![("relid", Count(table.oid)), ("indexrelid", Count(index.oid))];
        row.extend([("schemaname", text(schema_of(&table.key))), ("relname", text(&table.name))]);
        row.push(("indexrelname", text(&index.name)));
        row
    };
    objects.indexes().map(row).collect()
}

/// The row of the database.
pub(super) fn database(db: &Database) -> Row {
    let sessions = activity::facts(db).len() as u64;
    let mut row = vec![("datid", Count(DATABASE_OID)), ("datname", text(CATALOG)), ("numbackends", many(sessions))];
    row.push(("xact_commit", many(db.newest_commit().0)));
    row
}

/// The advisory locks that sessions hold or wait for, and the tables and rows that transactions wait for.
pub(super) fn locks(db: &Database, objects: &Objects) -> Vec<Row> {
    let processes = activity::processes(db);
    let process = |session: SessionNumber| {
        let found = processes.iter().find(|(known, _)| *known == session);
        found.map(|(_, process)| ("pid", Count(i64::from(*process))))
    };
    let advisory = advisory::held(db).into_iter().map(|held| {
        let Held { number, mode, session, is_granted } = held;
        // As PostgreSQL parts a number of eight bytes.
        let (high, low, kind) = match number {
            Number::One(whole) => (whole >> 32 & 0xffff_ffff, whole & 0xffff_ffff, 1),
            Number::Two(high, low) => (i64::from(high.cast_unsigned()), i64::from(low.cast_unsigned()), 2),
        };
        let mut row = vec![("locktype", text("advisory")), ("classid", Count(high)), ("objid", Count(low))];
        row.extend([("objsubid", Count(kind)), ("mode", text(mode)), ("granted", Truth(is_granted))]);
        row.extend(process(session));
        row
    });
    let waits = db.running_transactions().into_iter().filter_map(|running| {
        let wait = running.waits?;
        let (kind, mode) = if wait.is_table { ("relation", "AccessShareLock") } else { ("tuple", "ExclusiveLock") };
        let mut row = vec![("locktype", text(kind)), ("mode", text(mode)), ("granted", Truth(false))];
        let table = wait.table.and_then(|name| objects.tables.iter().find(|table| table.key == name));
        row.extend(table.map(|table| ("relation", Count(table.oid))));
        row.push(("virtualtransaction", Cell::Text(running.id.number().to_string())));
        Some(row)
    });
    let with_database = |mut row: Row| {
        row.extend([("database", Count(DATABASE_OID)), ("fastpath", Truth(false))]);
        row
    };
    advisory.chain(waits).map(with_database).collect()
}
