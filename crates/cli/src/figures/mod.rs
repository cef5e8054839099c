//! Figures of benchmarks: how they are measured in turns, medians beside what ran with them, and how they are told.
mod figure;
mod report;
mod turns;

pub(crate) use figure::{Better, Figure, median};
pub(crate) use report::Report;
pub(crate) use turns::{Measured, in_turns};
