//! The interface of [`Elided`](super::Elided) to transactional memory, so that tests can put a fake in its place.

/// Why a transaction did not commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum AbortCause {
    /// Another thread touched the same line. The processor says that trying again may help.
    Conflict,
    /// The section touched more lines than the processor can track.
    Overflow,
    /// The elided latch was held.
    LatchBusy,
    /// The section itself asked for it.
    Explicit,
    /// Anything else: interrupts, page faults, instructions that transactions cannot contain.
    Other,
}

impl AbortCause {
    /// How many causes there are.
    pub const COUNT: usize = 5;
}

/// How beginning a transaction went. As a transaction that aborts continues at its beginning, this is also how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// A transaction is running.
    Started,
    /// No transaction is running, and the one that was has had no effect.
    Aborted(AbortCause),
}

/// Transactional memory.
///
/// # Safety
///
/// The implementation promises: what happens between a `begin` that returned [`Begin::Started`] and the `commit`
/// happens at once for all other threads, or not at all. In particular it does not happen if another thread takes
/// an elided latch that the transaction has seen free: the processor notices the write to the latch word, and
/// software makes the thread that took the latch wait in `settle`.
pub unsafe trait Backend: Send + Sync {
    /// Whether there are transactions at all; the answer never changes.
    fn is_available(&self) -> bool;

    /// Whether this thread is in a transaction.
    fn is_active(&self) -> bool;

    /// Begins a transaction.
    ///
    /// # Safety
    ///
    /// Transactions are available, and the caller ends the transaction by `commit` or an abort.
    unsafe fn begin(&self) -> Begin;

    /// Makes the transaction's effects visible.
    ///
    /// # Safety
    ///
    /// The calling thread is in a transaction of this backend.
    unsafe fn commit(&self);

    /// Ends the transaction because the latch is held. On a processor this returns at `begin`, with
    /// [`AbortCause::LatchBusy`]; software returns here.
    ///
    /// # Safety
    ///
    /// The calling thread is in a transaction of this backend and has done nothing but read.
    unsafe fn abort_latch_busy(&self);

    /// Called by a thread that has just taken an elided latch: returns when no transaction is running that has seen
    /// it free. A processor has aborted these already.
    #[inline]
    fn settle(&self) {}
}
