//! The grouping of a query over columns that stay on the device, of rows that a bitmap names.
//!
//! ```text
//! bitmap ── copied ──▶ `group_codes` ── codes, those of other rows none ──▶ the kernels of any grouping
//!                           ▲ keys                                             ▲ values
//! ```

use std::sync::Arc;
use std::time::Instant;

use super::measured::{Measurement, Run, Times, Totals, milliseconds_since};
use super::on_device::{Extreme, Launched, grid_for};
use crate::device::{Device, DeviceBuffer, Event, Parameters, Stream};
use crate::error::GpuError;

/// Keys of a grouping at most, as in `kernels/group.cu`.
const KEYS_MAX: usize = 4;

/// A column on the device, written piece by piece.
#[derive(Debug)]
pub struct Numbers(DeviceBuffer<i64>);

impl Numbers {
    /// Room for so many rows, whose values are any numbers.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] if the device has no room for them; [`GpuError::Driver`] if a call of the driver fails.
    pub fn new(device: &Arc<Device>, rows: usize) -> Result<Self, GpuError> {
        DeviceBuffer::new(device, rows, "a column").map(Self)
    }

    /// Sets the values of the rows from `first` on.
    ///
    /// # Errors
    /// [`GpuError::Unsuitable`] if there are not that many rows; [`GpuError::Driver`] if a call of the driver fails.
    pub fn write(&self, first: usize, values: &[i64]) -> Result<(), GpuError> {
        if first.checked_add(values.len()).is_none_or(|end| end > self.0.len()) {
            return Err(GpuError::Unsuitable(format!("{} rows from {first} on of {}", values.len(), self.0.len())));
        }
        self.0.write(first, values)
    }
}

/// A key: its values from `min` on have `width` places.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// The value of each row.
    pub values: &'a Numbers,
    /// The smallest value of a row that counts.
    pub min: i64,
    /// The largest of them, less `min`, plus 1.
    pub width: u32,
}

/// A column of values, and what is asked of it.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// The value of each row.
    pub values: &'a Numbers,
    /// No value of a row that counts is further from 0.
    pub largest: u64,
    /// Whether sums are wanted.
    pub sum: bool,
    /// Whether the smallest values are wanted.
    pub min: bool,
    /// Whether the largest values are wanted.
    pub max: bool,
}

/// Groups the rows whose bits are set in `rows`, lowest first; the group of a row is the place of its keys in the product of their
/// widths, that of the last key below.
///
/// # Errors
/// - [`GpuError::Unsuitable`] if there is no key or too many, there are no rows, or fewer bits or values than `count` rows, a key of a row
///   that counts is not in its range, or sums may need more than 64 bits.
/// - [`GpuError::OutOfMemory`] if the device has no room for codes; [`GpuError::Driver`] if a call of the driver or a kernel fails.
pub fn measure(
    device: &Arc<Device>,
    rows: &[u64],
    count: usize,
    keys: &[Key<'_>],
    columns: &[Values<'_>],
) -> Result<Measurement, GpuError> {
    let group_count = check(rows, count, keys, columns)?;
    let begun = Instant::now();
    let mut run = Run { device, group_count, times: Times::default() };
    let bits = run.copied(|device| DeviceBuffer::of(device, rows, "rows"))?;
    let codes = codes_of(&mut run, &bits, count, keys)?;
    let mut measurement = Measurement { counts: run.aggregates_of(&codes, None)?.0, ..Measurement::default() };
    for column in columns {
        let mut totals = Totals { counts: measurement.counts.clone(), ..Totals::default() };
        if column.sum {
            let sums = run.aggregates_of(&codes, Some(&column.values.0))?.1;
            totals.sums = sums.into_iter().map(i128::from).collect();
        }
        if column.min {
            totals.mins = run.extremes_of(&codes, &column.values.0, Extreme::Min)?;
        }
        if column.max {
            totals.maxs = run.extremes_of(&codes, &column.values.0, Extreme::Max)?;
        }
        measurement.columns.push(totals);
    }
    run.times.others_ms = milliseconds_since(begun) - run.times.inputs_ms - run.times.kernels_ms;
    measurement.times = run.times;
    Ok(measurement)
}

/// How many groups there may be.
fn check(rows: &[u64], count: usize, keys: &[Key<'_>], columns: &[Values<'_>]) -> Result<u32, GpuError> {
    let complain = |what: &str| Err(GpuError::Unsuitable(what.to_owned()));
    if !(1..=KEYS_MAX).contains(&keys.len()) {
        return complain("a grouping by no key, or by too many");
    }
    let mut buffers = keys.iter().map(|key| key.values).chain(columns.iter().map(|column| column.values));
    if count == 0 || rows.len() < count.div_ceil(64) || buffers.any(|buffer| buffer.0.len() < count) {
        return complain("no rows, or fewer bits or values than rows");
    }
    let is_large = |column: &Values<'_>| u128::from(column.largest) * count as u128 >= 1 << 63;
    if columns.iter().any(|column| column.sum && is_large(column)) {
        return complain("sums of more than 64 bits");
    }
    let groups = keys.iter().try_fold(1u32, |groups, key| groups.checked_mul(key.width));
    // The highest code is that of rows that do not count.
    match groups {
        Some(groups) if groups < u32::MAX => Ok(groups),
        _ => complain("keys that are too far from each other"),
    }
}

fn codes_of(
    run: &mut Run<'_>,
    bits: &DeviceBuffer<u64>,
    count: usize,
    keys: &[Key<'_>],
) -> Result<DeviceBuffer<u32>, GpuError> {
    let codes = DeviceBuffer::<u32>::new(run.device, count, "codes")?;
    let outside = DeviceBuffer::<u32>::filled(run.device, 1, 0, "a counter")?;
    let mut fields = vec![0u64; 3 * KEYS_MAX];
    for (key, fields) in keys.iter().zip(fields.chunks_mut(3)) {
        fields.copy_from_slice(&[key.values.0.address(), key.min.cast_unsigned(), u64::from(key.width)]);
    }
    fields.push(keys.len() as u64);
    let kernel = run.device.kernel("group_codes")?;
    let grid = grid_for(run.device, &kernel, count, 0)?;
    let mut parameters = Parameters::new()
        .words(&fields)
        .word(bits.address())
        .word(count as u64)
        .word(codes.address())
        .word(outside.address());
    let stream = Stream::new(run.device)?;
    let start = Event::of(&stream)?;
    // SAFETY: these are the kernel's parameters; bits and keys are as long as `check` has seen, and outlive the wait.
    unsafe { kernel.launch(&stream, grid, &mut parameters) }?;
    let span_ms = Event::of(&stream)?.since_ms(&start)?;
    stream.wait()?;
    if outside.read()?[0] > 0 {
        return Err(GpuError::Unsuitable("a key that is not in its range".to_owned()));
    }
    Ok(run.launched(Launched { answer: codes, span_ms }))
}
