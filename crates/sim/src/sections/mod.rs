//! Critical sections over [`Memory`]: under no latch, a spin latch, a reader-writer latch, or elided.
//!
//! ```text
//! latch     words of a latch: spinning, reading and writing, the auxiliary one
//! elided    attempts as transactions, and when the latch is taken
//! gate      throttling by socket, with the decisions of crate `latches`
//! counts    how the sections of a thread ran
//! ```

mod counts;
mod elided;
mod gate;
mod latch;

pub use counts::{ATTEMPTS_MAX, SectionCounts};
pub use elided::Elision;
pub use gate::{Gate, GateKeeper};
pub use latch::Latch;

use crate::machine::Aborted;
use crate::memory::Memory;

/// How a section runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Under no latch at all: correct only where sections do not disturb each other.
    Unsynchronized,
    /// Under a latch that one thread holds at a time.
    Spin,
    /// Under a latch that readers share; writers come first.
    ReadWrite,
    /// As a transaction, or under the spin latch.
    Elided(Elision),
}

impl Way {
    /// Runs a section. `body` may run several times; what it does to memory outside of the last one is undone.
    ///
    /// # Errors
    /// If `body` fails where no transaction is running, which none over [`Memory`] does.
    pub async fn run<M: Memory, T>(
        self,
        memory: &M,
        latch: &Latch,
        is_write: bool,
        counts: &SectionCounts,
        body: impl AsyncFn() -> Result<T, Aborted>,
    ) -> Result<T, Aborted> {
        counts.note_section();
        match self {
            Way::Unsynchronized => body().await,
            Way::Spin => {
                latch.acquire(memory).await?;
                let answer = body().await?;
                latch.release(memory).await?;
                Ok(answer)
            }
            Way::ReadWrite if is_write => {
                latch.acquire_exclusive(memory).await?;
                let answer = body().await?;
                latch.release_exclusive(memory).await?;
                Ok(answer)
            }
            Way::ReadWrite => {
                latch.acquire_shared(memory).await?;
                let answer = body().await?;
                latch.release_shared(memory).await?;
                Ok(answer)
            }
            Way::Elided(elision) => elision.run(memory, latch, counts, body).await,
        }
    }
}
