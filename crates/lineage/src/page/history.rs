//! All history of one range: a few pages, newest first, each with the versions of one span of sequence numbers.
//!
//! ```text
//! append:  [p] + [ 900 | 4000 | 20000 ]     a page joins its elders while these are not more than twice as large as
//!      ->  [ 1500 | 4000 | 20000 ]          all that is newer: every version is rewritten O(log n) times, and there
//!                                           are O(log n) pages; versions that came to be seen together become one
//! append:  [p] + [p p ... p | 800p]         while everything is kept no version can go: pages wait until they are 32, of
//!      ->  [32p | 800p]                     which none has more than an eighth of their versions; a fifth as much is
//!                                           rewritten, and a walk looks into the outlines of some pages more
//! expire:  the settled part of every record becomes its origin, or goes; and in every page, versions that are seen
//!          together become one
//! ```
//!
//! A history never changes; an operation returns another one, which shares the pages that stay as they are. So a
//! reader keeps what it has loaded, and the range exchanges one pointer.
use std::sync::Arc;

use smallvec::SmallVec;
use sync::Guard;
use types::{DataType, Timestamp};

use crate::encoding::{Simd, equal_words};
use crate::history::chain::{Draft, are_seen_together, settle, settled_from};
use crate::history::page::{HistoryPage, PageReader, PageWriter};
use crate::history::{ChainWords, WordReader};
use crate::memory::budget::Meter;
use crate::memory::evictable::{Evictable, Held};
use crate::memory::source::PageError;
use crate::page::contents::HistoryEntry;
use crate::value::column_set::each_column;
use crate::value::kept::Kept;
use crate::value::kind::Kind;

/// The versions of a range's records that have left the tail.
#[derive(Clone)]
pub(crate) struct History {
    types: Arc<[DataType]>,
    pages: Vec<HistoryEntry>,
    through: u64,
    given_up: u64,
    meter: Arc<Meter>,
}

/// How many of pages with so many versions, newest first, are joined; one is as good as none.
fn joined_pages(versions: impl Iterator<Item = usize>, kept: &Kept) -> usize {
    let keeps_all = kept.oldest() == Timestamp::ZERO;
    let (mut newer, mut largest, mut joined) = (0, 0, 0);
    for (at, versions) in versions.enumerate() {
        largest = versions.max(largest);
        let is_joined = match keeps_all {
            // A page that is large beside the others is not rewritten for them.
            true => at >= 31 && largest * 8 <= newer + versions,
            false => versions <= 2 * newer,
        };
        newer += versions;
        joined = if is_joined { at + 1 } else { joined };
    }
    joined
}

/// The fate of a record when history expires.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    /// Its settled part becomes its origin.
    Settles,
    /// The history of the record is not needed any more.
    Goes,
}

/// Kind and start of a record's versions, newest first, and the page of each.
type Chain = SmallVec<[(Kind, u64, usize); 8]>;

impl History {
    /// No history yet, for records of these types.
    pub(crate) fn empty(types: Arc<[DataType]>, meter: Arc<Meter>) -> History {
        History { types, pages: Vec::new(), through: 0, given_up: 0, meter }
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
        pages: Vec<HistoryEntry>,
        through: u64,
        given_up: u64,
        meter: Arc<Meter>,
    ) -> History {
        History { types, pages, through, given_up, meter }
    }

    /// The pages, newest first.
    pub(crate) fn pages(&self) -> &[HistoryEntry] {
        &self.pages
    }

    /// The pages that have versions of a record, newest first.
    #[inline]
    pub(crate) fn pages_of(&self, slot: usize) -> impl Iterator<Item = &HistoryEntry> {
        self.pages.iter().filter(move |page| page.outline.slots.contains(slot))
    }

    /// Whether a record has versions here.
    pub(crate) fn has_versions(&self, slot: usize) -> bool {
        self.pages_of(slot).next().is_some()
    }

    /// All pages in memory, for making others of them.
    fn hold<'g>(&'g self, guard: &'g Guard) -> Result<Vec<Held<'g, HistoryPage>>, PageError> {
        self.pages.iter().map(|page| page.hold(guard)).collect()
    }

    /// How many versions there are.
    pub(crate) fn len(&self) -> usize {
        self.pages.iter().map(|page| page.outline.versions).sum()
    }

    /// The memory that it takes without its pages, which are charged each for itself.
    pub(crate) fn own_bytes(&self) -> usize {
        size_of::<History>() + self.pages.len() * size_of::<HistoryEntry>()
    }

    /// The memory that it takes where all of it is there.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.own_bytes() + self.pages.iter().map(|page| page.outline.page_bytes).sum::<usize>()
    }

    /// Extends this history by the versions of the tail records after it up to `through`.
    pub(crate) fn append(
        &self,
        guard: &Guard,
        page: HistoryPage,
        through: u64,
        kept: &Kept,
    ) -> Result<History, PageError> {
        assert!(through >= self.through, "history is taken in in order");
        let is_next = |(oldest, newest)| oldest > self.through && newest <= through;
        debug_assert!(page.sequence_span().is_none_or(is_next), "a page has what follows in the tail");
        let mut pages = self.pages.clone();
        pages.insert(0, self.entry(page));
        Ok(History { through, ..self.with_pages(guard, pages, kept)? })
    }

    fn entry(&self, page: HistoryPage) -> HistoryEntry {
        Evictable::of_history(page, &self.types, &self.meter, None)
    }

    /// Leaves some tail records up to `through` out of this history, all those of their records: for these the base
    /// pages that have merged them stand.
    pub(crate) fn pass(self, through: u64) -> History {
        History { through, given_up: through, ..self }
    }

    /// Adds the origins of records that had their own history given up before.
    pub(crate) fn restore(&self, guard: &Guard, origins: HistoryPage, kept: &Kept) -> Result<History, PageError> {
        debug_assert!(origins.slots().all(|slot| !self.has_versions(slot)), "an origin is the oldest version");
        let mut pages = self.pages.clone();
        pages.insert(0, self.entry(origins));
        self.with_pages(guard, pages, kept)
    }

    /// Gives up what no kept snapshot needs, or `None` where that is nothing. See the settled part in [`super::chain`]: a
    /// record keeps the origin that stands for it as long as history has a newer version of it, or `keep_origin(slot)`
    /// says so, which it must if a tail record of it is newer, or a base page has merged one that started after the
    /// oldest of these snapshots.
    ///
    /// It looks at every record, and rewrites the pages in which one changes.
    pub(crate) fn expire(
        &self,
        guard: &Guard,
        kept: &Kept,
        mut keep_origin: impl FnMut(usize) -> bool,
    ) -> Result<Option<History>, PageError> {
        let is_recent =
            |page: &HistoryEntry| page.outline.start_span.is_some_and(|(earliest, _)| earliest > kept.horizon().0);
        if self.pages.iter().all(is_recent) {
            return Ok(None);
        }
        let pages = self.hold(guard)?;
        let mut fates = Vec::new();
        let mut changed = vec![false; self.pages.len()];
        for slot in slots_of(&self.pages) {
            let chain = chain(&pages, slot);
            let fate = fate(&chain, kept.oldest(), || keep_origin(slot));
            fates.resize(slot, Fate::Stays);
            fates.push(fate);
            mark_changed(&chain, fate, kept, &mut changed);
        }
        if !changed.contains(&true) {
            return Ok(None);
        }
        let rewrite = |at: usize| match changed[at] {
            true => self.entry(expired(&self.types, &pages, at, kept, &fates)),
            false => self.pages[at].clone(),
        };
        let rewritten = (0..self.pages.len()).map(rewrite).collect();
        let newest = |slot: usize| pages.iter().find_map(|page| page.versions(slot).next());
        let sequences = (0..fates.len())
            .filter(|slot| fates[*slot] == Fate::Goes)
            .filter_map(|slot| Some(newest(slot)?.sequence()));
        let given_up = sequences.fold(self.given_up, u64::max);
        Ok(Some(History { given_up, ..self.with_pages(guard, rewritten, kept)? }))
    }

    /// How many versions would go if no snapshot before the horizon were in use.
    pub(crate) fn pinned(
        &self,
        guard: &Guard,
        kept: &Kept,
        mut keep_origin: impl FnMut(usize) -> bool,
    ) -> Result<usize, PageError> {
        let pages = self.hold(guard)?;
        let pinned = |slot| {
            let chain = chain(&pages, slot);
            let settled = chain.len() - settled_part(&chain, kept.horizon());
            match fate(&chain, kept.horizon(), || keep_origin(slot)) {
                Fate::Stays => 0,
                Fate::Settles => settled - 1,
                Fate::Goes => settled,
            }
        };
        Ok(slots_of(&self.pages).map(pinned).sum())
    }

    /// A history of these pages, with those joined that are small beside all that is newer.
    fn with_pages(&self, guard: &Guard, mut pages: Vec<HistoryEntry>, kept: &Kept) -> Result<History, PageError> {
        pages.retain(|page| page.outline.versions > 0);
        let joined = joined_pages(pages.iter().map(|page| page.outline.versions), kept);
        if joined > 1 {
            let page = join(&self.types, guard, &pages[..joined], kept)?;
            pages.splice(..joined, [self.entry(page)]);
        }
        Ok(History { pages, ..self.clone() })
    }
}

fn chain(pages: &[Held<'_, HistoryPage>], slot: usize) -> Chain {
    let pages = pages.iter().enumerate();
    let versions = pages.flat_map(|(page, versions)| {
        versions.versions(slot).map(move |version| (version.kind(), version.start(), page))
    });
    versions.collect()
}

/// Page `at` without what expires.
fn expired(types: &[DataType], pages: &[Held<'_, HistoryPage>], at: usize, kept: &Kept, fates: &[Fate]) -> HistoryPage {
    let page: &HistoryPage = &pages[at];
    let (mut reader, mut writer) = (PageReader::new(page), PageWriter::new(types, kept));
    let mut chain = Vec::new();
    for slot in page.slots() {
        let len = reader.take(slot, &mut chain);
        match fates[slot] {
            Fate::Stays => {}
            Fate::Goes => chain.clear(),
            Fate::Settles => {
                let newer: usize = pages[..at].iter().map(|page| page.versions(slot).len()).sum();
                let mine = newer..newer + len;
                chain.clear();
                chain.extend(pages.iter().flat_map(|page| page.versions(slot)).map(|version| version.draft()));
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

#[cfg(test)]
impl History {
    /// The versions of a record, newest first; its pages are in memory.
    pub(crate) fn versions<'g>(
        &'g self,
        guard: &'g Guard,
        slot: usize,
    ) -> impl Iterator<Item = crate::history::Version<'g>> {
        self.pages.iter().flat_map(move |page| page.here(guard).unwrap().versions(slot))
    }

    /// The history without what expires, where that is something.
    pub(crate) fn expired(&self, kept: &Kept, keep_origin: impl FnMut(usize) -> bool) -> Option<History> {
        self.expire(&sync::pin(), kept, keep_origin).unwrap()
    }
}

impl std::fmt::Debug for History {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pages: Vec<_> = self.pages.iter().map(|page| &page.outline).collect();
        formatter.debug_struct("History").field("through", &self.through).field("pages", &pages).finish_non_exhaustive()
    }
}

/// The fate of a record for readers from `oldest` on.
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
fn join(types: &[DataType], guard: &Guard, pages: &[HistoryEntry], kept: &Kept) -> Result<HistoryPage, PageError> {
    let held = pages.iter().map(|page| page.hold(guard)).collect::<Result<Vec<_>, PageError>>()?;
    let mut writer = PageWriter::with_room_for(types, kept, held.iter().map(|page| &**page));
    if let Some(readers) = held.iter().map(|page| WordReader::new(page)).collect::<Option<Vec<_>>>() {
        join_words(slots_of(pages), readers, &mut writer);
        return Ok(writer.finish());
    }
    let mut readers: Vec<PageReader<'_>> = held.iter().map(|page| PageReader::new(page)).collect();
    let mut chain = Vec::new();
    for slot in slots_of(pages) {
        for reader in &mut readers {
            reader.take(slot, &mut chain);
        }
        writer.push_record(slot, &mut chain);
    }
    Ok(writer.finish())
}

/// The versions of a record in several pages, newest first: which reader has each, and where.
struct JoinedWords<'r, 'a> {
    simd: Simd,
    readers: &'r [WordReader<'a>],
    places: &'r [(usize, usize)],
}

impl JoinedWords<'_, '_> {
    #[inline]
    fn row(&self, at: usize) -> &[u64] {
        let (reader, place) = self.places[at];
        self.readers[reader].row(place)
    }
}

impl ChainWords for JoinedWords<'_, '_> {
    #[inline]
    fn word(&self, at: usize, column: usize) -> u64 {
        self.row(at)[column]
    }

    #[inline]
    fn each_word(&self, at: usize, columns: u64, mut take: impl FnMut(usize, u64)) {
        let row = self.row(at);
        each_column(columns, |column| take(column, row[column]));
    }

    #[inline]
    fn equal(&self, at: usize, other: usize, columns: u64) -> u64 {
        columns & equal_words(self.simd, self.row(at), self.row(other))
    }
}

/// Puts the records of pages of words, which come newest first, into one.
fn join_words(slots: impl Iterator<Item = usize>, mut readers: Vec<WordReader<'_>>, writer: &mut PageWriter<'_, '_>) {
    let (simd, mut chain, mut places) = (Simd::best(), Vec::new(), Vec::new());
    for slot in slots {
        chain.clear();
        places.clear();
        for (at, reader) in readers.iter_mut().enumerate() {
            reader.take(slot, |version, place| {
                chain.push(version);
                places.push((at, place));
            });
        }
        writer.push_words(slot, &mut chain, &JoinedWords { simd, readers: &readers, places: &places });
    }
}

/// The slots that have versions in some of these pages, ascending.
fn slots_of(pages: &[HistoryEntry]) -> impl Iterator<Item = usize> + use<> {
    let mut has_versions = Vec::new();
    for slot in pages.iter().flat_map(|page| page.outline.slots.iter()) {
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
    use crate::history::NewVersion;
    use crate::value::cell::Cell;

    /// A history with a page of updates for these slots more, one for each start, their sequences being the starts.
    fn updates(history: &History, slots: std::ops::Range<usize>, starts: &[u64], through: u64) -> History {
        let versions = slots.flat_map(|slot| starts.iter().rev().map(move |start| (slot, *start)));
        updates_of(history, versions, through)
    }

    fn updates_of(history: &History, slots_and_starts: impl Iterator<Item = (usize, u64)>, through: u64) -> History {
        updates_kept(history, slots_and_starts, through, &Kept::default())
    }

    fn updates_kept(
        history: &History,
        slots_and_starts: impl Iterator<Item = (usize, u64)>,
        through: u64,
        kept: &Kept,
    ) -> History {
        let values = [(0, Cell::Word(7))];
        let version =
            |(slot, start)| NewVersion { slot, sequence: start, kind: Kind::Update, start, values: values[..].into() };
        let page = HistoryPage::build(&history.types, kept, slots_and_starts.map(version));
        history.append(&sync::pin(), page, through, kept).unwrap()
    }

    fn starts(history: &History, slot: usize) -> Vec<u64> {
        history.versions(&sync::pin(), slot).map(|version| version.start()).collect()
    }

    fn from(horizon: u64) -> Kept {
        Kept::from(Timestamp(horizon))
    }

    fn empty() -> History {
        History::empty(Arc::from([DataType::BigInt]), Arc::default())
    }

    #[test]
    fn the_version_that_the_horizon_sees_stays_while_there_is_a_newer_one() {
        let history = updates(&empty(), 3..4, &[10, 20, 30], 30);
        assert!(history.expired(&from(9), |_| false).is_none());
        assert!(history.expired(&from(19), |_| false).is_none(), "a snapshot at 19 reads the first one");
        assert_eq!(starts(&history.expired(&from(20), |_| false).unwrap(), 3), [30, 20]);
        assert_eq!(starts(&history.expired(&from(29), |_| false).unwrap(), 3), [30, 20]);
        assert_eq!(starts(&history.expired(&from(30), |_| true).unwrap(), 3), [30]);
        let nothing = history.expired(&from(30), |_| false).unwrap();
        assert_eq!((starts(&nothing, 3), nothing.pages().len(), nothing.through()), (vec![], 0, 30));
        let single = updates(&empty(), 3..4, &[10], 10);
        assert_eq!(single.expired(&from(10), |_| false).map(|history| history.len()), Some(0));
        assert_eq!(
            [&history, &history.expired(&from(29), |_| false).unwrap(), &nothing].map(History::given_up),
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
        let pages: usize = all.pages().iter().map(|page| page.outline.page_bytes).sum();
        assert!(all.bytes() > pages && all.bytes() < pages + 200);
        let expired = all.expired(&from(25), |_| true).unwrap();
        let is_shared = |at: usize| Arc::ptr_eq(&expired.pages()[at], &all.pages()[at]);
        assert_eq!([0, 1, 2].map(is_shared), [true, true, false]);
        assert_eq!((starts(&expired, 0), starts(&expired, 99)), (vec![40, 30, 20], vec![20]));
        assert_eq!(starts(&all, 0), [40, 30, 20, 10], "the old history is as it was");
        assert_eq!(starts(&all.expired(&from(30), |_| true).unwrap(), 5), [30]);
    }

    #[test]
    fn a_page_that_changes_for_one_record_keeps_its_part_of_the_others() {
        let old = updates(&empty(), 0..100, &[10, 20], 20);
        let both = updates_of(&old, [(0, 30), (1, 24), (1, 22), (2, 40), (2, 24)].into_iter(), 40);
        let expired = both.expired(&from(24), |_| true).unwrap();
        assert_eq!([0, 1, 2, 3].map(|slot| starts(&expired, slot)), [vec![30, 20], vec![24], vec![40, 24], vec![20]]);
        assert_eq!(expired.pages()[0].outline.versions, 4);
        assert_eq!(expired.pages().len(), 2);
    }

    #[test]
    fn pages_that_are_joined_are_as_if_all_had_been_put_into_one() {
        let types: Arc<[DataType]> = Arc::from([DataType::BigInt; 4]);
        let mut state = 7_u64;
        let mut random = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        // By sequence. Half of them have all columns, so that one differs from the one before in some of these.
        let versions: Vec<(usize, Kind, u64)> = (0..2000)
            .map(|_| {
                let kind = [Kind::Update, Kind::Update, Kind::Update, Kind::Delete, Kind::Snapshot][random(5) as usize];
                (random(60) as usize, kind, if random(2) == 0 { 15 } else { random(16) })
            })
            .collect();
        let words: Vec<[u64; 4]> = versions.iter().map(|_| std::array::from_fn(|_| random(3))).collect();
        let page = |sequences: std::ops::Range<usize>| {
            let mut of_page: Vec<usize> = sequences.collect();
            of_page.sort_by_key(|at| (versions[*at].0, std::cmp::Reverse(*at)));
            let new = |at: usize| {
                let ((slot, kind, explicit), sequence) = (versions[at], at as u64 + 1);
                let columns = (0..4).filter(|column| explicit >> column & 1 != 0);
                let values = columns.map(|column| (column, Cell::Word(words[at][column]))).collect();
                NewVersion { slot, sequence, kind, start: sequence, values }
            };
            HistoryPage::build(&types, &Kept::default(), of_page.into_iter().map(new))
        };
        let parts = [1500..2000, 700..1500, 0..700]
            .map(page)
            .map(|page| Evictable::of_history(page, &types, &Arc::default(), None));
        let joined = join(&types, &sync::pin(), &parts, &Kept::default()).unwrap();
        assert_eq!(format!("{joined:?}"), format!("{:?}", page(0..2000)));
    }

    #[test]
    fn pages_of_any_sizes_stay_few_and_are_rewritten_seldom() {
        let mut state = 1_u64;
        let (mut pages, mut all, mut rewritten): (Vec<usize>, usize, usize) = (Vec::new(), 0, 0);
        for append in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Now and then one is much larger than the others.
            let versions = 4_000 + (state >> 33) as usize % 6_000 * if append % 100 == 0 { 20 } else { 1 };
            pages.insert(0, versions);
            all += versions;
            let joined = joined_pages(pages.iter().copied(), &Kept::default());
            if joined > 1 {
                let page: usize = pages.drain(..joined).sum();
                pages.insert(0, page);
                rewritten += page;
            }
            assert!(pages.len() < 31 * 4, "{pages:?}");
        }
        // 20,000 are between 32 * 32 and 32 * 32 * 32.
        assert!(rewritten <= all * 3, "{} times each", rewritten / all);
    }

    #[test]
    fn pages_stay_few_and_each_version_is_rewritten_seldom() {
        // Everything is kept; or a snapshot before all of it, so that nothing is seen together.
        for (kept, pages_max, times_max) in [(Kept::default(), 31 * 3, 4), (from(1), 11, 12)] {
            let mut history = empty();
            let mut rewritten = 0;
            for start in 2..=2001 {
                let before = history.clone();
                history = updates_kept(&history, (0..3).map(|slot| (slot, start)), start, &kept);
                let is_new = |page: &&HistoryEntry| !before.pages().iter().any(|old| Arc::ptr_eq(old, page));
                rewritten += history.pages().iter().filter(is_new).map(|page| page.outline.versions).sum::<usize>();
                assert!(history.pages().len() <= pages_max);
            }
            assert_eq!(history.len(), 6000);
            assert!(rewritten <= 6000 * times_max, "{} times each", rewritten / 6000);
        }
    }
}
