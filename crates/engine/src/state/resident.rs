//! What the process has resident, against the memory limit: the limit counts pages, indexes and what is not committed, while memory is
//! also taken by queries, the log, checkpoints and what the allocator keeps of what was freed.
//!
//! ```text
//! resident  =  [the program's own]  [counted: pages, indexes, ...]  [beside]
//!                                   `------- evicted down to 75% of the limit -------'
//! ```
//!
//! Many times a second a thread looks how much is resident. What is beside the counted memory presses on the pages as these do on one
//! another, up to half of the limit, and no statement fails for its sake. From half of the limit on the allocator keeps little of what
//! is freed, and where much is beside it is asked to give back what it keeps.
//!
//! The process is measured as a whole: what else is in it, another database for example, counts as well. Limits below
//! [`LIMIT_MIN`] hold for what is counted alone, as the program by itself takes as much.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lineage::MemoryBudget;
use parking_lot::Mutex;
use sync::process;

/// The smallest limit that holds for what is resident.
const LIMIT_MIN: u64 = 64 << 20;
/// What the process may have beside a limit: its program, stacks, plans.
const OWN: u64 = 64 << 20;
/// What is beside presses no more than such a part of the limit.
const BESIDE_PART: u64 = 2;
/// Between two looks.
const BETWEEN: Duration = Duration::from_millis(10);
/// Between two times that the allocator gives back what is free, at the least; longer where there was little.
const BETWEEN_RETURNS: Duration = Duration::from_millis(100);
const BETWEEN_RETURNS_MAX: Duration = Duration::from_secs(2);
/// So much is worth the next one soon.
const WORTH: u64 = 8 << 20;

/// What is known of the process.
#[derive(Default)]
pub(crate) struct Resident {
    last: Mutex<Looks>,
    /// whether the allocator was told to keep little
    is_sparing: AtomicBool,
}

#[derive(Default)]
struct Looks {
    looked: Option<Instant>,
    returned: Option<Instant>,
    rest: Duration,
}

/// What is beside the counted memory of a process that has so much resident, as far as it presses on pages.
fn beside(resident: u64, used: u64, limit: u64) -> u64 {
    resident.saturating_sub(OWN).saturating_sub(used).min(limit / BESIDE_PART)
}

/// Tells the allocator of a limit that was set.
pub(crate) fn begin(limit: Option<u64>) {
    if let Some(limit) = limit.filter(|limit| *limit >= LIMIT_MIN) {
        process::bound_arenas(limit);
    }
}

impl Resident {
    /// Looks how much is resident, unless another thread does or it was done just now.
    pub(crate) fn look(&self, budget: &MemoryBudget) {
        let limit = budget.limit_bytes();
        if !(LIMIT_MIN..u64::MAX).contains(&limit) {
            self.spare(None);
            budget.set_beside_bytes(0);
            return;
        }
        let Some(mut last) = self.last.try_lock() else { return };
        if last.looked.is_some_and(|looked| looked.elapsed() < BETWEEN) {
            return;
        }
        let Some(mut resident) = process::resident_bytes() else { return };
        if resident > OWN + limit / 2 {
            self.spare(Some(limit));
        }
        let is_much = beside(resident, budget.used_bytes(), limit) > limit / 16;
        if resident > OWN + limit / 4 * 3 && is_much && last.is_return_due() {
            process::give_back_free_memory();
            let after = process::resident_bytes().unwrap_or(resident);
            last.has_returned(resident.saturating_sub(after));
            resident = after;
        }
        let pressing = beside(resident, budget.used_bytes(), limit);
        debug_assert!(pressing <= limit / BESIDE_PART, "invariant 9: {pressing} bytes of {limit} are no page's");
        budget.set_beside_bytes(pressing);
        last.looked = Some(Instant::now());
    }

    fn spare(&self, limit: Option<u64>) {
        if self.is_sparing.load(Ordering::Relaxed) != limit.is_some() {
            process::keep_little(limit);
            self.is_sparing.store(limit.is_some(), Ordering::Relaxed);
        }
    }
}

impl Looks {
    fn is_return_due(&self) -> bool {
        self.returned.is_none_or(|returned| returned.elapsed() >= self.rest)
    }

    /// Notes how much came back.
    fn has_returned(&mut self, bytes: u64) {
        let longer = (2 * self.rest).clamp(BETWEEN_RETURNS, BETWEEN_RETURNS_MAX);
        self.rest = if bytes >= WORTH { BETWEEN_RETURNS } else { longer };
        self.returned = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_presses_up_to_half_of_the_limit() {
        let (own, limit) = (OWN, 200 << 20);
        assert_eq!(beside(own + 100, 100, limit), 0);
        assert_eq!(beside(own + 150, 100, limit), 50);
        assert_eq!(beside(10, 100, limit), 0);
        assert_eq!(beside(own + limit * 10, 100, limit), limit / 2);
    }

    #[test]
    fn memory_is_given_back_seldom_where_little_comes() {
        let mut looks = Looks::default();
        assert!(looks.is_return_due());
        let rests = (0..7).map(|_| {
            looks.has_returned(WORTH - 1);
            looks.rest.as_millis()
        });
        assert_eq!(rests.collect::<Vec<_>>(), [100, 200, 400, 800, 1_600, 2_000, 2_000]);
        looks.has_returned(WORTH);
        assert_eq!(looks.rest, BETWEEN_RETURNS);
    }
}
