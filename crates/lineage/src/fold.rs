//! The delta of a scan: the pending tail records of a range folded into one entry for each slot whose visible version
//! is not what the base pages hold.
//!
//! The tail records that the pages have not all taken in are visited newest first, with a seen-mark a slot, so each
//! costs one look at its header. A version that a page has taken in and that is too new for the snapshot, which Last
//! Updated Time tells, has to be undone by a walk along the record's chain.
use sync::Guard;

use crate::base::MetaPage;
use crate::range::{LoadedPages, Range};
use crate::tail::{Kind, TailRecord};
use crate::view::{Outcomes, View, Visibility};

/// Where the visible version of a record is.
pub(crate) enum Pending<'g> {
    /// In this tail record, and in the base pages for the columns that it leaves out.
    Tail(TailRecord<'g>),
    /// Nowhere: it was deleted.
    Gone,
    /// Further down its chain.
    Chain,
}

/// The slots of a range whose visible version the base pages do not hold, ascending.
pub(crate) type Delta<'g> = Vec<(usize, Pending<'g>)>;

impl Range {
    /// Folds what `view` sees beyond `pages`.
    pub(crate) fn fold<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        pages: LoadedPages<'_, 'g>,
        view: View<'_, O>,
        len: usize,
    ) -> Delta<'g> {
        let mut delta = Delta::new();
        for part in 0..self.parts.len() {
            self.fold_part(guard, pages, view, part, &mut delta);
        }
        if let MetaPage::Base(meta) = pages.meta
            && meta.newest > view.snapshot.at
            && let Some(updates) = &meta.updates
        {
            let too_new = |slot: &usize| updates.content.last_updated[*slot] > view.snapshot.at.0;
            let undo: Delta<'g> = (0..len).filter(too_new).map(|slot| (slot, Pending::Chain)).collect();
            delta = overrule(undo, delta);
        }
        // A record inserted after `len` was read belongs to a later transaction, or its table was being opened.
        delta.truncate(delta.partition_point(|(slot, _)| *slot < len));
        delta
    }

    fn fold_part<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        pages: LoadedPages<'_, 'g>,
        view: View<'_, O>,
        part: usize,
        delta: &mut Delta<'g>,
    ) {
        let tps = pages.tps_min(part);
        let tails = &self.parts[part].tails;
        if tails.allocated() == tps {
            return;
        }
        let slots = self.options.update_range_records;
        let mut newest: Vec<Option<TailRecord<'g>>> = Vec::new();
        for record in tails.newest_first(guard, tps) {
            if view.visibility(record.start()) == Visibility::Visible && record.kind() != Kind::Snapshot {
                if newest.is_empty() {
                    newest.resize(slots, None);
                }
                newest[record.slot() - part * slots].get_or_insert(record);
            }
        }
        delta.extend(newest.into_iter().flatten().map(|record| {
            let is_deleted = record.kind() == Kind::Delete;
            (record.slot(), if is_deleted { Pending::Gone } else { Pending::Tail(record) })
        }));
    }
}

/// Both lists as one by ascending slot; the first has its way where both have an entry.
fn overrule<'g>(first: Delta<'g>, second: Delta<'g>) -> Delta<'g> {
    let mut merged = Delta::with_capacity(first.len() + second.len());
    let mut second = second.into_iter().peekable();
    for (slot, pending) in first {
        while let Some(earlier) = second.next_if(|(other, _)| *other < slot) {
            merged.push(earlier);
        }
        second.next_if(|(other, _)| *other == slot);
        merged.push((slot, pending));
    }
    merged.extend(second);
    merged
}
