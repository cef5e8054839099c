//! The instruction caches of transactions, and threads that migrate between cores to find their code there (Atta, Tözün, Ailamaki and
//! Moshovos, "Reducing OLTP Instruction Misses With Thread Migration", DaMoN 2012; "the paper" below).
//!
//! ```text
//! trace      the blocks of code and data that a transaction touches, and their compact form
//! lackey     traces from what valgrind prints of a program
//! synthetic  traces of transactions of several types, from a seed
//! policies   a cache that inserts by LRU, LIP, BIP or DIP
//! classes    misses by their three causes
//! replay     traces on many cores: without migration, TMi-ST, TMi-B
//! ```

mod classes;
mod lackey;
mod policies;
mod replay;
mod synthetic;
mod trace;

pub use classes::{MissClasses, classify};
pub use lackey::Lackey;
pub use policies::{Policy, PolicyCache};
pub use replay::{Migration, Replay, ReplayOutcome};
pub use synthetic::{Mix, traces};
pub use trace::{Access, Touch, Trace, TraceError, decode, encode};
