//! Building and probing by parts: rows are put in order by the window of the table that they belong to, and a block builds or probes each
//! window in shared memory (`kernels/parts.cuh`).
//!
//! ```text
//! rows     8 bytes each, read once                     scatter
//! parts    8 bytes each, written once and read once    scatter; fill, probe
//! table    written in order by a fill, read in order by a probe
//! ```

use super::{Input, JoinStep, LANES, Results, Table};
use crate::device::{DeviceBuffer, Grid, Kernel, Parameters, Stream, halves};
use crate::error::GpuError;

/// Rows that a thread has of a tile that is scattered.
const THREAD_ROWS: usize = 16;

/// Rows that a part has room for, besides an eighth more than it has if keys spread well.
const ROOM_MORE: usize = 64;

/// Threads of a block at the most.
const THREADS_MAX: u32 = 1024;

/// Room for the rows of an input in the order of the parts of a table.
#[derive(Debug)]
pub struct Parted {
    window_bits: u32,
    /// Rows that a part has room for.
    room: usize,
    /// The next free place in each part, and the number of rows that are over.
    cursors: DeviceBuffer<u32>,
    /// The rows of parts that were to have more than they have room for.
    ends: DeviceBuffer<u32>,
    /// The parts, and behind them room for all rows to be over.
    rows: DeviceBuffer<u64>,
    /// Rows of an input at the most.
    rows_max: usize,
}

impl Parted {
    fn count(&self) -> usize {
        self.ends.len()
    }

    /// The kernel's structure `Parts`.
    fn words(&self) -> [u64; 4] {
        let shape = halves(self.window_bits, self.count() as u32);
        [self.cursors.address(), self.ends.address(), shape, halves(self.room as u32, 0)]
    }
}

impl Table {
    /// Room for so many rows by parts, of which there are `least` at least; `None` if there would have to be too many parts.
    pub fn parted(&self, rows: usize, least: u32) -> Result<Option<Parted>, GpuError> {
        let most_bytes = self.device.properties().shared_bytes_max;
        let mut count = (least.max(1) as usize).next_power_of_two().min(self.slots);
        while self.window_bytes(self.slots / count) + self.results_bytes() > most_bytes && count < self.slots {
            count *= 2;
        }
        let mean = rows.div_ceil(count);
        let room = mean + mean / 8 + ROOM_MORE;
        // Places have 32 bits, of which a block goes a step beyond the last.
        if self.scatter_bytes(count, self.scatter_threads(count)) > most_bytes || count * room + rows >= 1 << 31 {
            return Ok(None);
        }
        let words = (count * room + rows) * self.form.slot_words();
        Ok(Some(Parted {
            window_bits: (self.slots / count).trailing_zeros(),
            room,
            cursors: DeviceBuffer::new(&self.device, count + 1, "parts of a join")?,
            ends: DeviceBuffer::new(&self.device, count, "parts of a join")?,
            rows: DeviceBuffer::new(&self.device, words, "rows of a join by parts")?,
            rows_max: rows,
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
        let grid = self.window_grid(&fill, parted, 0)?;
        let mut parameters = Parameters::new().words(&table).words(&parted.words()).word(parted.rows.address());
        // SAFETY: these are the parameters of `join_fill_parts_*`, all of which the caller keeps.
        unsafe { fill.launch(stream, grid, &mut parameters) }?;
        let over = self.form.kernel(&self.device, JoinStep::InsertOver)?;
        let grid = self.grid(&over, input, 0)?;
        let mut parameters = parameters.word(self.failed.address());
        // SAFETY: these are the parameters of `join_over_*`, as above.
        unsafe { over.launch(stream, grid, &mut parameters) }
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
        let grid = self.window_grid(&kernel, parted, self.results_bytes())?;
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
        assert!(input.count <= parted.rows_max, "room for the rows of an input");
        parted.cursors.fill(stream, 0)?;
        let scatter = self.form.kernel(&self.device, JoinStep::Scatter)?;
        let threads = self.scatter_threads(parted.count());
        let shared_bytes = self.scatter_bytes(parted.count(), threads);
        let blocks = self.device.blocks_that_fit(&scatter, threads, shared_bytes)?;
        let tiles = input.count.div_ceil(threads as usize * THREAD_ROWS);
        let grid = self.within(Grid { blocks, threads, shared_bytes }, tiles);
        let mut parameters = Parameters::new()
            .words(&input.words())
            .words(&self.words()?)
            .words(&parted.words())
            .word(parted.rows.address());
        // SAFETY: these are the parameters of `join_scatter_*`; the caller answers for the input, and the rows have room, as asserted.
        unsafe { scatter.launch(stream, grid, &mut parameters) }
    }

    /// A grid with no more blocks than are asked for or have something to do.
    fn within(&self, grid: Grid, needed: usize) -> Grid {
        let blocks = self.blocks.unwrap_or(grid.blocks);
        Grid { blocks: u32::try_from(needed.max(1)).map_or(blocks, |needed| needed.min(blocks)), ..grid }
    }

    /// A block for each window that fits the device at a time, with room for more than the window.
    fn window_grid(&self, kernel: &Kernel, parted: &Parted, more_bytes: usize) -> Result<Grid, GpuError> {
        let shared_bytes = self.window_bytes(1 << parted.window_bits) + more_bytes;
        let threads = self.window_threads();
        let blocks = self.device.blocks_that_fit(kernel, threads, shared_bytes)?;
        Ok(self.within(Grid { blocks, threads, shared_bytes }, parted.count()))
    }

    /// As many as a window has, or as there is room for the rows of.
    fn scatter_threads(&self, parts: usize) -> u32 {
        let mut threads = self.window_threads();
        while self.scatter_bytes(parts, threads) > self.device.properties().shared_bytes_max && threads >= 2 * LANES {
            threads = threads / 2 / LANES * LANES;
        }
        threads
    }

    fn window_threads(&self) -> u32 {
        (self.threads * 4).min(THREADS_MAX)
    }

    /// Shared memory of a block that scatters: rows, two words for each part, the sums of warps, a counter.
    fn scatter_bytes(&self, parts: usize, threads: u32) -> usize {
        threads as usize * THREAD_ROWS * self.form.slot_words() * 8 + parts * 8 + (LANES as usize + 1) * 4
    }

    /// Shared memory of a window of so many slots.
    fn window_bytes(&self, slots: usize) -> usize {
        slots * self.form.slot_words() * 8
    }

    /// Shared memory of the results that the warps of a block with a window collect, to a multiple of a slot.
    fn results_bytes(&self) -> usize {
        let warps = (self.window_threads() / LANES) as usize;
        (warps * self.warped_max() as usize).next_multiple_of(2) * 8
    }
}
