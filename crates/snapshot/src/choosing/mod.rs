//! Which mechanism serves a workload, learned on the machine.
//!
//! ```text
//! distribution.rs   the updates of the paper's workloads     skew.rs        how many pages a number of updates touches
//! cycle.rs          one snapshot and its updates, timed      cost.rs        times by size, the estimate, the choice
//!                                                            calibrate.rs   measures the times, and the regret of choices
//! ```
pub(crate) mod calibrate;
pub(crate) mod cost;
pub(crate) mod cycle;
pub(crate) mod distribution;
pub(crate) mod skew;
pub(crate) mod trial;
