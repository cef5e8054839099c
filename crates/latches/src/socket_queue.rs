//! The queue latch for several sockets in one word (Dice and Kogan, "Compact NUMA-aware Locks", 2019: CNA). The
//! queue is that of [`QueueLatch`](super::QueueLatch), but an owner hands the latch to the first waiter on its own
//! socket, so that the latch and what it protects stay in the caches there. Waiters on other sockets that it passes
//! over move to a second queue:
//!
//! ```text
//! latch.tail --------------------------------------------------+
//!                                                              v
//! | owner, socket 0 | --next--> | waits, socket 0 | --next--> | waits, socket 1 | --> null
//!         |
//!         +-- passed over --> | waits, socket 1 | --next--> | waits, socket 2 | --> null
//! ```
//!
//! The second queue is handed on from owner to owner. It goes back to the front of the first when no thread of the
//! owner's socket waits, or when the latch has been handed on `HAND_OVERS` times while a waiter was passed over.
//! The paper draws lots for that, one in 65,536 on average; counting costs no more, and bounds every wait: a thread
//! is passed over for at most `HAND_OVERS` hand-overs for each socket before its own turn in the queue.
//!
//! A thread asks for its socket only when it has to wait. On a machine with one socket no waiter is ever passed
//! over.
use crate::place::{QueuePlace, SOCKET_UNKNOWN, WaiterState};
use crate::queue::try_acquire;
use crate::throttle::{MachineTopology, Topology};
use std::ptr;
use sync::atomic::{AtomicPtr, Ordering};
use sync::latch::{Elidable, Latch};

/// The paper's threshold: one hand-over in so many goes to another socket.
pub const HAND_OVERS: u32 = 1 << 16;

/// Lets threads in one by one, those of the owner's socket first. Readers exclude each other too.
#[derive(Debug)]
pub struct SocketQueueLatch<T = MachineTopology, const HAND_OVERS_MAX: u32 = HAND_OVERS> {
    tail: AtomicPtr<WaiterState>,
    topology: T,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<SocketQueueLatch>() == size_of::<usize>());

impl<T: Default, const HAND_OVERS_MAX: u32> Default for SocketQueueLatch<T, HAND_OVERS_MAX> {
    fn default() -> Self {
        SocketQueueLatch { tail: AtomicPtr::new(ptr::null_mut()), topology: T::default() }
    }
}

impl<T: Topology + Default, const HAND_OVERS_MAX: u32> SocketQueueLatch<T, HAND_OVERS_MAX> {
    /// A free latch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `last` the end of the queue, if the owner still is; null for an empty queue.
    fn try_end_with(&self, owner: &WaiterState, last: *mut WaiterState) -> bool {
        self.tail.compare_exchange(owner.link(), last, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Lets the next thread in, now that the owner leaves, and returns its place: null if no thread waits.
    ///
    /// # Safety
    /// `owner` is the place with which this thread acquired the latch, and it is released by this call.
    unsafe fn hand_on(&self, owner: &WaiterState) -> *mut WaiterState {
        let passed_over = owner.passed_over.load(Ordering::Relaxed);
        // SAFETY: the owner's second queue holds places that wait until the owner lets them in.
        let last = unsafe { last_passed_over(passed_over) };
        if owner.next.load(Ordering::Relaxed).is_null() && self.try_end_with(owner, last) {
            // SAFETY: as above; the owner lets in no other place.
            return unsafe { let_in(passed_over, ptr::null_mut(), 0) };
        }
        let next = owner.successor();
        let hand_overs = owner.hand_overs.load(Ordering::Relaxed);
        if hand_overs < HAND_OVERS_MAX
            // SAFETY: this thread owns the latch, and `next` is the place behind its own.
            && let Some(to) = unsafe { self.first_of_socket(owner, next) }
        {
            let passed_over = owner.passed_over.load(Ordering::Relaxed);
            // SAFETY: `to` is a waiter of the queue; the owner lets in no other place.
            return unsafe { let_in(to, passed_over, if passed_over.is_null() { 0 } else { hand_overs + 1 }) };
        }
        if passed_over.is_null() {
            // SAFETY: as above, for the place behind the owner's.
            return unsafe { let_in(next, ptr::null_mut(), 0) };
        }
        // SAFETY: a waiter that was passed over waits until it is let in, and only the owner touches its queue.
        unsafe {
            (*last).next.store(next, Ordering::Release);
            let_in(passed_over, ptr::null_mut(), 0)
        }
    }

    /// The first waiter from `next` on that runs on the owner's socket. The waiters before it are passed over.
    ///
    /// # Safety
    /// The caller owns the latch with the place `owner`, and `next` is the place behind it.
    unsafe fn first_of_socket(&self, owner: &WaiterState, next: *mut WaiterState) -> Option<*mut WaiterState> {
        let known = owner.socket.load(Ordering::Relaxed);
        let socket = if known == SOCKET_UNKNOWN { self.topology.current_socket() } else { known };
        let (mut last, mut waiting) = (ptr::null_mut::<WaiterState>(), next);
        // SAFETY: a waiter stays in the queue until it is let in, which only the owner does; its socket was written
        // before it was linked.
        while let Some(place) = unsafe { waiting.as_ref() } {
            if place.socket.load(Ordering::Relaxed) == socket {
                if !last.is_null() {
                    // SAFETY: the places up to `last` wait, and `waiting` stands behind it.
                    unsafe { pass_over(owner, next, last) };
                }
                return Some(waiting);
            }
            last = waiting;
            waiting = place.next.load(Ordering::Acquire);
        }
        None
    }
}

/// Makes `to` the owner, unless it is null, and gives it the second queue.
///
/// # Safety
/// The caller owns the latch until this call. `to` is null or waits to be let in, and so do the places from `passed_over` on.
#[inline]
unsafe fn let_in(to: *mut WaiterState, passed_over: *mut WaiterState, hand_overs: u32) -> *mut WaiterState {
    // SAFETY: a waiter stays in the queue until the last of these stores.
    if let Some(place) = unsafe { to.as_ref() } {
        place.passed_over.store(passed_over, Ordering::Relaxed);
        place.hand_overs.store(hand_overs, Ordering::Relaxed);
        place.is_waiting.store(false, Ordering::Release);
    }
    to
}

/// The last of the places that were passed over, from the first of them; null for none.
///
/// # Safety
/// The caller owns the latch, and `first` is null or the first of its second queue.
unsafe fn last_passed_over(first: *mut WaiterState) -> *mut WaiterState {
    // SAFETY: a waiter that was passed over waits until the owner lets it in.
    unsafe { first.as_ref() }.map_or(ptr::null_mut(), |first| first.passed_over_last.load(Ordering::Relaxed))
}

/// Moves the places from `first` to `last` to the end of the second queue.
///
/// # Safety
/// The caller owns the latch with the place `owner`. The places from `first` to `last` wait in its queue, and another one stands
/// behind `last`, so that no thread is about to link itself there.
unsafe fn pass_over(owner: &WaiterState, first: *mut WaiterState, last: *mut WaiterState) {
    let before = owner.passed_over.load(Ordering::Relaxed);
    let head = if before.is_null() { first } else { before };
    // SAFETY: all of these wait until the owner lets them in, and only the owner changes what they are linked to.
    unsafe {
        if !before.is_null() {
            (*last_passed_over(before)).next.store(first, Ordering::Relaxed);
        }
        (*last).next.store(ptr::null_mut(), Ordering::Relaxed);
        (*head).passed_over_last.store(last, Ordering::Relaxed);
    }
    owner.passed_over.store(head, Ordering::Relaxed);
}

// SAFETY: a thread is in when it found the queue empty or a leaving owner has told it so; an owner tells one waiter
// of either queue. Leaving is a release on the word that the next one acquires by.
unsafe impl<T: Topology + Default, const HAND_OVERS_MAX: u32> Latch for SocketQueueLatch<T, HAND_OVERS_MAX> {
    type Exclusive = QueuePlace;
    type Shared = QueuePlace;

    #[inline]
    fn acquire_exclusive(&self) -> QueuePlace {
        let taken = QueuePlace::take();
        let place = taken.place();
        let before = self.tail.swap(place.link(), Ordering::AcqRel);
        if !before.is_null() {
            place.socket.store(self.topology.current_socket(), Ordering::Relaxed);
            // SAFETY: the tail led to `before` until the exchange above; this thread waits until it is let in.
            unsafe { place.link_behind(before) };
            place.wait();
        } else {
            enter_free(place);
        }
        taken
    }

    #[inline]
    fn try_acquire_exclusive(&self) -> Option<QueuePlace> {
        let taken = try_acquire(&self.tail)?;
        enter_free(taken.place());
        Some(taken)
    }

    #[inline]
    unsafe fn release_exclusive(&self, held: QueuePlace) {
        // SAFETY: this thread acquired the latch with the place, which is out of the queue once the next one is let in.
        unsafe {
            self.hand_on(held.place());
            held.give_back();
        }
    }

    #[inline]
    fn acquire_shared(&self) -> QueuePlace {
        self.acquire_exclusive()
    }

    #[inline]
    fn try_acquire_shared(&self) -> Option<QueuePlace> {
        self.try_acquire_exclusive()
    }

    #[inline]
    unsafe fn release_shared(&self, held: QueuePlace) {
        // SAFETY: a shared hold of this latch is an exclusive one.
        unsafe { self.release_exclusive(held) }
    }
}

/// Sets what the owner of an empty queue knows. Waiters that are not passed over never read these fields.
#[inline]
fn enter_free(place: &WaiterState) {
    place.socket.store(SOCKET_UNKNOWN, Ordering::Relaxed);
    place.passed_over.store(ptr::null_mut(), Ordering::Relaxed);
    place.hand_overs.store(0, Ordering::Relaxed);
}

// SAFETY: there is one word, which every acquire writes.
unsafe impl<T: Topology + Default, const HAND_OVERS_MAX: u32> Elidable for SocketQueueLatch<T, HAND_OVERS_MAX> {
    #[inline]
    fn is_free(&self) -> bool {
        self.tail.load(Ordering::Acquire).is_null()
    }

    #[inline]
    fn is_free_of_writers(&self) -> bool {
        self.is_free()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
