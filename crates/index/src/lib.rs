//! Indexes: from a key to the base Rids that had it.
//!
//! An index holds base Rids only (L-Store, section 3), so a new version of a record changes only the indexes on
//! columns that it changes. An entry stays when a version stops having the key, because older snapshots may still
//! reach it; a reader therefore checks the key on the version that it sees. The uniqueness of a key is decided
//! under `insert_unique`, by asking the caller what each record that had the key is doing now.
//!
//! [`HashIndex`] takes keys of any type, `WordIndex` keys of one or two words; [`KissTree`] keeps integer keys in order
//! (`KissIndex` with the Rids of each), [`BPlusTree`] keys of any kind, `Gist` keys without an order: boxes, intervals,
//! prefixes; `BitwiseColumns` integers that never change, for many windows at a time. [`DeltaIndex`] is something else, a dictionary for
//! the column itself: from a value to its id and back. [`Gaps`] tells readers of an ordered index what to step over,
//! [`Residence`] which parts of one are in memory.
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(loom))]
mod beside;
#[cfg(not(loom))]
mod bitwise;
#[cfg(not(loom))]
mod blocks;
mod btree;
#[cfg(not(loom))]
mod delta;
#[cfg(all(shuttle, test))]
mod explore;
#[cfg(not(loom))]
mod gaps;
#[cfg(not(loom))]
mod gist;
mod hash;
mod key_bytes;
mod kiss;
#[cfg(not(loom))]
mod kiss_index;
#[cfg(all(loom, test))]
#[path = "word/model.rs"]
mod model;
mod rids;
#[cfg(not(loom))]
mod vectors;
#[cfg(not(loom))]
mod word;

#[cfg(not(loom))]
pub use beside::{BoxesImage, BoxesSearch, ImageId, NoAnswer, PointsImage, PointsQuery, PointsSearch, SearchDevice};
#[cfg(not(loom))]
pub use bitwise::{
    Approximation, BitSplit, BitwiseColumns, BitwiseError, BitwiseImage, BitwiseIndex, ClusterDevice, ClusterScan,
    Partial, Partials, SpaceModel,
};
#[cfg(not(loom))]
pub use blocks::{BlockList, HeldBlock, Residence, Standing, Unchanging};
pub use btree::{
    BPlusTree, Bytes, Key, KeyRids, Latching, ListedRids, LoadError, NodeLatches, TreeLatch, TreeRange, UniqueRange,
    UniqueTree, Value,
};
#[cfg(not(loom))]
pub use delta::{
    DeltaColumn, DeltaForm, DeltaIndex, DictionaryError, DictionaryValue, Footprint, Ids, NodeSearch, SortedIds,
    ValueId,
};
#[cfg(not(loom))]
pub use gaps::{Announcement, EndOfIndex, EntryRange, Gaps};
#[cfg(not(loom))]
pub use gist::{
    BatchLoad, BatchScheduler, Bounds, BoundsError, BoundsQuery, BoundsSlots, ByDistance, Coordinate, Cpu, Device, End,
    Extension, Gist, Interval, IntervalError, Intervals, KeyList, Matches, NodeScan, Prefix, PrefixQuery, Prefixes,
    RTree, Regret, SLOTS_MAX, Slots, TreeImage,
};
pub use hash::{HashIndex, Holder};
pub use key_bytes::KeyBytes;
pub use kiss::{
    AddressSpaceError, Change, Compact, KissMemory, KissOptions, KissTree, LikelyRecords, Pages, Range, Versioned, Word,
};
#[cfg(not(loom))]
pub use kiss_index::{InsertError, KissIndex, KissRids};
#[cfg(not(loom))]
pub use word::WordIndex;
