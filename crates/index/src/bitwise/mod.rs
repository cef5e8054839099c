//! Bitwise distribution: columns of integers cut between bits, so that the part that tells most apart is small enough for a fast
//! memory (Pirk, Sellam, Manegold and Kersten, *X-Device Query Processing by Bitwise Distribution*, 2012; "the paper" here).
//!
//! ```text
//!  a coordinate, from the lowest value of its column:
//!  | prefix, p bits | suffix, s bits | residual |
//!          |                |             |
//!          v                v             v
//!  directory          suffixes        residuals     tuple numbers
//!  +-----------+      +--------+      +--------+    +-----+
//!  | 00 : 0    |----->| 1010.. |      | 0110.. |    | rid |      one cluster of points for each combination of
//!  | 01 : 3    |--+   | 0011.. |      | 1001.. |    | rid |      prefixes; all lists in the order of the clusters
//!  | 10 : 3    |  |   | 1110.. |      | 0000.. |    | rid |
//!  | 11 : 7    |  +-->| 0100.. |      | 1100.. |    | rid |
//!  +-----------+      +--------+      +--------+    +-----+
//!   in the budget: the device's memory, or the cache's           apart
//! ```
//!
//! A search has two phases. *Preselection* joins the queries with the clusters by their prefixes, skips clusters that no query
//! hits, and tests the suffixes of the others once for all queries that hit them ([`ClusterDevice`]). What it finds is a place in the
//! lists, and whether it is a *definite* hit: where all values with these bits answer the query. *Refinement* looks up the residuals
//! of the others by their places. The budget decides how many bits the first phase sees: [`SpaceModel`].
//! [`BitwiseIndex`] takes changes: it searches what is newer beside such columns.
mod columns;
mod kernel;
mod live;
mod model;
mod packed;
mod preselect;
mod refine;

#[cfg(all(test, not(shuttle)))]
mod live_tests;
#[cfg(all(shuttle, test))]
mod models;
#[cfg(all(test, not(shuttle)))]
mod tests;

pub use columns::{BitwiseColumns, BitwiseError};
pub use live::BitwiseIndex;
pub use model::{BitSplit, SpaceModel};
pub use preselect::{Approximation, BitwiseImage, ClusterDevice, ClusterScan, Partial, Partials};
