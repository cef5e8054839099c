//! Building and probing by parts: rows are put in order by the window of the table that they belong to, and a block builds or probes each
//! window in shared memory (`kernels/parts.cuh`).
//!
//! ```text
//! rows     8 bytes each, read twice      count, scatter
//! parts    8 bytes each, written once    scatter
//!          and read once                 fill, probe
//! table    written in order by a fill, read in order by a probe
//! ```

use super::{Input, JoinStep, LANES, Results, Table};
use crate::device::{DeviceBuffer, Grid, Kernel, Parameters, Stream, halves};
use crate::error::GpuError;

/// Rows that a thread has of a tile that is scattered.
const THREAD_ROWS: usize = 16;

/// Threads of a block that scatters, and of one that has a window, at the most.
const SCATTER_THREADS_MAX: u32 = 512;
const WINDOW_THREADS_MAX: u32 = 1024;

/// Room for the rows of an input in the order of the parts of a table.
#[derive(Debug)]
pub struct Parted {
    window_bits: u32,
    starts: DeviceBuffer<u32>,
    /// The rows of each part, then the next free place in each.
    cursors: DeviceBuffer<u32>,
    /// The rows of each part that its window has no room for.
    spilled: DeviceBuffer<u32>,
    rows: DeviceBuffer<u64>,
    row_words: usize,
}

impl Parted {
    fn count(&self) -> usize {
        self.cursors.len()
    }

    /// The kernel's structure `Parts`.
    fn words(&self) -> [u64; 2] {
        [self.starts.address(), halves(self.window_bits, self.count() as u32)]
    }
}

impl Table {
    /// Room for so many rows by parts, of which there are `least` at least; `None` if there would have to be too many parts.
    pub fn parted(&self, rows: usize, least: u32) -> Result<Option<Parted>, GpuError> {
        let most_bytes = self.device.properties().shared_bytes_max;
        let row_words = self.form.slot_words();
        let mut count = (least.max(1) as usize).next_power_of_two().min(self.slots);
        while self.window_bytes(self.slots / count) > most_bytes && count < self.slots {
            count *= 2;
        }
        // Rows are numbered by 32 bits, of which a block goes a step beyond the last.
        if self.scatter_bytes(count) > most_bytes || rows >= 1 << 31 {
            return Ok(None);
        }
        let of_parts = |more: usize| DeviceBuffer::<u32>::new(&self.device, count + more, "parts of a join");
        Ok(Some(Parted {
            window_bits: (self.slots / count).trailing_zeros(),
            starts: of_parts(1)?,
            cursors: of_parts(0)?,
            spilled: of_parts(0)?,
            rows: DeviceBuffer::new(&self.device, rows * row_words, "rows of a join by parts")?,
            row_words,
        }))
    }

    /// Inserts all rows that the table is to have, once `stream` comes to it; what the table has held does not matter.
    ///
    /// # Safety
    ///
    /// As for [`Self::insert`]; there is room for as many rows in `parted`, which stays until `stream` has been waited for.
    pub(super) unsafe fn fill_parts(&self, stream: &Stream, input: &Input, parted: &Parted) -> Result<(), GpuError> {
        // SAFETY: as the caller promises.
        unsafe { self.part(stream, input, parted) }?;
        self.failed.fill(stream, 0)?;
        let table = self.words()?;
        let fill = self.form.kernel(&self.device, JoinStep::FillParts)?;
        let grid = self.window_grid(&fill, parted)?;
        let addresses = [parted.rows.address(), parted.spilled.address()];
        let mut parameters =
            Parameters::new().words(&table).words(&parted.words()).word(addresses[0]).word(addresses[1]);
        // SAFETY: these are the parameters of `join_fill_parts_*`, all of which the caller keeps.
        unsafe { fill.launch(stream, grid, &mut parameters) }?;
        let spilled = self.form.kernel(&self.device, JoinStep::Spilled)?;
        let grid = Grid { blocks: parted.count() as u32, threads: self.threads, shared_bytes: 0 };
        let mut parameters = parameters.word(self.failed.address());
        // SAFETY: these are the parameters of `join_spilled_*`, as above.
        unsafe { spilled.launch(stream, grid, &mut parameters) }
    }

    /// Appends the matches of rows as [`Self::probe`] does by warps, once `stream` comes to it.
    ///
    /// # Safety
    ///
    /// As for [`Self::probe`] and [`Self::fill_parts`].
    pub(super) unsafe fn probe_parts(
        &self,
        stream: &Stream,
        input: &Input,
        results: Results,
        parted: &Parted,
    ) -> Result<(), GpuError> {
        // SAFETY: as the caller promises.
        unsafe { self.part(stream, input, parted) }?;
        let kernel = self.form.kernel(&self.device, JoinStep::ProbeParts)?;
        let grid = self.window_grid(&kernel, parted)?;
        let mut parameters = Parameters::new()
            .words(&self.words()?)
            .words(&parted.words())
            .word(parted.rows.address())
            .words(&[results.pairs, results.count, results.capacity as u64])
            .half(self.warped_max());
        // SAFETY: these are the parameters of `join_probe_parts_*`; the caller answers for the addresses.
        unsafe { kernel.launch(stream, grid, &mut parameters) }
    }

    /// Puts the valid rows of an input in the order of their parts, once `stream` comes to it.
    ///
    /// # Safety
    ///
    /// As for [`Self::fill_parts`].
    pub unsafe fn part(&self, stream: &Stream, input: &Input, parted: &Parted) -> Result<(), GpuError> {
        assert!(input.count * parted.row_words <= parted.rows.len(), "room for the rows of an input");
        let (table, parts) = (self.words()?, parted.words());
        let cursors = parted.cursors.address();
        parted.cursors.fill(stream, 0)?;
        let count = self.form.kernel(&self.device, JoinStep::CountParts)?;
        let threads = self.window_threads();
        let shared_bytes = parted.count() * 4;
        let blocks = self.device.blocks_that_fit(&count, threads, shared_bytes)?;
        let grid = self.within(Grid { blocks, threads, shared_bytes }, input.count.div_ceil(threads as usize));
        let mut parameters = Parameters::new().words(&input.words()).words(&table).words(&parts).word(cursors);
        // SAFETY: these are the parameters of `join_count_*`; the caller answers for the input.
        unsafe { count.launch(stream, grid, &mut parameters) }?;
        let starts = self.device.kernel("join_starts")?;
        let grid = Grid { blocks: 1, threads: self.window_threads(), shared_bytes: 4 * 32 };
        // SAFETY: these are the parameters of `join_starts`.
        unsafe { starts.launch(stream, grid, &mut Parameters::new().words(&parts).word(cursors)) }?;
        let scatter = self.form.kernel(&self.device, JoinStep::Scatter)?;
        let (threads, shared_bytes) = (self.scatter_threads(), self.scatter_bytes(parted.count()));
        let blocks = self.device.blocks_that_fit(&scatter, threads, shared_bytes)?;
        let tiles = input.count.div_ceil(threads as usize * THREAD_ROWS);
        let grid = self.within(Grid { blocks, threads, shared_bytes }, tiles);
        let mut parameters = parameters.word(parted.rows.address());
        // SAFETY: these are the parameters of `join_scatter_*`; the rows have room, as asserted.
        unsafe { scatter.launch(stream, grid, &mut parameters) }
    }

    /// A grid with no more blocks than are asked for or have something to do.
    fn within(&self, grid: Grid, needed: usize) -> Grid {
        let blocks = self.blocks.unwrap_or(grid.blocks);
        Grid { blocks: u32::try_from(needed.max(1)).map_or(blocks, |needed| needed.min(blocks)), ..grid }
    }

    /// A block for each window that fits the device at a time.
    fn window_grid(&self, kernel: &Kernel, parted: &Parted) -> Result<Grid, GpuError> {
        let (threads, shared_bytes) = (self.window_threads(), self.window_bytes(1 << parted.window_bits));
        let blocks = self.device.blocks_that_fit(kernel, threads, shared_bytes)?;
        Ok(self.within(Grid { blocks, threads, shared_bytes }, parted.count()))
    }

    fn scatter_threads(&self) -> u32 {
        (self.threads * 2).min(SCATTER_THREADS_MAX)
    }

    fn window_threads(&self) -> u32 {
        (self.threads * 4).min(WINDOW_THREADS_MAX)
    }

    /// Shared memory of a block that scatters: rows, two words for each part, the sums of warps, a counter.
    fn scatter_bytes(&self, parts: usize) -> usize {
        self.scatter_threads() as usize * THREAD_ROWS * self.form.slot_words() * 8 + parts * 8 + (32 + 1) * 4
    }

    /// Shared memory of a block that has a window of so many slots: results of its warps, slots, a counter.
    fn window_bytes(&self, slots: usize) -> usize {
        let warps = (self.window_threads() / LANES) as usize;
        (warps * self.warped_max() as usize + 1) * 8 + slots * self.form.slot_words() * 8 + 8
    }
}
