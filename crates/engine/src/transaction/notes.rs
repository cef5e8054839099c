//! A transaction's notes of its work: records to stamp, holds to give back, and how far it was at its savepoints.
use std::sync::Arc;

use lineage::AppendedRecords;
use types::{Rid, TxnId};

use crate::keys::data::IndexData;
use crate::state::array::leaf::Overlays;
use crate::state::catalog::Intent;
use crate::state::rules::Rules;
use crate::state::table_data::TableData;
use crate::terms::settings::TableSettings;
use crate::terms::table_modes::TableMode;
use crate::transaction::filling::Filling;
use crate::transaction::references::modes::Modes;

/// Records that a transaction wrote, `table` being the position of their table in its list.
pub(super) enum WrittenRecords {
    /// `count` records inserted in neighbouring slots from `first` on.
    Inserts { table: u32, first: Rid, count: u32 },
    /// Versions appended to one record.
    Versions { table: u32, rid: Rid, appended: AppendedRecords },
}

/// The Rids of `count` neighbouring slots.
pub(super) fn neighbours(first: Rid, count: u32) -> impl Iterator<Item = Rid> {
    debug_assert!(count > 0, "inserts of no record");
    (0..count as usize).map(move |i| Rid::base(first.range(), first.slot() + i))
}

/// A row locked for update.
pub(super) struct LockedRow {
    pub(super) table: u32,
    pub(super) rid: Rid,
    pub(super) appended: AppendedRecords,
}

/// A row that a transaction could not have, and the one that had it.
pub(crate) struct Lost {
    pub(super) data: Arc<TableData>,
    pub(super) rid: Rid,
    pub(super) owner: TxnId,
}

/// One thing that a transaction did to the catalog, with what it takes to undo it.
pub(super) enum CatalogStep {
    /// No other transaction may change the meaning of the name.
    Claimed(String),
    /// The name is to mean something else; this was the intent before.
    Intended(String, Intent),
    /// The table is this transaction's alone.
    Locked(Arc<TableData>),
    /// It holds the table in a mode.
    InMode(Arc<TableData>, TableMode),
    Made(Arc<TableData>),
    /// The table is not to be found under any name any more.
    Dropped(Arc<TableData>),
    Renamed(Arc<TableData>, String),
    /// With the rules that the settings make.
    Set(Arc<TableData>, Box<TableSettings>, Arc<Rules>),
    IndexMade(Arc<TableData>, Arc<IndexData>),
    IndexDropped(Arc<TableData>, Arc<IndexData>),
}

/// The changes of a transaction to the catalog, step by step.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) steps: Vec<CatalogStep>,
}

/// A point in a transaction to which it can be rolled back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint(pub(super) u64);

/// How far a transaction's lists were.
#[derive(Clone)]
pub(super) struct Marks {
    pub(super) written: usize,
    pub(super) locked: usize,
    pub(super) shared: usize,
    pub(super) catalog: usize,
    /// bytes of redo, those in the log included
    pub(super) redo: u64,
    /// ranges whose redo was put off
    pub(super) filling: Option<Box<Filling>>,
    /// what was written to array tables
    pub(super) arrays: Option<Arc<Overlays>>,
    /// what was said of constraints that may be deferred, if anything was noted of constraints
    pub(super) constraints: Option<Modes>,
}
