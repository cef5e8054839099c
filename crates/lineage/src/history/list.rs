//! All history of one range: a few pages, newest first, each with the versions of one span of sequence numbers.
//!
//! ```text
//! append:  [p] + [ 900 | 4000 | 20000 ]     a page joins its elders while these are not more than twice as large as
//!      ->  [ 1500 | 4000 | 20000 ]          all that is newer: every version is rewritten O(log n) times, and there
//!                                           are O(log n) pages; versions that came to be seen together become one
//! expire:  the settled part of every record becomes its origin, or goes; and in every page, versions that are seen
//!          together become one
//! ```
//!
//! A history never changes; an operation returns another one, which shares the pages that stay as they are. So a
//! reader keeps what it has loaded, and the range exchanges one pointer.
use std::sync::Arc;

use smallvec::SmallVec;
use types::{DataType, Timestamp};

use super::chain::{Draft, are_seen_together, settle, settled_from};
use super::page::{HistoryPage, PageReader, PageWriter, Version};
use crate::kept::Kept;
use crate::tail::Kind;

/// The versions of a range's records that have left the tail.
#[derive(Clone, Debug)]
pub(crate) struct History {
    types: Arc<[DataType]>,
    pages: Vec<Arc<HistoryPage>>,
    through: u64,
    given_up: u64,
}

/// What becomes of a record when history expires.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    /// Its settled part becomes its origin.
    Settles,
    /// Nobody needs it any more.
    Goes,
}

/// Kind and start of a record's versions, newest first, and the page of each.
type Chain = SmallVec<[(Kind, u64, usize); 8]>;

impl History {
    /// No history yet, for records of these types.
    pub(crate) fn empty(types: Arc<[DataType]>) -> History {
        History { types, pages: Vec::new(), through: 0, given_up: 0 }
    }

    /// The highest tail sequence that was taken in, 0 = none.
    pub(crate) fn through(&self) -> u64 {
        self.through
    }

    /// The highest sequence among the versions of records that have lost all their history, 0 = none. Base pages that
    /// have not merged it do not stand for these records.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// A history of pages that are there, newest first.
    pub(crate) fn of_parts(
        types: Arc<[DataType]>,
        pages: Vec<Arc<HistoryPage>>,
        through: u64,
        given_up: u64,
    ) -> History {
        History { types, pages, through, given_up }
    }

    /// The pages, newest first.
    pub(crate) fn pages(&self) -> &[Arc<HistoryPage>] {
        &self.pages
    }

    /// How many versions there are.
    pub(crate) fn len(&self) -> usize {
        self.pages.iter().map(|page| page.len()).sum()
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<History>() + self.pages.iter().map(|page| size_of::<Arc<HistoryPage>>() + page.bytes()).sum::<usize>()
    }

    /// The versions of a record, newest first.
    #[inline]
    pub(crate) fn versions(&self, slot: usize) -> impl Iterator<Item = Version<'_>> {
        self.pages.iter().flat_map(move |page| page.versions(slot))
    }

    /// Those versions of a record that a snapshot at `at` sees, newest first: all snapshot records, and the updates and
    /// deletes that did not start later.
    #[inline]
    pub(crate) fn versions_seen(&self, slot: usize, at: u64) -> impl Iterator<Item = Version<'_>> {
        self.pages.iter().flat_map(move |page| page.versions_seen(slot, at))
    }

    /// The slots that were updated or deleted after `from` and not after `to`, when, and which of the two; page by
    /// page. It is complete from where everything is kept. A transaction that wrote a record twice may be named twice for it.
    pub(crate) fn changes(&self, from: u64, to: u64) -> impl Iterator<Item = (usize, u64, Kind)> {
        self.pages.iter().flat_map(move |page| page.changes(from, to))
    }

    /// This history and the versions of the tail records after it up to `through`.
    pub(crate) fn append(&self, page: HistoryPage, through: u64, kept: &Kept) -> History {
        assert!(through >= self.through, "history is taken in in order");
        let is_next = |(oldest, newest)| oldest > self.through && newest <= through;
        debug_assert!(page.sequence_span().is_none_or(is_next), "a page has what follows in the tail");
        let mut pages = self.pages.clone();
        pages.insert(0, Arc::new(page));
        History { through, ..self.with_pages(pages, kept) }
    }

    /// The same history, which has left out some tail records up to `through`, all those of their records: for these the
    /// base pages that have merged them stand.
    pub(crate) fn pass(self, through: u64) -> History {
        History { through, given_up: through, ..self }
    }

    /// This history with the origins of records whose own history was given up before.
    pub(crate) fn restore(&self, origins: HistoryPage, kept: &Kept) -> History {
        debug_assert!(
            origins.slots().all(|slot| self.versions(slot).next().is_none()),
            "an origin is the oldest version"
        );
        let mut pages = self.pages.clone();
        pages.insert(0, Arc::new(origins));
        self.with_pages(pages, kept)
    }

    /// Gives up what no kept snapshot needs, or `None` where that is nothing. See the settled part in [`super::chain`]: a
    /// record keeps the origin that stands for it as long as history has a newer version of it, or `keep_origin(slot)`
    /// says so, which it must if a tail record of it is newer, or a base page has merged one that started after the
    /// oldest of these snapshots.
    ///
    /// It looks at every record, and rewrites the pages in which one changes.
    pub(crate) fn expire(&self, kept: &Kept, mut keep_origin: impl FnMut(usize) -> bool) -> Option<History> {
        let is_recent = |page: &HistoryPage| page.start_span().is_some_and(|(earliest, _)| earliest > kept.horizon().0);
        if self.pages.iter().all(|page| is_recent(page)) {
            return None;
        }
        let mut fates = Vec::new();
        let mut changed = vec![false; self.pages.len()];
        for slot in slots_of(&self.pages) {
            let chain = self.chain(slot);
            let fate = fate(&chain, kept.oldest(), || keep_origin(slot));
            fates.resize(slot, Fate::Stays);
            fates.push(fate);
            mark_changed(&chain, fate, kept, &mut changed);
        }
        if !changed.contains(&true) {
            return None;
        }
        let rewrite =
            |at: usize| if changed[at] { Arc::new(self.expired(at, kept, &fates)) } else { self.pages[at].clone() };
        let pages = (0..self.pages.len()).map(rewrite).collect();
        let sequences = (0..fates.len())
            .filter(|slot| fates[*slot] == Fate::Goes)
            .filter_map(|slot| Some(self.versions(slot).next()?.sequence()));
        let given_up = sequences.fold(self.given_up, u64::max);
        Some(History { given_up, ..self.with_pages(pages, kept) })
    }

    /// How many versions would go if no snapshot before the horizon were in use.
    pub(crate) fn pinned(&self, kept: &Kept, mut keep_origin: impl FnMut(usize) -> bool) -> usize {
        let pinned = |slot| {
            let chain = self.chain(slot);
            let settled = chain.len() - settled_part(&chain, kept.horizon());
            match fate(&chain, kept.horizon(), || keep_origin(slot)) {
                Fate::Stays => 0,
                Fate::Settles => settled - 1,
                Fate::Goes => settled,
            }
        };
        slots_of(&self.pages).map(pinned).sum()
    }

    fn chain(&self, slot: usize) -> Chain {
        let pages = self.pages.iter().enumerate();
        let versions = pages.flat_map(|(page, versions)| {
            versions.versions(slot).map(move |version| (version.kind(), version.start(), page))
        });
        versions.collect()
    }

    /// Page `at` without what expires.
    fn expired(&self, at: usize, kept: &Kept, fates: &[Fate]) -> HistoryPage {
        let page = &self.pages[at];
        let (mut reader, mut writer) = (PageReader::new(page), PageWriter::new(&self.types, kept));
        let mut chain = Vec::new();
        for slot in page.slots() {
            let len = reader.take(slot, &mut chain);
            match fates[slot] {
                Fate::Stays => {}
                Fate::Goes => chain.clear(),
                Fate::Settles => {
                    let newer: usize = self.pages[..at].iter().map(|page| page.versions(slot).len()).sum();
                    let mine = newer..newer + len;
                    chain.clear();
                    chain.extend(self.versions(slot).map(|version| version.draft()));
                    let kinds_and_starts = chain.iter().map(|draft: &Draft<'_>| (draft.kind, draft.start));
                    let from = settled_from(kinds_and_starts, kept.oldest());
                    settle(&mut chain, from);
                    // The origin lies where the newest settled version lay: with what leaves values out because of it.
                    chain.truncate(mine.end);
                    chain.drain(..mine.start.min(chain.len()));
                }
            }
            writer.push_record(slot, &mut chain);
        }
        writer.finish()
    }

    /// A history of these pages, with those joined that are not much larger than all that is newer.
    fn with_pages(&self, mut pages: Vec<Arc<HistoryPage>>, kept: &Kept) -> History {
        pages.retain(|page| !page.is_empty());
        let (mut newer, mut joined) = (0, 0);
        for (at, page) in pages.iter().enumerate() {
            if page.len() <= 2 * newer {
                joined = at + 1;
            }
            newer += page.len();
        }
        if joined > 1 {
            let page = join(&self.types, &pages[..joined], kept);
            pages.splice(..joined, [Arc::new(page)]);
        }
        History { pages, ..self.clone() }
    }
}

/// What becomes of a record for readers from `oldest` on.
fn fate(chain: &Chain, oldest: Timestamp, keep_origin: impl FnOnce() -> bool) -> Fate {
    let from = settled_part(chain, oldest);
    match chain.len() - from {
        0 => Fate::Stays,
        _ if from == 0 && !keep_origin() => Fate::Goes,
        1 => Fate::Stays,
        _ => Fate::Settles,
    }
}

fn settled_part(chain: &Chain, oldest: Timestamp) -> usize {
    settled_from(chain.iter().map(|(kind, start, _)| (*kind, *start)), oldest)
}

/// Marks the pages that hold settled versions, unless the record stays, and those that hold several versions which are seen
/// together.
fn mark_changed(chain: &Chain, fate: Fate, kept: &Kept, changed: &mut [bool]) {
    if fate != Fate::Stays {
        chain[settled_part(chain, kept.oldest())..].iter().for_each(|(_, _, page)| changed[*page] = true);
    }
    let mut newer: Option<(u64, usize)> = None;
    for (_, start, page) in chain.iter().filter(|(kind, ..)| *kind != Kind::Snapshot) {
        changed[*page] |= newer.is_some_and(|(newer, at)| at == *page && are_seen_together(newer, *start, kept));
        newer = Some((*start, *page));
    }
}

/// One page of the versions of several, which come newest first.
fn join(types: &[DataType], pages: &[Arc<HistoryPage>], kept: &Kept) -> HistoryPage {
    let mut writer = PageWriter::new(types, kept);
    let mut readers: Vec<PageReader<'_>> = pages.iter().map(|page| PageReader::new(page)).collect();
    let mut chain = Vec::new();
    for slot in slots_of(pages) {
        for reader in &mut readers {
            reader.take(slot, &mut chain);
        }
        writer.push_record(slot, &mut chain);
    }
    writer.finish()
}

/// The slots that have versions in some of these pages, ascending.
fn slots_of(pages: &[Arc<HistoryPage>]) -> impl Iterator<Item = usize> + use<> {
    let mut has_versions = Vec::new();
    for slot in pages.iter().flat_map(|page| page.slots()) {
        if has_versions.len() <= slot {
            has_versions.resize(slot + 1, false);
        }
        has_versions[slot] = true;
    }
    has_versions.into_iter().enumerate().filter_map(|(slot, has)| has.then_some(slot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use crate::history::NewVersion;

    /// A history with a page of updates for these slots more, one for each start, their sequences being the starts.
    fn updates(history: &History, slots: std::ops::Range<usize>, starts: &[u64], through: u64) -> History {
        let versions = slots.flat_map(|slot| starts.iter().rev().map(move |start| (slot, *start)));
        updates_of(history, versions, through)
    }

    fn updates_of(history: &History, slots_and_starts: impl Iterator<Item = (usize, u64)>, through: u64) -> History {
        let values = [(0, Cell::Word(7))];
        let version = |(slot, start)| NewVersion { slot, sequence: start, kind: Kind::Update, start, values: &values };
        let page = HistoryPage::build(&history.types, &Kept::default(), slots_and_starts.map(version));
        history.append(page, through, &Kept::default())
    }

    fn starts(history: &History, slot: usize) -> Vec<u64> {
        history.versions(slot).map(|version| version.start()).collect()
    }

    fn from(horizon: u64) -> Kept {
        Kept::from(Timestamp(horizon))
    }

    fn empty() -> History {
        History::empty(Arc::from([DataType::BigInt]))
    }

    #[test]
    fn the_version_that_the_horizon_sees_stays_while_there_is_a_newer_one() {
        let history = updates(&empty(), 3..4, &[10, 20, 30], 30);
        assert!(history.expire(&from(9), |_| false).is_none());
        assert!(history.expire(&from(19), |_| false).is_none(), "a snapshot at 19 reads the first one");
        assert_eq!(starts(&history.expire(&from(20), |_| false).unwrap(), 3), [30, 20]);
        assert_eq!(starts(&history.expire(&from(29), |_| false).unwrap(), 3), [30, 20]);
        assert_eq!(starts(&history.expire(&from(30), |_| true).unwrap(), 3), [30]);
        let nothing = history.expire(&from(30), |_| false).unwrap();
        assert_eq!((starts(&nothing, 3), nothing.pages().len(), nothing.through()), (vec![], 0, 30));
        let single = updates(&empty(), 3..4, &[10], 10);
        assert_eq!(single.expire(&from(10), |_| false).map(|history| history.len()), Some(0));
        assert_eq!(
            [&history, &history.expire(&from(29), |_| false).unwrap(), &nothing].map(History::given_up),
            [0, 0, 30]
        );
    }

    #[test]
    fn pages_that_stay_as_they_are_are_shared() {
        let old = updates(&empty(), 0..100, &[10, 20], 20);
        let both = updates(&old, 0..9, &[30], 30);
        let all = updates(&both, 0..1, &[40], 40);
        assert_eq!(all.pages().len(), 3);
        assert!(Arc::ptr_eq(&all.pages()[2], &old.pages()[0]));
        let pages: usize = all.pages().iter().map(|page| page.bytes()).sum();
        assert!(all.bytes() > pages && all.bytes() < pages + 200);
        let expired = all.expire(&from(25), |_| true).unwrap();
        let is_shared = |at: usize| Arc::ptr_eq(&expired.pages()[at], &all.pages()[at]);
        assert_eq!([0, 1, 2].map(is_shared), [true, true, false]);
        assert_eq!((starts(&expired, 0), starts(&expired, 99)), (vec![40, 30, 20], vec![20]));
        assert_eq!(starts(&all, 0), [40, 30, 20, 10], "the old history is as it was");
        assert_eq!(starts(&all.expire(&from(30), |_| true).unwrap(), 5), [30]);
    }

    #[test]
    fn a_page_that_changes_for_one_record_keeps_its_part_of_the_others() {
        let old = updates(&empty(), 0..100, &[10, 20], 20);
        let both = updates_of(&old, [(0, 30), (1, 24), (1, 22), (2, 40), (2, 24)].into_iter(), 40);
        let expired = both.expire(&from(24), |_| true).unwrap();
        assert_eq!([0, 1, 2, 3].map(|slot| starts(&expired, slot)), [vec![30, 20], vec![24], vec![40, 24], vec![20]]);
        assert_eq!(expired.pages()[0].len(), 4);
        assert_eq!(expired.pages().len(), 2);
    }

    #[test]
    fn pages_stay_few_and_each_version_is_rewritten_seldom() {
        let mut history = empty();
        let mut rewritten = 0;
        for start in 1..=2000 {
            let before = history.clone();
            history = updates(&history, 0..3, &[start], start);
            let is_new = |page: &&Arc<HistoryPage>| !before.pages().iter().any(|old| Arc::ptr_eq(old, page));
            rewritten += history.pages().iter().filter(is_new).map(|page| page.len()).sum::<usize>();
            assert!(history.pages().len() <= 1 + history.len().ilog2() as usize);
        }
        assert_eq!(history.len(), 6000);
        assert!(rewritten <= 6000 * 12, "{} times each", rewritten / 6000);
    }
}
