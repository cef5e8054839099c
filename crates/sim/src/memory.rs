//! The memory that programs are written over: each access is a point of time.
//!
//! | implementation | time | transactions |
//! |---|---|---|
//! | [`SimulatedThread`](crate::SimulatedThread) | as the machine's caches have it | as the machine has them |
//! | [`Unclocked`](crate::Unclocked) | none: prepares a structure before threads run | none |
//! | [`NativeThread`](crate::NativeThread) | that of this computer | none: every attempt aborts |

use std::future::ready;

use crate::machine::{Aborted, Address};
use latches::elision::AbortCause;

/// What a thread of a program does with memory. Outside of a transaction no access fails. A memory without transactions, sockets and
/// loads that overlap needs no methods for them.
pub trait Memory {
    /// Reads a word.
    fn load(&self, at: Address) -> impl Future<Output = Result<u64, Aborted>>;

    /// Reads a word whose address needs no value that was read just before, so that a processor reads it while those before are on
    /// their way.
    fn load_ahead(&self, at: Address) -> impl Future<Output = Result<u64, Aborted>> {
        self.load(at)
    }

    /// Writes a word.
    fn store(&self, at: Address, value: u64) -> impl Future<Output = Result<(), Aborted>>;

    /// Writes a word if it has the expected value; answers what it had.
    fn compare_and_swap(&self, at: Address, expected: u64, new: u64) -> impl Future<Output = Result<u64, Aborted>>;

    /// Adds to a word, wrapping; answers what it had.
    fn fetch_add(&self, at: Address, value: u64) -> impl Future<Output = Result<u64, Aborted>>;

    /// Computes for so many cycles without memory.
    fn compute(&self, cycles: u64) -> impl Future<Output = Result<(), Aborted>>;

    /// Waits while a word has a value; answers the other one. Not within a transaction.
    fn wait_while(&self, at: Address, value: u64) -> impl Future<Output = Result<u64, Aborted>>;

    /// Begins a transaction. Where there are none, it fails at once.
    fn begin(&self) -> impl Future<Output = Result<(), Aborted>> {
        ready(Err(Aborted::by(AbortCause::Other)))
    }

    /// Commits the running transaction; fails if none is running.
    fn commit(&self) -> impl Future<Output = Result<(), Aborted>> {
        ready(Err(Aborted::by(AbortCause::Other)))
    }

    /// Aborts the running transaction for a cause, and answers with that error.
    fn abort(&self, cause: AbortCause) -> impl Future<Output = Result<(), Aborted>> {
        ready(Err(Aborted::by(cause)))
    }

    /// The time of this thread: cycles, or nanoseconds where there is no model of them.
    fn now(&self) -> u64;

    /// The core on which this thread runs.
    fn core(&self) -> usize {
        0
    }

    /// The socket on which this thread runs.
    fn socket(&self) -> usize {
        0
    }

    /// A number below `end`, by chance, from the thread's own generator.
    fn below(&self, end: u64) -> u64;
}
