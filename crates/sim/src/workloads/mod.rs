//! Threads that work on structures for a time, and what came of it.

mod indexes;
mod outcome;
mod sets;

pub use indexes::{FilledIndex, IndexWorkload};
pub use outcome::Outcome;
pub use sets::{Group, Operations, SetWorkload, Throttling};
