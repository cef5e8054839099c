//! Lock elision: a section runs as a transaction that only looks at the latch (tsx-index, section 3; tle-multisocket, section 2).
//!
//! ```text
//! wait until the latch is free -> begin -> is it free? -> body -> commit
//!      ^                                      | abort
//!      +---- may it be tried again? ----------+          the policies of `latches::elision` decide
//!                no -> take the latch -> body
//! ```
//!
//! [`Elision::LEMMING`] does not wait and counts attempts that found the latch held: once a thread has taken the latch all others
//! follow it (tsx-index, section 3.3.2). [`Elision::SCM`] sends those whose transactions conflicted through an auxiliary latch,
//! so that one of them at a time tries again (Afek, Levy and Morrison, PODC 2014; tle-multisocket, section 6).

use latches::elision::{AbortCause, RetryPolicy};

use super::counts::SectionCounts;
use super::latch::Latch;
use crate::machine::Aborted;
use crate::memory::Memory;

/// How sections are tried as transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elision {
    /// When the latch is taken.
    pub policy: RetryPolicy,
    /// Whether a thread waits until the latch is free before it tries, and an attempt that finds it held does not count.
    pub waits_until_free: bool,
    /// Whether those whose transactions conflicted go one after the other.
    pub has_auxiliary: bool,
}

impl Elision {
    /// TLE with a policy.
    pub const fn with(policy: RetryPolicy) -> Self {
        Elision { policy, waits_until_free: true, has_auxiliary: false }
    }

    /// TLE-20, the best on many cores.
    pub const TLE_20: Self = Self::with(RetryPolicy::TLE_20);
    /// TLE-20 with the auxiliary latch.
    pub const SCM: Self = Elision { has_auxiliary: true, ..Self::TLE_20 };
    /// The older interface, HLE: after an abort the processor takes the latch at once.
    pub const HLE: Self = Self::with(RetryPolicy::attempts_of(1));
    /// TLE-5 without the cure of the lemming effect.
    pub const LEMMING: Self = Elision { waits_until_free: false, ..Self::with(RetryPolicy::TLE_5) };

    pub(super) async fn run<M: Memory, T>(
        self,
        memory: &M,
        latch: &Latch,
        counts: &SectionCounts,
        body: impl AsyncFn() -> Result<T, Aborted>,
    ) -> Result<T, Aborted> {
        let mut attempts = self.policy.attempts();
        let mut has_auxiliary = false;
        let mut is_held = self.waits_until_free && memory.load(latch.word).await? != 0;
        let answer = loop {
            if is_held {
                memory.wait_while(latch.word, 1).await?;
            }
            let cause = match attempt(memory, latch, &body).await {
                Ok(answer) => {
                    counts.note_commit(attempts.aborts() + 1);
                    break Some(answer);
                }
                Err(aborted) => aborted.cause,
            };
            is_held = self.waits_until_free && memory.load(latch.word).await? != 0;
            if !attempts.may_try_again(self.counted(cause, is_held)) {
                break None;
            }
            if self.has_auxiliary && !has_auxiliary && cause == AbortCause::Conflict && !is_held {
                latch.acquire_auxiliary(memory).await?;
                has_auxiliary = true;
            }
        };
        let answer = match answer {
            Some(answer) => answer,
            None => {
                counts.note_fall_back();
                latch.acquire(memory).await?;
                let answer = body().await?;
                latch.release(memory).await?;
                answer
            }
        };
        if has_auxiliary {
            latch.release_auxiliary(memory).await?;
        }
        Ok(answer)
    }

    /// The cause as the policy counts it: a thread that took the latch aborted the attempt if the latch is held now.
    fn counted(&self, cause: AbortCause, is_held: bool) -> AbortCause {
        match cause {
            AbortCause::Conflict if is_held => AbortCause::LatchBusy,
            AbortCause::LatchBusy if !self.waits_until_free => AbortCause::Explicit,
            cause => cause,
        }
    }
}

/// One transaction. The look at the latch puts its line into the read set.
async fn attempt<M: Memory, T>(
    memory: &M,
    latch: &Latch,
    body: &impl AsyncFn() -> Result<T, Aborted>,
) -> Result<T, Aborted> {
    memory.begin().await?;
    if memory.load(latch.word).await? != 0 {
        memory.abort(AbortCause::LatchBusy).await?;
    }
    let answer = body().await?;
    memory.commit().await?;
    Ok(answer)
}
