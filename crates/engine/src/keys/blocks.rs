//! An index that is on disk as an image, and in memory as far as it was asked for: what its blocks are, and which of their entries
//! count.
//!
//! Which blocks are in memory, how they are held and how they leave stands in [`index::Residence`]. A reader that asks for a key, and a
//! writer whose key no other record may have, hold the block in which the key lies; a walk holds one block after the other
//! ([`super::resident`]). A writer to which other records do not matter enters its key without a look at blocks, and what is taken out
//! is taken out of memory alone: of what an image has too much, readers find no version.
//!
//! A database that is opened has an image's blocks read when they are needed. Of ranges that were behind the image when the index was
//! first used all entries are in memory, and what the image says of them is left out, as is what it says of records that were not there
//! then (see [`super::image`]). Where memory is short, an index that is used takes the blocks of its newest image as well, whose entries
//! all count: no slot of a range is given to another record while the database is open.
//!
//! A block of an image that was opened is made anew from the table where it can't be read. One that was written since may have had
//! entries of transactions that were running then, of which the table does not tell yet: it is an error, and the next opening makes
//! the index anew.
use std::sync::Arc;

use index::BlockList;
use lineage::HeldBlob;
use types::{BlobRef, Rid};

use super::entries::Entry;
use super::order::Bounds;
use super::runs::Run;

/// Where a block is read.
#[derive(Clone)]
pub(crate) struct BlockPlace {
    pub(crate) blob: BlobRef,
    pub(crate) held: Arc<dyn HeldBlob>,
}

impl PartialEq for BlockPlace {
    fn eq(&self, other: &BlockPlace) -> bool {
        self.blob == other.blob
    }
}

/// Which entries of an image count.
#[derive(Clone, Default)]
pub(crate) enum Counting {
    /// it was written since the database was opened
    #[default]
    All,
    /// By range, of the slots below this one: those of records that were there when the index was first used; 0 of ranges that were
    /// behind.
    Below(Arc<[usize]>),
}

impl PartialEq for Counting {
    fn eq(&self, other: &Counting) -> bool {
        match (self, other) {
            (Counting::All, Counting::All) => true,
            (Counting::Below(slots), Counting::Below(others)) => Arc::ptr_eq(slots, others),
            _ => false,
        }
    }
}

impl Counting {
    /// Whether an entry of the image that leads to this record counts.
    #[inline]
    fn counts(&self, rid: Rid) -> bool {
        match self {
            Counting::All => true,
            Counting::Below(slots) => slots.get(rid.range()).is_some_and(|slots| rid.slot() < *slots),
        }
    }

    /// What an image has of a block.
    ///
    /// # Errors
    /// Why it can't be read.
    pub(crate) fn read(&self, blob: &dyn HeldBlob) -> Result<Run, String> {
        let bytes = blob.read().map_err(|error| error.to_string())?;
        let mut run = Run::read(&bytes)?;
        if *self != Counting::All {
            run.retain(|rid| self.counts(rid));
        }
        Ok(run)
    }
}

/// The blocks of an image, and which of its entries count.
pub(crate) type Blocks = BlockList<Entry, BlockPlace, Counting>;

/// A block of words takes about so much memory; others have fewer entries for their bytes.
pub(super) const BLOCK_BYTES: u64 = 128 << 10;

/// The entries between which a block lies.
pub(crate) fn bounds_of(blocks: &Blocks, block: usize) -> Bounds {
    let (low, high) = blocks.bounds(block);
    (low.cloned(), high.cloned())
}
