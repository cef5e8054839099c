//! The words of a latch, and the ways to hold it without transactions.
//!
//! ```text
//! word       spin: 0 free, 1 held          reading and writing: bit 0 a writer, bit 1 a writer waits, then the readers
//! auxiliary  0 free, 1 held
//! ```
//!
//! The reader-writer latch is that of tsx-index, section 2.1.1: readers add themselves by an atomic addition, and while a writer
//! waits no further reader comes in. Every waiting thread looks at its own copy of the line until it changes.

use crate::machine::{Aborted, Address, LINE_WORDS};
use crate::memory::Memory;

const WRITER: u64 = 1;
const WRITER_WAITS: u64 = 2;
const READER: u64 = 4;

/// Cycles of the first pause of a thread that found the latch held, at most, and of any.
const PAUSE_CYCLES: u64 = 64;
const PAUSE_CYCLES_MAX: u64 = 4_096;

/// A latch.
#[derive(Debug, Clone, Copy)]
pub struct Latch {
    /// The word that sections look at.
    pub word: Address,
    auxiliary: Address,
}

impl Latch {
    /// How many words a latch takes: each of its two has a line of its own.
    pub const WORDS: u64 = 2 * LINE_WORDS;

    /// The latch at an address, its words 0.
    pub fn at(address: Address) -> Self {
        Latch { word: address, auxiliary: address + LINE_WORDS }
    }

    /// Holds it alone.
    ///
    /// # Errors
    /// As the memory: none outside of transactions. So for all below.
    pub async fn acquire<M: Memory>(&self, memory: &M) -> Result<(), Aborted> {
        spin(memory, self.word).await
    }

    /// Gives it back.
    ///
    /// # Errors
    /// None outside of transactions.
    pub async fn release<M: Memory>(&self, memory: &M) -> Result<(), Aborted> {
        memory.store(self.word, 0).await
    }

    /// Holds the auxiliary latch, which orders those whose transactions conflicted.
    pub(super) async fn acquire_auxiliary<M: Memory>(&self, memory: &M) -> Result<(), Aborted> {
        spin(memory, self.auxiliary).await
    }

    pub(super) async fn release_auxiliary<M: Memory>(&self, memory: &M) -> Result<(), Aborted> {
        memory.store(self.auxiliary, 0).await
    }

    pub(super) async fn acquire_shared<M: Memory>(&self, memory: &M) -> Result<(), Aborted> {
        loop {
            let state = memory.load(self.word).await?;
            if state & (WRITER | WRITER_WAITS) != 0 {
                memory.wait_while(self.word, state).await?;
                continue;
            }
            if memory.fetch_add(self.word, READER).await? & WRITER == 0 {
                return Ok(());
            }
            memory.fetch_add(self.word, READER.wrapping_neg()).await?;
        }
    }

    pub(super) async fn release_shared<M: Memory>(&self, memory: &M) -> Result<(), Aborted> {
        memory.fetch_add(self.word, READER.wrapping_neg()).await.map(drop)
    }

    pub(super) async fn acquire_exclusive<M: Memory>(&self, memory: &M) -> Result<(), Aborted> {
        loop {
            let state = memory.load(self.word).await?;
            if state & !WRITER_WAITS == 0 {
                // The mark of those that wait goes; they set it again.
                if memory.compare_and_swap(self.word, state, WRITER).await? == state {
                    return Ok(());
                }
            } else if state & WRITER_WAITS == 0 {
                memory.compare_and_swap(self.word, state, state | WRITER_WAITS).await?;
            } else {
                memory.wait_while(self.word, state).await?;
            }
        }
    }

    pub(super) async fn release_exclusive<M: Memory>(&self, memory: &M) -> Result<(), Aborted> {
        memory.fetch_add(self.word, WRITER.wrapping_neg()).await.map(drop)
    }
}

/// Looks until the word is 0, then tries to take it. Those that come in vain pause for longer and longer, by chance.
async fn spin<M: Memory>(memory: &M, word: Address) -> Result<(), Aborted> {
    let mut pause = PAUSE_CYCLES;
    loop {
        if memory.load(word).await? != 0 {
            memory.wait_while(word, 1).await?;
            memory.compute(memory.below(pause)).await?;
            pause = (pause * 2).min(PAUSE_CYCLES_MAX);
        } else if memory.compare_and_swap(word, 0, 1).await? == 0 {
            return Ok(());
        }
    }
}
