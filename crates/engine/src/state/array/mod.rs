//! The storage of a table `WITH (layout = array)`: an array in memory that is updated in place and read as of one instant.
//!
//! The key of a row is its place. Keys come in *leaves* of 64; a leaf is a word with a bit for each key that has a row, and then 64
//! words for each column but the key:
//!
//! ```text
//! SnapshotArray<u64>    leaf 0                                     leaf 1
//!                       [rows | 64 words of b | 64 words of c]     [rows | 64 words of b | ...]
//! ```
//!
//! A transaction collects what it writes in an *overlay* ([`leaf`]) and has the table for itself from its first write on, so that
//! writers follow one another. Its commit takes the table's *latch* before it takes its number, and writes everything under it
//! (`transaction/arrays.rs`). A reader takes a snapshot under the same latch ([`data`]): its image ([`image`]) has every transaction up
//! to a commit as a whole, and none after it; it waits for no writer but for that moment. There is no history: a reader whose
//! snapshot is older than the newest commit here is refused, unless it may see later commits, too (READ COMMITTED).
//!
//! Snapshots are kept by rewiring (`snapshot::Mechanism::Rewire`): they begin in microseconds at any size, and mostly end before
//! many pages were written. Where the system has no files in memory, everything is copied.
pub(crate) mod data;
pub(crate) mod image;
pub(crate) mod leaf;
