//! How long a transaction waits before it begins again.
//!
//! A random time, up to twice as long after each conflict: of transactions that met, one is likely to be through
//! before the next comes back. From some length on the thread sleeps, so that it does not take the processor from
//! the transaction that it waits for.
//!
//! **Right of way.** A transaction so long that others always overtake it would never end. After some conflicts it
//! asks for the right of way: other transactions let it commit first. There is one such right, looked at by one
//! load of a word that seldom changes; it is a courtesy, and a transaction that commits nevertheless does no harm.

use std::time::Duration;

use sync::CachePadded;
use sync::Pause;
use sync::atomic::{AtomicUsize, Ordering};
use sync::hint::spin_loop;

const SPINS_FIRST: u64 = 16;
const DOUBLINGS_SPINNING: u32 = 6;
const DOUBLINGS_MAX: u32 = 10;
const SLEEP_FIRST: Duration = Duration::from_micros(5);

/// After so many conflicts a transaction asks for the right of way.
const CONFLICTS_BORNE: u32 = 24;
/// The longest wait for another's right of way, in pauses: a fraction of a second, as it might wait for us.
const PAUSES_GIVEN: u32 = 700;

/// Which transaction may go first.
#[derive(Default)]
pub(crate) struct RightOfWay {
    /// The number of the thread and one, or 0.
    holder: CachePadded<AtomicUsize>,
}

/// The right, held by a transaction until it is dropped.
pub(crate) struct Held<'a> {
    right: &'a RightOfWay,
}

impl RightOfWay {
    fn ask(&self, thread: usize) -> Option<Held<'_>> {
        let asked = self.holder.compare_exchange(0, thread + 1, Ordering::Relaxed, Ordering::Relaxed);
        asked.is_ok().then_some(Held { right: self })
    }

    /// Lets another go first, if one has the right.
    #[inline]
    pub(crate) fn give(&self, thread: usize) {
        let holder = self.holder.load(Ordering::Relaxed);
        if holder != 0 && holder != thread + 1 {
            self.wait_for(holder);
        }
    }

    #[cold]
    fn wait_for(&self, holder: usize) {
        let mut pause = Pause::default();
        for _ in 0..PAUSES_GIVEN {
            if self.holder.load(Ordering::Relaxed) != holder {
                return;
            }
            pause.wait();
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.right.holder.store(0, Ordering::Relaxed);
    }
}

/// Waits longer each time.
pub(crate) struct Backoff<'a> {
    conflicts: u32,
    random: u64,
    thread: usize,
    right: &'a RightOfWay,
    held: Option<Held<'a>>,
}

impl<'a> Backoff<'a> {
    /// For a transaction of the thread with this number.
    pub(crate) fn new(right: &'a RightOfWay, thread: usize) -> Backoff<'a> {
        let random = (thread as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Backoff { conflicts: 0, random, thread, right, held: None }
    }

    /// Called after a conflict.
    pub(crate) fn wait(&mut self) {
        if self.conflicts >= CONFLICTS_BORNE && self.held.is_none() {
            self.held = self.right.ask(self.thread);
        }
        self.conflicts += 1;
        if self.held.is_none() {
            self.wait_by_chance();
        }
    }

    fn wait_by_chance(&mut self) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let doublings = (self.conflicts - 1).min(DOUBLINGS_MAX);
        if doublings < DOUBLINGS_SPINNING {
            let spins = self.random % (SPINS_FIRST << doublings);
            (0..spins).for_each(|_| spin_loop());
            return;
        }
        let share = (self.random >> 32) as u32 % 8 + 1;
        std::thread::sleep(SLEEP_FIRST * share * (1 << (doublings - DOUBLINGS_SPINNING)) / 4);
    }
}
