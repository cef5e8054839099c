//! Threads that free what was replaced, so that others need not.
//!
//! Under epochs any thread that pins may have to free what another one has replaced long before: a short transaction comes upon the
//! pages of a merge, waits at latches of the allocator that the merging thread holds, and has the system take memory back that is
//! needed again a moment later. A thread that has registered as a [`Reclaimer`] takes such work over. While there is one, all others
//! put what they come upon into a list, a few words each, and the reclaimer drops it when it has nothing better to do. Where the list
//! is long, it can't keep up, and each thread frees for itself again.
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// As many values may wait for a reclaimer.
const WAITING_MAX: usize = 256;

/// How many reclaimers there are, so that no latch is taken where there is none.
static RECLAIMERS: AtomicUsize = AtomicUsize::new(0);
static WAITING: Mutex<Waiting> = Mutex::new(Waiting { reclaimers: 0, values: Vec::new() });
/// Held while values are dropped, so that a thread that needs the memory knows when it is there.
static DROPPING: Mutex<()> = Mutex::new(());

struct Waiting {
    /// counted under the latch, so that the last one leaves nothing behind
    reclaimers: usize,
    values: Vec<Box<dyn Send>>,
}

thread_local! {
    static IS_RECLAIMER: Cell<bool> = const { Cell::new(false) };
}

/// That the thread frees for others.
pub struct Reclaimer(std::marker::PhantomData<*const ()>);

impl Reclaimer {
    /// From now on, and until this is dropped, the thread frees for others, whenever it calls [`free_handed_over`]. A thread
    /// registers once.
    pub fn register() -> Reclaimer {
        IS_RECLAIMER.set(true);
        let mut waiting = waiting();
        waiting.reclaimers += 1;
        RECLAIMERS.store(waiting.reclaimers, Ordering::Relaxed);
        Reclaimer(std::marker::PhantomData)
    }
}

/// Frees what was handed over before the call, or waits until another thread has: for reclaimers, and for threads that need the memory
/// now.
pub fn free_handed_over() {
    if RECLAIMERS.load(Ordering::Relaxed) > 0 {
        let _dropping = DROPPING.lock().unwrap_or_else(PoisonError::into_inner);
        let values = std::mem::take(&mut waiting().values);
        drop(values);
    }
}

impl Drop for Reclaimer {
    fn drop(&mut self) {
        IS_RECLAIMER.set(false);
        let mut waiting = waiting();
        waiting.reclaimers -= 1;
        RECLAIMERS.store(waiting.reclaimers, Ordering::Relaxed);
        let values = if waiting.reclaimers == 0 { std::mem::take(&mut waiting.values) } else { Vec::new() };
        drop(waiting);
        drop(values);
    }
}

/// Drops a value that no reader is left of, or has a reclaimer drop it.
pub(crate) fn drop_or_hand_over<T: Send + 'static>(value: Box<T>) {
    if RECLAIMERS.load(Ordering::Relaxed) > 0 && !IS_RECLAIMER.try_with(Cell::get).unwrap_or(false) {
        let mut waiting = waiting();
        if waiting.reclaimers > 0 && waiting.values.len() < WAITING_MAX {
            waiting.values.push(value);
        }
    }
}

fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::thread::{self, ThreadId};

    use super::*;
    use crate::{EpochCell, pin};

    /// Each test has the only reclaimer.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Notes which thread dropped it.
    struct Noted(Arc<Mutex<Vec<ThreadId>>>);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(thread::current().id());
        }
    }

    #[test]
    fn what_others_replaced_is_dropped_by_the_reclaimer_and_at_its_end() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (dropped_by, is_done) = (Arc::new(Mutex::new(Vec::new())), AtomicBool::new(false));
        let cell = EpochCell::new(Noted(dropped_by.clone()));
        let registered = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            let reclaimer = scope.spawn(|| {
                let _reclaimer = Reclaimer::register();
                registered.wait();
                while !is_done.load(Ordering::Acquire) {
                    free_handed_over();
                }
                thread::current().id()
            });
            registered.wait();
            for _ in 0..20 {
                cell.replace_large(Noted(dropped_by.clone()), &pin());
            }
            // Other tests hold the epoch up for a while.
            let started = std::time::Instant::now();
            while dropped_by.lock().unwrap().len() < 20 && started.elapsed() < std::time::Duration::from_secs(20) {
                pin().flush();
                thread::yield_now();
            }
            is_done.store(true, Ordering::Release);
            let id = reclaimer.join().unwrap();
            let dropped_by = dropped_by.lock().unwrap();
            assert_eq!((dropped_by.len(), dropped_by.iter().all(|by| *by == id)), (20, true), "{dropped_by:?}");
        });
        // Without one each thread drops what it comes upon.
        drop(cell);
        assert_eq!(dropped_by.lock().unwrap().last(), Some(&thread::current().id()));
    }

    /// Takes its time to go.
    struct Slow(Arc<AtomicBool>);

    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(std::time::Duration::from_millis(2));
            self.0.store(true, Ordering::Release);
        }
    }

    #[test]
    fn a_thread_that_needs_the_memory_waits_for_the_one_that_frees_it() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_done, registered) = (AtomicBool::new(false), std::sync::Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _reclaimer = Reclaimer::register();
                registered.wait();
                while !is_done.load(Ordering::Acquire) {
                    free_handed_over();
                }
            });
            registered.wait();
            let frees = |_| {
                let is_freed = Arc::new(AtomicBool::new(false));
                drop_or_hand_over(Box::new(Slow(is_freed.clone())));
                free_handed_over();
                is_freed.load(Ordering::Acquire)
            };
            let have_all = (0..50).all(frees);
            is_done.store(true, Ordering::Release);
            assert!(have_all, "a value was still being dropped");
        });
    }
}
