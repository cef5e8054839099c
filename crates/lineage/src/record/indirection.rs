//! The Indirection words of a range: for each record the sequence of its newest version, 0 as long as it was never updated (L-Store,
//! section 2.2), and the latch bit.
//!
//! Most records of most tables are never updated. So the words take memory page by page, with the first writer of a word there, and are
//! charged then.
use std::ops::Deref;
use std::sync::Arc;

use sync::atomic::{AtomicU64, Ordering};
use sync::{PAGE_BYTES, SparseAtomics};

use crate::memory::budget::{Charge, MemoryKind, Meter};

/// Words of a page.
const PAGE_WORDS: usize = PAGE_BYTES / size_of::<u64>();

/// See the module. A writer [touches](Self::touch) a word before it stores to it.
pub(crate) struct IndirectionWords {
    words: SparseAtomics,
    /// the pages that were charged, a bit each
    touched: Box<[AtomicU64]>,
    charge: Charge,
}

impl IndirectionWords {
    /// Those of so many records, which were never updated.
    pub(crate) fn new(len: usize, meter: &Arc<Meter>) -> IndirectionWords {
        let pages = len.div_ceil(PAGE_WORDS);
        IndirectionWords {
            words: SparseAtomics::new(len),
            touched: (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            charge: Charge::new(meter, MemoryKind::Base, 0),
        }
    }

    /// Sees to it that the memory of a word is charged, which is about to be written.
    #[inline]
    pub(crate) fn touch(&self, slot: usize) {
        let page = slot / PAGE_WORDS;
        let (touched, bit) = (&self.touched[page / 64], 1 << (page % 64));
        if touched.load(Ordering::Relaxed) & bit == 0 {
            self.touch_first(touched, bit);
        }
    }

    #[cold]
    fn touch_first(&self, touched: &AtomicU64, bit: u64) {
        // Of those that come at once, one is the first.
        if touched.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.charge.grow(PAGE_WORDS.min(self.words.len()) * size_of::<u64>());
        }
    }
}

impl Deref for IndirectionWords {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use types::{Rid, TxnId};

    use super::*;
    use crate::tests::mechanism::{Fixture, options};
    use crate::{Hold, PointColumns};

    #[test]
    fn each_way_to_write_a_word_charges_it_once() {
        let fixture = Fixture::filled(1, options(4096, 4096), 4096);
        let charged = || fixture.range().indirection.charge.bytes();
        assert_eq!(charged(), 0, "inserts write none");
        fixture.update(0, 5, &[(0, 50)]);
        assert_eq!(charged(), PAGE_BYTES as u64);
        let (txn, rid) = (TxnId::new(1), |slot: usize| Rid::base(0, slot));
        let view = || fixture.own_view(6, txn);
        fixture.table.lock(view(), txn.word(), rid(600), Hold::Whole).unwrap();
        assert_eq!(charged(), 2 * PAGE_BYTES as u64);
        let (guard, columns) = (&sync::pin(), PointColumns::new(fixture.table.schema(), &[0]).unwrap());
        let append = |slot| fixture.table.point(rid(slot)).prefetch().append(guard, view(), txn.word(), &columns, &[7]);
        append(1200).expect("nobody is in the way");
        assert_eq!(charged(), 3 * PAGE_BYTES as u64);
        append(1201).expect("nobody is in the way");
        fixture.table.newest_writer_latched(view(), rid(1)).unwrap();
        assert_eq!(charged(), 3 * PAGE_BYTES as u64, "these pages are charged");
    }

    #[test]
    fn memory_is_charged_with_the_first_word_of_a_page() {
        let meter = Meter::new(Arc::default());
        let words = IndirectionWords::new(65_536, &meter);
        let charged = || meter.used().base_bytes;
        assert_eq!(charged(), 0);
        for (slot, pages) in [(0, 1), (511, 1), (512, 2), (65_535, 3), (0, 3), (40_000, 4)] {
            words.touch(slot);
            assert_eq!(charged(), pages * PAGE_BYTES as u64, "slot {slot}");
        }
        let few = IndirectionWords::new(64, &meter);
        few.touch(63);
        assert_eq!(charged(), 4 * PAGE_BYTES as u64 + 64 * 8, "a small range has no page of its own");
        drop((words, few));
        assert_eq!(charged(), 0);
    }
}
