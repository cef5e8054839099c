//! The gate between writers and the beginning of a snapshot.
//!
//! A snapshot begins at an instant at which no update is under way: the paper quiesces its threads for that (Šidlauskas
//! et al., "A Comparison of the Use of Virtual Versus Physical Snapshots", section 2.2). Here a writer announces each update,
//! or each batch of updates, in a *seat* of its own, and the *gate* is closed while a snapshot begins:
//!
//! ```text
//! writer                                     snapshot
//!   seat := my number                          closed := true
//!   fence                                      fence
//!   closed?  yes: seat := 0, wait              wait until every seat is 0
//!   update                                     take the snapshot
//!   seat := 0                                  closed := false
//! ```
//!
//! Of the two fences at least one comes second, and its thread sees what the other wrote before: either the writer steps back
//! or the snapshot waits for it. A writer writes its own cache line alone and reads one that does not change, so updates cost
//! the same with any number of writers. Where memory holds single updates back by itself ([`crate::mechanism::userfault`]), batches
//! alone are announced. Updates are frequent and snapshots rare, so the writer's fence is one of the compiler
//! only where the system can run a fence on all processors of the process (`membarrier`) in the snapshot's place.
use std::sync::{Arc, PoisonError};

use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use sync::blocking::{Mutex, MutexGuard};
use sync::hint::SpinWait;

/// The thread has a batch open, for which a closed gate would wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InsideBatch;

/// Where a writer announces that it writes: 0, or the number of its thread and one.
#[derive(Debug)]
pub(crate) struct Seat(CachePadded<AtomicUsize>);

/// Lets writers through, or holds them back.
#[derive(Debug)]
pub(crate) struct Gate {
    /// On a cache line of its own, which all writers read.
    is_closed: CachePadded<AtomicBool>,
    /// Whether writers leave the fence to the snapshot.
    has_membarrier: bool,
    /// Held while the gate is closed. Writers wait for it.
    turn: Mutex<()>,
    seats: Mutex<Vec<Arc<Seat>>>,
}

/// The gate is closed, and no writer writes; it opens when this is dropped.
#[derive(Debug)]
pub(crate) struct Closed<'a> {
    gate: &'a Gate,
    _turn: MutexGuard<'a, ()>,
}

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate {
            is_closed: CachePadded::new(AtomicBool::new(false)),
            has_membarrier: register_membarrier(),
            turn: Mutex::new(()),
            seats: Mutex::new(Vec::new()),
        }
    }

    /// A seat for a writer, until [`Gate::leave`].
    pub(crate) fn seat(&self) -> Arc<Seat> {
        let seat = Arc::new(Seat(CachePadded::new(AtomicUsize::new(0))));
        self.lock_seats().push(seat.clone());
        seat
    }

    /// Takes back the seat of a writer that writes no more.
    pub(crate) fn leave(&self, seat: &Arc<Seat>) {
        self.lock_seats().retain(|other| !Arc::ptr_eq(other, seat));
    }

    /// Begins an update or a batch; waits while the gate is closed. `me` is the number of this thread and one.
    #[inline]
    pub(crate) fn enter(&self, seat: &Seat, me: usize) {
        seat.0.store(me, Ordering::Relaxed);
        self.light_fence();
        if self.is_closed.load(Ordering::Acquire) {
            self.enter_late(seat, me);
        }
    }

    /// Ends what [`Gate::enter`] began.
    #[inline]
    pub(crate) fn exit(&self, seat: &Seat) {
        seat.0.store(0, Ordering::Release);
    }

    /// The gate was closed on the way in.
    #[cold]
    fn enter_late(&self, seat: &Seat, me: usize) {
        // The snapshot waits for this thread's open batch; an update of another writer within that batch is a part of it.
        if self.lock_seats().iter().any(|other| !std::ptr::eq(&**other, seat) && other.0.load(Ordering::Relaxed) == me)
        {
            return;
        }
        self.exit(seat);
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // With the turn in hand no snapshot begins, and the next one will find the seat taken.
        seat.0.store(me, Ordering::Relaxed);
    }

    /// Holds back new updates and waits for those under way. `me` is the number of this thread and one.
    ///
    /// # Errors
    /// Where this thread has a batch open itself.
    pub(crate) fn close(&self, me: usize) -> Result<Closed<'_>, InsideBatch> {
        if self.lock_seats().iter().any(|seat| seat.0.load(Ordering::Relaxed) == me) {
            return Err(InsideBatch);
        }
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_closed.store(true, Ordering::Relaxed);
        self.heavy_fence();
        // A seat that is taken later belongs to a writer that will find the gate closed: the lock of the list orders both.
        let seats = self.lock_seats().clone();
        for seat in seats {
            let mut wait = SpinWait::new();
            while seat.0.load(Ordering::Acquire) != 0 {
                wait.pause();
            }
        }
        Ok(Closed { gate: self, _turn: turn })
    }

    fn lock_seats(&self) -> MutexGuard<'_, Vec<Arc<Seat>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn light_fence(&self) {
        if self.has_membarrier {
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    fn heavy_fence(&self) {
        fence(Ordering::SeqCst);
        #[cfg(not(any(loom, shuttle)))]
        if self.has_membarrier {
            let done = rustix::thread::membarrier(rustix::thread::MembarrierCommand::PrivateExpedited);
            assert!(done.is_ok(), "a registered process may ask for fences: {done:?}");
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.gate.is_closed.store(false, Ordering::Release);
    }
}

/// Whether the system runs fences on all processors of this process when it is asked.
#[cfg(not(any(loom, shuttle, miri)))]
fn register_membarrier() -> bool {
    use rustix::thread::{MembarrierCommand, membarrier};
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
        && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// A model checker and an interpreter know fences alone.
#[cfg(any(loom, shuttle, miri))]
fn register_membarrier() -> bool {
    false
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_an_open_batch_cannot_close_the_gate_and_may_use_a_second_seat() {
        let gate = Gate::new();
        let (first, second) = (gate.seat(), gate.seat());
        gate.enter(&first, 7);
        assert_eq!(gate.close(7).err(), Some(InsideBatch));
        std::thread::scope(|threads| {
            let closer = threads.spawn(|| drop(gate.close(8)));
            while !gate.is_closed.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            gate.enter(&second, 7);
            gate.exit(&second);
            assert!(!closer.is_finished(), "the batch is still open");
            gate.exit(&first);
        });
        assert!(gate.close(7).is_ok());
        gate.leave(&first);
        gate.leave(&second);
        assert!(gate.lock_seats().is_empty());
    }
}
