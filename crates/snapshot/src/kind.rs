//! The names of the mechanisms, and of the ways in which they stop updates.
use std::fmt;

/// How an array keeps what a snapshot sees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mechanism {
    /// Everything is copied when a snapshot begins.
    Physical,
    /// A child process has the memory as of its `fork`; the system copies pages that are written.
    Fork,
    /// Array and snapshot are two mappings of one file in memory; a writer copies a page before it writes it for the first time,
    /// and rewires the snapshot to the copy.
    Rewire,
    /// As `Rewire`, but the processor's write protection finds the first write, and a thread of the array does the rest.
    Protect,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Mechanism; 4] = [Mechanism::Physical, Mechanism::Fork, Mechanism::Rewire, Mechanism::Protect];

    /// The name as figures print it.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Physical => "physical",
            Mechanism::Fork => "fork",
            Mechanism::Rewire => "rewire",
            Mechanism::Protect => "protect",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// How updates are stopped while a snapshot begins.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub enum Stop {
    /// Each update is announced in memory, and a snapshot waits for those under way: a few instructions an update.
    #[default]
    Announced,
    /// The system takes the right to write from the array's pages meanwhile (`userfaultfd`): single updates cost what those of a plain
    /// array do, and a snapshot two calls more. Batches are announced.
    Protected,
}
