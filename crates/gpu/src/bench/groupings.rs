//! Grouping and lookup measured as gpu-contention measures them (Figures 5 to 8 and 10), with today's answers
//! beside: copies for each lane, plain groups in shared memory, device memory, parts.

use std::sync::Arc;

use super::data::{DIFFERENT_ROWS_MAX, repeated, zipf};
use super::optimizer::VALUES;
use super::report::Line;
use super::roofs::Roofs;
use super::{Only, Size};
use crate::contention::{Optimizer, Settings, Use};
use crate::device::{Device, DeviceBuffer};
use crate::error::GpuError;
use crate::group::{self, Arrangement, Column, Launched};

const BENCH: &str = "gpu.group";

struct Bench<'a> {
    device: &'a Arc<Device>,
    runs: usize,
    only: Only<'a>,
    roofs: Roofs,
    lines: Vec<Line>,
}

impl Bench<'_> {
    /// The bound of a pass: device memory's reads of codes, or shared memory's additions.
    fn bound(&self, adds: bool) -> (&'static str, Option<f64>) {
        let by_memory = self.roofs.device_read.map(|rate| rate / 4.0);
        match (by_memory, self.roofs.shared_atomics) {
            (Some(memory), Some(atomics)) if adds && atomics < memory => ("shared memory's additions", Some(atomics)),
            _ => ("device memory's reads", by_memory),
        }
    }

    fn push(&mut self, case: String, rows: usize, spans_ms: &[f64], adds: bool) {
        let (name, bound) = self.bound(adds);
        let values = super::timing::billions_a_second(rows as f64, spans_ms);
        let line = Line::of_runs(BENCH, case, "throughput", "G rows/s", &values).beside(name, bound);
        self.lines.push(if self.device.properties().is_emulated { line.without_times() } else { line });
    }

    fn group(
        &mut self,
        case: String,
        codes: &DeviceBuffer<u32>,
        column: &Column<'_>,
        arrangement: Arrangement,
        expected: &group::Aggregates,
    ) -> Result<(), GpuError> {
        if !self.only.takes(&case) {
            return Ok(());
        }
        let mut spans_ms = Vec::new();
        for _ in 0..=self.runs {
            // SAFETY: the codes are those of the column, which the optimizer or `zipf` keeps below its places.
            let Launched { answer, span_ms } =
                unsafe { group::aggregate_from(self.device, codes, None, column, arrangement) }?;
            if answer.counts != expected.counts {
                return Err(GpuError::Unsuitable(format!("{case}: counts differ from the CPU's")));
            }
            spans_ms.push(span_ms);
        }
        self.push(case, codes.len(), &spans_ms[1..], true);
        Ok(())
    }

    /// Sums of 64 bits beside the counts.
    fn add_up(&mut self, case: String, summed: &Summed<'_>, arrangement: Arrangement) -> Result<(), GpuError> {
        if !self.only.takes(&case) {
            return Ok(());
        }
        let Summed { column, codes, values, expected } = summed;
        let mut spans_ms = Vec::new();
        for _ in 0..=self.runs {
            // SAFETY: the buffers are those of the column, whose codes are below the number of its places.
            let Launched { answer, span_ms } =
                unsafe { group::aggregate_from(self.device, codes, Some(values), column, arrangement) }?;
            if answer != *expected {
                return Err(GpuError::Unsuitable(format!("{case}: aggregates differ from the CPU's")));
            }
            spans_ms.push(span_ms);
        }
        let bound = self.roofs.device_read.map(|rate| rate / 12.0);
        let values = super::timing::billions_a_second(codes.len() as f64, &spans_ms[1..]);
        let line = Line::of_runs(BENCH, case, "throughput", "G rows/s", &values).beside("device memory's reads", bound);
        self.lines.push(if self.device.properties().is_emulated { line.without_times() } else { line });
        Ok(())
    }

    fn look_up(
        &mut self,
        case: String,
        codes: &DeviceBuffer<u32>,
        column: &Column<'_>,
        dimension: &[u32],
        expected: u64,
    ) -> Result<(), GpuError> {
        if !self.only.takes(&case) {
            return Ok(());
        }
        let values = DeviceBuffer::of(self.device, dimension, "a dimension")?;
        let mut spans_ms = Vec::new();
        for _ in 0..=self.runs {
            // SAFETY: as in `group`; the dimension has a value for each group.
            let Launched { answer, span_ms } = unsafe { group::look_up_from(self.device, codes, column, &values) }?;
            if answer != expected {
                return Err(GpuError::Unsuitable(format!("{case}: the sum differs from the CPU's")));
            }
            spans_ms.push(span_ms);
        }
        self.push(case, codes.len(), &spans_ms[1..], false);
        Ok(())
    }
}

/// A column with values on the device, and what the CPU makes of it.
struct Summed<'a> {
    column: Column<'a>,
    codes: DeviceBuffer<u32>,
    values: DeviceBuffer<i64>,
    expected: group::Aggregates,
}

impl<'a> Summed<'a> {
    fn new(device: &Arc<Device>, column: Column<'a>) -> Result<Self, GpuError> {
        Ok(Self {
            codes: DeviceBuffer::of(device, column.codes, "codes")?,
            values: DeviceBuffer::of(device, column.values.unwrap_or(&[]), "values")?,
            expected: group::twin::aggregate(&column),
            column,
        })
    }
}

/// A column of so many rows, whose codes begin again after some million.
fn column_of(rows: usize, groups: usize, theta: f64) -> Vec<u32> {
    repeated(&zipf(rows.min(DIFFERENT_ROWS_MAX), groups, theta, 1), rows)
}

struct Clones {
    places: Vec<u32>,
    group_of_place: Vec<u32>,
    copies: f64,
}

fn clones_of(codes: &[u32], settings: Settings) -> Clones {
    let mut optimizer = Optimizer::new(VALUES, settings);
    let mut places = codes[..codes.len().min(DIFFERENT_ROWS_MAX)].to_vec();
    optimizer.rewrite(&mut places);
    let places = repeated(&places, codes.len());
    Clones { places, group_of_place: optimizer.value_of_place(), copies: optimizer.copies_per_value() }
}

/// All figures.
pub fn measure(device: &Arc<Device>, size: Size, only: Only<'_>, roofs: Roofs) -> Result<Vec<Line>, GpuError> {
    let mut bench = Bench { device, runs: size.of(1, 5), only, roofs, lines: Vec::new() };
    let rows = size.of(4_000, 64_000_000);
    let is_wanted = |begins: &[&str]| begins.iter().any(|begin| only.may_take(begin));
    for theta in [0.0, 0.5, 1.0, 2.0] {
        if is_wanted(&["Shared", "Private", "Global", "clones", "lookup"]) {
            let codes = column_of(rows, VALUES, theta);
            by_arrangement(&mut bench, &codes, theta)?;
            by_clones(&mut bench, &codes, theta)?;
        }
    }
    if is_wanted(&["figure 10"]) {
        by_conflicts(&mut bench, rows)?;
    }
    if is_wanted(&["with sums"]) {
        with_sums(&mut bench, rows)?;
    }
    if is_wanted(&["counts"]) {
        by_cardinality(&mut bench, rows)?;
    }
    Ok(bench.lines)
}

fn plain(codes: &[u32], groups: usize) -> Column<'_> {
    Column { codes, values: None, group_count: groups as u32, group_of_place: None }
}

/// Without the optimizer.
fn by_arrangement(bench: &mut Bench<'_>, codes: &[u32], theta: f64) -> Result<(), GpuError> {
    let column = plain(codes, VALUES);
    let expected = group::twin::aggregate(&column);
    let near = DeviceBuffer::of(bench.device, codes, "codes")?;
    for arrangement in [
        Arrangement::Shared,
        Arrangement::Private,
        Arrangement::Global { copies: 1 },
        Arrangement::Global { copies: 8 },
    ] {
        bench.group(format!("{arrangement:?}, theta {theta}"), &near, &column, arrangement, &expected)?;
    }
    Ok(())
}

/// Figures 5 to 8: clones for writes by window and budget, for values only, for reads.
fn by_clones(bench: &mut Bench<'_>, codes: &[u32], theta: f64) -> Result<(), GpuError> {
    if !bench.only.may_take("clones") && !bench.only.may_take("lookup") {
        return Ok(());
    }
    let column = plain(codes, VALUES);
    let expected = group::twin::aggregate(&column);
    let mut ways = vec![(Use::ValuesOnly, 16, 1199)];
    ways.extend([0, 4, 16].map(|window| (Use::Writes, window, 1199)));
    ways.extend([200, 400].map(|budget_percent| (Use::Writes, 16, budget_percent)));
    for (purpose, window, budget_percent) in ways {
        let clones = clones_of(codes, Settings { purpose, window, budget_percent });
        let near = DeviceBuffer::of(bench.device, &clones.places, "codes")?;
        let cloned = Column { codes: &clones.places, group_of_place: Some(&clones.group_of_place), ..column };
        let copies = clones.copies;
        let case =
            format!("clones, {purpose:?}, window {window}, budget {budget_percent} % ({copies:.2}), theta {theta}");
        bench.group(case, &near, &cloned, Arrangement::Shared, &expected)?;
    }
    let dimension: Vec<u32> = (0..VALUES as u32).map(|value| value * 31).collect();
    let sum = group::twin::look_up(&column, &dimension);
    let near = DeviceBuffer::of(bench.device, codes, "codes")?;
    bench.look_up(format!("lookup, plain, theta {theta}"), &near, &column, &dimension, sum)?;
    let clones = clones_of(codes, Settings { purpose: Use::Reads, window: 0, budget_percent: 1199 });
    let near = DeviceBuffer::of(bench.device, &clones.places, "codes")?;
    let cloned = Column { codes: &clones.places, group_of_place: Some(&clones.group_of_place), ..column };
    bench.look_up(format!("lookup, clones for reads, theta {theta}"), &near, &cloned, &dimension, sum)
}

/// Figure 10: chunks in which each bank is met by so many lanes, with different values.
fn by_conflicts(bench: &mut Bench<'_>, rows: usize) -> Result<(), GpuError> {
    let dimension: Vec<u32> = (0..VALUES as u32).collect();
    for degree in [1usize, 2, 4, 8, 16, 32] {
        let codes: Vec<u32> = (0..rows)
            .map(|row| {
                let lane = row % 32;
                (lane / degree * degree + lane % degree * 32) as u32
            })
            .collect();
        let column = plain(&codes, VALUES);
        let near = DeviceBuffer::of(bench.device, &codes, "codes")?;
        let expected = group::twin::aggregate(&column);
        let case = format!("figure 10, writes, {degree} in a bank");
        bench.group(case, &near, &column, Arrangement::Shared, &expected)?;
        let sum = group::twin::look_up(&column, &dimension);
        bench.look_up(format!("figure 10, reads, {degree} in a bank"), &near, &column, &dimension, sum)?;
    }
    Ok(())
}

/// Counts and sums, of few and of many groups, of which all or one are met often; values of a few bits, or of all.
fn with_sums(bench: &mut Bench<'_>, rows: usize) -> Result<(), GpuError> {
    let few = [(4, 0.0), (64, 0.0), (150, 0.0), (1024, 0.0), (1024, 1.0), (1024, 2.0)];
    let many = [(10_000, 0.0), (10_000, 2.0), (200_000, 0.0)];
    for (groups, theta) in few.into_iter().chain(many) {
        for bits in [16, 64] {
            let begin = format!("with sums, {groups} groups, theta {theta}, values of {bits} bits");
            if (bits == 64 && groups != 1024) || !bench.only.may_take(&begin) {
                continue;
            }
            let codes = column_of(rows, groups, theta);
            let value = |(row, code): (u64, &u32)| match bits {
                64 => row.wrapping_mul(0x9e37_79b9_7f4a_7c15).cast_signed(),
                _ => i64::from(*code) - 7,
            };
            let values: Vec<i64> = (0u64..).zip(&codes).map(value).collect();
            let column = Column { values: Some(&values), ..plain(&codes, groups) };
            let summed = Summed::new(bench.device, column)?;
            for arrangement in ways_to_add(&column, bench.device) {
                bench.add_up(format!("{begin}, {arrangement:?}"), &summed, arrangement)?;
            }
            if groups == 1024 {
                with_clones(bench, &column, &begin)?;
            }
        }
    }
    Ok(())
}

/// All arrangements that have room for a column.
fn ways_to_add(column: &Column<'_>, device: &Device) -> Vec<Arrangement> {
    let groups = column.group_count as usize;
    let fits = |copies: u32| groups * copies as usize * 12 <= device.properties().shared_bytes_max;
    let mut ways = vec![Arrangement::Global { copies: 1 }, Arrangement::Global { copies: 8 }];
    ways.extend(fits(32).then_some(Arrangement::Private));
    if fits(1) {
        ways.extend([Arrangement::Shared, Arrangement::Peers]);
    }
    for copies in [1, 2, 4, 8, 16, 32].into_iter().filter(|copies| fits(*copies)) {
        ways.extend([Arrangement::Halves { copies }, Arrangement::Held { copies }]);
    }
    ways.extend((groups > 4096).then_some(Arrangement::Partitioned));
    ways
}

/// The optimizer's clones of the groups, as many in all as four copies of each, under both ways to add.
fn with_clones(bench: &mut Bench<'_>, column: &Column<'_>, begin: &str) -> Result<(), GpuError> {
    let budget_percent = 400;
    if !bench.only.may_take(&format!("{begin}, clones")) {
        return Ok(());
    }
    let clones = clones_of(column.codes, Settings { purpose: Use::Writes, window: 16, budget_percent });
    let cloned = Column { codes: &clones.places, group_of_place: Some(&clones.group_of_place), ..*column };
    let summed = Summed::new(bench.device, cloned)?;
    for arrangement in [Arrangement::Shared, Arrangement::Halves { copies: 1 }, Arrangement::Peers] {
        let case = format!("{begin}, clones, budget {budget_percent} % ({:.2}), {arrangement:?}", clones.copies);
        bench.add_up(case, &summed, arrangement)?;
    }
    Ok(())
}

/// Counts by few and by many groups, in what suits them and in device memory; more rows show what is fixed in a launch.
fn by_cardinality(bench: &mut Bench<'_>, rows: usize) -> Result<(), GpuError> {
    let few = [4, 64, 512, 4096, 50_000].map(|groups| (rows, groups));
    let many = [200_000, 400_000, 1_000_000].map(|groups| (rows, groups));
    let long = [4, 4096, 50_000, 200_000].map(|groups| (4 * rows, groups));
    for (rows, groups) in few.into_iter().chain(many).chain(long) {
        let begin = format!("counts of {rows} rows by {groups} groups");
        if !bench.only.may_take(&begin) {
            continue;
        }
        let codes = column_of(rows, groups, 0.0);
        let column = plain(&codes, groups);
        let expected = group::twin::aggregate(&column);
        let near = DeviceBuffer::of(bench.device, &codes, "codes")?;
        let is_in_a_block = groups * 4 <= bench.device.properties().shared_bytes_max;
        let mut ways = vec![Arrangement::Counts];
        ways.extend(is_in_a_block.then_some(Arrangement::Shared));
        ways.push(Arrangement::Global { copies: 1 });
        for arrangement in ways {
            bench.group(format!("{begin}, {arrangement:?}"), &near, &column, arrangement, &expected)?;
        }
    }
    Ok(())
}
