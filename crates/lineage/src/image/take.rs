//! Taking an image: one moment of a range, while transactions, merges and archiving go on.
//!
//! ```text
//! 1  pages, then the history of each update range, then the pages again: start anew if a merge came in between
//! 2  c = the newest commit timestamp handed out
//! 3  the records of insert pages, the tail records above what is history: resolved, and in the image if committed by c
//! ```
//!
//! **Nothing is missed.** A version is in the history, in the tail or in the base pages. Archiving takes from the tail only
//! what all base pages have and gives the tail pages up after it has published the history: what is not in the history
//! loaded in step 1 is still in the tail, or the walk over it finds that it begins later than that history ends, and
//! everything starts anew. A merge takes nothing away from the tail; but where it puts a value over one that kept snapshots
//! need and that is in no history any more, it first publishes that as an origin ([`Range::keep_origins`]). So the history
//! must not be older than the pages: it is loaded after them, and nothing newer than the pages was published meanwhile.
//! (History that is newer than the pages is as well: archiving never goes beyond the pages that are there, and an origin
//! for a merge still to come repeats what the base pages have.)
//!
//! **Nothing is too new.** What pages and history hold had committed when they were published, so before c was read.
//!
//! **Everything by c is there.** A transaction that has a commit timestamp has written all that it will. A version
//! of a *prepared* transaction at or before c is waited for. The outcome of any other transaction agrees with the
//! clock: one that is reported as running will commit after c.
//!
//! A chain of versions leads past those that are not in the image: they are tombstones there, without a predecessor.
use sync::Guard;
use types::Timestamp;

use crate::image::records::{InsertsWriter, TailsWriter};
use crate::page::archived::Archive;
use crate::page::archived::ExpiryFindings;
use crate::page::base::{MetaColumns, MetaPage, Page, Pages};
use crate::page::history::History;
use crate::page::insert::InsertPages;
use crate::page::interrupted::Outdated;
use crate::page::tail::TailPages;
use crate::record::last_image::RangeState;
use crate::record::range::Range;
use crate::record::view::{Outcomes, Resolved, resolve};

/// The parts taken of a range; they are written to blobs afterwards, when nothing is pinned any more.
pub(super) struct RangeParts {
    pub(super) at: Timestamp,
    pub(super) newest: Timestamp,
    pub(super) horizon: Timestamp,
    /// the merged pages, or
    pub(super) merged: Option<(MetaColumns, Box<[std::sync::Arc<Page>]>)>,
    /// the records of insert pages
    pub(super) inserts: Option<InsertsWriter>,
    /// of each update range
    pub(super) archives: Vec<TakenArchive>,
    pub(super) tails: Vec<TailsWriter>,
    /// the range at that moment, and whether all its versions were decided
    pub(super) state: RangeState,
    pub(super) is_settled: bool,
}

/// The past of an update range.
pub(super) struct TakenArchive {
    pub(super) history: History,
    pub(super) expired: ExpiryFindings,
}

impl TakenArchive {
    fn of(archive: &Archive) -> TakenArchive {
        TakenArchive { history: archive.history.clone(), expired: archive.expired.clone() }
    }
}

/// The place of a version in an image.
enum Decided {
    /// Committed in time.
    InTime(Timestamp),
    /// Nothing, for ever.
    Tombstone,
    /// Nothing in this image, but perhaps in a later one.
    Open,
}

/// Decides the place of a version in the image of `at`; a version that is prepared and may be in time is waited
/// for.
fn decide<O: Outcomes>(outcomes: &O, at: Timestamp, resolve: impl Fn() -> Resolved) -> Decided {
    loop {
        return match resolve() {
            Resolved::Committed(committed) if committed <= at => Decided::InTime(committed),
            Resolved::Prepared(on, prepared) if prepared <= at => {
                outcomes.await_decision(on);
                continue;
            }
            Resolved::Tombstone => Decided::Tombstone,
            Resolved::Committed(_) | Resolved::Prepared(..) | Resolved::Active(_) | Resolved::Unwritten => {
                Decided::Open
            }
        };
    }
}

/// The tail records of an update range that belong into an image.
struct TakenTail {
    records: TailsWriter,
    newest: Timestamp,
    allocated: u64,
    is_settled: bool,
}

impl Range {
    /// Takes what belongs into an image. `now` answers the newest commit timestamp handed out, `horizon` the table's.
    pub(super) fn take<O: Outcomes>(
        &self,
        outcomes: &O,
        now: &impl Fn() -> Timestamp,
        horizon: impl Fn() -> Timestamp,
    ) -> RangeParts {
        let guard = &sync::pin();
        // Numbers that writers hold and may never use would look like versions to come.
        self.parts.iter().for_each(|part| part.tails.seal(guard));
        loop {
            let publications = self.publications();
            let (pages, archives) = self.load_together(guard);
            let horizon = horizon();
            let at = now();
            let taken = (0..self.parts.len())
                .map(|part| self.take_tail(guard, part, archives[part].history.through(), at, outcomes));
            let Ok(tails) = taken.collect::<Result<Vec<TakenTail>, Outdated>>() else { continue };
            let (len, is_closed) = (self.len(), self.is_closed());
            let allocated = tails.iter().map(|tail| tail.allocated).collect();
            let mut newest = tails.iter().map(|tail| tail.newest).fold(Timestamp::ZERO, Timestamp::max);
            let mut is_settled = tails.iter().all(|tail| tail.is_settled);
            let (mut merged, mut inserts) = (None, None);
            match &pages.meta {
                MetaPage::Base(meta) => {
                    newest = newest.max(meta.newest);
                    merged = Some((meta.clone(), pages.columns.clone()));
                }
                MetaPage::Insert { pages, .. } => {
                    let (records, newest_insert, are_settled) = self.take_inserts(pages, len, at, outcomes);
                    newest = newest.max(newest_insert);
                    is_settled &= are_settled;
                    inserts = Some(records);
                }
            }
            return RangeParts {
                at,
                newest,
                horizon,
                merged,
                inserts,
                archives: archives.into_iter().map(TakenArchive::of).collect(),
                tails: tails.into_iter().map(|tail| tail.records).collect(),
                state: RangeState { publications, allocated, len, is_closed },
                is_settled,
            };
        }
    }

    /// Pages and histories of one moment.
    fn load_together<'g>(&'g self, guard: &'g Guard) -> (&'g Pages, Vec<&'g Archive>) {
        loop {
            let pages = self.pages.load(guard);
            let archives = self.parts.iter().map(|part| part.archive.load(guard)).collect();
            if std::ptr::eq(pages, self.pages.load(guard)) {
                return (pages, archives);
            }
        }
    }

    fn take_tail<O: Outcomes>(
        &self,
        guard: &Guard,
        part: usize,
        through: u64,
        at: Timestamp,
        outcomes: &O,
    ) -> Result<TakenTail, Outdated> {
        let tails = &self.parts[part].tails;
        let allocated = tails.allocated();
        let mut records = TailsWriter::new(&self.types, part * self.options.update_range_records);
        let mut newest = Timestamp::ZERO;
        let mut decided = 0;
        let mut is_taken = vec![0u64; (allocated - through) as usize / 64 + 1];
        let place = |sequence: u64| ((sequence - through) as usize / 64, (sequence - through) % 64);
        for page in tails.pages_above(guard, through)? {
            for record in page.records().take_while(|record| record.sequence <= allocated) {
                match decide(outcomes, at, || record.resolve(outcomes)) {
                    Decided::InTime(committed) => {
                        let is_taken_too = |sequence| {
                            let (word, bit) = place(sequence);
                            is_taken[word] >> bit & 1 != 0
                        };
                        let prev = taken_before(guard, tails, record.prev(), through, is_taken_too)?;
                        records.push(&record, prev, committed.0);
                        newest = newest.max(committed);
                        let (word, bit) = place(record.sequence);
                        is_taken[word] |= 1 << bit;
                    }
                    Decided::Tombstone => {}
                    Decided::Open => continue,
                }
                decided += 1;
            }
        }
        Ok(TakenTail { records, newest, allocated, is_settled: decided == allocated - through })
    }

    /// The records of insert pages, the newest commit among them, and whether all slots were decided.
    fn take_inserts<O: Outcomes>(
        &self,
        pages: &InsertPages,
        len: usize,
        at: Timestamp,
        outcomes: &O,
    ) -> (InsertsWriter, Timestamp, bool) {
        let mut records = InsertsWriter::new(&self.types);
        let (mut newest, mut is_settled) = (Timestamp::ZERO, true);
        for slot in 0..len {
            match decide(outcomes, at, || resolve(pages.start(slot), outcomes)) {
                Decided::InTime(committed) => {
                    records.push(slot, committed.0, (0..self.types.len()).map(|column| pages.cell(column, slot)));
                    newest = newest.max(committed);
                }
                Decided::Tombstone => {}
                Decided::Open => is_settled = false,
            }
        }
        (records, newest, is_settled)
    }
}

/// The version at or before `prev` in its chain that is in the image, or what the chain leads to before the tail.
fn taken_before(
    guard: &Guard,
    tails: &TailPages,
    mut prev: u64,
    through: u64,
    is_taken: impl Fn(u64) -> bool,
) -> Result<u64, Outdated> {
    while prev > through && !is_taken(prev) {
        prev = tails.get(guard, prev).ok_or(Outdated)?.prev();
    }
    Ok(prev)
}
