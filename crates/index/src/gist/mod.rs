//! Generalized search tree: one balanced tree for keys that have no order, such as boxes, intervals and prefixes.
//!
//! ```text
//!                 root +-----------+
//!                      | K1 | K2   |              inner nodes: a key that covers all that is below, and the child
//!                      +-|----|----+
//!               +--------+    +---------+
//!               v                       v
//!     +-------------------+   +-------------------+
//!     | k1 k2 k3 ... k64  |   | k1 k2 ...         |   leaves: keys, dimension by dimension, and Rids
//!     | r1 r2 r3 ... r64  |   | r1 r2 ...         |
//!     +-------------------+   +-------------------+
//! ```
//!
//! The tree is that of Hellerstein, Naughton and Pfeffer (*Generalized Search Trees for Database Systems*, 1995): the tree knows
//! how to descend, split and balance, an [`Extension`] knows the keys. Batches of queries are run node by node, as in Beier,
//! Kilius and Sattler (*GiST Scan Acceleration using Coprocessors*, 2012; "the paper" in this room): [`batch`], behind the trait
//! [`Device`], with a [`BatchScheduler`] that learns which way is faster.
//!
//! - Extensions: [`RTree`] (boxes of up to four dimensions), [`Intervals`], [`Prefixes`].
//! - A node's contents never change; a writer puts new contents in their place: [`node`] has the protocol, `write` and `remove`
//!   follow it.
//! - Entries are pairs of a key and a base Rid. A pair that is inserted twice is there twice. Readers check the key on the
//!   version that they see, as for all indexes.
mod batch;
mod bounds;
mod device;
mod extension;
mod image;
mod intervals;
mod kernels;
mod learn;
mod load;
mod nearest;
mod node;
mod prefixes;
mod remove;
mod rtree;
mod schedule;
mod scheduler;
mod search;
mod tree;
mod write;

#[cfg(all(shuttle, test))]
mod models;
#[cfg(all(test, not(shuttle)))]
mod races;
#[cfg(all(test, not(shuttle)))]
mod tests;

pub(crate) use batch::Grouping;
pub use batch::Matches;
pub use bounds::{Bounds, BoundsError, BoundsQuery, Coordinate};
pub use device::{Cpu, Device, NodeScan};
pub use extension::{Extension, KeyList, SLOTS_MAX, Slots};
pub use image::TreeImage;
pub use intervals::{End, Interval, IntervalError, Intervals};
pub use nearest::ByDistance;
pub use prefixes::{Prefix, PrefixQuery, Prefixes};
pub use rtree::{BoundsSlots, RTree};
pub use scheduler::{BatchLoad, BatchScheduler, Regret};
pub use tree::Gist;
