//! The tables that each transaction writes to: a transaction that wants a table for itself waits for their users.
//!
//! ```text
//! uses of a slot:  [ table | table | ... | 0 | 0 ]      in the order of entry; `ANY` last where there were more
//! ```
//!
//! A transaction notes a table in its own slot before it writes there for the first time, and *afterwards* looks
//! whether another transaction has locked the table. A transaction that locks the table does so first and looks at
//! the notes *afterwards*. In the one order of these four accesses, either the note is found, and its transaction
//! is waited for; or the lock is found, and the note is taken back. A transaction writes a cache line of its own
//! for this, once for each table, and none that other transactions write.
//!
//! Numbers of tables mean something to the caller only; 0 and the greatest one are none.
use sync::atomic::{AtomicU32, Ordering, total_order};
use types::TxnId;

use crate::table::{Handle, TransactionTable, slot_of};

/// Tables that a transaction can note one by one.
const TABLES: usize = if cfg!(any(loom, shuttle)) { 2 } else { 8 };

/// Stands for no table.
pub(crate) const NONE: u32 = 0;
/// The transaction uses more tables than can be told.
const ANY: u32 = u32::MAX;

/// The tables that the transaction of a slot uses.
#[derive(Default)]
pub(crate) struct Uses(pub(crate) [AtomicU32; TABLES]);

impl Uses {
    fn has(&self, table: u32) -> bool {
        let noted = self.0.iter().map(|noted| noted.load(Ordering::SeqCst));
        noted.take_while(|noted| *noted != NONE).any(|noted| noted == table || noted == ANY)
    }
}

impl TransactionTable {
    /// Notes that the transaction is about to write to a table, which it has not noted before. The caller looks
    /// afterwards, by a `SeqCst` load, whether the table is locked; if so, the note is to be taken back before
    /// anything else.
    #[inline]
    pub fn enter_table(&self, handle: &mut Handle, table: u32) {
        debug_assert!(table != NONE && table != ANY);
        let (uses, count) = (&self.uses[handle.slot].0, usize::from(handle.tables));
        debug_assert!(
            count >= TABLES || cfg!(any(loom, shuttle)) || uses[count].load(Ordering::Relaxed) == NONE,
            "table {table} takes the place of another's note"
        );
        match count < TABLES {
            true => {
                uses[count].swap(table, Ordering::SeqCst);
                handle.tables += 1;
            }
            false => {
                uses[TABLES - 1].swap(ANY, Ordering::SeqCst);
            }
        }
        total_order();
    }

    /// Takes the newest note back, and rings for the waiters, so that they look again. Does nothing if the
    /// transaction uses more tables than its slot can note.
    pub fn leave_table(&self, handle: &mut Handle, table: u32) {
        let Some(last) = usize::from(handle.tables).checked_sub(1) else { return };
        let noted = &self.uses[handle.slot].0[last];
        if noted.load(Ordering::Relaxed) == table {
            noted.store(NONE, Ordering::SeqCst);
            handle.tables -= 1;
            self.ring(handle.id);
        }
    }

    /// Whether the running transaction `txn` has noted a table.
    pub fn uses_table(&self, txn: TxnId, table: u32) -> bool {
        self.uses[slot_of(txn)].has(table) && !self.slot(txn).has_ended(txn)
    }

    /// Finds another transaction that has noted a table and has not ended. The caller must have locked the table
    /// before, by a `SeqCst` exchange.
    pub fn other_user(&self, own: &Handle, table: u32) -> Option<TxnId> {
        total_order();
        let users = self.uses.iter().zip(&self.slots).filter(|(uses, _)| uses.has(table));
        let mut running = users.filter_map(|(_, slot)| slot.running(Ordering::SeqCst));
        running.find(|txn| *txn != own.id && !self.slot(*txn).has_ended(*txn))
    }

    /// All other transactions that have noted a table and have not ended; see [`TransactionTable::other_user`].
    pub fn other_users(&self, own: &Handle, table: u32) -> Vec<TxnId> {
        total_order();
        let users = self.uses.iter().zip(&self.slots).filter(|(uses, _)| uses.has(table));
        let running = users.filter_map(|(_, slot)| slot.running(Ordering::SeqCst));
        running.filter(|txn| *txn != own.id && !self.slot(*txn).has_ended(*txn)).collect()
    }
}
