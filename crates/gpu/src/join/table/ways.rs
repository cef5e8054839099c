//! The ways to build and to probe a table, and which one an order asks for.

use super::parts::Parted;
use super::windows::KeyFilter;
use super::{Input, Results, Table};
use crate::device::Stream;
use crate::error::GpuError;
use crate::join::{Append, Order};

/// Slots of a table for each row of an input that suits parts; a build has a row for four at most.
const ROW_SLOTS_MAX: usize = 8;

/// Parts at least where an order is chosen: two blocks of 1,024 threads share a multiprocessor then.
const FITTING_PARTS: u32 = 1 << 12;

/// How rows are inserted or looked for, with the memory that it takes.
#[derive(Debug)]
pub enum Way {
    /// In the order in which they come.
    Plain,
    /// The rows of each of so many windows in turn.
    Windows(u32),
    /// By parts.
    Parts(Parted),
}

impl Table {
    /// The way for an input on the device of so many rows.
    pub fn way(&self, order: Order, rows: usize) -> Result<Way, GpuError> {
        let windows = |count: u32| Way::Windows(count.max(1).next_power_of_two().min(self.slots as u32));
        match order {
            Order::AsTheyCome => Ok(Way::Plain),
            Order::Windows(count) => Ok(windows(count)),
            Order::Parts(least) => Ok(self.parted(rows, least)?.map_or_else(|| windows(self.fitting()), Way::Parts)),
            // A probe of few rows would go through windows for less than it saves.
            Order::Fitting if self.fitting() <= 1 || rows < self.slots / ROW_SLOTS_MAX => Ok(Way::Plain),
            Order::Fitting => self.way(Order::Parts(FITTING_PARTS), rows),
        }
    }

    /// Windows that fit two thirds of the device's cache each, as the inputs go through it, too.
    fn fitting(&self) -> u32 {
        let window_bytes = (self.device.properties().l2_bytes / 3 * 2).max(1);
        let table_bytes = self.slots * self.form.slot_words() * 8;
        u32::try_from(table_bytes.div_ceil(window_bytes)).unwrap_or(u32::MAX / 2)
    }

    /// Empties the table and inserts all rows that it is to have, once `stream` comes to it.
    ///
    /// # Safety
    ///
    /// As for [`Self::insert`]; `way` is for as many rows, and stays until `stream` has been waited for.
    pub unsafe fn fill(&self, stream: &Stream, input: &Input, way: &Way) -> Result<(), GpuError> {
        // SAFETY: as the caller promises.
        unsafe {
            match way {
                Way::Plain => {
                    self.clear(stream)?;
                    self.insert(stream, input)
                }
                Way::Windows(count) => self.fill_windows(stream, input, *count),
                Way::Parts(parted) => self.fill_parts(stream, input, parted),
            }
        }
    }

    /// Appends the matches of rows to the results, once `stream` comes to it. Ways other than the plain one, and probes with a filter,
    /// append by warps; a filter is for ways without parts.
    ///
    /// # Safety
    ///
    /// As for [`Self::probe`]; `way` is for as many rows and the filter is this table's, and both stay until `stream` has been waited for.
    pub unsafe fn probe_by(
        &self,
        stream: &Stream,
        input: &Input,
        results: Results,
        append: Append,
        (way, filter): (&Way, Option<&KeyFilter>),
    ) -> Result<(), GpuError> {
        // SAFETY: as the caller promises.
        unsafe {
            match way {
                Way::Plain if filter.is_none() => self.probe(stream, input, results, append),
                Way::Plain => self.probe_chosen(stream, input, results, 1, filter),
                Way::Windows(count) => self.probe_chosen(stream, input, results, *count, filter),
                Way::Parts(parted) => self.probe_parts(stream, input, results, parted),
            }
        }
    }
}
