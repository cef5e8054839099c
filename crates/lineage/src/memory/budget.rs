//! The account of memory: every page is charged to its table and its kind while it lives.
//!
//! A [`Charge`] belongs to the page that it was made for and ends with it, so that what waits in the epoch queue is
//! still counted. Pages are kilobytes, so the two counters that a charge moves, of the table and of all tables
//! together, are touched seldom.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::memory::clock::{Clock, EvictionStats};
use crate::memory::source::PageSource;
use crate::memory::spare::SpareWords;

/// The uses of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryKind {
    /// insert pages
    Insert,
    /// base pages, and the Indirection words
    Base,
    /// tail pages
    Tail,
    /// history pages
    History,
    /// memory that evicted pages would take: on no budget
    Evicted,
}

/// Bytes by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// insert pages
    pub insert_bytes: u64,
    /// base pages, and the Indirection words
    pub base_bytes: u64,
    /// tail pages
    pub tail_bytes: u64,
    /// history pages
    pub history_bytes: u64,
    /// what pages would take that are evicted
    pub evicted_bytes: u64,
}

impl MemoryUse {
    /// All kinds that are in memory together.
    pub fn total_bytes(&self) -> u64 {
        self.insert_bytes + self.base_bytes + self.tail_bytes + self.history_bytes
    }
}

/// The bytes that all tables of a database use together, and how many they may.
#[derive(Debug)]
pub struct MemoryBudget {
    used: AtomicI64,
    limit: AtomicU64,
    /// what is in memory beside what is counted: pages make room for it
    beside: AtomicU64,
    /// what may be evicted
    clock: Clock,
    spare: SpareWords,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        let (used, limit, beside) = (AtomicI64::new(0), AtomicU64::new(u64::MAX), AtomicU64::new(0));
        MemoryBudget { used, limit, beside, clock: Clock::default(), spare: SpareWords::default() }
    }
}

impl MemoryBudget {
    /// The bytes in use.
    #[inline]
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed).max(0) as u64
    }

    /// The bytes that may be in use.
    #[inline]
    pub fn limit_bytes(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit.
    pub fn set_limit_bytes(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Whether no more is in use than may be.
    #[inline]
    pub fn is_within_limit(&self) -> bool {
        self.used_bytes() <= self.limit_bytes()
    }

    /// Counts bytes that are used for something other than pages, such as an index; negative to give them back.
    pub fn add(&self, bytes: i64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// So much of the limit may be what was evicted and has not come back, before readers wait for it.
const RETIRED_PART: u64 = 4;
/// The open ranges of a table may take so much of the limit with their insert pages.
const OPEN_PART: u64 = 8;
/// But each of them so many bytes.
const OPEN_BYTES: u64 = 512 << 10;
/// Copies are made while no more than this part of the limit is in use.
const COPIES_PART: u64 = 2;
/// From this part of the limit on pages are evicted, in hundredths.
const HIGH: u128 = 85;
/// And until no more than this is in use.
const LOW: u128 = 75;

impl MemoryBudget {
    /// Pages may be evicted from now on: tables made after this get them back from `source`.
    pub fn set_page_source(&self, source: Arc<dyn PageSource>) {
        self.clock.set_source(source);
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How many bytes the insert pages of a range may take before it counts as full, where a table has so many that are open.
    #[inline]
    pub(crate) fn open_range_bytes_max(&self, open: usize) -> u64 {
        (self.limit_bytes() / OPEN_PART / open as u64).max(OPEN_BYTES)
    }

    /// The words of pages that are gone.
    pub(crate) fn spare_words(&self) -> &SpareWords {
        &self.spare
    }

    fn part_of_limit(&self, hundredths: u128) -> u64 {
        (u128::from(self.limit_bytes()) * hundredths / 100) as u64
    }

    /// Notes how many bytes are in memory beside what is counted, such as those of queries and what the allocator keeps. Pages make
    /// room for them; no statement fails for their sake.
    pub fn set_beside_bytes(&self, bytes: u64) {
        self.beside.store(bytes, Ordering::Relaxed);
    }

    /// The bytes that were noted last.
    pub fn beside_bytes(&self) -> u64 {
        self.beside.load(Ordering::Relaxed)
    }

    /// What pages make room by: memory that will be in use soon, and what there is beside.
    fn pressing_bytes(&self) -> u64 {
        self.used_soon_bytes().saturating_add(self.beside_bytes())
    }

    /// Memory that will be in use once evicted pages have come back.
    fn used_soon_bytes(&self) -> u64 {
        self.used_bytes().saturating_sub(self.clock.retired_bytes())
    }

    /// Whether so much is in use that pages are to be evicted.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.pressing_bytes() > self.part_of_limit(HIGH)
    }

    /// Whether scans may put in memory what they read back.
    pub(crate) fn has_room(&self) -> bool {
        self.pressing_bytes() <= self.part_of_limit(LOW)
    }

    /// Whether memory is so plentiful that so many bytes may be used for what is there already in another form.
    pub fn has_room_for_copies(&self, bytes: u64) -> bool {
        self.used_bytes().saturating_add(self.beside_bytes()).saturating_add(bytes) <= self.limit_bytes() / COPIES_PART
    }

    /// If too much is in use, evicts pages until that is no longer so; returns how many bytes. To be called before
    /// reading pages back: each caller makes room for the memory that it needs.
    pub fn help_to_evict(&self) -> u64 {
        self.evict(self.pressing_bytes().saturating_sub(self.part_of_limit(HIGH)))
    }

    /// Evicts pages for a scan; returns how many bytes. A scan may go up to the limit with pages of its own: no
    /// page that others use has to go for them before.
    pub(crate) fn help_a_scan(&self) -> u64 {
        self.evict(self.pressing_bytes().saturating_sub(self.limit_bytes()))
    }

    /// Evicts pages down to a reserve, so that no caller has to help for a while; returns how many bytes. For a
    /// background thread, and for callers that can't go on.
    pub fn evict_to_reserve(&self) -> u64 {
        if self.is_crowded() { self.evict(self.pressing_bytes().saturating_sub(self.part_of_limit(LOW))) } else { 0 }
    }

    /// Of what is to be evicted, the part of what uses so many bytes.
    pub fn part_of_excess(&self, bytes: u64) -> u64 {
        let (used, kept) = (self.pressing_bytes(), self.part_of_limit(LOW));
        (u128::from(used.saturating_sub(kept)) * u128::from(bytes) / u128::from(used.max(1))) as u64
    }

    /// Whether no more will be in use than may be, once what is evicted has come back.
    pub fn is_within_limit_soon(&self) -> bool {
        self.used_soon_bytes() <= self.limit_bytes()
    }

    /// Waits, but not longer than this, while so many bytes more would be beyond the limit and much of what is in
    /// use is evicted and still being read: a caller that needs memory faster than others are done with evicted
    /// pages waits for them.
    pub fn await_readers(&self, bytes: u64, wait_max: Duration) {
        let mut begun: Option<Instant> = None;
        let is_too_much = || {
            let (used, limit) = (self.used_bytes().saturating_add(bytes), self.limit_bytes());
            used > limit && self.clock.retired_bytes() > limit / RETIRED_PART
        };
        while is_too_much() {
            if begun.get_or_insert_with(Instant::now).elapsed() > wait_max {
                return;
            }
            sync::pin().flush();
            sync::free_handed_over();
            std::thread::yield_now();
        }
    }

    /// Evicts pages of at least so many bytes, those first that were not used for the longest time, as far as there
    /// are any that a checkpoint has; returns how many bytes. Their memory comes back once their readers are done.
    pub fn evict(&self, bytes: u64) -> u64 {
        self.clock.evict(bytes)
    }

    /// Whether, since this was last asked, pages stayed only because no checkpoint has them.
    pub fn take_lack_of_blobs(&self) -> bool {
        self.clock.take_lack_of_blobs()
    }

    /// Notes that memory other than pages stays only because no checkpoint has what is in it.
    pub fn note_lack_of_blobs(&self) {
        self.clock.note_lack_of_blobs();
    }

    /// Whether evicted pages are still being read, so that their memory is to come back.
    #[cfg(test)]
    pub(crate) fn awaits_memory(&self) -> bool {
        self.clock.retired_bytes() > 0
    }

    /// Whether a page was ever evicted.
    #[inline]
    pub(crate) fn has_evicted(&self) -> bool {
        self.clock.has_evicted()
    }

    /// Counts of pages evicted and read back.
    pub fn evictions(&self) -> EvictionStats {
        self.clock.stats()
    }
}

/// The account of one table.
#[derive(Debug, Default)]
pub struct Meter {
    budget: Arc<MemoryBudget>,
    kinds: [AtomicI64; 5],
}

impl Meter {
    /// An account that draws on `budget`.
    pub fn new(budget: Arc<MemoryBudget>) -> Arc<Meter> {
        Arc::new(Meter { budget, kinds: Default::default() })
    }

    /// The budget that it draws on.
    #[inline]
    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The memory that the table uses now.
    pub fn used(&self) -> MemoryUse {
        let used = |kind: MemoryKind| self.kinds[kind as usize].load(Ordering::Relaxed).max(0) as u64;
        MemoryUse {
            insert_bytes: used(MemoryKind::Insert),
            base_bytes: used(MemoryKind::Base),
            tail_bytes: used(MemoryKind::Tail),
            history_bytes: used(MemoryKind::History),
            evicted_bytes: used(MemoryKind::Evicted),
        }
    }

    fn add(&self, kind: MemoryKind, bytes: i64) {
        self.kinds[kind as usize].fetch_add(bytes, Ordering::Relaxed);
        if kind != MemoryKind::Evicted {
            self.budget.add(bytes);
        }
    }
}

/// Bytes charged to a table for as long as this lives.
#[derive(Debug)]
pub struct Charge {
    meter: Arc<Meter>,
    kind: MemoryKind,
    bytes: AtomicU64,
    is_retired: AtomicBool,
}

impl Charge {
    /// Charges `bytes`.
    pub fn new(meter: &Arc<Meter>, kind: MemoryKind, bytes: usize) -> Charge {
        meter.add(kind, bytes as i64);
        Charge { meter: meter.clone(), kind, bytes: AtomicU64::new(bytes as u64), is_retired: AtomicBool::new(false) }
    }

    /// The account.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Charges more.
    pub fn grow(&self, bytes: usize) {
        self.meter.add(self.kind, bytes as i64);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Charge {
    /// The bytes charged.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Gives all of it back before it is dropped.
    pub(crate) fn give_back(&self) {
        self.meter.add(self.kind, -(self.bytes.swap(0, Ordering::Relaxed) as i64));
    }

    /// Notes that this is given back as soon as no reader is left.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
        self.meter.budget.clock.has_retired(self.bytes() as i64);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut() as i64;
        self.meter.add(self.kind, -bytes);
        if *self.is_retired.get_mut() {
            self.meter.budget.clock.has_retired(-bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use types::{Column, DataType, Schema};

    use super::*;
    use crate::{Cell, Table, TableOptions};

    #[test]
    fn a_range_is_full_when_its_insert_pages_take_much_of_the_limit() {
        let budget = Arc::new(MemoryBudget::default());
        let schema = Schema::new(vec![Column::new("t", DataType::TEXT)], &[]).unwrap();
        let options = TableOptions { workers: 2, ..TableOptions::with_range(1 << 14) };
        let table = Table::new(schema, options, budget.clone());
        let insert = || (0..6_000).for_each(|_| assert!(!table.insert(&[Cell::Bytes(&[b'x'; 1_000])], 1).is_tail()));
        insert();
        assert_eq!(table.range_count(), 1, "without a limit it has room for 16,384 records");
        // Another 6 MB, of which a range may have 1, with what is not used yet.
        budget.set_limit_bytes(16 << 20);
        insert();
        assert!((7..12).contains(&table.range_count()), "{} ranges", table.range_count());
        let (open, full) = (table.range_count() - 1, 0..table.range_count() - 1);
        assert!(full.clone().all(|range| table.is_merge_due(range, false)) && !table.is_merge_due(open, false));
        budget.set_limit_bytes(u64::MAX);
        insert();
        assert_eq!(table.range_count(), open + 1, "the open one is filled then");
    }

    #[test]
    fn what_is_beside_presses_on_pages_and_is_not_in_use() {
        let budget = MemoryBudget::default();
        budget.set_limit_bytes(1_000);
        budget.add(600);
        assert!(budget.has_room() && !budget.is_crowded() && budget.is_within_limit());
        budget.set_beside_bytes(200);
        assert!(!budget.has_room() && !budget.is_crowded() && !budget.has_room_for_copies(0));
        budget.set_beside_bytes(500);
        assert!(budget.is_crowded() && budget.is_within_limit() && budget.is_within_limit_soon());
        assert_eq!((budget.used_bytes(), budget.beside_bytes()), (600, 500));
        budget.set_beside_bytes(0);
        assert!(budget.has_room());
    }

    #[test]
    fn what_is_charged_is_given_back() {
        let budget = Arc::new(MemoryBudget::default());
        budget.set_limit_bytes(1_000);
        let meter = Meter::new(budget.clone());
        let base = Charge::new(&meter, MemoryKind::Base, 600);
        let tail = Charge::new(&meter, MemoryKind::Tail, 300);
        tail.grow(50);
        assert_eq!((meter.used().base_bytes, meter.used().tail_bytes, budget.used_bytes()), (600, 350, 950));
        assert!(budget.is_within_limit());
        budget.set_limit_bytes(949);
        assert!(!budget.is_within_limit());
        drop(base);
        assert_eq!((meter.used().total_bytes(), budget.used_bytes()), (350, 350));
        drop(tail);
        assert_eq!((meter.used(), budget.used_bytes()), (MemoryUse::default(), 0));
    }
}
