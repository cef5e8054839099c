//! The laboratory: workloads, the baselines of the papers, the peers that lstore is measured beside, and the figures
//! that come of it.
//!
//! This crate alone links rivals, each behind one thin file of [`peers`]. It never prints: a [`figures::Report`] writes
//! where it is told to, and [`Progress`] hears how far a measurement has come.
//!
//! - [`figures`]: what is compared takes turns; medians beside what ran with them, as a table or as JSON lines.
//! - [`calibrate`](mod@calibrate): coefficients of the cost model by device and workload, `lstore calibrate`.
//! - [`asymmetry`]: the figures of the cost model, `lstore bench costs`.
//! - [`micro`]: the micro benchmark of the L-Store paper, `lstore bench micro`.
//! - [`tpch`]: the TPC-H benchmark and its data, `lstore bench tpch`.
//! - [`tpcds`]: the TPC-DS benchmark beside DuckDB, `lstore bench tpcds`.
//! - [`commit`]: the benchmark of commits, `lstore bench commit`.
//! - [`load`](mod@load): the benchmark of loading, `lstore bench load`.
//! - [`opening`]: the benchmark of opening, `lstore bench open`.
//! - [`point`]: the benchmark of prepared statements, `lstore bench point`.
//! - [`heap`]: the workloads and figures of the durable heap, `lstore bench heap`.
//! - [`index`]: the benchmark of the indexes, `lstore bench index`.
//! - [`spatial`]: the benchmarks of searching in space, `lstore bench gist` and `lstore bench bwd`.
//! - [`snapshots`]: the benchmark of snapshots of memory, `lstore bench snapshots`.
//! - [`sim`](mod@sim): the figures of machines that are not here, by the model of crate `sim`, `lstore bench sim`.
//! - [`baselines`]: unpublished structures that the papers measured against.
#![forbid(unsafe_code)]

pub mod asymmetry;
pub mod baselines;
mod beside;
pub mod calibrate;
pub mod commit;
mod error;
pub mod figures;
pub mod heap;
pub mod index;
pub mod load;
pub mod micro;
mod numbers;
pub mod opening;
pub mod peers;
pub mod point;
mod progress;
mod scratch;
mod seconds;
pub mod sim;
pub mod snapshots;
pub mod spatial;
pub mod tpcds;
pub mod tpch;
mod workload;

pub use error::LabError;
pub use progress::{Progress, Quiet};
pub use scratch::Scratch;
pub use seconds::seconds;
pub use workload::{Operation, Order};
