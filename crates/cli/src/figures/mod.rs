//! Figures of benchmarks: medians beside what ran with them, and how they are told.
mod figure;
mod report;

pub(crate) use figure::{Better, Figure, median};
pub(crate) use report::Report;
