//! The benchmarks of searching in space: the generalized search tree (`bench gist`), and bitwise-distributed columns (`bench bwd`).
//!
//! ```text
//! args           the command lines
//! boxes          boxes and windows at random
//! gist           loading, inserts, ranges and neighbours beside rstar, a scan and our B+tree on one coordinate
//! batches        the speed-up of a batch over descents, its phases, and the scheduler (gist-coprocessor, figures 4 to 6)
//! trajectories   points along roads, and windows around some of them
//! bwd            cuts, loading, memory and searches by number of queries (bitwise-distribution, figures 6, 10 and 11)
//! beside         what a device adds to both
//! scan           scans of all there is
//! ```
//!
//! What is compared takes turns (see `crate::figures`) and has to find the same, or the benchmark ends with an error.
use std::time::Instant;

mod args;
mod batches;
mod beside;
mod boxes;
mod bwd;
mod gist;
mod scan;
mod trajectories;

pub use args::{BwdArgs, GistArgs, GistCase};
pub use bwd::bench_bwd;
pub use gist::bench_gist;

use crate::LabError;

/// Our B+tree on the first coordinate, in reports.
const B_TREE: &str = "B+tree on x";

/// The seed of all data.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// With a scan or a B+tree so many queries are asked at most: each takes as long as the others.
const FEW: usize = 16;

/// Runs something; its seconds, never 0, and its result.
fn timed<R>(body: impl FnOnce() -> R) -> (f64, R) {
    let started = Instant::now();
    let result = body();
    (started.elapsed().as_secs_f64().max(1e-9), result)
}

/// What a participant found must be what was expected.
fn agree<T: PartialEq + std::fmt::Debug>(participant: &str, expected: &T, found: &T) -> Result<(), LabError> {
    if expected == found {
        return Ok(());
    }
    Err(LabError::Failed(format!("{participant} gave wrong answers: {found:?} in place of {expected:?}")))
}

#[cfg(test)]
mod tests;
