//! Checkpoints of a database: taken one range after the other while transactions go on, and restored before the log is
//! replayed (Hathi, section 3; L-Store, section 5).
//!
//! ```text
//! 1  c0 = now; wait until what committed by then is done with the catalog; the tables that c0 sees, and those that are gone
//!    and kept
//! 2  the image of each range, at its own commit c_r >= c0; pages that are on disk are referred to again. Then of each index of the
//!    table, unless the former one will do
//! 3  wait until the log is on disk up to the newest c_r                          (write-ahead discipline)
//! 4  publish: c0, tables, c_r and image of each range
//! 5  trim the log below what the two newest checkpoints need
//! ```
//!
//! Recovery takes the images, and of the log for each range what is after c_r, for the catalog what is after c0.
//! A checkpoint that fails leaves everything as it was, and the log untrimmed.
//!
//! | module | subject |
//! |---|---|
//! | `take` | taking one |
//! | `arrays` | array tables, in both |
//! | `indexes` | images of indexes, in both |
//! | `manifest` | what a checkpoint says of the database |
//! | `restore` | tables and their indexes from a checkpoint |
//! | `background` | when a checkpoint is due |
mod arrays;
mod background;
mod indexes;
mod manifest;
mod restore;
mod take;

pub(crate) use background::{Checkpointer, Disk};
pub use manifest::CheckpointedTable;
pub(crate) use manifest::{Contents, tables_of};
pub(crate) use restore::{Base, restore};
pub use take::CheckpointReport;
pub(crate) use take::{CheckpointParts, put_on_disk};
