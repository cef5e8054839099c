//! The hash table on a device, and the launches that build and probe it: here, of rows as they
//! come; in `windows`, of those that are chosen by the part of the table that they meet; in `parts`, of rows that are put in its order.
//!
//! A table has a power of two of slots, at least twice the rows of the build table. A slot that is free has
//! all bits set. A slot holds one word for 32-bit keys and two for 64-bit keys (`kernels/join.cu`).

mod parts;
mod ways;
mod windows;

pub use windows::KeyFilter;

use std::sync::Arc;

use crate::device::{Device, DeviceBuffer, Grid, Kernel, Parameters, Pinned, Stream};
use crate::error::GpuError;
use crate::join::{Append, Hash, Settings};

/// An insertion that has looked at so many slots gives up: so many equal keys are left to the CPU's twin, which
/// takes each of them in one step of a chain.
const STEPS_MAX: u32 = 1 << 14;

/// Rows of a build table at most: row numbers and slots of 32-bit hashes bound it.
pub(super) const BUILD_ROWS_MAX: usize = 1 << 31;

/// Results that a block collects in shared memory: six thousand in the paper, less here, so that several
/// blocks share a multiprocessor.
const CACHED_MAX: u32 = 1536;

/// Results that a warp collects.
const WARPED_MAX: u32 = 256;

/// Results that a warp must have room for: those of one step, and a line that is not full.
const WARPED_MIN: u32 = 48;

/// What is read of memory at least. A table's far part begins with one.
const SECTOR_BYTES: usize = 32;

/// The threads of a warp.
const LANES: u32 = 32;

/// How a kernel reads keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A 32-bit key below, a 32-bit row above.
    Tuples,
    /// 32-bit keys, rows in order.
    Column32,
    /// 64-bit keys, rows in order.
    Column64,
}

impl Form {
    pub(super) fn slot_words(self) -> usize {
        match self {
            Self::Tuples | Self::Column32 => 1,
            Self::Column64 => 2,
        }
    }

    fn kernel(self, device: &Arc<Device>, step: JoinStep) -> Result<Kernel, GpuError> {
        let name = match (step, self) {
            (JoinStep::Build, Self::Tuples) => "join_build_tuples",
            (JoinStep::Build, Self::Column32) => "join_build_column32",
            (JoinStep::Build, Self::Column64) => "join_build_column64",
            (JoinStep::Probe(Append::Direct), Self::Tuples) => "join_direct_tuples",
            (JoinStep::Probe(Append::Direct), Self::Column32) => "join_direct_column32",
            (JoinStep::Probe(Append::Direct), Self::Column64) => "join_direct_column64",
            (JoinStep::Probe(Append::Cached), Self::Tuples) => "join_cached_tuples",
            (JoinStep::Probe(Append::Cached), Self::Column32) => "join_cached_column32",
            (JoinStep::Probe(Append::Cached), Self::Column64) => "join_cached_column64",
            (JoinStep::Probe(Append::Warped), Self::Tuples) => "join_warped_tuples",
            (JoinStep::Probe(Append::Warped), Self::Column32) => "join_warped_column32",
            (JoinStep::Probe(Append::Warped), Self::Column64) => "join_warped_column64",
            (JoinStep::Partners, Self::Tuples) => "join_partners_tuples",
            (JoinStep::Group, Self::Tuples) => "join_grouped_tuples",
            (JoinStep::Partners, Self::Column32) => "join_partners_column32",
            (JoinStep::Group, Self::Column32) => "join_grouped_column32",
            (JoinStep::Partners, Self::Column64) => "join_partners_column64",
            (JoinStep::Group, Self::Column64) => "join_grouped_column64",
            (JoinStep::BuildChosen, Self::Tuples) => "join_build_chosen_tuples",
            (JoinStep::BuildChosen, Self::Column32) => "join_build_chosen_column32",
            (JoinStep::BuildChosen, Self::Column64) => "join_build_chosen_column64",
            (JoinStep::ProbeChosen, Self::Tuples) => "join_chosen_tuples",
            (JoinStep::ProbeChosen, Self::Column32) => "join_chosen_column32",
            (JoinStep::ProbeChosen, Self::Column64) => "join_chosen_column64",
            (JoinStep::Filter, Self::Tuples) => "join_filter_tuples",
            (JoinStep::Filter, Self::Column32) => "join_filter_column32",
            (JoinStep::Filter, Self::Column64) => "join_filter_column64",
            (JoinStep::Scatter, Self::Tuples) => "join_scatter_tuples",
            (JoinStep::Scatter, Self::Column32) => "join_scatter_column32",
            (JoinStep::Scatter, Self::Column64) => "join_scatter_column64",
            (JoinStep::FillParts, Self::Tuples) => "join_fill_parts_tuples",
            (JoinStep::FillParts, Self::Column32) => "join_fill_parts_column32",
            (JoinStep::FillParts, Self::Column64) => "join_fill_parts_column64",
            (JoinStep::InsertOver, Self::Tuples) => "join_over_tuples",
            (JoinStep::InsertOver, Self::Column32) => "join_over_column32",
            (JoinStep::InsertOver, Self::Column64) => "join_over_column64",
            (JoinStep::ProbeParts, Self::Tuples) => "join_probe_parts_tuples",
            (JoinStep::ProbeParts, Self::Column32) => "join_probe_parts_column32",
            (JoinStep::ProbeParts, Self::Column64) => "join_probe_parts_column64",
        };
        device.kernel(name)
    }
}

#[derive(Debug, Clone, Copy)]
enum JoinStep {
    Build,
    Probe(Append),
    Partners,
    Group,
    BuildChosen,
    ProbeChosen,
    Filter,
    Scatter,
    FillParts,
    InsertOver,
    ProbeParts,
}

/// Rows where a kernel reads them: addresses of pinned or of device memory.
#[derive(Debug, Clone, Copy)]
pub struct Input {
    /// How to read them.
    pub form: Form,
    /// The keys.
    pub keys: u64,
    /// The bits of validity; 0: all rows are valid.
    pub valid: u64,
    /// Rows.
    pub count: usize,
    /// The number of the first row of a column.
    pub first_row: u32,
    /// The place of the first row's bit of validity.
    pub first_bit: u32,
}

impl Input {
    /// All rows of a table without NULLs.
    pub fn new(form: Form, keys: u64, count: usize) -> Self {
        Self { form, keys, valid: 0, count, first_row: 0, first_bit: 0 }
    }

    fn words(&self) -> [u64; 4] {
        [self.keys, self.valid, self.count as u64, crate::device::halves(self.first_row, self.first_bit)]
    }
}

/// Room for pairs, which a kernel fills and counts.
#[derive(Debug, Clone, Copy)]
pub struct Results {
    /// Where the pairs go.
    pub pairs: u64,
    /// The counter, which goes on when there is no more room.
    pub count: u64,
    /// Room.
    pub capacity: usize,
}

/// Rows of the probe table that a warp takes at a time where it appends partners, and the words of their bits.
pub(super) const TILE_ROWS: usize = 256;
pub(super) const TILE_WORDS: usize = TILE_ROWS / 32;

/// Where the kernel puts partners: its structure of that name.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartnersAt {
    pub(super) bits: u64,
    pub(super) starts: u64,
    pub(super) rows: u64,
    pub(super) count: u64,
    pub(super) repeated: u64,
}

/// A hash table on a device; its far end may lie in host memory.
#[derive(Debug)]
pub struct Table {
    device: Arc<Device>,
    form: Form,
    near: DeviceBuffer<u64>,
    far: Option<Pinned<u64>>,
    near_slots: usize,
    slots: usize,
    hash: Hash,
    failed: DeviceBuffer<u32>,
    blocks: Option<u32>,
    threads: u32,
    collected_max: Option<u32>,
}

impl Table {
    /// A table for `rows` rows, which [`Self::clear`] or [`Self::fill`] has to be asked for first.
    pub fn new(device: &Arc<Device>, form: Form, rows: usize, settings: &Settings) -> Result<Self, GpuError> {
        if rows > BUILD_ROWS_MAX {
            return Err(GpuError::Unsuitable(format!("a join that builds on {rows} rows")));
        }
        check_threads(device, settings.threads)?;
        let slots = (2 * rows).next_power_of_two().max(LANES as usize);
        let slot_bytes = form.slot_words() * 8;
        let near_slots =
            settings.table_bytes_max.map_or(slots, |most| slots.min(most / SECTOR_BYTES * SECTOR_BYTES / slot_bytes));
        let near = DeviceBuffer::new(device, near_slots * form.slot_words(), "hash table")?;
        let far = if near_slots < slots {
            let far_words = (slots - near_slots) * form.slot_words();
            Some(Pinned::new(device, far_words, "hash table in host memory")?)
        } else {
            None
        };
        let failed = DeviceBuffer::new(device, 1, "a counter")?;
        Ok(Self {
            device: Arc::clone(device),
            form,
            near,
            far,
            near_slots,
            slots,
            hash: settings.hash,
            failed,
            blocks: settings.blocks,
            threads: settings.threads,
            collected_max: settings.collected_max,
        })
    }

    /// How its keys are read.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Empties the table, once `stream` comes to it.
    pub fn clear(&self, stream: &Stream) -> Result<(), GpuError> {
        self.near.fill(stream, 0xff)?;
        if let Some(far) = &self.far {
            far.fill_bytes(stream, 0xff)?;
        }
        self.failed.fill(stream, 0)
    }

    /// Inserts rows, once `stream` comes to it. [`Self::check`] says later whether all found a slot.
    ///
    /// # Safety
    ///
    /// The input's addresses are of `count` rows that the device may read, and stay so until `stream` has
    /// been waited for; all inputs together have no more rows than the table was made for.
    pub unsafe fn insert(&self, stream: &Stream, input: &Input) -> Result<(), GpuError> {
        let kernel = self.form.kernel(&self.device, JoinStep::Build)?;
        let grid = self.grid(&kernel, input, 0)?;
        let mut parameters = Parameters::new().words(&input.words()).words(&self.words()?).word(self.failed.address());
        // SAFETY: these are the parameters of `join_build_*`; the caller answers for the input.
        unsafe { kernel.launch(stream, grid, &mut parameters) }
    }

    /// Whether every row has found a slot; waits for the device.
    pub fn check(&self) -> Result<(), GpuError> {
        match self.failed.read()?[0] {
            0 => Ok(()),
            count => Err(GpuError::Unsuitable(format!(
                "{count} rows found no slot within {STEPS_MAX} steps, as too many keys are equal or share a hash"
            ))),
        }
    }

    /// Appends the matches of rows to the results, once `stream` comes to it.
    ///
    /// # Safety
    ///
    /// As for [`Self::insert`]; the results' addresses are of `capacity` pairs and of one counter, which
    /// nothing else touches until `stream` has been waited for.
    pub unsafe fn probe(
        &self,
        stream: &Stream,
        input: &Input,
        results: Results,
        append: Append,
    ) -> Result<(), GpuError> {
        let kernel = self.form.kernel(&self.device, JoinStep::Probe(append))?;
        let (collected, shared_bytes) = match append {
            Append::Direct => (0, 0),
            // A head of two words, then the pairs.
            Append::Cached => {
                let pairs = self.collected_max.unwrap_or(CACHED_MAX).max(1);
                (pairs, 16 + 8 * pairs as usize)
            }
            Append::Warped => {
                let pairs = self.warped_max();
                (pairs, 8 * pairs as usize * self.warps())
            }
        };
        let grid = self.grid(&kernel, input, shared_bytes)?;
        let mut parameters = Parameters::new().words(&input.words()).words(&self.words()?).words(&[
            results.pairs,
            results.count,
            results.capacity as u64,
        ]);
        if append != Append::Direct {
            parameters = parameters.half(collected);
        }
        // SAFETY: these are the parameters of the kernel; the caller answers for the addresses.
        unsafe { kernel.launch(stream, grid, &mut parameters) }
    }

    /// Appends the partner of each row that has one to `to`, once `stream` comes to it.
    ///
    /// # Safety
    ///
    /// As for [`Self::insert`]; the addresses of `to` are of [`TILE_WORDS`] words and a start for each tile of the input, a row for each
    /// row, and of two counters, which nothing else touches until `stream` has been waited for.
    pub(super) unsafe fn partners(&self, stream: &Stream, input: &Input, to: &PartnersAt) -> Result<(), GpuError> {
        let kernel = self.form.kernel(&self.device, JoinStep::Partners)?;
        let shared_bytes = TILE_ROWS * 4 * self.warps();
        let grid = self.grid(&kernel, input, shared_bytes)?;
        let mut parameters = Parameters::new().words(&input.words()).words(&self.words()?).words(&[
            to.bits,
            to.starts,
            to.rows,
            to.count,
            to.repeated,
        ]);
        // SAFETY: these are the parameters of `join_partners_*`; the caller answers for the addresses.
        unsafe { kernel.launch(stream, grid, &mut parameters) }
    }

    /// Adds the matches of rows to aggregates, once `stream` comes to it. `groups` are the kernel's words
    /// but for the last, which this chooses.
    ///
    /// # Safety
    ///
    /// As for [`Self::insert`], for `codes`, `values` and both aggregates, too.
    pub(super) unsafe fn group(
        &self,
        stream: &Stream,
        input: &Input,
        addresses: [u64; 4],
        group_count: u32,
    ) -> Result<(), GpuError> {
        let kernel = self.form.kernel(&self.device, JoinStep::Group)?;
        let wanted_bytes = group_count as usize * 16;
        let is_shared = group_count > 1 && wanted_bytes <= self.device.properties().shared_bytes_max / 2;
        let grid = self.grid(&kernel, input, if is_shared { wanted_bytes } else { 0 })?;
        let [codes, values, counts, sums] = addresses;
        let mut parameters = Parameters::new().words(&input.words()).words(&self.words()?).words(&[
            codes,
            values,
            counts,
            sums,
            crate::device::halves(group_count, u32::from(is_shared)),
        ]);
        // SAFETY: these are the parameters of `join_grouped_*`; the caller answers for the addresses.
        unsafe { kernel.launch(stream, grid, &mut parameters) }
    }

    /// Results that a warp collects.
    fn warped_max(&self) -> u32 {
        self.collected_max.unwrap_or(WARPED_MAX).max(WARPED_MIN)
    }

    /// Warps of a block.
    fn warps(&self) -> usize {
        (self.threads / LANES) as usize
    }

    /// The kernel's structure `Table`.
    fn words(&self) -> Result<[u64; 5], GpuError> {
        let far = self.far.as_ref().map_or(Ok(0), Pinned::address)?;
        Ok([
            self.near.address(),
            far,
            self.near_slots as u64,
            self.slots as u64 - 1,
            crate::device::halves(u32::from(self.hash == Hash::Mixed), STEPS_MAX),
        ])
    }

    fn grid(&self, kernel: &Kernel, input: &Input, shared_bytes: usize) -> Result<Grid, GpuError> {
        assert_eq!(input.form.slot_words(), self.form.slot_words(), "the inputs of a join have keys of one width");
        let fitting = match self.blocks {
            Some(blocks) => blocks,
            None => self.device.blocks_that_fit(kernel, self.threads, shared_bytes)?,
        };
        let needed = input.count.div_ceil(self.threads as usize);
        let blocks = u32::try_from(needed).map_or(fitting, |needed| needed.min(fitting));
        Ok(Grid { blocks: blocks.max(1), threads: self.threads, shared_bytes })
    }
}

fn check_threads(device: &Device, threads: u32) -> Result<(), GpuError> {
    let fits = (LANES..=1024).contains(&threads) && threads.is_multiple_of(LANES);
    if !fits || WARPED_MAX as usize * 8 * (threads / LANES) as usize > device.properties().shared_bytes_max {
        return Err(GpuError::Unsuitable(format!("{threads} threads in a block")));
    }
    Ok(())
}
