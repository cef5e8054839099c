//! Launches that take some of the rows of an input: those whose slots are in a window of the table, or that pass its filter.
//!
//! ```text
//! table    | window 0 | window 1 | window 2 | window 3 |      each fits the device's cache
//! launch 0   rows with a home slot in window 0                 reads all rows, in order
//! launch 1              rows with a home slot in window 1      reads all rows once more
//! ```
//!
//! A build empties a window right before it fills it, so that its slots are in the cache by then. Insertions go on for at most
//! [`STEPS_MAX`] slots behind their home, so that many slots behind a window are emptied with it.

use std::ops::Range;

use super::{Input, JoinStep, Results, STEPS_MAX, TILE_ROWS, Table};
use crate::device::{DeviceBuffer, Grid, Kernel, Parameters, Stream, halves};
use crate::error::GpuError;

/// Slots for which the filter has a word.
const WORD_SLOTS: usize = 8;

/// What the cache holds of the table's keys: [`Table::filter`].
#[derive(Debug)]
pub struct KeyFilter(DeviceBuffer<u32>);

/// A launch's choice of rows: the kernel's structure `Chosen`.
fn choice(filter: Option<&KeyFilter>, window_bits: u32, window: u32) -> [u64; 2] {
    [filter.map_or(0, |filter| filter.0.address()), halves(window_bits, window)]
}

impl Table {
    /// Empties the table and inserts all rows that it is to have, window by window, once `stream` comes to it.
    ///
    /// # Safety
    ///
    /// As for [`Self::insert`].
    pub(super) unsafe fn fill_windows(&self, stream: &Stream, input: &Input, windows: u32) -> Result<(), GpuError> {
        let kernel = self.form.kernel(&self.device, JoinStep::BuildChosen)?;
        let grid = self.tile_grid(&kernel, input, 0)?;
        self.failed.fill(stream, 0)?;
        let (window_bits, slots) = self.window_of(windows);
        let mut emptied = 0;
        for window in 0..windows {
            let end = self.slots.min((window as usize + 1) * slots + STEPS_MAX as usize);
            self.clear_slots(stream, emptied..end)?;
            emptied = end;
            let mut parameters = Parameters::new()
                .words(&input.words())
                .words(&self.words()?)
                .words(&choice(None, window_bits, window))
                .word(self.failed.address());
            // SAFETY: these are the parameters of `join_build_chosen_*`; the caller answers for the input.
            unsafe { kernel.launch(stream, grid, &mut parameters) }?;
        }
        Ok(())
    }

    /// Appends the matches of rows as [`Self::probe`] does by warps, window by window, without a look at the table for rows that do not
    /// pass the filter.
    ///
    /// # Safety
    ///
    /// As for [`Self::probe`]; the filter is this table's, and stays until `stream` has been waited for.
    pub(super) unsafe fn probe_chosen(
        &self,
        stream: &Stream,
        input: &Input,
        results: Results,
        windows: u32,
        filter: Option<&KeyFilter>,
    ) -> Result<(), GpuError> {
        let kernel = self.form.kernel(&self.device, JoinStep::ProbeChosen)?;
        let collected = self.warped_max();
        let grid = self.tile_grid(&kernel, input, 8 * collected as usize * self.warps())?;
        let (window_bits, _) = self.window_of(windows);
        for window in 0..windows {
            let mut parameters = Parameters::new()
                .words(&input.words())
                .words(&self.words()?)
                .words(&choice(filter, window_bits, window))
                .words(&[results.pairs, results.count, results.capacity as u64])
                .half(collected);
            // SAFETY: these are the parameters of `join_chosen_*`; the caller answers for the addresses.
            unsafe { kernel.launch(stream, grid, &mut parameters) }?;
        }
        Ok(())
    }

    /// The filter of all keys that `stream` has inserted when it comes to it.
    pub fn filter(&self, stream: &Stream) -> Result<KeyFilter, GpuError> {
        let filter = KeyFilter(DeviceBuffer::new(&self.device, self.slots / WORD_SLOTS, "a join's filter")?);
        self.fill_filter(stream, &filter)?;
        Ok(filter)
    }

    /// Makes a filter of this table once more.
    pub fn fill_filter(&self, stream: &Stream, filter: &KeyFilter) -> Result<(), GpuError> {
        assert_eq!(filter.0.len(), self.slots / WORD_SLOTS, "a filter of this table");
        filter.0.fill(stream, 0)?;
        let kernel = self.form.kernel(&self.device, JoinStep::Filter)?;
        let blocks = self.device.blocks_that_fit(&kernel, self.threads, 0)?;
        let grid = Grid { blocks: self.blocks.unwrap_or(blocks), threads: self.threads, shared_bytes: 0 };
        let mut parameters = Parameters::new().words(&self.words()?).word(filter.0.address());
        // SAFETY: these are the parameters of `join_filter_*`; the filter has a word for each `WORD_SLOTS` slots, and the device is
        // waited for before either is given up.
        unsafe { kernel.launch(stream, grid, &mut parameters) }
    }

    /// Slots of a window, as a power of two and as they are.
    fn window_of(&self, windows: u32) -> (u32, usize) {
        let slots = self.slots / windows as usize;
        (slots.trailing_zeros(), slots)
    }

    /// A grid with a warp for each tile at most, and room for the queues behind `shared_bytes`.
    fn tile_grid(&self, kernel: &Kernel, input: &Input, shared_bytes: usize) -> Result<Grid, GpuError> {
        let queued_bytes = if self.form.slot_words() == 1 { 8 } else { 16 };
        let queues_bytes = (TILE_ROWS + 32) * queued_bytes * self.warps();
        let grid = self.grid(kernel, input, shared_bytes + queues_bytes)?;
        let needed = input.count.div_ceil(TILE_ROWS * self.warps()).max(1);
        Ok(Grid { blocks: u32::try_from(needed).map_or(grid.blocks, |needed| needed.min(grid.blocks)), ..grid })
    }

    fn clear_slots(&self, stream: &Stream, slots: Range<usize>) -> Result<(), GpuError> {
        let words = self.form.slot_words();
        let near = slots.start.min(self.near_slots)..slots.end.min(self.near_slots);
        self.near.fill_part(stream, near.start * words..near.end * words, 0xff)?;
        match &self.far {
            // All of it, before the first insertion.
            Some(far) if slots.start == 0 => far.fill_bytes(stream, 0xff),
            _ => Ok(()),
        }
    }
}
