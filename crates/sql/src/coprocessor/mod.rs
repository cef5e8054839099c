//! A processor beside the CPU that takes sections of plans: what it is asked, and what is known of it.
//!
//! ```text
//! program ── Offload ──▶ session ──▶ planner: `cost` of the section there and here ──▶ operator ──▶ Coprocessor
//!               ▲                        └──▶ `decisions` ◀── how it went ─────────────────┘
//!               └── shared by all sessions: the device, its memory, what it was measured to cost
//! ```
//!
//! A [`Coprocessor`] sees slices of numbers alone, and nothing of plans. Its answer is exact or an error: the operator then goes on
//! with its subtree on the CPU. Imports `error` at most, so that all above may ask it.
pub(crate) mod cost;
pub(crate) mod decisions;
mod images;
mod offload;
pub(crate) mod residents;
mod searches;

use std::any::Any;
use std::fmt;

pub use engine::{BoxesImage, Partial, PointsImage, PointsQuery};
pub(crate) use images::Owner;
pub use offload::Offload;
pub(crate) use offload::{Built, Room};
pub(crate) use searches::Searches;

/// What a device says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Its maker's name for it.
    pub name: String,
    /// Its memory.
    pub memory_bytes: u64,
    /// Whether it is a stand-in for tests. Its times mean nothing.
    pub is_emulated: bool,
}

impl fmt::Display for DeviceFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_unsaid = self.is_emulated && !self.name.contains("emulated");
        write!(f, "{}{}", self.name, if is_unsaid { " (emulated)" } else { "" })
    }
}

/// Why a device gives no answer. The CPU answers instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// This input is none for it; another may be.
    Declined(String),
    /// It has no room now.
    Full(String),
    /// It is of no more use to this process.
    Lost(String),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Declined(why) | DeviceError::Full(why) | DeviceError::Lost(why) => f.write_str(why),
        }
    }
}

/// A column of values to be grouped, and what is asked of it.
#[derive(Clone, Copy, Debug)]
pub struct GroupedColumn<'a> {
    /// The group of each row where it is not that of the other columns.
    pub codes: Option<&'a [u32]>,
    /// The value of each row.
    pub values: &'a [i64],
    /// Whether sums are wanted.
    pub sum: bool,
    /// Whether the smallest values are wanted.
    pub min: bool,
    /// Whether the largest values are wanted.
    pub max: bool,
}

/// Rows to be grouped.
#[derive(Clone, Copy, Debug)]
pub struct GroupedRows<'a> {
    /// The group of each row, below `group_count`.
    pub codes: &'a [u32],
    /// How many groups there may be.
    pub group_count: u32,
    /// The columns of values.
    pub columns: &'a [GroupedColumn<'a>],
}

/// Of one column, by group; what was not asked for is empty. Extremes of a group without rows are any numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnTotals {
    /// Rows.
    pub counts: Vec<u64>,
    /// Exact sums.
    pub sums: Vec<i128>,
    /// Smallest values.
    pub mins: Vec<i64>,
    /// Largest values.
    pub maxs: Vec<i64>,
}

/// Where the time of a device went, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Bringing the input there.
    pub transfer_ns: f64,
    /// Its kernels.
    pub kernels_ns: f64,
    /// All else: making room, and bringing results back.
    pub results_ns: f64,
    /// How many kernels ran.
    pub launches: u32,
}

/// The answer of a grouping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupTotals {
    /// Rows, by group.
    pub counts: Vec<u64>,
    /// One for each column.
    pub columns: Vec<ColumnTotals>,
    /// Where the time went.
    pub spent: Spent,
}

/// A column of keys with its NULLs, which have no partner: bits of validity as Arrow keeps them, lowest first from the first row on.
#[derive(Clone, Copy, Debug)]
pub enum JoinKeys<'a> {
    /// Keys of 32 bits.
    Narrow(&'a [u32], Option<&'a [u8]>),
    /// Keys of 64 bits.
    Wide(&'a [u64], Option<&'a [u8]>),
}

/// The rows of a probe side that have partners in a table, with them.
#[derive(Clone, Debug, PartialEq)]
pub enum Partners {
    /// No row has several.
    One {
        /// A bit for each row, lowest first, which is set where it has one; there may be more bits than rows.
        bits: Vec<u32>,
        /// The rows of the table, in the order of those that have them.
        rows: Vec<u32>,
    },
    /// The row of the table in the lower half, that of the probe side in the upper; in no order.
    Pairs(Vec<u64>),
}

impl Partners {
    /// How many pairs of rows there are.
    pub fn len(&self) -> usize {
        match self {
            Partners::One { rows, .. } => rows.len(),
            Partners::Pairs(pairs) => pairs.len(),
        }
    }

    /// Whether no row has any.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a hash table says of a probe side.
#[derive(Clone, Debug, PartialEq)]
pub struct Probed {
    /// The rows that have partners.
    pub partners: Partners,
    /// Where the time went.
    pub spent: Spent,
}

/// A column of integers that stays on a device, in memory of its own.
pub trait DeviceColumn: fmt::Debug + Send + Sync {
    /// Sets the values of the rows from `first` on, of which there are enough.
    ///
    /// # Errors
    /// The device does not answer.
    fn write(&self, first: usize, values: &[i64]) -> Result<(), DeviceError>;

    /// Itself, for the device that has made it.
    fn as_any(&self) -> &dyn Any;
}

/// A key of a grouping that is on the device. Those of rows that count are from `min` on, below `min + width`.
#[derive(Clone, Copy, Debug)]
pub struct ResidentKey<'a> {
    /// The value of each row.
    pub column: &'a dyn DeviceColumn,
    /// The first place of the range.
    pub min: i64,
    /// How many places it has.
    pub width: u32,
}

/// A column of values that is on the device, and what is asked of it.
#[derive(Clone, Copy, Debug)]
pub struct ResidentValues<'a> {
    /// The value of each row.
    pub column: &'a dyn DeviceColumn,
    /// No value of a row that counts is further from 0.
    pub largest: u64,
    /// Whether sums are wanted.
    pub sum: bool,
    /// Whether the smallest values are wanted.
    pub min: bool,
    /// Whether the largest values are wanted.
    pub max: bool,
}

/// Rows to be grouped whose columns are on the device. A row's group is the place of its keys in their ranges, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct ResidentRows<'a> {
    /// The rows that count, a bit each, lowest first.
    pub rows: &'a [u64],
    /// How many rows there are, whether they count or not.
    pub count: usize,
    /// The keys, at least one.
    pub keys: &'a [ResidentKey<'a>],
    /// The columns of values.
    pub columns: &'a [ResidentValues<'a>],
}

/// A hash table on a device.
pub trait HashTable: fmt::Debug + Send + Sync {
    /// Finds the partners of rows with keys of the table's width.
    ///
    /// # Errors
    /// There are more than `pairs_max`, or it gives no answer, which is no error of the statement.
    fn probe(&self, probe: &JoinKeys<'_>, pairs_max: usize) -> Result<Probed, DeviceError>;
}

/// Points of an index that stay on a device.
pub trait DevicePoints: Send + Sync {
    /// [`PointsSearch::search`](engine::PointsSearch::search), with lists of so many words at most; where the time went.
    ///
    /// # Errors
    /// It gives no answer, which is no error of the statement.
    fn search(
        &self,
        queries: &[PointsQuery],
        words_max: usize,
        take: &mut dyn FnMut(&[Partial]),
    ) -> Result<Spent, DeviceError>;
}

/// Boxes of an index that stay on a device.
pub trait DeviceBoxes: Send + Sync {
    /// [`BoxesSearch::search`](engine::BoxesSearch::search), with lists of so many words at most; where the time went.
    ///
    /// # Errors
    /// It gives no answer, which is no error of the statement.
    fn search(&self, windows: &[u32], words_max: usize, take: &mut dyn FnMut(&[u64])) -> Result<Spent, DeviceError>;
}

/// A device. Its calls block; several threads may make them at a time.
pub trait Coprocessor: fmt::Debug + Send + Sync {
    /// What it says of itself.
    fn facts(&self) -> &DeviceFacts;

    /// Groups rows.
    ///
    /// # Errors
    /// It gives no answer, which is no error of the statement.
    fn group(&self, rows: &GroupedRows<'_>) -> Result<GroupTotals, DeviceError>;

    /// Memory for a column of so many rows that stays there until it is dropped.
    ///
    /// # Errors
    /// It has no room, or keeps no columns.
    fn column(&self, _rows: usize) -> Result<Box<dyn DeviceColumn>, DeviceError> {
        Err(DeviceError::Declined("it keeps no columns".to_owned()))
    }

    /// Groups rows whose columns are there.
    ///
    /// # Errors
    /// It gives no answer, which is no error of the statement.
    fn group_residents(&self, _rows: &ResidentRows<'_>) -> Result<GroupTotals, DeviceError> {
        Err(DeviceError::Declined("it keeps no columns".to_owned()))
    }

    /// Brings points of an index, which stay there until they are dropped.
    ///
    /// # Errors
    /// It has no room, or keeps no indexes.
    fn points(&self, _image: &PointsImage<'_>) -> Result<Box<dyn DevicePoints>, DeviceError> {
        Err(DeviceError::Declined("it keeps no indexes".to_owned()))
    }

    /// Brings boxes of an index, which stay there until they are dropped.
    ///
    /// # Errors
    /// It has no room, or keeps no indexes.
    fn boxes(&self, _image: &BoxesImage) -> Result<Box<dyn DeviceBoxes>, DeviceError> {
        Err(DeviceError::Declined("it keeps no indexes".to_owned()))
    }

    /// Makes a hash table of keys, to be probed any number of times until it is dropped; and says what it took.
    ///
    /// # Errors
    /// There is none, which is no error of the statement.
    fn hash_table(&self, build: &JoinKeys<'_>) -> Result<(Box<dyn HashTable>, Spent), DeviceError>;
}
