//! The grouping of a query: counts, exact sums and extremes of several columns of values by one column of codes.
//!
//! The codes are copied to the device once, each column of values once. Kernels add in 64 bits, which wrap around; a sum that may need
//! more is made of two:
//!
//! ```text
//! rows * largest |value| < 2^63     one run over the values
//! otherwise                         a run over the upper halves and one over the lower, sum = upper * 2^32 + lower
//! ```

use std::sync::Arc;
use std::time::Instant;

use crate::device::{Device, DeviceBuffer};
use crate::error::GpuError;
use crate::group::on_device::Extreme;
use crate::group::{Arrangement, Column, Launched, aggregate_from, extremes_from};

/// Rows up to which the halves of values can be added up in 64 bits.
const ROWS_MAX: usize = 1 << 31;

/// A column of values, and what is asked of it.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// The code of each row where they are not those of the other columns: of a column with rows that do not count, which have a
    /// group of their own.
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

/// The answer for one column, by group; what was not asked for is empty. The extremes of a group without rows are any numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Rows.
    pub counts: Vec<u64>,
    /// Exact sums.
    pub sums: Vec<i128>,
    /// Smallest values.
    pub mins: Vec<i64>,
    /// Largest values.
    pub maxs: Vec<i64>,
}

/// Where the time of a grouping went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// Copying codes and values to the device.
    pub inputs_ms: f64,
    /// The kernels.
    pub kernels_ms: f64,
    /// Everything else: making room, and copying results back.
    pub others_ms: f64,
    /// How many kernels ran.
    pub launches: u32,
}

/// The answer of a grouping.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurement {
    /// Rows of each group.
    pub counts: Vec<u64>,
    /// One for each column.
    pub columns: Vec<Totals>,
    /// Where the time went.
    pub times: Times,
}

/// Groups the rows of several columns.
///
/// # Errors
/// - [`GpuError::Unsuitable`] if a code is too high, there is not one value or code for each row, or there are too many rows.
/// - [`GpuError::OutOfMemory`] if the device has no room for codes and one column; [`GpuError::Driver`] if a call of the driver
///   or a kernel fails.
pub fn measure(
    device: &Arc<Device>,
    codes: &[u32],
    group_count: u32,
    columns: &[Measured<'_>],
) -> Result<Measurement, GpuError> {
    check(codes, group_count, columns)?;
    let begun = Instant::now();
    let mut run = Run { device, group_count, times: Times::default() };
    let on_device = run.copied(|device| DeviceBuffer::of(device, codes, "codes"))?;
    let counts = run.aggregates(&on_device, None)?.0;
    let mut measurement = Measurement { counts, ..Measurement::default() };
    for column in columns {
        let own =
            column.codes.map(|codes| run.copied(|device| DeviceBuffer::of(device, codes, "codes"))).transpose()?;
        let mut totals = run.totals(own.as_ref().unwrap_or(&on_device), column)?;
        if own.is_none() {
            totals.counts.clone_from(&measurement.counts);
        }
        measurement.columns.push(totals);
    }
    run.times.others_ms = milliseconds_since(begun) - run.times.inputs_ms - run.times.kernels_ms;
    measurement.times = run.times;
    Ok(measurement)
}

fn check(codes: &[u32], group_count: u32, columns: &[Measured<'_>]) -> Result<(), GpuError> {
    let complain = |what: String| Err(GpuError::Unsuitable(what));
    if codes.len() >= ROWS_MAX {
        return complain(format!("a grouping of {} rows", codes.len()));
    }
    let lists = columns.iter().filter_map(|column| column.codes).chain([codes]);
    for list in lists {
        if let Some(code) = list.iter().find(|code| **code >= group_count) {
            return complain(format!("code {code} of {group_count}"));
        }
    }
    let is_whole = |column: &Measured<'_>| {
        column.values.len() == codes.len() && column.codes.is_none_or(|own| own.len() == codes.len())
    };
    if columns.iter().all(is_whole) { Ok(()) } else { complain("not one value for each code".to_owned()) }
}

/// A grouping at work.
pub(super) struct Run<'d> {
    pub(super) device: &'d Arc<Device>,
    pub(super) group_count: u32,
    pub(super) times: Times,
}

impl Run<'_> {
    /// Copies something to the device.
    pub(super) fn copied<T>(&mut self, copy: impl FnOnce(&Arc<Device>) -> Result<T, GpuError>) -> Result<T, GpuError> {
        let begun = Instant::now();
        let copied = copy(self.device)?;
        self.times.inputs_ms += milliseconds_since(begun);
        Ok(copied)
    }

    pub(super) fn launched<T>(&mut self, launched: Launched<T>) -> T {
        self.times.kernels_ms += launched.span_ms;
        self.times.launches += 1;
        launched.answer
    }

    /// Counts, and sums that wrap around.
    fn aggregates(
        &mut self,
        codes: &DeviceBuffer<u32>,
        values: Option<&[i64]>,
    ) -> Result<(Vec<u64>, Vec<i64>), GpuError> {
        let values =
            values.map(|values| self.copied(|device| DeviceBuffer::of(device, values, "values"))).transpose()?;
        self.aggregates_of(codes, values.as_ref())
    }

    /// Likewise of what is on the device: there is a value for each code, and all codes are below the number of groups.
    pub(super) fn aggregates_of(
        &mut self,
        codes: &DeviceBuffer<u32>,
        values: Option<&DeviceBuffer<i64>>,
    ) -> Result<(Vec<u64>, Vec<i64>), GpuError> {
        let has_values = values.map(|_| &[][..]);
        let column = Column { codes: &[], values: has_values, group_count: self.group_count, group_of_place: None };
        let arrangement = Arrangement::suitable(&column, codes.len(), self.device.properties());
        // SAFETY: as the caller says; `aggregate_from` reads no slice of the column.
        let launched = unsafe { aggregate_from(self.device, codes, values, &column, arrangement) }?;
        let answer = self.launched(launched);
        Ok((answer.counts, answer.sums))
    }

    /// The smallest or largest values of what is on the device, as for `aggregates_of`.
    pub(super) fn extremes_of(
        &mut self,
        codes: &DeviceBuffer<u32>,
        values: &DeviceBuffer<i64>,
        extreme: Extreme,
    ) -> Result<Vec<i64>, GpuError> {
        // SAFETY: as for `aggregates_of`.
        let launched = unsafe { extremes_from(self.device, codes, values, self.group_count, extreme) }?;
        Ok(self.launched(launched))
    }

    fn totals(&mut self, codes: &DeviceBuffer<u32>, column: &Measured<'_>) -> Result<Totals, GpuError> {
        let mut totals = Totals::default();
        if column.sum {
            (totals.counts, totals.sums) = self.sums(codes, column.values)?;
        } else if column.codes.is_some() {
            totals.counts = self.aggregates(codes, None)?.0;
        }
        if !column.min && !column.max {
            return Ok(totals);
        }
        let values = self.copied(|device| DeviceBuffer::of(device, column.values, "values"))?;
        if column.min {
            totals.mins = self.extremes_of(codes, &values, Extreme::Min)?;
        }
        if column.max {
            totals.maxs = self.extremes_of(codes, &values, Extreme::Max)?;
        }
        Ok(totals)
    }

    /// Counts and exact sums.
    fn sums(&mut self, codes: &DeviceBuffer<u32>, values: &[i64]) -> Result<(Vec<u64>, Vec<i128>), GpuError> {
        let largest = values.iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
        if u128::from(largest) * (values.len() as u128) < 1 << 63 {
            let (counts, sums) = self.aggregates(codes, Some(values))?;
            return Ok((counts, sums.into_iter().map(i128::from).collect()));
        }
        let upper: Vec<i64> = values.iter().map(|value| value >> 32).collect();
        let lower: Vec<i64> = values.iter().map(|value| value & i64::from(u32::MAX)).collect();
        let (counts, upper) = self.aggregates(codes, Some(&upper))?;
        let (_, lower) = self.aggregates(codes, Some(&lower))?;
        let sums = upper.into_iter().zip(lower).map(|(upper, lower)| (i128::from(upper) << 32) + i128::from(lower));
        Ok((counts, sums.collect()))
    }
}

pub(super) fn milliseconds_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}
