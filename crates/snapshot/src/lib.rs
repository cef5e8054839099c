//! Snapshots of memory: arrays that are updated in place, at the speed of memory, and read as of one instant.
//!
//! The mechanisms are those of Šidlauskas, Jensen and Šaltenis, "A Comparison of the Use of Virtual Versus Physical Snapshots for
//! Supporting Update-Intensive Workloads" (DaMoN 2012; "the paper"), and two that Linux has today:
//!
//! ```text
//! SnapshotArray, Writer, Snapshot      array.rs       what users see
//!         |                 `-- gate.rs               the instant: writers announce updates, a snapshot waits for them
//!    mechanism/                                       what a snapshot keeps, and how
//!      physical.rs  copy.rs                             a copy of everything
//!      fork/                                            a child process
//!      rewire.rs  protect.rs  file.rs                   a second mapping, rewired page by page
//!      userfault.rs                                     the right to write, taken from all threads: a gate without announcements
//!         |         `-- sharing.rs                    which pages are still shared
//!    mapping.rs                                       address space
//! choosing/                                            which mechanism serves a workload, learned on the machine
//! ```
//!
//! ```
//! use snapshot::{Options, SnapshotArray};
//!
//! let positions = SnapshotArray::<i64>::new(1_000, &Options::default())?;
//! let mut writer = positions.writer();
//! writer.set(7, 40)?;
//! let before = positions.snapshot()?;
//! writer.add(7, 2)?;
//! assert_eq!((before.sum(..)?, before.get(7)?, positions.get(7)?), (40, 40, 42));
//! before.end();
//! # Ok::<(), snapshot::SnapshotError>(())
//! ```
mod array;
mod choosing;
mod error;
mod gate;
mod item;
mod kind;
mod machine;
mod mapping;
mod mechanism;
#[cfg(all(test, any(loom, shuttle)))]
mod models;
mod options;
mod reading;
mod sharing;

pub use array::{Batch, SnapshotArray, Writer};
pub use choosing::calibrate::{Effort, Regret};
pub use choosing::cost::{Calibration, Candidate, Choice, Costs, Curve};
pub use choosing::cycle::{Case, Cycle, Running};
pub use choosing::distribution::{Distribution, Updates};
pub use choosing::skew::Skew;
pub use error::SnapshotError;
pub use item::Item;
pub use kind::{Mechanism, Stop};
pub use machine::last_level_cache_bytes;
pub use options::{Options, Pages};
pub use reading::Snapshot;
