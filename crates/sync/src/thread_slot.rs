//! A small number for each thread, to spread threads over partitions (open insert ranges, log partitions, counters).
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The number of this thread: 0, 1, 2, ... in the order in which threads first ask.
#[inline]
pub fn thread_slot() -> usize {
    SLOT.with(|slot| {
        if slot.get() == usize::MAX {
            slot.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        slot.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_different_slots_that_stay() {
        let mine = thread_slot();
        assert_eq!(thread_slot(), mine);
        let other = std::thread::spawn(thread_slot).join().unwrap();
        assert_ne!(mine, other);
    }
}
