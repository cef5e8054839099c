//! Reading what a crash left of a log: frame after frame, and the partitions merged.
//!
//! Imports the format and the device; the archive and the log import it.
pub(crate) mod chain;
pub(crate) mod recover;
mod rest;
