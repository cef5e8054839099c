//! The tables of an update range's tail pages.
//!
//! A table says for each number from `first` on where its page is. It is replaced where it is full and where pages are given up;
//! but for pages that are made later, what is in a table stays, so a reader that has loaded one finds all pages of that time in it.
//!
//! ```text
//! [`PageTables`]  owns the pages, and swaps tables under `changing`
//!      table      first = 5:  [5 ●][6 ●][7 ●][8  ]            a copy has the same pointers: no page is touched for it
//!      its copy          first = 7:  [7 ●][8  ][9  ][10 ]      5 and 6 are dropped once no reader can have the table before
//! ```
use std::ptr;
use std::sync::{Arc, PoisonError};

use sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use sync::blocking::Mutex;
use sync::{EpochCell, Guard, drop_later};

/// What is in the table.
pub(super) trait WithRecords: Send + Sync + 'static {
    /// The first word of the page's records.
    fn first_word(&self) -> *const AtomicU64;
}

/// The pages, and the table of them that is in use.
pub(super) struct PageTables<P: WithRecords> {
    table: EpochCell<PageTable<P>>,
    /// Held while a page is made or pages are given up.
    changing: Mutex<()>,
}

/// The pages from number `first` on; those before are history.
pub(super) struct PageTable<P> {
    pub(super) first: usize,
    slots: Box<[PageSlot<P>]>,
}

/// The place of a page in a table; of each page, the tables that are replaced have copies.
struct PageSlot<P> {
    /// The first word of its records, so that they are found without a look at the page. It follows the page, which alone says
    /// whether the records are there: while this is null, the page is to be asked.
    records: AtomicPtr<AtomicU64>,
    /// From `Arc::into_raw`, one count for all copies; null where there is no page yet.
    page: AtomicPtr<P>,
}

impl<P: WithRecords> PageTables<P> {
    /// No pages yet.
    pub(super) fn new() -> PageTables<P> {
        PageTables { table: EpochCell::new(PageTable { first: 0, slots: Box::default() }), changing: Mutex::new(()) }
    }

    /// The table that is in use.
    #[inline(always)]
    pub(super) fn load<'g>(&'g self, guard: &'g Guard) -> &'g PageTable<P> {
        self.table.load(guard)
    }

    /// Has these pages from now on, from number `first` on. Only for tables that have none yet.
    pub(super) fn restore(&self, guard: &Guard, first: usize, pages: impl Iterator<Item = Arc<P>>) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(self.load(guard).slots.is_empty(), "pages would be lost");
        let slot = |page: Arc<P>| {
            let slot = PageSlot::default();
            slot.put(page);
            slot
        };
        self.table.replace(PageTable { first, slots: pages.map(slot).collect() }, guard);
    }

    /// The page numbered `index`, made if need be.
    /// # Panics
    /// If the page was given up.
    pub(super) fn get_or_make<'g>(&'g self, guard: &'g Guard, index: usize, make: impl FnOnce() -> P) -> &'g P {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = self.load(guard);
        assert!(index >= table.first, "pages are given up only once all their records are merged");
        if index >= table.first + table.slots.len() {
            let len = (table.slots.len() * 2).max(4).max(index + 1 - table.first);
            self.table.replace(table.copy(table.first, len), guard);
            table = self.load(guard);
        }
        if table.get(index).is_none() {
            table.slots[index - table.first].put(Arc::new(make()));
        }
        table.get(index).expect("was there, or has just been made")
    }

    /// Gives up the pages before number `first`.
    pub(super) fn give_up(&self, guard: &Guard, first: usize) {
        let gone: Vec<Arc<P>> = {
            let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let table = self.load(guard);
            if first <= table.first {
                return;
            }
            let end = (table.first + table.slots.len()).max(first);
            self.table.replace(table.copy(first, end - first), guard);
            // SAFETY: the slots are not in the table that replaces this one, so the count is taken once.
            let take = |slot: &PageSlot<P>| unsafe { slot.take() };
            table.slots.iter().take(first - table.first).filter_map(take).collect()
        };
        drop_later(gone, guard);
    }
}

impl<P: WithRecords> Drop for PageTables<P> {
    fn drop(&mut self) {
        // SAFETY: the tables before this one have copies of its slots, and nothing looks into any of them any more; those that
        // were given up are not in this one.
        self.load(&sync::pin()).slots.iter().for_each(|slot| drop(unsafe { slot.take() }));
    }
}

impl<P: WithRecords> PageTable<P> {
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&P> {
        let page = self.slots.get(index.checked_sub(self.first)?)?.page.load(Ordering::Acquire);
        // SAFETY: null, or a page that is dropped once no reader can have this table, which is borrowed.
        unsafe { page.as_ref() }
    }

    /// The first word of the records of a page, if it is there.
    #[inline(always)]
    pub(super) fn records(&self, index: usize) -> *const AtomicU64 {
        let Some(slot) = self.slots.get(index.wrapping_sub(self.first)) else { return ptr::null() };
        let records = slot.records.load(Ordering::Acquire);
        if records.is_null() { self.records_of_page(index) } else { records.cast_const() }
    }

    /// The first word of the records, null where there is no page. Other threads use a page before the one that made it has noted
    /// its records.
    #[cold]
    fn records_of_page(&self, index: usize) -> *const AtomicU64 {
        self.get(index).map_or(ptr::null(), WithRecords::first_word)
    }

    /// The pages from number `first` on, with room for `len`.
    fn copy(&self, first: usize, len: usize) -> PageTable<P> {
        let before = self.slots.get(first - self.first..).unwrap_or_default();
        let slots = before.iter().map(PageSlot::copy).chain(std::iter::repeat_with(PageSlot::default));
        PageTable { first, slots: slots.take(len).collect() }
    }
}

impl<P> Default for PageSlot<P> {
    fn default() -> Self {
        PageSlot { records: AtomicPtr::default(), page: AtomicPtr::default() }
    }
}

impl<P: WithRecords> PageSlot<P> {
    fn put(&self, page: Arc<P>) {
        let records = page.first_word().cast_mut();
        self.page.store(Arc::into_raw(page).cast_mut(), Ordering::Release);
        self.records.store(records, Ordering::Release);
    }

    fn copy(&self) -> PageSlot<P> {
        let (records, page) = (self.records.load(Ordering::Acquire), self.page.load(Ordering::Acquire));
        PageSlot { records: AtomicPtr::new(records), page: AtomicPtr::new(page) }
    }

    /// The page, whose count the caller has from now on.
    ///
    /// # Safety
    /// Once for all copies of this.
    unsafe fn take(&self) -> Option<Arc<P>> {
        let page = self.page.load(Ordering::Acquire);
        // SAFETY: `put` has it from `Arc::into_raw`, and the caller's promise.
        (!page.is_null()).then(|| unsafe { Arc::from_raw(page) })
    }
}

#[cfg(all(test, not(loom)))]
mod sample {
    use std::sync::Arc;

    use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

    use super::WithRecords;

    /// A page that tells whether it is there still, and counts itself among those that are.
    pub(super) struct Numbered {
        pub(super) index: usize,
        pub(super) is_here: Arc<AtomicBool>,
        alive: Arc<AtomicUsize>,
        word: AtomicU64,
    }

    impl Numbered {
        pub(super) fn new(index: usize, alive: &Arc<AtomicUsize>) -> Numbered {
            alive.fetch_add(1, Ordering::SeqCst);
            let is_here = Arc::new(AtomicBool::new(true));
            Numbered { index, is_here, alive: alive.clone(), word: AtomicU64::new(index as u64) }
        }
    }

    impl Drop for Numbered {
        fn drop(&mut self) {
            assert!(self.is_here.swap(false, Ordering::SeqCst), "dropped twice");
            self.alive.fetch_sub(1, Ordering::SeqCst);
        }
    }

    impl WithRecords for Numbered {
        fn first_word(&self) -> *const AtomicU64 {
            &self.word
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::sample::Numbered;
    use super::*;

    #[test]
    fn each_page_is_dropped_once_and_no_sooner_than_its_readers_are_gone() {
        let alive = Arc::new(AtomicUsize::new(0));
        let tables = PageTables::new();
        let reader = sync::pin();
        for index in 0..100 {
            assert_eq!(tables.get_or_make(&reader, index, || Numbered::new(index, &alive)).index, index);
        }
        let before = tables.load(&reader);
        tables.give_up(&sync::pin(), 40);
        tables.give_up(&sync::pin(), 30);
        (0..100).for_each(|_| sync::pin().flush());
        assert_eq!(alive.load(Ordering::SeqCst), 100);
        assert!((0..100).all(|index| before.get(index).is_some_and(|page| page.index == index)));
        let now = tables.load(&reader);
        assert_eq!((now.first, now.get(39).is_none(), now.records(39).is_null()), (40, true, true));
        // SAFETY: the page is in the table, whose word this is.
        assert_eq!(unsafe { &*now.records(77) }.load(Ordering::Relaxed), 77);
        drop(reader);
        while alive.load(Ordering::SeqCst) > 60 {
            sync::await_readers(Duration::from_millis(10));
        }
        tables.give_up(&sync::pin(), 1_000);
        assert_eq!(tables.get_or_make(&sync::pin(), 1_000, || Numbered::new(1_000, &alive)).index, 1_000);
        while alive.load(Ordering::SeqCst) > 1 {
            sync::await_readers(Duration::from_millis(10));
        }
        drop(tables);
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_page_may_have_many_numbers() {
        let alive = Arc::new(AtomicUsize::new(0));
        let (tables, page) = (PageTables::new(), Arc::new(Numbered::new(7, &alive)));
        tables.restore(&sync::pin(), 5, (0..20).map(|_| page.clone()));
        drop(page);
        tables.give_up(&sync::pin(), 15);
        assert!(tables.load(&sync::pin()).get(24).is_some_and(|page| page.index == 7));
        drop(tables);
        while alive.load(Ordering::SeqCst) > 0 {
            sync::await_readers(Duration::from_millis(10));
        }
    }
}

#[cfg(all(test, shuttle))]
mod shuttle_models {
    use sync::atomic::AtomicUsize;

    use super::sample::Numbered;
    use super::*;

    /// A writer makes pages, so that tables are replaced, while a merge gives some up: a reader that has loaded a table finds in it
    /// what was there, alive until it lets go.
    #[test]
    fn pages_outlive_the_tables_of_their_readers() {
        let model = || {
            let alive = Arc::new(AtomicUsize::new(0));
            let tables = Arc::new(PageTables::new());
            (0..3).for_each(|index| _ = tables.get_or_make(&sync::pin(), index, || Numbered::new(index, &alive)));
            let writer = shuttle::thread::spawn({
                let (tables, alive) = (tables.clone(), alive.clone());
                move || {
                    for index in 3..6 {
                        let guard = sync::pin();
                        let page = tables.get_or_make(&guard, index, || Numbered::new(index, &alive));
                        assert!(page.is_here.load(Ordering::SeqCst));
                    }
                }
            });
            let merge = shuttle::thread::spawn({
                let tables = tables.clone();
                move || (1..3).for_each(|first| tables.give_up(&sync::pin(), first))
            });
            for _ in 0..2 {
                let guard = sync::pin();
                let table = tables.load(&guard);
                for index in table.first..6 {
                    let Some(page) = table.get(index) else { continue };
                    assert_eq!(page.index, index);
                    assert!(page.is_here.load(Ordering::SeqCst), "page {index} is gone");
                }
            }
            writer.join().unwrap();
            merge.join().unwrap();
            drop(tables);
        };
        shuttle::check_random(model, 2_000);
    }
}
