//! Tail pages after a restart: the numbers that were handed out before, nearly all of which may be tombstones.
use std::sync::Arc;

use sync::Guard;
use types::StartTime;

use crate::page::tail::{TailPage, TailPages};

impl TailPages {
    /// Numbers up to here were handed out before a restart; [`restore`](Self::restore) comes before any of them is looked for.
    pub(crate) fn restore_numbers(&self, allocated: u64) {
        self.sequences.restore(allocated);
    }

    /// Makes the numbers above `through` known that were handed out before a restart: all are tombstones but for the `records`, which
    /// ascend and which the caller writes next. Pages without any of these are one and the same.
    pub(crate) fn restore(&self, guard: &Guard, through: u64, records: &[u64]) {
        let allocated = self.allocated();
        let bury = |page: &TailPage, from: usize, to: usize| {
            (from..to).for_each(|at| page.record_place(at).publish(StartTime::TOMBSTONE));
        };
        let all = self.page_records();
        let mut buried: Option<Arc<TailPage>> = None;
        let mut left = records;
        let (first, end) = (through as usize >> self.page_bits, (allocated as usize).div_ceil(all));
        let page = |index: usize| {
            let numbered = all.min(allocated as usize - (index << self.page_bits));
            let here = left.partition_point(|sequence| self.place(*sequence).0 == index);
            let (written, rest) = left.split_at(here);
            left = rest;
            if written.is_empty() && numbered == all {
                let page = buried.get_or_insert_with(|| {
                    let page = Arc::new(self.new_page(index));
                    bury(&page, 0, all);
                    page
                });
                return page.clone();
            }
            let page = self.new_page(index);
            let mut next = 0;
            for sequence in written {
                let (_, at) = self.place(*sequence);
                bury(&page, next, at);
                next = at + 1;
            }
            bury(&page, next, numbered);
            Arc::new(page)
        };
        self.pages.restore(guard, first, (first..end).map(page));
    }
}
