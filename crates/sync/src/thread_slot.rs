//! A small number for each thread, to spread threads over partitions (open insert ranges, log partitions, counters).
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(0);
static NEXT_WRITER: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
    static WRITER_SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The number of this thread: 0, 1, 2, ... in the order in which threads first ask.
#[inline]
pub fn thread_slot() -> usize {
    SLOT.with(|slot| number(slot, &NEXT))
}

/// The number of this thread among those that write rows, which have none between them: of as many places as there are writers each
/// has its own, whatever threads of the background were begun beside them.
#[inline]
pub fn writer_slot() -> usize {
    WRITER_SLOT.with(|slot| number(slot, &NEXT_WRITER))
}

#[inline]
fn number(slot: &Cell<usize>, next: &AtomicUsize) -> usize {
    if slot.get() == usize::MAX {
        slot.set(next.fetch_add(1, Ordering::Relaxed));
    }
    slot.get()
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

    #[test]
    fn writers_have_neighbouring_slots_whatever_other_threads_there_are() {
        let both = || {
            let slots = (thread_slot(), writer_slot());
            assert_eq!((thread_slot(), writer_slot()), slots);
            slots
        };
        let (_, first) = both();
        let others: Vec<usize> = (0..5).map(|_| std::thread::spawn(thread_slot).join().unwrap()).collect();
        assert!(others.is_sorted(), "{others:?}");
        let (_, second) = std::thread::spawn(both).join().unwrap();
        assert_eq!(second, first + 1);
    }
}
