//! What a machine is: its sockets, cores and hardware threads, its caches, what each step costs, and how threads are
//! placed on it.
//!
//! All costs are cycles of a core. The presets have the shapes of the processors that three papers measured on; their latencies
//! are of the size that manuals and measurements of such processors give (for the X5-2: Molka et al., "Cache Coherence Protocol and
//! Memory Performance of the Intel Haswell-EP Architecture", ICPP 2015). Which of the values of that size it is, some figures
//! have decided; docs/simulator.md says for which numbers.

/// The sets and ways of one cache; a line has 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    /// Sets, a power of two.
    pub sets: u32,
    /// Lines in each set.
    pub ways: u32,
}

impl CacheShape {
    /// A cache of so many KiB and ways.
    pub const fn kib(kib: u32, ways: u32) -> Self {
        CacheShape { sets: kib * 16 / ways, ways }
    }

    /// How many lines it holds.
    pub const fn lines(&self) -> usize {
        self.sets as usize * self.ways as usize
    }
}

/// What the steps of a program cost, in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latencies {
    /// The instructions around one access to memory.
    pub issue: u64,
    /// A line that is in L1.
    pub l1: u64,
    /// A line that is in L2.
    pub l2: u64,
    /// A line that is in the L3 of the socket.
    pub l3: u64,
    /// A line that another core of the socket owns: from cache to cache.
    pub transfer: u64,
    /// Where lines migrate, one that was on its way to another core when it was asked for: the request has come to it already.
    pub queued: u64,
    /// What crossing from socket to socket adds.
    pub hop: u64,
    /// How long a line that crosses takes the link between the sockets: 64 bytes and a header of 16 at its bandwidth.
    pub link: u64,
    /// A line that no cache has, of memory beside the socket.
    pub memory: u64,
    /// What an atomic instruction adds.
    pub atomic: u64,
}

/// Best-effort hardware transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transactions {
    /// Cycles to begin.
    pub begin: u64,
    /// Cycles to commit.
    pub commit: u64,
    /// Cycles until the fall-back path runs after an abort.
    pub abort: u64,
    /// Of a million lines that were only read and leave L1, so many abort the transaction. The others are tracked on in the secondary
    /// structure. tsx-index (section 3.2) says that there is one, and measures that footprints beyond the ways of L1 abort
    /// (section 5.1): the presets have most of them abort.
    pub read_eviction_aborts_ppm: u32,
    /// Of a million lines that come into L1, so many take the place of any line of their set, not of the oldest: the caches of
    /// processors only come near the order of use. So a small transaction may overflow, and succeed when it is tried again.
    pub replacement_noise_ppm: u32,
    /// Cycles between two interrupts of a hardware thread, in the mean; 0: none.
    pub interrupt_period: u64,
    /// What an interrupt costs.
    pub interrupt: u64,
}

/// A machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineConfig {
    /// Its name.
    pub name: &'static str,
    /// Sockets, at most 8.
    pub sockets: usize,
    /// Cores of each socket; at most 64 in all.
    pub cores_per_socket: usize,
    /// Hardware threads of each core; at most 128 in all.
    pub threads_per_core: usize,
    /// Cycles in a microsecond.
    pub mhz: u64,
    /// The data cache of a core, shared by its hardware threads.
    pub l1: CacheShape,
    /// The instruction cache of a core.
    pub l1_instructions: CacheShape,
    /// The second cache of a core.
    pub l2: CacheShape,
    /// The cache of a socket. What it drops, its cores drop too.
    pub l3: CacheShape,
    /// Costs.
    pub latencies: Latencies,
    /// Whether a line that a core gets from outside brings the other one of its pair of lines into L2.
    pub prefetches_pairs: bool,
    /// Whether a load takes a line that another core has changed over from it, as the owner, instead of sharing it: what one core
    /// reads and changes after the other then moves once. Some processors do; presets do not.
    pub lines_migrate: bool,
    /// Loads that are on their way at once where none needs another's value: the line fill buffers of a core.
    pub loads_ahead: u64,
    /// What a step within the core costs while the other hardware thread of the core is used, in percent.
    pub shared_core_percent: u64,
    /// Transactions.
    pub transactions: Transactions,
    /// How many cycles a thread may run ahead of the others. 0 keeps all accesses in the order of time; more is faster. That of the
    /// presets is less than a line needs from L3.
    pub slack: u64,
}

const L1: CacheShape = CacheShape::kib(32, 8);
const L2: CacheShape = CacheShape::kib(256, 8);

/// Two of these are fitted to a sentence of a paper each:
///
/// - The noise: with 36 threads on a large tree, attempts that retry after an overflow have more than twice the performance of those
///   that do not (tle-multisocket, section 3.1).
/// - The lines read that abort: some per cent of the lookups in the Delta Storage Index take the latch, by overflows (tsx-index,
///   section 4.3).
const TRANSACTIONS: Transactions = Transactions {
    begin: 20,
    commit: 15,
    abort: 150,
    read_eviction_aborts_ppm: 900_000,
    replacement_noise_ppm: 85_000,
    interrupt_period: 3_000_000,
    interrupt: 3_000,
};

impl MachineConfig {
    /// Intel Core i7-4770: 4 cores with 2 threads, the machine of tsx-index and the small one of tle-multisocket.
    pub const I7_4770: Self = MachineConfig {
        name: "i7-4770",
        sockets: 1,
        cores_per_socket: 4,
        threads_per_core: 2,
        mhz: 3_400,
        l1: L1,
        l1_instructions: L1,
        l2: L2,
        l3: CacheShape::kib(8_192, 16),
        latencies: Latencies {
            issue: 1,
            l1: 4,
            l2: 12,
            l3: 36,
            transfer: 60,
            queued: 0,
            hop: 0,
            link: 0,
            memory: 200,
            atomic: 16,
        },
        prefetches_pairs: true,
        lines_migrate: false,
        loads_ahead: 10,
        shared_core_percent: 140,
        transactions: TRANSACTIONS,
        slack: 28,
    };

    /// Two Intel Xeon E5-2680: 2 sockets, 8 cores each with 2 threads. They have no transactions; the model gives them some.
    pub const TWO_E5_2680: Self = MachineConfig {
        name: "2 x E5-2680",
        sockets: 2,
        cores_per_socket: 8,
        mhz: 2_700,
        l3: CacheShape::kib(16_384, 16),
        latencies: Latencies {
            issue: 1,
            l1: 4,
            l2: 12,
            l3: 40,
            transfer: 75,
            queued: 0,
            hop: 180,
            link: 8,
            memory: 200,
            atomic: 16,
        },
        ..Self::I7_4770
    };

    /// Oracle Server X5-2: two Intel Xeon E5-2699 v3, 18 cores each with 2 threads; the large machine of tle-multisocket.
    pub const X5_2: Self = MachineConfig {
        name: "Oracle X5-2",
        sockets: 2,
        cores_per_socket: 18,
        mhz: 2_300,
        l3: CacheShape { sets: 32_768, ways: 22 },
        latencies: Latencies {
            issue: 1,
            l1: 4,
            l2: 12,
            l3: 50,
            transfer: 110,
            queued: 0,
            hop: 200,
            link: 5,
            memory: 220,
            atomic: 16,
        },
        ..Self::I7_4770
    };

    /// Intel Core i7-2600: 4 cores with 2 threads, without transactions of its own.
    pub const I7_2600: Self = MachineConfig {
        name: "i7-2600",
        latencies: Latencies {
            issue: 1,
            l1: 4,
            l2: 12,
            l3: 30,
            transfer: 55,
            queued: 0,
            hop: 0,
            link: 0,
            memory: 190,
            atomic: 18,
        },
        ..Self::I7_4770
    };

    /// A machine of any shape, with the costs of the large one.
    pub const fn free(sockets: usize, cores_per_socket: usize, threads_per_core: usize) -> Self {
        MachineConfig { name: "free", sockets, cores_per_socket, threads_per_core, ..Self::X5_2 }
    }

    /// Hardware threads of one socket.
    pub const fn threads_per_socket(&self) -> usize {
        self.cores_per_socket * self.threads_per_core
    }

    /// Hardware threads in all.
    pub const fn threads(&self) -> usize {
        self.sockets * self.threads_per_socket()
    }

    /// So many nanoseconds in cycles.
    pub const fn cycles(&self, ns: u64) -> u64 {
        ns * self.mhz / 1_000
    }

    /// So many cycles in nanoseconds.
    pub const fn ns(&self, cycles: u64) -> u64 {
        cycles * 1_000 / self.mhz
    }
}

/// The place of a thread: its core, counted over all sockets. Two threads with one core share it.
pub type Core = usize;

/// How threads are placed on cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinning {
    /// One socket after the other: each core of a socket gets a thread, then each its second, then comes the next socket.
    FillSocket,
    /// Threads alternate between sockets, and within each fill the cores.
    Alternate,
    /// Not pinned: a system that balances its load over the sockets, and takes the cores of each in an order by chance.
    Free {
        /// Seeds that order.
        seed: u64,
    },
}

impl Pinning {
    /// The core of each of `threads` threads. Threads beyond the machine's start anew from the first core.
    pub fn cores(self, config: &MachineConfig, threads: usize) -> Vec<Core> {
        (0..threads).map(|thread| self.core_of(config, thread % config.threads())).collect()
    }

    fn core_of(self, config: &MachineConfig, thread: usize) -> Core {
        let cores = config.cores_per_socket;
        match self {
            Pinning::FillSocket => {
                let socket = thread / config.threads_per_socket();
                socket * cores + thread % cores
            }
            Pinning::Alternate => {
                let (socket, place) = (thread % config.sockets, thread / config.sockets);
                socket * cores + place % cores
            }
            Pinning::Free { seed } => {
                let (socket, place) = (thread % config.sockets, thread / config.sockets);
                let turn = (seed as usize).wrapping_mul(7).wrapping_add(place) % cores;
                socket * cores + turn
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_shapes_of_their_processors() {
        let threads = |config: MachineConfig| config.threads();
        assert_eq!(threads(MachineConfig::I7_4770), 8);
        assert_eq!(threads(MachineConfig::TWO_E5_2680), 32);
        assert_eq!(threads(MachineConfig::X5_2), 72);
        assert_eq!(MachineConfig::I7_4770.l1.lines(), 512);
        assert_eq!(MachineConfig::X5_2.cycles(1_000), 2_300);
    }

    #[test]
    fn filling_a_socket_gives_each_core_one_thread_before_any_has_two() {
        let cores = Pinning::FillSocket.cores(&MachineConfig::X5_2, 72);
        assert!((0..18).all(|thread| cores[thread] == thread && cores[thread + 18] == thread));
        assert!((36..72).all(|thread| cores[thread] >= 18));
    }

    #[test]
    fn alternating_threads_use_both_sockets_from_the_second_on() {
        for pinning in [Pinning::Alternate, Pinning::Free { seed: 3 }] {
            let cores = pinning.cores(&MachineConfig::X5_2, 72);
            assert!(cores.iter().enumerate().all(|(thread, core)| core / 18 == thread % 2));
            let on_each = |core| cores.iter().filter(|&&other| other == core).count();
            assert!((0..36).all(|core| on_each(core) == 2), "{pinning:?}");
        }
    }
}
