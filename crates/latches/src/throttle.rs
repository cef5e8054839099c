//! Socket throttling (tle-multisocket, sections 4 and 5, figures 9, 14 and 15): for each latch it is measured how often
//! it is acquired when the threads of one socket alone may do so and when all may, and the better way is kept.
//!
//! ```text
//! profiling:    | mode 0: socket 0 alone | mode 1: socket 1 alone | ... | all sockets |     then, until the next one,
//! TLEStarve:    the fastest mode
//! TLEShare:     | fastest mode ........ | second best | fastest mode ........ | ...         one quantum, and the next
//! ```
//!
//! A latch has as many modes as the machine has sockets, plus one. It does not matter how a section runs once its
//! thread is let in: [`Throttled`] wraps any [`Latch`], elided or not.
//!
//! - [`ThrottleDomain`] is what the paper keeps in global variables: the clock, the sockets, the latches that register
//!   themselves when they are first acquired, and the profiling session.
//! - [`Throttle`] is what a latch has: acquisitions by thread and mode, and its best modes.
//!
//! On a machine with one socket there is nothing to decide; acquiring then costs one comparison more.
//!
//! A thread may be made to wait for most of a quantum: throttle a latch only where its threads hold no other latch when
//! they acquire it.
mod domain;
mod profile;
mod topology;

pub use domain::{Strategy, ThrottleDomain, ThrottleSettings};
pub use topology::{MachineTopology, OsTopology, Topology, VirtualTopology};

use profile::{Pass, Profile};
use std::sync::{Arc, OnceLock};
use sync::hint::SpinWait;
use sync::latch::{Latch, Reading, Restart};

/// Decides which threads may acquire one latch at the moment.
pub struct Throttle {
    has_one_socket: bool,
    all_sockets_mode: usize,
    domain: Arc<ThrottleDomain>,
    /// Made and registered by the first acquisition.
    profile: OnceLock<Arc<Profile>>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new(ThrottleDomain::of_the_machine())
    }
}

impl Throttle {
    /// A throttle of a domain.
    pub fn new(domain: Arc<ThrottleDomain>) -> Self {
        let all_sockets_mode = domain.all_sockets_mode();
        Throttle { has_one_socket: all_sockets_mode == 1, all_sockets_mode, domain, profile: OnceLock::new() }
    }

    /// Waits until this thread may acquire the latch, and counts the acquisition (figure 9: the loop of `LockAcquire`).
    #[inline]
    pub fn enter(&self) {
        if !self.has_one_socket {
            self.enter_by_mode();
        }
    }

    fn enter_by_mode(&self) {
        let mut wait = SpinWait::new();
        while !self.try_enter() {
            wait.pause();
        }
    }

    /// One turn of that loop: lets this thread in and counts it, or refuses.
    #[inline]
    pub fn try_enter(&self) -> bool {
        if self.has_one_socket {
            return true;
        }
        let profile = self.profile();
        let record = profile.record_of_this_thread();
        let pass = record.pass().unwrap_or_else(|| self.look(profile));
        let may_enter = pass.mode == self.all_sockets_mode || pass.mode == pass.socket;
        if may_enter {
            record.count(pass.mode);
            record.set_pass(Pass { left: pass.left - 1, ..pass });
        } else {
            record.set_pass(Pass { left: 0, ..pass });
        }
        may_enter
    }

    /// A new pass, from the mode and the socket as they are.
    #[cold]
    fn look(&self, profile: &Profile) -> Pass {
        let (mode, socket) = (self.domain.mode_of(profile), self.domain.current_socket());
        Pass { mode, socket, left: self.domain.settings().acquisitions_per_look }
    }

    /// The mode of the latch at this moment (figures 9 and 15: `getMode`): the number of the socket that may acquire
    /// it, or the number of sockets where all may.
    pub fn mode(&self) -> usize {
        self.domain.mode_of(self.profile())
    }

    /// The counts of the last profiling session, by mode.
    pub fn acquisitions(&self) -> Vec<u64> {
        self.profile().acquisitions()
    }

    /// The fastest mode that profiling has found.
    pub fn fastest_mode(&self) -> usize {
        self.profile().fastest_mode()
    }

    #[inline]
    fn profile(&self) -> &Arc<Profile> {
        self.profile.get_or_init(|| self.domain.register())
    }
}

/// A latch that threads acquire only while their socket may.
#[derive(Default)]
pub struct Throttled<L> {
    throttle: Throttle,
    latch: L,
}

impl<L: Latch> Throttled<L> {
    /// A latch in a domain of its own choice.
    pub fn in_domain(domain: Arc<ThrottleDomain>) -> Self {
        Throttled { throttle: Throttle::new(domain), latch: L::default() }
    }

    /// The throttle of this latch.
    pub fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// The latch inside.
    pub fn latch(&self) -> &L {
        &self.latch
    }
}

// SAFETY: all is done by the latch inside; throttling only delays.
unsafe impl<L: Latch> Latch for Throttled<L> {
    type Exclusive = L::Exclusive;
    type Shared = L::Shared;

    #[inline]
    fn acquire_exclusive(&self) -> L::Exclusive {
        self.throttle.enter();
        self.latch.acquire_exclusive()
    }

    #[inline]
    fn try_acquire_exclusive(&self) -> Option<L::Exclusive> {
        if self.throttle.try_enter() { self.latch.try_acquire_exclusive() } else { None }
    }

    #[inline]
    unsafe fn release_exclusive(&self, held: L::Exclusive) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.latch.release_exclusive(held) }
    }

    #[inline]
    fn acquire_shared(&self) -> L::Shared {
        self.throttle.enter();
        self.latch.acquire_shared()
    }

    #[inline]
    fn try_acquire_shared(&self) -> Option<L::Shared> {
        if self.throttle.try_enter() { self.latch.try_acquire_shared() } else { None }
    }

    #[inline]
    unsafe fn release_shared(&self, held: L::Shared) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.latch.release_shared(held) }
    }

    #[inline]
    fn read<R>(&self, body: impl FnMut(&Reading<'_>) -> Result<R, Restart>) -> R {
        self.throttle.enter();
        self.latch.read(body)
    }
}
