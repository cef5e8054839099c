//! The fold of a scan: the pending tail records of a range, reduced to the one version of each record that the snapshot sees and
//! that the base pages do not hold.
//!
//! The tail records that the pages have not all taken in are visited once, newest first, with a mark a slot: the first
//! visible version of a record counts, and is passed on while its memory is at hand. Tail pages whose records are all decided are
//! visited by their digests, which scans may take a page at a time ([`Take`]). A version that a page has taken in and that is
//! too new for the snapshot, which Last Updated Time tells, has to be undone by a walk along the record's chain; such slots
//! are passed on first.
use sync::Guard;

use crate::page::base::{MetaPage, Pages};
use crate::page::interrupted::Interrupted;
use crate::page::lent::Lent;
use crate::page::tail::{DigestPart, DigestRow, TailRecord};
use crate::record::range::Range;
use crate::record::view::{Outcomes, View, Visibility};
use crate::value::kind::Kind;
use crate::value::slots::SlotSet;

/// Where the visible version of a record is.
#[derive(Clone, Copy)]
pub(crate) enum Pending<'g> {
    /// In this tail record, and in the base pages for the columns that it leaves out.
    Tail(TailRecord<'g>),
    /// Likewise, in the digest of a tail page; the base pages have every column that it leaves out.
    Digest(DigestRow<'g>),
    /// Nowhere: it was deleted.
    Gone,
    /// Further down its chain.
    Chain,
}

/// What a scan does with the pending rows that a fold meets.
pub(crate) trait Take<'g> {
    /// Takes what counts for a slot.
    fn row(&mut self, slot: usize, pending: Pending<'g>) -> Result<(), Interrupted>;

    /// Takes the versions of a page, those that count: it adds their slots to `hidden`, which tells whether they do.
    #[inline]
    fn page(&mut self, versions: DigestPart<'g>, hidden: &mut SlotSet) -> Result<(), Interrupted> {
        for (slot, version) in versions.versions() {
            if hidden.insert_new(slot) {
                self.row(slot, version.map_or(Pending::Gone, Pending::Digest))?;
            }
        }
        Ok(())
    }
}

impl Range {
    /// Folds what `view` sees in the first `len` slots beyond the values of `columns`, which have what is numbered up to `merged` in each
    /// update range: passes each slot whose base values do not count on to `take`, with what counts instead, and returns all of them.
    #[inline]
    pub(crate) fn fold<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        (pages, lent): (&'g Pages, &'g Lent),
        (columns, len): (&[usize], usize),
        merged: impl Fn(usize) -> u64,
        view: View<'_, O>,
        take: &mut impl Take<'g>,
    ) -> Result<SlotSet, Interrupted> {
        let mut hidden = SlotSet::new(len);
        if let MetaPage::Base(meta) = &pages.meta
            && meta.newest > view.snapshot.at
            && let Some(updates) = lent.updates(guard, meta)?
        {
            let last_updated = updates.last_updated.iter().take(len).enumerate();
            for (slot, _) in last_updated.filter(|(_, at)| **at > view.snapshot.at.0) {
                hidden.insert_new(slot);
                take.row(slot, Pending::Chain)?;
            }
        }
        let mut taken = Ok(());
        for (part, update_range) in self.parts.iter().enumerate() {
            let after = merged(part);
            update_range.tails.each_part_newest_first(guard, after, columns, |part| {
                if taken.is_err() {
                    return;
                }
                if let Some(versions) = part.digest(view.snapshot.at, after, columns) {
                    taken = take.page(versions, &mut hidden);
                    return;
                }
                // A record inserted after the range's length was read belongs to a later transaction.
                let mut meet = |slot, pending: Pending<'g>| {
                    if taken.is_ok() && hidden.insert_new(slot) {
                        taken = take.row(slot, pending);
                    }
                };
                for record in part.records_ahead().filter(|record| record.visibility(view) == Visibility::Visible) {
                    match record.kind() {
                        Kind::Snapshot | Kind::Lock | Kind::ValuesLock => {}
                        Kind::Delete => meet(record.slot(), Pending::Gone),
                        Kind::Update => meet(record.slot(), Pending::Tail(record)),
                    }
                }
            })?;
        }
        taken.map(|()| hidden)
    }
}
