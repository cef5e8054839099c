//! The figures of the papers, each from one seed: what was measured, what the paper says, and whether that agrees.
//!
//! ```text
//! figure      series of points, claims, text
//! plan        what a figure is made from: its entry, sizes of runs, speedups of workloads by thread count
//! sockets     tle-multisocket, figures 1 to 8
//! throttling  tle-multisocket, figures 10 to 13, 16 and 17
//! delegating  tle-multisocket, section 4: delegation
//! indexes     tsx-index, table 1 and figures 3 to 7, 9 and 10
//! migration   thread-migration, figures 3 to 8
//! ```
//!
//! A claim is a sentence of the paper with a condition on the points. It is decided from the data each time. Where the sentence has a
//! number, what is found must lie within a factor of two of it. Where it has a shape (falls, scales, is close to), the condition asks
//! for a clear case of it.

mod delegating;
mod figure;
mod indexes;
mod migration;
mod plan;
mod sockets;
mod throttling;

pub use figure::{Claim, Figure, Series};
pub use plan::{Entry, Scale};

/// All figures, in the order of the papers.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    sockets::ENTRIES
        .iter()
        .chain(throttling::ENTRIES)
        .chain(delegating::ENTRIES)
        .chain(indexes::ENTRIES)
        .chain(migration::ENTRIES)
}

/// The figure of a name.
pub fn entry(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == name)
}
