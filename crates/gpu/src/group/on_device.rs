//! The launches of `kernels/group.cu`.

use std::sync::Arc;

use crate::device::{Device, DeviceBuffer, Event, Grid, Kernel, Parameters, Stream, halves};
use crate::error::GpuError;
use crate::group::{Aggregates, Arrangement, Column};

/// Threads of a block: as in the paper, so that few copies of the aggregates serve many threads.
const THREADS: u32 = 1024;

/// An answer, and how long the kernels took.
#[derive(Debug)]
pub struct Launched<T> {
    /// The answer.
    pub answer: T,
    /// Milliseconds of the kernels, without what is copied before and after.
    pub span_ms: f64,
}

/// Groups and counts rows of a column, copied to the device first.
///
/// # Errors
/// - [`GpuError::Unsuitable`] if a code is too high, there is not one value for each code, or a block has too little
///   shared memory for the arrangement.
/// - [`GpuError::OutOfMemory`] if the device has no room for the column; [`GpuError::Driver`] if a call of the driver
///   or a kernel fails.
pub fn aggregate(device: &Arc<Device>, column: &Column<'_>, arrangement: Arrangement) -> Result<Aggregates, GpuError> {
    let places = column.place_count();
    if let Some(code) = column.codes.iter().find(|code| **code >= places) {
        return Err(GpuError::Unsuitable(format!("code {code} of {places}")));
    }
    let codes = DeviceBuffer::of(device, column.codes, "codes")?;
    let values = column.values.map(|values| DeviceBuffer::of(device, values, "values")).transpose()?;
    if values.as_ref().is_some_and(|values| values.len() != codes.len()) {
        return Err(GpuError::Unsuitable("not one value for each code".to_owned()));
    }
    // SAFETY: the buffers are as long as the column and all codes are below the number of places, as checked.
    let launched = unsafe { aggregate_from(device, &codes, values.as_ref(), column, arrangement) }?;
    Ok(launched.answer)
}

/// As [`aggregate`], over codes and values that are on the device already; of `column` the slices are not read.
///
/// # Safety
///
/// There is a value for each code, every code is below the number of places, and every place has a group.
pub unsafe fn aggregate_from(
    device: &Arc<Device>,
    codes: &DeviceBuffer<u32>,
    values: Option<&DeviceBuffer<i64>>,
    column: &Column<'_>,
    arrangement: Arrangement,
) -> Result<Launched<Aggregates>, GpuError> {
    let stream = &Stream::new(device)?;
    let groups = column.group_count as usize;
    if groups == 0 || codes.is_empty() {
        let answer = Aggregates { counts: vec![0; groups], sums: vec![0; groups] };
        return Ok(Launched { answer, span_ms: 0.0 });
    }
    let name = match arrangement {
        Arrangement::Shared => "group_shared",
        // SAFETY: as the caller says.
        Arrangement::Counts => return unsafe { count_from(device, stream, codes, column) },
        Arrangement::Private => "group_private",
        Arrangement::Global { .. } => "group_global",
        Arrangement::Partitioned => "group_partitioned",
        Arrangement::Halves { .. } => "group_halves",
        Arrangement::Held { .. } => "group_held",
        Arrangement::Peers => "group_peers",
    };
    let copies = if let Arrangement::Global { copies } = arrangement { copies.max(1) } else { 1 };
    let counts = DeviceBuffer::<u64>::filled(device, groups * copies as usize, 0, "aggregates")?;
    let sums = DeviceBuffer::<i64>::filled(device, groups * copies as usize, 0, "aggregates")?;
    let group_of_place =
        column.group_of_place.map(|groups| DeviceBuffer::of(device, groups, "groups of places")).transpose()?;
    let input = [codes.address(), values.map_or(0, DeviceBuffer::address), codes.len() as u64];
    let out = [
        group_of_place.as_ref().map_or(0, DeviceBuffer::address),
        counts.address(),
        sums.address(),
        halves(column.place_count(), column.group_count),
    ];
    let (shared_bytes, parts) = arrangement.shared_bytes(column, device.properties());
    let kernel = device.kernel(name)?;
    let mut grid = grid_for(device, &kernel, codes.len(), shared_bytes)?;
    let mut parameters = Parameters::new().words(&input).words(&out);
    match arrangement {
        Arrangement::Global { .. } => parameters = parameters.half(copies),
        Arrangement::Partitioned => {
            grid.blocks = whole(grid.blocks, parts);
            parameters = parameters.half(parts).half(column.group_count.div_ceil(parts));
        }
        Arrangement::Halves { copies } | Arrangement::Held { copies } => parameters = parameters.half(copies.max(1)),
        Arrangement::Shared | Arrangement::Counts | Arrangement::Private | Arrangement::Peers => {}
    }
    let start = Event::of(stream)?;
    // SAFETY: these are the kernel's parameters; the caller answers for the codes, the buffers outlive the wait.
    unsafe { kernel.launch(stream, grid, &mut parameters) }?;
    if copies > 1 {
        let merge = device.kernel("group_merge")?;
        let grid = grid_for(device, &merge, groups, 0)?;
        // SAFETY: as above; the copies are `group_count` long each.
        unsafe { merge.launch(stream, grid, &mut Parameters::new().words(&out).half(copies)) }?;
    }
    let span_ms = Event::of(stream)?.since_ms(&start)?;
    stream.wait()?;
    let (mut counts, mut sums) = (counts.read()?, sums.read()?);
    counts.truncate(groups);
    sums.truncate(groups);
    Ok(Launched { answer: Aggregates { counts, sums }, span_ms })
}

/// Counts the rows of each group.
///
/// # Safety
///
/// Every code is below the number of groups.
unsafe fn count_from(
    device: &Arc<Device>,
    stream: &Stream,
    codes: &DeviceBuffer<u32>,
    column: &Column<'_>,
) -> Result<Launched<Aggregates>, GpuError> {
    if column.values.is_some() || column.group_of_place.is_some() || u32::try_from(codes.len()).is_err() {
        return Err(GpuError::Unsuitable(
            "counts of 32 bits take no values, no clones, and fewer than 2^32 rows".to_owned(),
        ));
    }
    let counts = DeviceBuffer::<u32>::filled(device, column.group_count as usize, 0, "counts")?;
    let (shared_bytes, parts) = Arrangement::Counts.shared_bytes(column, device.properties());
    let kernel = device.kernel("group_counts")?;
    let mut grid = grid_for(device, &kernel, codes.len(), shared_bytes)?;
    grid.blocks = whole(grid.blocks, parts);
    let mut parameters = Parameters::new()
        .word(codes.address())
        .word(codes.len() as u64)
        .word(counts.address())
        .half(column.group_count)
        .half(parts)
        .half(column.group_count.div_ceil(parts));
    let start = Event::of(stream)?;
    // SAFETY: these are the kernel's parameters; the caller answers for the codes, the buffers outlive the wait.
    unsafe { kernel.launch(stream, grid, &mut parameters) }?;
    let span_ms = Event::of(stream)?.since_ms(&start)?;
    stream.wait()?;
    let counts: Vec<u64> = counts.read()?.into_iter().map(u64::from).collect();
    Ok(Launched { answer: Aggregates { sums: vec![0; counts.len()], counts }, span_ms })
}

/// As many blocks as can run at a time, so that each part has as many.
fn whole(blocks: u32, parts: u32) -> u32 {
    (blocks / parts).max(1) * parts
}

/// Which value of a group is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Extreme {
    /// Makes words of values, of which the largest is the one that is looked for, and values of words again.
    fn flip(self) -> u64 {
        match self {
            Self::Min => u64::MAX >> 1,
            Self::Max => 1 << 63,
        }
    }
}

/// The extreme value of each group, over codes and values that are on the device already; of a group without rows, any number.
///
/// # Safety
///
/// There is a value for each code, and every code is below `group_count`.
pub unsafe fn extremes_from(
    device: &Arc<Device>,
    codes: &DeviceBuffer<u32>,
    values: &DeviceBuffer<i64>,
    group_count: u32,
    extreme: Extreme,
) -> Result<Launched<Vec<i64>>, GpuError> {
    let stream = &Stream::new(device)?;
    let places = DeviceBuffer::<u64>::filled(device, group_count as usize, 0, "aggregates")?;
    if codes.is_empty() {
        return Ok(Launched { answer: vec![0; group_count as usize], span_ms: 0.0 });
    }
    let kernel = device.kernel("group_extreme")?;
    let grid = grid_for(device, &kernel, codes.len(), 0)?;
    let input = [codes.address(), values.address(), codes.len() as u64];
    let mut parameters = Parameters::new().words(&input).word(places.address()).word(extreme.flip());
    let start = Event::of(stream)?;
    // SAFETY: these are the kernel's parameters; the caller answers for the codes, the buffers outlive the wait.
    unsafe { kernel.launch(stream, grid, &mut parameters) }?;
    let span_ms = Event::of(stream)?.since_ms(&start)?;
    stream.wait()?;
    let answer = places.read()?.into_iter().map(|word| (word ^ extreme.flip()).cast_signed()).collect();
    Ok(Launched { answer, span_ms })
}

/// `SELECT SUM(D.B) FROM F, D WHERE F.A = D.A`: adds up the dimension's value for each code.
///
/// # Errors
/// - [`GpuError::Unsuitable`] if a code is too high, there is not one value for each group, or a block has too little
///   shared memory for all places.
/// - [`GpuError::OutOfMemory`] if the device has no room for the column; [`GpuError::Driver`] if a call of the driver
///   or a kernel fails.
pub fn look_up(device: &Arc<Device>, column: &Column<'_>, dimension: &[u32]) -> Result<u64, GpuError> {
    let places = column.place_count();
    if let Some(code) = column.codes.iter().find(|code| **code >= places) {
        return Err(GpuError::Unsuitable(format!("code {code} of {places}")));
    }
    if dimension.len() != column.group_count as usize {
        return Err(GpuError::Unsuitable("not one value of the dimension for each group".to_owned()));
    }
    let codes = DeviceBuffer::of(device, column.codes, "codes")?;
    let values = DeviceBuffer::of(device, dimension, "a dimension")?;
    // SAFETY: codes and dimension are as long as they must be, as checked.
    let launched = unsafe { look_up_from(device, &codes, column, &values) }?;
    Ok(launched.answer)
}

/// As [`look_up`], over codes and values that are on the device already.
///
/// # Safety
///
/// Every code is below the number of places, every place has a group, and every group a value.
pub unsafe fn look_up_from(
    device: &Arc<Device>,
    codes: &DeviceBuffer<u32>,
    column: &Column<'_>,
    dimension: &DeviceBuffer<u32>,
) -> Result<Launched<u64>, GpuError> {
    let stream = &Stream::new(device)?;
    if codes.is_empty() {
        return Ok(Launched { answer: 0, span_ms: 0.0 });
    }
    let group_of_place =
        column.group_of_place.map(|groups| DeviceBuffer::of(device, groups, "groups of places")).transpose()?;
    let total = DeviceBuffer::<u64>::filled(device, 1, 0, "a total")?;
    let kernel = device.kernel("dimension_sum")?;
    let grid = grid_for(device, &kernel, codes.len(), column.place_count() as usize * 4)?;
    let mut parameters = Parameters::new()
        .words(&[codes.address(), 0, codes.len() as u64])
        .word(dimension.address())
        .word(group_of_place.as_ref().map_or(0, DeviceBuffer::address))
        .half(column.place_count())
        .word(total.address());
    let start = Event::of(stream)?;
    // SAFETY: these are the kernel's parameters; the caller answers for the codes, the buffers outlive the wait.
    unsafe { kernel.launch(stream, grid, &mut parameters) }?;
    let span_ms = Event::of(stream)?.since_ms(&start)?;
    stream.wait()?;
    Ok(Launched { answer: total.read()?[0], span_ms })
}

pub(super) fn grid_for(
    device: &Arc<Device>,
    kernel: &Kernel,
    rows: usize,
    shared_bytes: usize,
) -> Result<Grid, GpuError> {
    // A small input has small blocks, so that there is more than one.
    let threads = if rows < 4 * THREADS as usize { THREADS / 8 } else { THREADS };
    let fitting = device.blocks_that_fit(kernel, threads, shared_bytes)?;
    let needed = rows.div_ceil(threads as usize);
    let blocks = u32::try_from(needed).map_or(fitting, |needed| needed.min(fitting));
    Ok(Grid { blocks, threads, shared_bytes })
}
