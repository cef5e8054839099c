//! Throttling by socket: TLEStarve and TLEShare with the code of `latches::throttle`, in simulated time.
//!
//! The decisions need a clock and the socket of the thread that asks. Both are set just before each question, as all simulated
//! threads run on one thread of the system. A pass is not kept from one acquisition to the next, as it would be the pass of
//! another thread; what looking costs is left out, as section 4 of the paper keeps it for 128 acquisitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use latches::throttle::{Strategy, Throttle, ThrottleDomain, ThrottleSettings, Topology};
use sync::Clock;

use crate::machine::{Aborted, MachineConfig};
use crate::memory::Memory;

/// What a thread that may not enter computes until it asks again.
const WAIT_CYCLES: u64 = 1_500;

struct SimulatedClock(Arc<AtomicU64>);

impl Clock for SimulatedClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct SimulatedSockets {
    sockets: usize,
    current: Arc<AtomicUsize>,
}

impl Topology for SimulatedSockets {
    fn socket_count(&self) -> usize {
        self.sockets
    }

    fn current_socket(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }
}

/// The latches that are profiled together, their clock and sockets.
pub struct GateKeeper {
    domain: Arc<ThrottleDomain>,
    now_ns: Arc<AtomicU64>,
    socket: Arc<AtomicUsize>,
    mhz: u64,
}

/// Where the threads of a latch wait until their socket may acquire it.
pub struct Gate {
    throttle: Throttle,
}

impl GateKeeper {
    /// A domain for a machine. Each mode is profiled for `profile_mode_ns`; then modes share quanta of `quantum_ns`.
    ///
    /// # Panics
    /// If one of the times is 0.
    pub fn new(config: &MachineConfig, strategy: Strategy, profile_mode_ns: u64, quantum_ns: u64) -> Self {
        let settings =
            ThrottleSettings { strategy, profile_mode_ns, quantum_ns, profile_period_ns: 0, acquisitions_per_look: 1 };
        let (now_ns, socket) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
        let sockets = SimulatedSockets { sockets: config.sockets, current: socket.clone() };
        let domain = ThrottleDomain::new(settings, sockets, SimulatedClock(now_ns.clone()));
        GateKeeper { domain, now_ns, socket, mhz: config.mhz }
    }

    /// A gate for one latch.
    pub fn gate(&self) -> Gate {
        Gate { throttle: Throttle::new(self.domain.clone()) }
    }

    /// Starts a profiling session of all latches that threads have come to so far.
    pub fn profile<M: Memory>(&self, memory: &M) -> bool {
        self.set_moment(memory);
        self.domain.profile_and_throttle()
    }

    fn set_moment<M: Memory>(&self, memory: &M) {
        // A session that begins at 0 would be none.
        self.now_ns.store(memory.now() * 1_000 / self.mhz + 1, Ordering::Relaxed);
        self.socket.store(memory.socket(), Ordering::Relaxed);
    }

    /// Waits until the thread's socket may acquire the latch of a gate; whether that was before `deadline`.
    ///
    /// # Errors
    /// None outside of transactions.
    pub async fn enter<M: Memory>(&self, gate: &Gate, memory: &M, deadline: u64) -> Result<bool, Aborted> {
        while memory.now() < deadline {
            self.set_moment(memory);
            if gate.throttle.try_enter() {
                return Ok(true);
            }
            memory.compute(WAIT_CYCLES).await?;
        }
        Ok(false)
    }
}

impl Gate {
    /// The mode that profiling has found best: a socket alone, or all of them.
    pub fn fastest_mode(&self) -> usize {
        self.throttle.fastest_mode()
    }
}
