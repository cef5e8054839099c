//! Which mechanism serves a workload, learned on the machine.
//!
//! ```text
//! distribution.rs   the updates of the paper's workloads     skew.rs        how many pages a number of updates touches
//! cycle.rs          one snapshot and its updates, timed      cost.rs        times by size, the estimate, the choice
//! race.rs           cycles by many candidates in turns       calibrate.rs   measures the times, and the regret of choices
//!                                                            trial.rs       chooses by running the workload
//! ```
pub(crate) mod calibrate;
pub(crate) mod cost;
pub(crate) mod cycle;
pub(crate) mod distribution;
pub(crate) mod race;
pub(crate) mod skew;
pub(crate) mod trial;
