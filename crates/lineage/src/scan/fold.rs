//! The delta of a scan: the pending tail records of a range folded into one entry for each slot that has its
//! visible version elsewhere than in the base pages.
//!
//! The tail records that the pages have not all taken in are visited once, newest first, with a seen-mark a slot: the
//! first visible version of a record counts. A version that a page has taken in and that is too new for the snapshot,
//! which Last Updated Time tells, has to be undone by a walk along the record's chain; such slots are marked first.
//! Entries are kept by block of the scan, in no order within it.
use sync::Guard;

use crate::page::base::{MetaPage, Pages};
use crate::page::interrupted::Interrupted;
use crate::page::lent::Lent;
use crate::page::tail::TailRecord;
use crate::record::range::Range;
use crate::record::view::{Outcomes, View, Visibility};
use crate::scan::request::BLOCK_ROWS;
use crate::value::kind::Kind;

/// Where the visible version of a record is.
#[derive(Clone, Copy)]
pub(crate) enum Pending<'g> {
    /// In this tail record, and in the base pages for the columns that it leaves out.
    Tail(TailRecord<'g>),
    /// Nowhere: it was deleted.
    Gone,
    /// Further down its chain.
    Chain,
}

/// The slots of a range that have a visible version which the base pages do not hold.
pub(crate) struct Delta<'g> {
    blocks: Vec<Vec<(u32, Pending<'g>)>>,
    seen: Vec<u64>,
}

impl<'g> Delta<'g> {
    fn new(len: usize) -> Delta<'g> {
        Delta { blocks: vec![Vec::new(); len.div_ceil(BLOCK_ROWS)], seen: vec![0; len.div_ceil(64)] }
    }

    /// The slots from `from`, where a block begins, each as its distance from there.
    pub(crate) fn block(&self, from: usize) -> &[(u32, Pending<'g>)] {
        &self.blocks[from / BLOCK_ROWS]
    }

    /// Adds the entry of a slot unless it has one.
    #[inline]
    fn add(&mut self, slot: usize, pending: impl FnOnce() -> Pending<'g>) {
        // A record inserted after the range's length was read belongs to a later transaction.
        let Some(word) = self.seen.get_mut(slot / 64) else { return };
        if *word >> (slot % 64) & 1 == 0 {
            *word |= 1 << (slot % 64);
            self.blocks[slot / BLOCK_ROWS].push(((slot % BLOCK_ROWS) as u32, pending()));
        }
    }
}

impl Range {
    /// Folds what `view` sees beyond the pages of `columns` in the first `len` slots.
    pub(crate) fn fold<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        (pages, lent): (&'g Pages, &'g Lent),
        columns: &[usize],
        view: View<'_, O>,
        len: usize,
    ) -> Result<Delta<'g>, Interrupted> {
        let mut delta = Delta::new(len);
        if let MetaPage::Base(meta) = &pages.meta
            && meta.newest > view.snapshot.at
            && let Some(updates) = lent.updates(guard, meta)?
        {
            let last_updated = updates.last_updated.iter().take(len).enumerate();
            for (slot, _) in last_updated.filter(|(_, at)| **at > view.snapshot.at.0) {
                delta.add(slot, || Pending::Chain);
            }
        }
        for (part, update_range) in self.parts.iter().enumerate() {
            update_range.tails.each_newest_first(guard, pages.tps_min(part, columns), |record| {
                if record.visibility(view) == Visibility::Visible {
                    match record.kind() {
                        Kind::Snapshot | Kind::Lock | Kind::ValuesLock => {}
                        Kind::Delete => delta.add(record.slot(), || Pending::Gone),
                        Kind::Update => delta.add(record.slot(), || Pending::Tail(record)),
                    }
                }
            })?;
        }
        Ok(delta)
    }
}
