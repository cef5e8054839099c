//! How much of a record a transaction keeps to itself: PostgreSQL's FOR UPDATE, or FOR NO KEY UPDATE.
//!
//! No other transaction appends to a record while a transaction holds its newest version, written or locked. But a
//! transaction that relies only on the record's key, and on its being there, does not mind new values. So there are
//! two kinds of locks for what their transaction is about to do, and among versions the end of the record tells as
//! much. An update leaves the key alone as far as this file knows: a transaction that changes the key locks the
//! record whole besides.
//!
//! The hold is the strongest that any lock or version says which the transaction has appended and not taken back.
//! They stand in a row on top of the chain, as no other transaction could append in between.
use sync::Guard;
use sync::atomic::Ordering;
use types::TxnId;

use crate::memory::source::PageError;
use crate::record::range::{LATCH, Range};
use crate::record::view::{Outcomes, Resolved, View, resolve};
use crate::value::kind::Kind;

/// How much of a record a transaction keeps to itself that has written its newest version or locked it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hold {
    /// Its values: it has neither ended the record nor announced that it is going to, or to change its key.
    Values,
    /// All of it.
    Whole,
}

impl Range {
    /// How much of the record at `slot` a transaction holds that has written or locked the newest version.
    pub(crate) fn hold<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        slot: usize,
        owner: TxnId,
    ) -> Result<Hold, PageError> {
        let newest = self.indirection[slot].load(Ordering::Acquire) & !LATCH;
        self.hold_at(guard, view, slot, (owner, newest))
    }

    /// How much of a record its owner holds, from all that the owner has appended behind the Indirection word
    /// `newest`.
    pub(crate) fn hold_at<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        slot: usize,
        (owner, newest): (TxnId, u64),
    ) -> Result<Hold, PageError> {
        let part = self.part_of(slot);
        let pages = self.pages.load(guard);
        let mut sequence = newest;
        while sequence > pages.floor[part] {
            let Some(record) = self.parts[part].tails.get(guard, sequence) else {
                // It was merged and became history since the page was loaded.
                return self.hold_at(guard, view, slot, (owner, newest));
            };
            let (kind, writer) = (record.kind(), record.resolve(view.outcomes));
            let is_passed = writer == Resolved::Tombstone || kind == Kind::Snapshot;
            if !is_passed && writer.unended() != Some(owner) {
                return Ok(Hold::Values);
            }
            if !is_passed && matches!(kind, Kind::Lock | Kind::Delete) {
                return Ok(Hold::Whole);
            }
            sequence = record.prev();
        }
        let inserter = resolve(pages.meta.start(guard, slot)?, view.outcomes);
        Ok(if inserter.unended() == Some(owner) { Hold::Whole } else { Hold::Values })
    }
}
