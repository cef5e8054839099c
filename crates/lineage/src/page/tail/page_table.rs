//! The table of an update range's tail pages.
use std::sync::Arc;

use sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use sync::blocking::OnceLock;

/// What is in the table.
pub(super) trait WithRecords {
    /// The first word of the page's records.
    fn first_word(&self) -> *const AtomicU64;
}

/// The pages from number `first` on; those before are history.
pub(super) struct PageTable<P> {
    pub(super) first: usize,
    pub(super) pages: Box<[PageSlot<P>]>,
}

/// The place of a page in the table.
pub(super) struct PageSlot<P> {
    /// The first word of its records, so that they are found without a look at the page. It follows the page, which alone says
    /// whether the records are there: while this is null, the page is to be asked.
    records: AtomicPtr<AtomicU64>,
    page: OnceLock<Arc<P>>,
}

impl<P> Default for PageSlot<P> {
    fn default() -> Self {
        PageSlot { records: AtomicPtr::default(), page: OnceLock::default() }
    }
}

impl<P: WithRecords> PageSlot<P> {
    pub(super) fn of(page: Arc<P>) -> PageSlot<P> {
        PageSlot { records: AtomicPtr::new(page.first_word().cast_mut()), page: OnceLock::from(page) }
    }

    /// The page, made if need be. One thread at a time.
    pub(super) fn get_or_make(&self, make: impl FnOnce() -> Arc<P>) -> &P {
        let page = self.page.get_or_init(make);
        self.records.store(page.first_word().cast_mut(), Ordering::Release);
        page
    }

    /// The first word of the records, null where there is no page. Other threads use a page before the one that made it has noted
    /// its records.
    #[cold]
    fn records_of_page(&self) -> *const AtomicU64 {
        self.page.get().map_or(std::ptr::null(), |page| page.first_word())
    }
}

impl<P: WithRecords> PageTable<P> {
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&P> {
        self.pages.get(index.checked_sub(self.first)?)?.page.get().map(|page| &**page)
    }

    /// The first word of the records of a page, if it is there.
    #[inline(always)]
    pub(super) fn records(&self, index: usize) -> *const AtomicU64 {
        let Some(slot) = self.pages.get(index.wrapping_sub(self.first)) else { return std::ptr::null() };
        let records = slot.records.load(Ordering::Acquire);
        if records.is_null() { slot.records_of_page() } else { records.cast_const() }
    }

    /// The pages from number `first` on, with room for `len`.
    pub(super) fn copy(&self, first: usize, len: usize) -> PageTable<P> {
        let page = |index: usize| match self.pages.get(first - self.first + index).and_then(|slot| slot.page.get()) {
            Some(page) => PageSlot::of(page.clone()),
            None => PageSlot::default(),
        };
        PageTable { first, pages: (0..len).map(page).collect() }
    }
}
