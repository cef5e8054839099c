//! Stamping: what became of a transaction is written into the Start Times of what it wrote.
//!
//! Until then a Start Time names the transaction, and each reader asks for its outcome. A commit timestamp or a tombstone
//! answers for itself. Nobody waits for it: it is written after the commit is visible, or the rollback decided.
use sync::Guard;
use sync::atomic::{AtomicU64, Ordering};
use types::{StartTime, TxnId};

use crate::page::base::MetaPage;
use crate::record::append::AppendedRecords;
use crate::record::range::Range;

impl Range {
    /// Writes the outcome of a transaction, a commit timestamp or a tombstone, into what it appended. Versions that
    /// are history by now were stamped by the merge.
    #[inline]
    pub(crate) fn stamp_tail(&self, guard: &Guard, slot: usize, appended: AppendedRecords, owner: TxnId, stamp: u64) {
        let tails = &self.part(slot).tails;
        for sequence in appended.first..appended.last + 1 {
            let Some(record) = tails.place_of(guard, sequence) else { continue };
            let seen = record.start().load(Ordering::Relaxed);
            // A snapshot record carries its base record's Start Time; unless this transaction inserted that, it stays.
            if owner.has_written(seen) {
                let stamp = if record.kind().is_lock() { StartTime::TOMBSTONE } else { stamp };
                stamp_word(record.start(), stamp);
            }
        }
    }

    /// Writes the outcome of a transaction into a base record that it inserted.
    pub(crate) fn stamp_base(&self, guard: &Guard, slot: usize, owner: TxnId, stamp: u64) {
        // In base pages everything is stamped.
        let MetaPage::Insert { pages, .. } = &self.pages.load(guard).meta else { return };
        let start = pages.start(slot);
        let seen = start.load(Ordering::Relaxed);
        if owner.has_written(seen) {
            stamp_word(start, stamp);
        }
    }

    /// Marks every slot that was handed out and never written as a tombstone, after recovery.
    pub(crate) fn bury_unwritten(&self, guard: &Guard) {
        let MetaPage::Insert { pages, .. } = &self.pages.load(guard).meta else { return };
        for slot in 0..self.len() {
            let start = pages.start(slot);
            let buried = start.compare_exchange(0, StartTime::TOMBSTONE, Ordering::AcqRel, Ordering::Relaxed);
            if buried.is_ok() {
                pages.charge_slot(slot);
            }
        }
    }
}

/// Writes the outcome of a transaction over the Start Time that it left. A thread that does so at the same time
/// writes the same outcome, so a store will do.
#[inline]
fn stamp_word(start: &AtomicU64, stamp: u64) {
    start.store(stamp, Ordering::Release);
}
