//! A latch with readers that do not share a cache line (Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer
//! Locks", 2019).
//!
//! Even readers that let each other in write the latch word, and its cache line then travels between them: that is what
//! limits a read-only index in tsx-index, section 2.1.4. While the latch is biased, a reader instead writes the address
//! of the latch into a line of its own:
//!
//! ```text
//! visible readers, one for the process:     | line of thread 0: slot | slot | ... |
//!                                           | line of thread 1: slot | slot | ... |    slot = hash(latch)
//! ```
//!
//! A writer takes the latch inside, ends the bias and waits until the latch stands in no slot. That is dear, so the
//! bias comes back only after a pause of [`PAUSE_FACTOR`] times as long as the writer took: writers lose a bounded
//! share of their time. BRAVO hashes latch and thread into one flat table; here each thread has a line, since two
//! neighbours in a flat table would share one.
use std::sync::Arc;
use sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, total_order};
use sync::hint::SpinWait;
use sync::{CachePadded, Clock, Latch, SystemClock, line_count};

/// How much longer than the revocation the bias stays away: writers lose one part in ten at most.
const PAUSE_FACTOR: u64 = 9;

/// Readers of the slow path for one look at the clock, which costs more than a latch.
#[cfg(not(any(loom, shuttle)))]
const READERS_PER_LOOK: u32 = 16;
#[cfg(any(loom, shuttle))]
const READERS_PER_LOOK: u32 = 1;

/// Slots in the line of a thread: latches that it can hold for reading this way at once.
#[cfg(not(any(loom, shuttle)))]
const SLOTS: usize = 16;
#[cfg(any(loom, shuttle))]
const SLOTS: usize = 1;

const _: () = assert!(SLOTS.is_power_of_two());

/// Where readers of biased latches show themselves to writers. One table serves any number of latches.
pub struct VisibleReaders {
    lines: Box<[CachePadded<[AtomicUsize; SLOTS]>]>,
}

impl VisibleReaders {
    /// A table with a line for each of `lines` threads (rounded up to a power of two); further threads share.
    pub fn with_lines(lines: usize) -> Self {
        let line = |_| CachePadded::new(std::array::from_fn(|_| AtomicUsize::new(0)));
        VisibleReaders { lines: (0..lines.next_power_of_two()).map(line).collect() }
    }

    /// The table that latches share unless they are given another.
    #[cfg(not(any(loom, shuttle)))]
    fn shared_by_default() -> Arc<Self> {
        static TABLE: std::sync::OnceLock<Arc<VisibleReaders>> = std::sync::OnceLock::new();
        TABLE.get_or_init(|| Arc::new(VisibleReaders::with_lines(line_count()))).clone()
    }

    /// A table that outlived the run of a model would make the next run differ.
    #[cfg(any(loom, shuttle))]
    fn shared_by_default() -> Arc<Self> {
        Arc::new(VisibleReaders::with_lines(line_count()))
    }

    #[inline]
    fn slot(&self, latch: usize) -> &AtomicUsize {
        let line = sync::thread::number() & (self.lines.len() - 1);
        &self.lines[line][slot_in_line(latch)]
    }

    /// Waits until the latch stands in no slot; without `may_wait`, only looks. True when it stands in none.
    fn is_clear_of(&self, latch: usize, may_wait: bool) -> bool {
        let slot_in_line = slot_in_line(latch);
        for line in &self.lines {
            let mut wait = SpinWait::new();
            while line[slot_in_line].load(Ordering::SeqCst) == latch {
                if !may_wait {
                    return false;
                }
                wait.pause();
            }
        }
        true
    }
}

/// The slot of a latch within every line: middle bits of a multiplicative hash of its address.
#[inline]
fn slot_in_line(latch: usize) -> usize {
    ((latch as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (SLOTS - 1)
}

/// A latch with a fast path for readers; made for latches that are seldom written.
///
/// The clock decides when the bias comes back, nothing else.
pub struct Biased<L, C = SystemClock> {
    is_biased: AtomicBool,
    unbiased_until_ns: AtomicU64,
    /// Readers of the slow path. Some may be lost, as they only set the pace of looks at the clock.
    slow_readers: AtomicU32,
    latch: L,
    clock: C,
    readers: Arc<VisibleReaders>,
}

/// How a reader of a [`Biased`] latch holds it.
pub struct BiasedShared<T>(Way<T>);

enum Way<T> {
    Slot,
    Latch(T),
}

impl<L: Latch, C: Clock + Default> Default for Biased<L, C> {
    fn default() -> Self {
        Self::with_readers(C::default(), VisibleReaders::shared_by_default())
    }
}

impl<L: Latch, C: Clock> Biased<L, C> {
    /// A latch with a table of its own choice; it begins unbiased, and the first reader sets the bias.
    pub fn with_readers(clock: C, readers: Arc<VisibleReaders>) -> Self {
        Biased {
            is_biased: AtomicBool::new(false),
            unbiased_until_ns: AtomicU64::new(0),
            slow_readers: AtomicU32::new(0),
            latch: L::default(),
            clock,
            readers,
        }
    }

    /// Whether readers take the fast path now.
    pub fn is_biased(&self) -> bool {
        self.is_biased.load(Ordering::Relaxed)
    }

    #[inline]
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The fast path: show up in the own slot, then look again whether the bias still stands. The writer does the
    /// opposite, ends the bias and then looks at the slots; one of the two sees the other.
    #[inline]
    fn try_slot(&self) -> bool {
        if !self.is_biased.load(Ordering::Relaxed) {
            return false;
        }
        let slot = self.readers.slot(self.address());
        if slot.compare_exchange(0, self.address(), Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return false;
        }
        total_order();
        if self.is_biased.load(Ordering::SeqCst) {
            return true;
        }
        slot.store(0, Ordering::Release);
        false
    }

    /// Sets the bias again when its pause is over. The caller holds the latch inside for reading, so no writer is
    /// about to look at the slots.
    #[inline]
    fn renew_bias(&self) {
        if self.is_biased.load(Ordering::Relaxed) {
            return;
        }
        let slow_readers = self.slow_readers.load(Ordering::Relaxed);
        self.slow_readers.store(slow_readers.wrapping_add(1), Ordering::Relaxed);
        if slow_readers.is_multiple_of(READERS_PER_LOOK)
            && self.clock.now_ns() >= self.unbiased_until_ns.load(Ordering::Relaxed)
        {
            self.is_biased.store(true, Ordering::Release);
        }
    }

    /// Ends the bias. The caller holds the latch inside exclusively.
    #[cold]
    fn revoke(&self) {
        let begun_ns = self.clock.now_ns();
        self.is_biased.store(false, Ordering::SeqCst);
        total_order();
        self.readers.is_clear_of(self.address(), true);
        let ended_ns = self.clock.now_ns();
        self.unbiased_until_ns.store(ended_ns + (ended_ns - begun_ns) * PAUSE_FACTOR, Ordering::Relaxed);
    }

    /// Ends the bias if no reader is in a slot. The caller holds the latch inside exclusively.
    #[cold]
    fn try_revoke(&self) -> bool {
        self.is_biased.store(false, Ordering::SeqCst);
        total_order();
        let is_clear = self.readers.is_clear_of(self.address(), false);
        if !is_clear {
            self.is_biased.store(true, Ordering::Release);
        }
        is_clear
    }
}

/// A leaked guard would keep its reader in its slot, where it would be taken for a reader of the next latch at this
/// address.
impl<L, C> Drop for Biased<L, C> {
    fn drop(&mut self) {
        let address = std::ptr::from_ref(self).addr();
        if self.is_biased.load(Ordering::Relaxed) {
            for line in &self.readers.lines {
                let slot = &line[slot_in_line(address)];
                let _ = slot.compare_exchange(address, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }
}

// SAFETY: a writer holds the latch inside, and has found no reader in the slots after it ended the bias; the bias
// is not set while it is inside. A reader holds the latch inside, or has seen the bias stand after it showed
// itself. The slot's release store is what the writer's look acquires.
unsafe impl<L: Latch, C: Clock + Default> Latch for Biased<L, C> {
    type Exclusive = L::Exclusive;
    type Shared = BiasedShared<L::Shared>;

    #[inline]
    fn acquire_exclusive(&self) -> L::Exclusive {
        let held = self.latch.acquire_exclusive();
        if self.is_biased.load(Ordering::Relaxed) {
            self.revoke();
        }
        held
    }

    #[inline]
    fn try_acquire_exclusive(&self) -> Option<L::Exclusive> {
        let held = self.latch.try_acquire_exclusive()?;
        if self.is_biased.load(Ordering::Relaxed) && !self.try_revoke() {
            // SAFETY: acquired above.
            unsafe { self.latch.release_exclusive(held) };
            return None;
        }
        Some(held)
    }

    #[inline]
    unsafe fn release_exclusive(&self, held: L::Exclusive) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.latch.release_exclusive(held) }
    }

    #[inline]
    fn acquire_shared(&self) -> Self::Shared {
        if self.try_slot() {
            return BiasedShared(Way::Slot);
        }
        let held = self.latch.acquire_shared();
        self.renew_bias();
        BiasedShared(Way::Latch(held))
    }

    #[inline]
    fn try_acquire_shared(&self) -> Option<Self::Shared> {
        if self.try_slot() {
            return Some(BiasedShared(Way::Slot));
        }
        let held = self.latch.try_acquire_shared()?;
        self.renew_bias();
        Some(BiasedShared(Way::Latch(held)))
    }

    #[inline]
    unsafe fn release_shared(&self, held: Self::Shared) {
        match held.0 {
            Way::Slot => self.readers.slot(self.address()).store(0, Ordering::Release),
            // SAFETY: the caller's promise, passed on.
            Way::Latch(held) => unsafe { self.latch.release_shared(held) },
        }
    }
}
