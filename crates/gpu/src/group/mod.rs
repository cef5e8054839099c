//! Grouped aggregation and foreign-key lookup over codes (gpu-contention).
//!
//! The columns hold codes from 0 on, so the aggregates are an array and a code is a place in it. [`Optimizer`]
//! may have rewritten the codes to places of clones; then the value of each place comes along.
//!
//! [`Optimizer`]: crate::contention::Optimizer

mod measured;
mod on_device;
pub mod resident;
pub mod twin;

pub use measured::{Measured, Measurement, Times, Totals, measure};
use on_device::extremes_from;
pub(crate) use on_device::{Launched, aggregate_from, look_up_from};
pub use on_device::{aggregate, look_up};

use crate::device::Properties;

/// The input of a grouping: `SELECT code, COUNT(*), SUM(value) ... GROUP BY code`.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// The code of each row, or its place if there are clones.
    pub codes: &'a [u32],
    /// The value of each row; `None`: rows are counted only.
    pub values: Option<&'a [i64]>,
    /// Groups.
    pub group_count: u32,
    /// The group of each place; `None`: a place is a group.
    pub group_of_place: Option<&'a [u32]>,
}

impl Column<'_> {
    /// Places that codes may name.
    pub fn place_count(&self) -> u32 {
        self.group_of_place.map_or(self.group_count, |groups| groups.len() as u32)
    }
}

/// The answer: a count and a sum for each group. Sums wrap around.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregates {
    /// Rows of each group.
    pub counts: Vec<u64>,
    /// Sums of the values of each group.
    pub sums: Vec<i64>,
}

/// Where a device keeps the aggregates while it adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// In shared memory, one place a group, or a place a clone.
    Shared,
    /// In shared memory, counts of 32 bits, of codes without clones that are read four a lane; where there is no room for all groups, a
    /// part of them in each block. Without values, and for fewer than 2^32 rows.
    Counts,
    /// In shared memory, 32 places a group: one for each lane.
    Private,
    /// In device memory, in so many copies.
    Global {
        /// Copies, each shared by some of the blocks.
        copies: u32,
    },
    /// In shared memory, a part of the groups in each block; the parts read the same codes.
    Partitioned,
    /// In shared memory, sums as two halves of 32 bits, which it adds without a loop; so many copies of a place, which lanes take in turn.
    Halves {
        /// Copies, at least one.
        copies: u32,
    },
    /// Likewise, and each thread keeps the group that it meets most often to itself.
    Held {
        /// Copies, at least one.
        copies: u32,
    },
    /// Likewise, one copy, to which a lane adds the rows of all lanes of a warp that have its group.
    Peers,
}

/// Copies of a place of which more gain nothing, whatever the skew.
const COPIES_ENOUGH: usize = 4;

/// Parts of the groups of which each block counts one; with more of them, additions in device memory are faster.
const PARTS_MAX: u32 = 16;

/// Bytes of one place.
fn place_bytes(column: &Column<'_>) -> usize {
    if column.values.is_some() { 12 } else { 4 }
}

impl Arrangement {
    /// Chooses the arrangement that suits a column of so many rows, by what was measured. Counts: in shared memory, in parts where they do
    /// not fit, as adding to one place is as fast as adding to many. Sums: as halves, in several copies while two blocks of them share a
    /// multiprocessor; else each thread holds its commonest group, as values that meet at one place of shared memory are added one after
    /// the other. More groups than fit: in device memory.
    pub fn suitable(column: &Column<'_>, rows: usize, device: &Properties) -> Self {
        let bytes = column.place_count() as usize * place_bytes(column);
        let is_plain = column.values.is_none() && column.group_of_place.is_none();
        if is_plain && u32::try_from(rows).is_ok() && Self::Counts.shared_bytes(column, device).1 <= PARTS_MAX {
            return Self::Counts;
        }
        if bytes > device.shared_bytes_max {
            return Self::Global { copies: 1 };
        }
        if column.values.is_none() {
            return Self::Shared;
        }
        match (device.shared_bytes_total / 2 - 1024) / bytes.max(1) {
            0 | 1 => Self::Held { copies: 1 },
            fitting => Self::Halves { copies: fitting.min(COPIES_ENOUGH) as u32 },
        }
    }

    /// Shared memory of a block, and how many parts the groups are cut into.
    fn shared_bytes(self, column: &Column<'_>, device: &Properties) -> (usize, u32) {
        let bytes = place_bytes(column);
        match self {
            Self::Shared => (column.place_count() as usize * bytes, 1),
            Self::Private => (column.group_count as usize * 32 * bytes, 1),
            Self::Halves { copies } | Self::Held { copies } => {
                (column.place_count() as usize * copies.max(1) as usize * bytes, 1)
            }
            Self::Peers => (column.place_count() as usize * bytes, 1),
            Self::Global { .. } => (0, 1),
            Self::Counts => {
                let parts = (column.group_count as usize * bytes).div_ceil(device.shared_bytes_max).max(1) as u32;
                ((column.group_count.div_ceil(parts) as usize * bytes).next_multiple_of(16), parts)
            }
            Self::Partitioned => {
                let parts = (column.group_count as usize * bytes).div_ceil(device.shared_bytes_max).max(2) as u32;
                (column.group_count.div_ceil(parts) as usize * bytes, parts)
            }
        }
    }
}
