//! How long a transaction waits before it begins again.
//!
//! A time by chance, up to twice as long after each conflict: of transactions that met, one is likely to be through
//! before the next comes back. From some length on the thread sleeps, so that it does not take the processor from the one
//! that it waits for.

use std::time::Duration;

use sync::hint::spin_loop;

const SPINS_FIRST: u64 = 16;
const DOUBLINGS_SPINNING: u32 = 6;
const DOUBLINGS_MAX: u32 = 10;
const SLEEP_FIRST: Duration = Duration::from_micros(5);

/// Waits longer each time.
pub(crate) struct Backoff {
    conflicts: u32,
    random: u64,
}

impl Backoff {
    /// For the thread with this number.
    pub(crate) fn new(thread: usize) -> Backoff {
        Backoff { conflicts: 0, random: (thread as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) }
    }

    pub(crate) fn wait(&mut self) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let doublings = self.conflicts;
        self.conflicts = (self.conflicts + 1).min(DOUBLINGS_MAX);
        if doublings < DOUBLINGS_SPINNING {
            let spins = self.random % (SPINS_FIRST << doublings);
            (0..spins).for_each(|_| spin_loop());
            return;
        }
        let share = (self.random >> 32) as u32 % 8 + 1;
        std::thread::sleep(SLEEP_FIRST * share * (1 << (doublings - DOUBLINGS_SPINNING)) / 4);
    }
}
