//! The profiling session that the latches of a domain go through together, and what follows from it (figures 9 and 15).
//!
//! ```text
//! session_start_ns    0         no session
//!                     > 0       when the session began; it lasts one slice of time for each mode
//!                     LOCKED    a thread is starting or evaluating a session
//! ```
//!
//! A thread that acquires a latch moves the session along: the first to see that its time is over evaluates it.
use super::profile::Profile;
use super::topology::{MachineTopology, Topology};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use sync::atomic::{AtomicU64, Ordering};
use sync::{Clock, SystemClock};

/// The use that a latch makes of the result of profiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Runs in its fastest mode; threads of other sockets may starve (section 4).
    Starve,
    /// Gives other sockets a share of each quantum (section 5).
    #[default]
    Share,
}

/// The times of a domain; the defaults are those of the paper's experiments (section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThrottleSettings {
    /// The use that is made of the result of profiling.
    pub strategy: Strategy,
    /// How long each mode is profiled.
    pub profile_mode_ns: u64,
    /// The quantum that modes share.
    pub quantum_ns: u64,
    /// From the end of a session (at first: from the making of the domain) to the next that starts by itself; 0: none.
    pub profile_period_ns: u64,
    /// The acquisitions for which a thread relies on one look at mode and socket: `C` of section 4.
    pub acquisitions_per_look: u32,
}

impl Default for ThrottleSettings {
    fn default() -> Self {
        ThrottleSettings {
            strategy: Strategy::Share,
            profile_mode_ns: 30_000_000,
            quantum_ns: 100_000_000,
            profile_period_ns: 1_000_000_000,
            acquisitions_per_look: 128,
        }
    }
}

const LOCKED: u64 = u64::MAX;

/// Latches that are profiled together.
pub struct ThrottleDomain {
    clock: Box<dyn Clock>,
    topology: Box<dyn Topology>,
    settings: ThrottleSettings,
    session_start_ns: AtomicU64,
    session_end_ns: AtomicU64,
    registered: Mutex<Vec<Weak<Profile>>>,
    in_session: Mutex<Vec<Arc<Profile>>>,
}

impl ThrottleDomain {
    /// A domain with its own clock and sockets.
    ///
    /// # Panics
    /// If one of the settings is 0 that counts or measures, or there are 65,535 sockets or more.
    pub fn new(
        settings: ThrottleSettings,
        topology: impl Topology + 'static,
        clock: impl Clock + 'static,
    ) -> Arc<Self> {
        assert!(settings.acquisitions_per_look > 0 && settings.quantum_ns > 0 && settings.profile_mode_ns > 0);
        assert!(topology.socket_count() < usize::from(u16::MAX));
        Arc::new(ThrottleDomain {
            session_end_ns: AtomicU64::new(clock.now_ns()),
            clock: Box::new(clock),
            topology: Box::new(topology),
            settings,
            session_start_ns: AtomicU64::new(0),
            registered: Mutex::default(),
            in_session: Mutex::default(),
        })
    }

    /// The domain of this machine, which latches join unless they are given another.
    pub fn of_the_machine() -> Arc<Self> {
        static MACHINE: OnceLock<Arc<ThrottleDomain>> = OnceLock::new();
        let make = || Self::new(ThrottleSettings::default(), MachineTopology, SystemClock);
        MACHINE.get_or_init(make).clone()
    }

    /// The sockets of the domain's machine.
    pub fn socket_count(&self) -> usize {
        self.topology.socket_count()
    }

    /// The settings.
    pub fn settings(&self) -> &ThrottleSettings {
        &self.settings
    }

    /// The mode in which all sockets may acquire; those before it are the sockets.
    pub fn all_sockets_mode(&self) -> usize {
        self.socket_count()
    }

    pub(super) fn current_socket(&self) -> usize {
        self.topology.current_socket()
    }

    /// Adds a latch to those that are profiled; a latch that is gone leaves at the next session.
    pub(super) fn register(&self) -> Arc<Profile> {
        let profile = Arc::new(Profile::new(self.socket_count() + 1));
        held(&self.registered).push(Arc::downgrade(&profile));
        profile
    }

    /// The latches that have registered and are still there.
    pub fn latch_count(&self) -> usize {
        held(&self.registered).iter().filter(|profile| profile.strong_count() > 0).count()
    }

    /// Starts a profiling session of all latches of the domain, unless one is on (figure 9: `ProfileAndThrottle`).
    /// Whether it was started. To be called when a new phase of work begins; sessions also start by themselves.
    pub fn profile_and_throttle(&self) -> bool {
        let locked = self.session_start_ns.compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed);
        if locked.is_err() {
            return false;
        }
        let mut registered = held(&self.registered);
        registered.retain(|profile| profile.strong_count() > 0);
        let latches: Vec<_> = registered.iter().filter_map(Weak::upgrade).collect();
        latches.iter().for_each(|profile| profile.reset());
        *held(&self.in_session) = latches;
        self.session_start_ns.store(self.clock.now_ns(), Ordering::Release);
        true
    }

    /// Figures 9 and 15: `getMode`.
    pub(super) fn mode_of(&self, profile: &Profile) -> usize {
        let started_ns = self.session_start_ns.load(Ordering::Acquire);
        let now_ns = self.clock.now_ns();
        if started_ns != 0 && started_ns != LOCKED {
            let mode = (now_ns.saturating_sub(started_ns) / self.settings.profile_mode_ns) as usize;
            if mode <= self.all_sockets_mode() {
                return mode;
            }
            self.end_session(started_ns, now_ns);
        } else if started_ns == 0 && self.is_session_due(now_ns) && self.profile_and_throttle() {
            return 0;
        }
        profile.mode_at(now_ns % self.settings.quantum_ns)
    }

    fn is_session_due(&self, now_ns: u64) -> bool {
        let idle_ns = now_ns.saturating_sub(self.session_end_ns.load(Ordering::Relaxed));
        self.settings.profile_period_ns > 0 && idle_ns >= self.settings.profile_period_ns
    }

    /// Evaluates the session that began at `started_ns`. Of several threads that call this, one does it.
    fn end_session(&self, started_ns: u64, now_ns: u64) {
        let locked = self.session_start_ns.compare_exchange(started_ns, LOCKED, Ordering::Acquire, Ordering::Relaxed);
        if locked.is_err() {
            return;
        }
        for profile in held(&self.in_session).drain(..) {
            self.compute_best_modes(&profile);
        }
        self.session_end_ns.store(now_ns, Ordering::Relaxed);
        self.session_start_ns.store(0, Ordering::Release);
    }

    /// Figures 9 and 15: `computeBestLockModes`, for one latch.
    fn compute_best_modes(&self, profile: &Profile) {
        let acquisitions = profile.acquisitions();
        let fastest = fastest_mode(&acquisitions);
        match self.settings.strategy {
            Strategy::Starve => profile.decide(fastest, &[]),
            Strategy::Share => profile.decide(fastest, &slices(&acquisitions, fastest, self.settings.quantum_ns)),
        }
    }
}

/// The mode with the most acquisitions. Among equals it is the one that lets more threads run; a latch that was
/// never acquired is therefore left to all.
fn fastest_mode(acquisitions: &[u64]) -> usize {
    (0..acquisitions.len()).max_by_key(|&mode| acquisitions[mode]).unwrap_or(0)
}

/// How TLEShare divides the quantum: modes with the moment up to which each runs.
///
/// Where all sockets together are fastest, they have all of it. Otherwise the fastest socket has a share in proportion
/// to its solo performance among that of all sockets alone (figure 15 has two: `acqs[fastest] / (acqs[fastest] +
/// acqs[1 - fastest])`), and the second best mode has the rest. If the second best is another socket alone, a third
/// socket would starve; with more than two the rest is therefore divided among the other sockets in the same
/// proportion. For two sockets that is the paper's rule.
fn slices(acquisitions: &[u64], fastest: usize, quantum_ns: u64) -> Vec<(usize, u64)> {
    let all = acquisitions.len() - 1;
    if fastest == all {
        return Vec::new();
    }
    let alone = &acquisitions[..all];
    let sum: u64 = alone.iter().sum();
    let share_ns = |part: u64| (u128::from(quantum_ns) * u128::from(part) / u128::from(sum)) as u64;
    let second = (0..=all).filter(|&mode| mode != fastest).max_by_key(|&mode| acquisitions[mode]).unwrap_or(all);
    let mut slices = vec![(fastest, share_ns(alone[fastest]))];
    if second == all {
        slices.push((all, u64::MAX));
        return slices;
    }
    let mut acquisitions_before = alone[fastest];
    for socket in (0..all).filter(|&socket| socket != fastest && alone[socket] > 0) {
        acquisitions_before += alone[socket];
        slices.push((socket, share_ns(acquisitions_before)));
    }
    slices
}

/// The session's lists stay whole whatever a thread that held them did.
fn held<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
