//! Test equipment for the other crates: a device with faults on demand, and a checker of transactional histories. A
//! dev-dependency only.
//!
//! Everything here is deterministic: one seed replays one failure, one history gives one verdict.
#![forbid(unsafe_code)]

mod device;
pub mod fuzz;
pub mod history;
mod image;
pub mod instructions;

pub use device::{Failure, FaultyDevice};
