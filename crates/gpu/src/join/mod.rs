//! Hash join: the inputs, the settings, and the answer, equal for the device and for its twin.
//!
//! A join matches rows of a *build* table with rows of a *probe* table that have an equal key. The answer is pairs
//! of rows, in no order. Rows that are not valid (NULL) match nothing.
//!
//! [`join()`] runs the kernels of `kernels/join.cu`: gpu-join, sections 3 and 4, and what the paper
//! leaves for later (64-bit keys, duplicates, tables of different sizes, a hash table that spills to host
//! memory). [`twin`] answers on the CPU.

mod gathered;
mod on_device;
mod partners;
mod source;
mod table;
pub mod twin;

pub use on_device::{Built, Groups, Outcome, Times, join, join_grouped};
pub use partners::Partners;
pub(crate) use table::{Form, Input, KeyFilter, Results, Table};

/// Bits of validity as Arrow keeps them: a bit a row, lowest first; `first_bit` is that of the first row.
#[derive(Debug, Clone, Copy)]
pub struct Bits<'a> {
    /// The buffer.
    pub bytes: &'a [u8],
    /// Where the first row's bit is.
    pub first_bit: usize,
}

impl Bits<'_> {
    /// Whether row `at` is valid.
    pub fn is_set(&self, at: usize) -> bool {
        let bit = self.first_bit + at;
        self.bytes[bit / 8] >> (bit % 8) & 1 == 1
    }
}

/// A table's keys. Rows are numbered from 0, but tuples bring their own numbers.
#[derive(Debug, Clone, Copy)]
pub enum Keys<'a> {
    /// The paper's: a 32-bit key below, a 32-bit row above. No row may be `u32::MAX`.
    Tuples(&'a [u64]),
    /// A column of 32-bit keys.
    Column32(&'a [u32], Option<Bits<'a>>),
    /// A column of 64-bit keys.
    Column64(&'a [u64], Option<Bits<'a>>),
}

impl Keys<'_> {
    /// Rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Tuples(tuples) => tuples.len(),
            Self::Column32(keys, _) => keys.len(),
            Self::Column64(keys, _) => keys.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key and the number of a valid row.
    ///
    /// # Panics
    /// If there is no row `at`.
    pub fn row(&self, at: usize) -> Option<(u64, u32)> {
        let number = || u32::try_from(at).expect("at most 2^32 rows");
        match self {
            Self::Tuples(tuples) => Some((tuples[at] & 0xffff_ffff, (tuples[at] >> 32) as u32)),
            Self::Column32(keys, valid) if is_valid(*valid, at) => Some((u64::from(keys[at]), number())),
            Self::Column64(keys, valid) if is_valid(*valid, at) => Some((keys[at], number())),
            Self::Column32(..) | Self::Column64(..) => None,
        }
    }

    /// How a kernel reads them.
    pub(crate) fn form(&self) -> Form {
        match self {
            Self::Tuples(_) => Form::Tuples,
            Self::Column32(..) => Form::Column32,
            Self::Column64(..) => Form::Column64,
        }
    }
}

fn is_valid(valid: Option<Bits<'_>>, at: usize) -> bool {
    valid.is_none_or(|bits| bits.is_set(at))
}

/// Where a key's search begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hash {
    /// All bits of the key mixed: any keys spread well.
    #[default]
    Mixed,
    /// The key's low bits, as in the paper: consecutive keys never meet, others may all do.
    LowBits,
}

/// How the inputs come to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transfer {
    /// Kernels read pinned host memory (the paper's choice).
    #[default]
    InPlace,
    /// The copy engine brings pieces of so many rows to two buffers in turn, while kernels work on the other.
    Copied {
        /// Rows of a piece.
        rows: usize,
    },
    /// Copied whole, before anything else.
    Resident,
}

/// How matches get to the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Append {
    /// One addition to the counter a match.
    Direct,
    /// A block collects in shared memory (the paper's result cache).
    Cached,
    /// A warp collects in shared memory, without barriers, and writes whole lines.
    #[default]
    Warped,
}

/// How results come to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// Kernels write to pinned host memory (the paper's choice).
    #[default]
    InPlace,
    /// Kernels collect the results of a piece in device memory, and the copy engine brings them while the next pieces are probed.
    Copied,
}

/// Whether a probe looks at a filter in the device's cache before it looks at the table, which takes few reads of memory where few rows
/// match. Only inputs that are on the device have one: others wait for the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filter {
    /// It does not.
    #[default]
    Without,
    /// It does.
    With,
}

/// In which order the rows of an input that is on the device are inserted or looked for. A table that is larger than the device's cache
/// takes a read of memory at random for each row as it comes. Numbers of windows are rounded up to powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// What suits the table's size.
    #[default]
    Fitting,
    /// As they come.
    AsTheyCome,
    /// All rows are read for each of so many windows of the table, and those of the window are taken, so that the cache holds it.
    Windows(u32),
    /// Rows are put in the order of windows, of which there are so many at least, and as many that one fits a block's shared memory.
    Parts(u32),
}

/// How a join runs on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Where a key's search begins.
    pub hash: Hash,
    /// How the inputs come to the device.
    pub transfer: Transfer,
    /// How matches get to the results.
    pub append: Append,
    /// How results come to the host.
    pub delivery: Delivery,
    /// Results that a block or a warp collects before it writes them; `None`: what suits the device.
    pub collected_max: Option<u32>,
    /// The order of insertions.
    pub build_order: Order,
    /// The order in which pairs are looked for; a probe with a filter has no parts.
    pub probe_order: Order,
    /// The filter of a probe for pairs.
    pub filter: Filter,
    /// Device memory for the hash table; what is more lies in host memory. `None`: all of it on the device.
    pub table_bytes_max: Option<usize>,
    /// Blocks of a grid; `None`: as many as the device keeps at a time.
    pub blocks: Option<u32>,
    /// Threads of a block.
    pub threads: u32,
    /// Room in the results before their number is known; `None`: one for each row of the probe table.
    pub result_rows: Option<usize>,
    /// Results of a probe beyond which it is refused; `None`: whatever memory there is.
    pub result_rows_max: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hash: Hash::default(),
            transfer: Transfer::default(),
            append: Append::default(),
            delivery: Delivery::default(),
            collected_max: None,
            build_order: Order::default(),
            probe_order: Order::AsTheyCome,
            filter: Filter::default(),
            table_bytes_max: None,
            blocks: None,
            threads: 256,
            result_rows: None,
            result_rows_max: None,
        }
    }
}

/// A pair of the answer: a row of the build table and one of the probe table.
pub fn pair(build_row: u32, probe_row: u32) -> u64 {
    u64::from(build_row) | u64::from(probe_row) << 32
}
