//! The state of a machine.
//!
//! ```text
//! words    | 0 | 1 | ... |            the contents of memory, 8 words a line
//! lines    | sharers, owner, sockets, readers, writer, busy until |     the directory: one entry for each line
//! cores    L1 and L2 of each          sockets   L3 of each
//! threads  clock, transaction, counters
//! ```
//!
//! The directory is exact: a line is in L1 or L2 of the cores in `sharers` and in L3 of the `sockets`. MESI's states follow from
//! it: an owner has the line exclusive or modified, sharers without an owner have it shared, all others invalid.

use latches::elision::AbortCause;

use super::cache::{Cache, LineNumber};
use super::config::{Core, MachineConfig};
use crate::random::Random;

/// The number of a word of simulated memory. 0 is no word: it stands for "nowhere".
pub type Address = u64;

/// Words of a line.
pub const LINE_WORDS: u64 = 8;

/// No core, or no thread.
pub(super) const NOBODY: u8 = u8::MAX;

/// A transaction that did not commit. Its writes have been undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aborted {
    /// The condition code.
    pub cause: AbortCause,
    /// The hint of the processor that another attempt may succeed.
    pub may_retry: bool,
}

impl Aborted {
    /// An abort for a cause, with the hint that goes with it: none after an overflow or an interrupt.
    pub fn by(cause: AbortCause) -> Self {
        let may_retry = !matches!(cause, AbortCause::Overflow | AbortCause::Other);
        Aborted { cause, may_retry }
    }
}

/// What a thread's steps met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Loads, stores and atomic instructions.
    pub accesses: u64,
    /// Accesses that missed L1.
    pub l1_misses: u64,
    /// Of those, the ones that missed L2.
    pub l2_misses: u64,
    /// Lines that came from another core's cache.
    pub transfers: u64,
    /// Accesses that waited for the other socket.
    pub hops: u64,
    /// Lines that came from memory.
    pub memory: u64,
    /// Copies in other cores that writes took away.
    pub invalidations: u64,
    /// Transactions that began.
    pub begins: u64,
    /// Transactions that committed.
    pub commits: u64,
    /// Transactions that aborted, by [`AbortCause`].
    pub aborts: [u64; AbortCause::COUNT],
}

impl Counters {
    /// Adds those of another thread.
    pub fn add(&mut self, other: &Counters) {
        let parts = [
            (&mut self.accesses, other.accesses),
            (&mut self.l1_misses, other.l1_misses),
            (&mut self.l2_misses, other.l2_misses),
            (&mut self.transfers, other.transfers),
            (&mut self.hops, other.hops),
            (&mut self.memory, other.memory),
            (&mut self.invalidations, other.invalidations),
            (&mut self.begins, other.begins),
            (&mut self.commits, other.commits),
        ];
        parts.into_iter().for_each(|(sum, part)| *sum += part);
        self.aborts.iter_mut().zip(other.aborts).for_each(|(sum, part)| *sum += part);
    }

    /// All aborts.
    pub fn aborts_in_all(&self) -> u64 {
        self.aborts.iter().sum()
    }
}

/// The directory's entry for a line.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Threads that have it in the read set of a running transaction.
    pub readers: u128,
    /// Cores that have it in L1 or L2.
    pub sharers: u64,
    /// Until when it is on its way to a core that owns it or takes it from an owner.
    pub busy_until: u64,
    /// Sockets that have it in L3.
    pub sockets: u8,
    /// The core that alone has it.
    pub owner: u8,
    /// The thread that has it in the write set of a running transaction.
    pub writer: u8,
    /// Whether threads sleep until it is written.
    pub is_watched: bool,
    /// Whether its owner has changed it. Without an owner it says nothing.
    pub is_modified: bool,
}

const UNTOUCHED: Line = Line {
    readers: 0,
    sharers: 0,
    busy_until: 0,
    sockets: 0,
    owner: NOBODY,
    writer: NOBODY,
    is_watched: false,
    is_modified: false,
};

/// The private caches of a core.
pub(super) struct CoreCaches {
    pub l1: Cache,
    pub l2: Cache,
    /// The threads that are placed on it.
    pub threads: u128,
}

/// A hardware thread at work.
pub(super) struct Thread {
    pub clock: u64,
    pub core: Core,
    pub socket: usize,
    /// What the instructions around an access cost here.
    pub issue: u64,
    /// What a line in L1 costs here.
    pub l1: u64,
    /// What 100 cycles of computing cost here.
    pub percent: u64,
    /// When all stores so far own their lines: atomic instructions and commits wait for it.
    pub drained_at: u64,
    /// When all loads ahead have arrived: what needs a value waits for it.
    pub arrived_at: u64,
    /// Whether the next access has been on its way to the line's owner already.
    pub has_asked: bool,
    pub is_in_transaction: bool,
    /// The abort that the thread has still to hear of.
    pub aborted: Option<Aborted>,
    pub reads: Vec<LineNumber>,
    pub writes: Vec<LineNumber>,
    /// Words that the transaction wrote, as they were.
    pub undo: Vec<(Address, u64)>,
    pub next_interrupt: u64,
    pub is_asleep: bool,
    pub counters: Counters,
    pub random: Random,
}

/// A machine with its memory and the threads that are placed on it.
pub struct Machine {
    pub(super) config: MachineConfig,
    pub(super) words: Vec<u64>,
    pub(super) lines: Vec<Line>,
    pub(super) cores: Vec<CoreCaches>,
    pub(super) sockets: Vec<Cache>,
    pub(super) threads: Vec<Thread>,
    /// Threads that sleep until a line is written.
    pub(super) sleepers: Vec<(LineNumber, usize)>,
    /// Threads that a write has woken and that the scheduler does not know of yet.
    pub(super) woken: Vec<usize>,
    pub(super) random: Random,
    /// From when on the link between the sockets is free.
    pub(super) link_free_at: u64,
    seed: u64,
}

impl Machine {
    /// A machine with empty caches and no memory.
    ///
    /// # Panics
    /// If it has more than 8 sockets, 64 cores or 128 hardware threads.
    pub fn new(config: MachineConfig, seed: u64) -> Self {
        let core_count = config.sockets * config.cores_per_socket;
        assert!(config.sockets <= 8 && core_count <= 64 && config.threads() <= 128, "the directory has no more bits");
        let caches = |_| CoreCaches { l1: Cache::new(config.l1), l2: Cache::new(config.l2), threads: 0 };
        Machine {
            words: vec![0; LINE_WORDS as usize],
            lines: vec![UNTOUCHED],
            cores: (0..core_count).map(caches).collect(),
            sockets: (0..config.sockets).map(|_| Cache::new(config.l3)).collect(),
            threads: Vec::new(),
            sleepers: Vec::new(),
            woken: Vec::new(),
            random: Random::of(seed, u64::MAX),
            link_free_at: 0,
            config,
            seed,
        }
    }

    /// The machine's description.
    pub fn config(&self) -> &MachineConfig {
        &self.config
    }

    /// New memory of so many words, all 0, which begins with a line.
    pub fn allocate(&mut self, words: u64) -> Address {
        let first = self.words.len() as Address;
        let lines = words.div_ceil(LINE_WORDS);
        self.words.resize((first + lines * LINE_WORDS) as usize, 0);
        self.lines.resize(self.words.len() / LINE_WORDS as usize, UNTOUCHED);
        first
    }

    /// What memory contains.
    pub fn image(&self) -> Vec<u64> {
        self.words.clone()
    }

    /// Makes memory that contains this.
    pub fn load_image(&mut self, image: &[u64]) {
        self.words = image.to_vec();
        self.lines.resize(self.words.len() / LINE_WORDS as usize, UNTOUCHED);
    }

    /// The content of a word, without an access.
    #[inline]
    pub fn word(&self, at: Address) -> u64 {
        self.words[at as usize]
    }

    /// Changes a word without an access, before threads run.
    #[inline]
    pub fn set_word(&mut self, at: Address, value: u64) {
        self.words[at as usize] = value;
    }

    /// Places threads on cores; the ones before are gone. Caches stay as they are, and clocks begin at 0.
    ///
    /// # Panics
    /// If there are more than 128.
    pub fn place(&mut self, cores: &[Core]) {
        assert!(cores.len() <= 128, "the directory has no more bits");
        self.cores.iter_mut().for_each(|core| core.threads = 0);
        self.lines.iter_mut().for_each(|line| line.busy_until = 0);
        self.link_free_at = 0;
        for (thread, &core) in cores.iter().enumerate() {
            self.cores[core].threads |= 1 << thread;
        }
        self.threads = cores.iter().enumerate().map(|(thread, &core)| self.new_thread(thread, core)).collect();
    }

    fn new_thread(&self, thread: usize, core: Core) -> Thread {
        let config = &self.config;
        let is_shared = self.cores[core].threads.count_ones() > 1;
        let percent = if is_shared { config.shared_core_percent } else { 100 };
        let mut random = Random::of(self.seed, thread as u64);
        let period = config.transactions.interrupt_period;
        Thread {
            // Threads that begin at one moment would go on in step.
            clock: random.below(64),
            core,
            socket: core / config.cores_per_socket,
            issue: config.latencies.issue * percent / 100,
            l1: config.latencies.l1 * percent / 100,
            percent,
            drained_at: 0,
            arrived_at: 0,
            has_asked: false,
            is_in_transaction: false,
            aborted: None,
            reads: Vec::new(),
            writes: Vec::new(),
            undo: Vec::new(),
            next_interrupt: if period == 0 { u64::MAX } else { random.interval(period) },
            is_asleep: false,
            counters: Counters::default(),
            random,
        }
    }

    /// How many threads are placed.
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// The cycles that a thread has used.
    #[inline]
    pub fn clock(&self, thread: usize) -> u64 {
        self.threads[thread].clock
    }

    /// The socket of a thread.
    pub fn socket(&self, thread: usize) -> usize {
        self.threads[thread].socket
    }

    /// The core of a thread.
    pub fn core(&self, thread: usize) -> Core {
        self.threads[thread].core
    }

    /// What a thread's steps have met so far.
    pub fn counters(&self, thread: usize) -> &Counters {
        &self.threads[thread].counters
    }

    /// A number below `end`, from the thread's own generator.
    pub fn below(&mut self, thread: usize, end: u64) -> u64 {
        self.threads[thread].random.below(end)
    }

    /// Whether a thread sleeps until a line is written.
    #[inline]
    pub fn is_asleep(&self, thread: usize) -> bool {
        self.threads[thread].is_asleep
    }

    /// Whether writes have woken threads that the scheduler does not know of yet.
    #[inline]
    pub fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// A number below `end`, from the machine's own generator.
    pub fn chance_below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    /// Takes one of the threads that writes have woken.
    #[inline]
    pub fn take_woken(&mut self) -> Option<usize> {
        self.woken.pop()
    }

    /// Whether the directory and the caches say the same of every line.
    pub fn is_coherent(&self) -> bool {
        (0..self.lines.len()).all(|at| {
            let (line, entry) = (at as LineNumber, &self.lines[at]);
            let is_in_core = |core: &CoreCaches| core.l1.contains(line) || core.l2.contains(line);
            let mut cores = self.cores.iter().enumerate();
            let mut sockets = self.sockets.iter().enumerate();
            let are_sharers_exact = cores.all(|(core, caches)| (entry.sharers >> core & 1 == 1) == is_in_core(caches));
            let are_sockets_exact = sockets.all(|(socket, l3)| (entry.sockets >> socket & 1 == 1) == l3.contains(line));
            let is_owner_alone = entry.owner == NOBODY || entry.sharers == 1 << entry.owner;
            are_sharers_exact && are_sockets_exact && is_owner_alone
        })
    }
}
