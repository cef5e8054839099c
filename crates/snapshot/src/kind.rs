//! The names of the mechanisms.
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
