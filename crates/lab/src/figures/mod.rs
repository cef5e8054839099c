//! Figures of benchmarks: how they are measured in turns, medians beside what ran with them, and how they are told.
mod figure;
mod line;
mod report;
mod table;
mod turns;

pub use figure::{Better, Figure, median};
pub use line::{Line, grouped, grouped_signed};
pub use report::Report;
pub(crate) use table::Table;
pub use turns::{Measured, in_turns};
