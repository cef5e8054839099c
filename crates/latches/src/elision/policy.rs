//! When a section is tried again as a transaction, and when transactions are given up for a while.
use super::backend::AbortCause;

/// How many attempts a section has before it takes the latch: in all, and for each cause.
///
/// The four of tle-multisocket, section 3.1 (figure 2), are given as constants. Attempts that found the latch held do
/// not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all.
    pub attempts_max: u32,
    /// Attempts that may fail for each cause, by [`AbortCause`]; that of [`AbortCause::LatchBusy`] is not looked at.
    pub aborts_max: [u32; AbortCause::COUNT],
}

impl RetryPolicy {
    /// Five attempts, whatever the cause: "TLE-5".
    pub const TLE_5: Self = Self::attempts_of(5);
    /// Twenty attempts, whatever the cause: "TLE-20", the best on a machine with many cores (section 3.1).
    pub const TLE_20: Self = Self::attempts_of(20);
    /// Five attempts, and none after an overflow: common on small machines.
    pub const TLE_5_FALL_BACK_ON_OVERFLOW: Self = Self::TLE_5.with_limit(AbortCause::Overflow, 1);
    /// Twenty attempts, and none after an overflow.
    pub const TLE_20_FALL_BACK_ON_OVERFLOW: Self = Self::TLE_20.with_limit(AbortCause::Overflow, 1);

    /// So many attempts, whatever the cause.
    pub const fn attempts_of(attempts_max: u32) -> Self {
        RetryPolicy { attempts_max, aborts_max: [attempts_max; AbortCause::COUNT] }
    }

    /// Limits the aborts for one cause to `aborts_max`.
    pub const fn with_limit(mut self, cause: AbortCause, aborts_max: u32) -> Self {
        self.aborts_max[cause as usize] = aborts_max;
        self
    }

    /// The attempts of one section, none of them made.
    pub fn attempts(&self) -> Attempts<'_> {
        Attempts { policy: self, aborts: 0, aborts_by: [0; AbortCause::COUNT] }
    }
}

/// TLE-20 without fall-back on overflow: an overflow is often transient too (tsx-index, section 4.3).
impl Default for RetryPolicy {
    fn default() -> Self {
        Self::TLE_20
    }
}

/// The attempts of one section.
pub struct Attempts<'a> {
    policy: &'a RetryPolicy,
    aborts: u32,
    aborts_by: [u32; AbortCause::COUNT],
}

impl Attempts<'_> {
    /// Notes an abort; whether another attempt is left.
    pub fn may_try_again(&mut self, cause: AbortCause) -> bool {
        if cause == AbortCause::LatchBusy {
            return true;
        }
        let by_cause = &mut self.aborts_by[cause as usize];
        *by_cause += 1;
        self.aborts += 1;
        self.aborts < self.policy.attempts_max && *by_cause < self.policy.aborts_max[cause as usize]
    }

    /// The aborts that counted.
    pub fn aborts(&self) -> u32 {
        self.aborts
    }
}

/// When elision is switched off, and for how long (tsx-index, section 3.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adaptivity {
    /// After so many aborts of sections that had to take the latch, the commits meanwhile are looked at.
    pub aborts_max: u32,
    /// Elision goes on if there were at least so many commits for each of these aborts.
    pub commits_per_abort_min: u32,
    /// The acquisitions that otherwise take the latch at once; then elision is tried again.
    pub pause_acquisitions: u32,
}

impl Adaptivity {
    /// Elision is never switched off.
    pub const NEVER: Self = Adaptivity { aborts_max: u32::MAX, commits_per_abort_min: 0, pause_acquisitions: 0 };
}

impl Default for Adaptivity {
    fn default() -> Self {
        Adaptivity { aborts_max: 256, commits_per_abort_min: 1, pause_acquisitions: 4_096 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aborts_until_given_up(policy: RetryPolicy, cause: AbortCause) -> u32 {
        let mut attempts = policy.attempts();
        while attempts.may_try_again(cause) {}
        attempts.aborts()
    }

    #[test]
    fn the_policies_of_the_paper_give_up_when_it_says() {
        let cases = [
            (RetryPolicy::TLE_5, 5, 5),
            (RetryPolicy::TLE_20, 20, 20),
            (RetryPolicy::TLE_5_FALL_BACK_ON_OVERFLOW, 5, 1),
            (RetryPolicy::TLE_20_FALL_BACK_ON_OVERFLOW, 20, 1),
        ];
        for (policy, by_conflict, by_overflow) in cases {
            assert_eq!(aborts_until_given_up(policy, AbortCause::Conflict), by_conflict);
            assert_eq!(aborts_until_given_up(policy, AbortCause::Overflow), by_overflow);
        }
    }

    #[test]
    fn a_latch_that_was_held_costs_no_attempt() {
        let mut attempts = RetryPolicy::TLE_5.attempts();
        assert!((0..1_000).all(|_| attempts.may_try_again(AbortCause::LatchBusy)));
        assert!((0..4).all(|_| attempts.may_try_again(AbortCause::Other)));
        assert!(!attempts.may_try_again(AbortCause::Conflict));
        assert_eq!(attempts.aborts(), 5);
    }
}
