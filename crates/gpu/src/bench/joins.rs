//! The join measured as gpu-join measures it: Figures 3 to 6, and what the paper leaves for later.
//!
//! Throughput is bytes of input a second, as in the paper (section 4). Every case checks its number of matches.

mod orders;

use std::sync::Arc;
use std::time::Instant;

use super::data::join_tables;
use super::report::Line;
use super::roofs::Roofs;
use super::timing::{billions_a_second, milliseconds};
use super::{Only, Size};
use crate::device::{Device, DeviceBuffer, Pinned};
use crate::error::GpuError;
use crate::join::{self, Append, Built, Delivery, Form, Groups, Hash, Input, Keys, Results, Settings, Table, Transfer};

const BENCH: &str = "gpu.join";

/// Bytes of a tuple.
const TUPLE: f64 = 8.0;

/// Two tables where kernels read them.
struct Tables {
    build: Pinned<u64>,
    probe: Pinned<u64>,
    matches: usize,
    near: Option<[DeviceBuffer<u64>; 2]>,
}

impl Tables {
    fn new(device: &Arc<Device>, rows: [usize; 2], match_percent: f64, transfer: Transfer) -> Result<Self, GpuError> {
        let (build, probe) = join_tables(rows[0], rows[1], match_percent, 1);
        let matches = probe.iter().filter(|tuple| *tuple >> 31 & 1 == 0).count();
        let near = match transfer {
            Transfer::Resident => {
                Some([DeviceBuffer::of(device, &build, "input")?, DeviceBuffer::of(device, &probe, "input")?])
            }
            Transfer::InPlace | Transfer::Copied { .. } => None,
        };
        Ok(Self {
            build: Pinned::of(device, &build, "input")?,
            probe: Pinned::of(device, &probe, "input")?,
            matches,
            near,
        })
    }

    fn inputs(&self) -> Result<[Input; 2], GpuError> {
        let places = match &self.near {
            Some([build, probe]) => [build.address(), probe.address()],
            None => [self.build.address()?, self.probe.address()?],
        };
        Ok([
            Input::new(Form::Tuples, places[0], self.build.len()),
            Input::new(Form::Tuples, places[1], self.probe.len()),
        ])
    }
}

struct Bench<'a> {
    device: &'a Arc<Device>,
    runs: usize,
    only: Only<'a>,
    roofs: Roofs,
    lines: Vec<Line>,
}

impl Bench<'_> {
    fn push(&mut self, case: &str, metric: &'static str, values: &[f64], bound: (&str, Option<f64>)) {
        let line = Line::of_runs(BENCH, case.to_owned(), metric, "GB/s", values).beside(bound.0, bound.1);
        let line = if self.device.properties().is_emulated { line.without_times() } else { line };
        self.lines.push(line);
    }

    /// Builds and probes; throughputs of both and of the whole.
    fn time(&mut self, case: &str, tables: &Tables, settings: &Settings) -> Result<(), GpuError> {
        let [build, probe] = tables.inputs()?;
        let bound = if tables.near.is_some() {
            ("device memory's reads", self.roofs.device_read)
        } else {
            ("kernels' reads of host memory", self.roofs.host_read)
        };
        let table = Table::new(self.device, Form::Tuples, build.count, settings)?;
        let build_ms = milliseconds(self.device, self.runs, |stream| {
            table.clear(stream)?;
            // SAFETY: the inputs are pinned or on the device, and kept until the stream is waited for.
            unsafe { table.insert(stream, &build) }
        })?;
        table.check()?;
        let room = tables.matches.max(1);
        let pairs = Pinned::<u64>::new(self.device, room, "results")?;
        let counter = DeviceBuffer::<u64>::filled(self.device, 1, 0, "a counter")?;
        let (device, runs) = (self.device, self.runs);
        let probe_to = |pairs: u64| -> Result<Vec<f64>, GpuError> {
            let results = Results { pairs, count: counter.address(), capacity: room };
            let spans_ms = milliseconds(device, runs, |stream| {
                counter.fill(stream, 0)?;
                // SAFETY: as above, for the results, too.
                unsafe { table.probe(stream, &probe, results, settings.append) }
            })?;
            check_count(counter.read()?[0], tables.matches)?;
            Ok(spans_ms)
        };
        let probe_ms = probe_to(pairs.address()?)?;
        self.push(case, "build", &billions_a_second(build.count as f64 * TUPLE, &build_ms), bound);
        self.push(case, "probe", &billions_a_second(probe.count as f64 * TUPLE, &probe_ms), bound);
        if tables.near.is_some() {
            let near = DeviceBuffer::<u64>::new(self.device, room, "results")?;
            let spans_ms = probe_to(near.address())?;
            let case = format!("{case}, results stay");
            self.push(&case, "probe", &billions_a_second(probe.count as f64 * TUPLE, &spans_ms), bound);
        }
        let whole_ms: Vec<f64> = build_ms.iter().zip(&probe_ms).map(|(build, probe)| build + probe).collect();
        let bytes = (build.count + probe.count) as f64 * TUPLE;
        self.push(case, "end to end", &billions_a_second(bytes, &whole_ms), bound);
        Ok(())
    }

    /// A whole join by the operator, pinning and result memory counted in (Figure 3).
    fn time_whole(&mut self, case: &str, tables: &Tables, settings: &Settings) -> Result<(), GpuError> {
        let (build, probe) = (tables.build.to_vec(), tables.probe.to_vec());
        let mut columns: [Vec<f64>; 3] = Default::default();
        for run in 0..=self.runs {
            let outcome = join::join(self.device, &Keys::Tuples(&build), &Keys::Tuples(&probe), settings)?;
            check_count(outcome.pairs().len() as u64, tables.matches)?;
            if run > 0 {
                let times = outcome.times;
                [times.inputs_ms, times.build_ms, times.probe_ms]
                    .iter()
                    .zip(&mut columns)
                    .for_each(|(span_ms, column)| column.push(*span_ms));
            }
        }
        let [inputs_ms, build_ms, probe_ms] = &columns;
        let line = Line::of_runs(BENCH, format!("{case}, whole"), "pin or copy inputs", "ms", inputs_ms);
        self.lines.push(if self.device.properties().is_emulated { line.without_times() } else { line });
        let bound = match settings.transfer {
            Transfer::Resident => ("device memory's reads", self.roofs.device_read),
            Transfer::InPlace | Transfer::Copied { .. } => ("kernels' reads of host memory", self.roofs.host_read),
        };
        let bytes = [build.len() as f64 * TUPLE, probe.len() as f64 * TUPLE];
        let both_ms: Vec<f64> = build_ms.iter().zip(probe_ms).map(|(build, probe)| build + probe).collect();
        let whole = format!("{case}, whole");
        self.push(&whole, "build", &billions_a_second(bytes[0], build_ms), bound);
        self.push(&whole, "probe", &billions_a_second(bytes[1], probe_ms), bound);
        self.push(&whole, "both, inputs ready", &billions_a_second(bytes[0] + bytes[1], &both_ms), bound);
        Ok(())
    }

    /// A whole join whose results come to the host in one of several ways, and the bytes that cross the bus for a row that is probed.
    fn time_delivery(
        &mut self,
        case: String,
        sides: &Sides,
        (is_narrow, are_partners): (bool, bool),
        settings: &Settings,
    ) -> Result<(), GpuError> {
        if !self.only.takes(&case) {
            return Ok(());
        }
        let [build, probe] = [0, 1].map(|side| sides.keys(side, is_narrow));
        let (mut build_ms, mut probe_ms, mut both_ms) = (Vec::new(), Vec::new(), Vec::new());
        for run in 0..=self.runs {
            let built = Built::new(self.device, &build, settings)?;
            let (found, times) = if are_partners {
                let found = built.probe_partners(&probe)?;
                let found = found.ok_or_else(|| GpuError::Unsuitable("a row with two partners".to_owned()))?;
                (found.len(), found.times)
            } else {
                let found = built.probe(&probe, None)?;
                (found.pairs().len(), found.times)
            };
            check_count(found as u64, sides.matches)?;
            if run > 0 {
                build_ms.push(built.times.build_ms);
                probe_ms.push(times.probe_ms);
                both_ms.push(built.times.build_ms + times.probe_ms);
            }
        }
        let key_bytes = if is_narrow { 4.0 } else { TUPLE };
        let bytes = [build.len() as f64 * key_bytes, probe.len() as f64 * key_bytes];
        let bound = ("kernels' reads of host memory", self.roofs.host_read);
        self.push(&case, "build", &billions_a_second(bytes[0], &build_ms), bound);
        self.push(&case, "probe", &billions_a_second(bytes[1], &probe_ms), bound);
        self.push(&case, "both, inputs ready", &billions_a_second(bytes[0] + bytes[1], &both_ms), bound);
        let share = sides.matches as f64 / probe.len() as f64;
        // Partners: a word a match, a bit a row, a word for 256 rows.
        let back = if are_partners { 4.0 * share + 1.0 / 8.0 + 4.0 / 256.0 } else { 8.0 * share };
        for (metric, bytes) in [("bytes there, a row", key_bytes), ("bytes back, a row", back)] {
            self.lines.push(Line::counted(BENCH, case.clone(), metric, "bytes", bytes));
        }
        Ok(())
    }

    fn time_grouped(&mut self, case: &str, tables: &Tables, settings: &Settings) -> Result<(), GpuError> {
        // A column of keys, as groups need rows in order.
        let build: Vec<u32> = tables.build.iter().map(|tuple| *tuple as u32).collect();
        let probe: Vec<u32> = tables.probe.iter().map(|tuple| *tuple as u32).collect();
        let groups = Groups { codes: None, values: None, count: 1 };
        let mut spans_ms = Vec::new();
        for _ in 0..=self.runs {
            let keys = (Keys::Column32(&build, None), Keys::Column32(&probe, None));
            let (counts, _, times) = join::join_grouped(self.device, &keys.0, &keys.1, &groups, settings)?;
            check_count(counts[0], tables.matches)?;
            spans_ms.push(times.probe_ms);
        }
        let bound = ("kernels' reads of host memory", self.roofs.host_read);
        self.push(case, "probe, fused", &billions_a_second(probe.len() as f64 * 4.0, &spans_ms[1..]), bound);
        Ok(())
    }

    fn time_twin(&mut self, case: &str, tables: &Tables) {
        // The twin takes seconds for large tables.
        let runs = if tables.build.len() > 8 << 20 { 1 } else { self.runs.min(3) };
        let mut spans_ms = Vec::new();
        for _ in 0..runs {
            let begun = Instant::now();
            let pairs = join::twin::join(&Keys::Tuples(&tables.build), &Keys::Tuples(&tables.probe));
            spans_ms.push(begun.elapsed().as_secs_f64() * 1000.0);
            assert_eq!(pairs.len(), tables.matches, "the twin finds all matches");
        }
        let bytes = (tables.build.len() + tables.probe.len()) as f64 * TUPLE;
        self.push(case, "end to end, CPU", &billions_a_second(bytes, &spans_ms), ("the CPU", None));
    }
}

fn check_count(found: u64, expected: usize) -> Result<(), GpuError> {
    if found == expected as u64 {
        return Ok(());
    }
    Err(GpuError::Unsuitable(format!("{found} matches, where there are {expected}")))
}

/// All figures.
pub fn measure(device: &Arc<Device>, size: Size, only: Only<'_>, roofs: Roofs) -> Result<Vec<Line>, GpuError> {
    let mut bench = Bench { device, runs: size.of(1, 5), only, roofs, lines: Vec::new() };
    let million = size.of(100, 1 << 20);
    if only.0.is_none() {
        by_size(&mut bench, million, size)?;
        by_match_rate(&mut bench, million)?;
        by_dimensions(&mut bench, million, size)?;
        beyond_the_paper(&mut bench, million)?;
    }
    by_delivery(&mut bench, million)?;
    orders::by_order(&mut bench, million)?;
    orders::by_shape(&mut bench, million, size)?;
    orders::as_chosen(&mut bench, million)?;
    Ok(bench.lines)
}

/// How results come to the host, and in which form: 16 M rows each.
fn by_delivery(bench: &mut Bench<'_>, million: usize) -> Result<(), GpuError> {
    let rows = 16 * million;
    let pieces = [million / 2, 2 * million, 4 * million].map(|rows| Transfer::Copied { rows: rows.max(64) });
    for match_percent in [3.0, 100.0] {
        let begin = format!("results, {match_percent} %");
        if !bench.only.may_take(&begin) {
            continue;
        }
        let tables = Tables::new(bench.device, [rows, rows], match_percent, Transfer::InPlace)?;
        let sides = Sides::of(&tables);
        for transfer in [Transfer::InPlace].into_iter().chain(pieces) {
            for delivery in [Delivery::InPlace, Delivery::Copied] {
                let settings = Settings { transfer, delivery, ..Settings::default() };
                let begin = format!("{begin}, {transfer:?}, delivered {delivery:?}");
                for (keys, is_narrow) in [("tuples", false), ("keys of 32 bits", true)] {
                    for (form, are_partners) in [("pairs", false), ("partners", true)] {
                        let case = format!("{begin}, {form}, {keys}");
                        bench.time_delivery(case, &sides, (is_narrow, are_partners), &settings)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The tables of a join as the host has them.
struct Sides {
    tuples: [Vec<u64>; 2],
    columns: [Vec<u32>; 2],
    matches: usize,
}

impl Sides {
    fn of(tables: &Tables) -> Self {
        let tuples = [tables.build.to_vec(), tables.probe.to_vec()];
        let keys = |tuples: &Vec<u64>| tuples.iter().map(|tuple| *tuple as u32).collect();
        let columns = [keys(&tuples[0]), keys(&tuples[1])];
        Self { tuples, columns, matches: tables.matches }
    }

    fn keys(&self, side: usize, is_narrow: bool) -> Keys<'_> {
        if is_narrow { Keys::Column32(&self.columns[side], None) } else { Keys::Tuples(&self.tuples[side]) }
    }
}

/// Figures 3 and 4: tables of one size, 3 % matches.
fn by_size(bench: &mut Bench<'_>, million: usize, size: Size) -> Result<(), GpuError> {
    let settings = Settings::default();
    for millions in [1, 4, 16, size.of(20, 64)] {
        let rows = millions * million;
        let tables = Tables::new(bench.device, [rows, rows], 3.0, settings.transfer)?;
        bench.time(&format!("figure 4, {millions} M rows each, in place"), &tables, &settings)?;
        bench.time_twin(&format!("figure 4, {millions} M rows each"), &tables);
        let pieces = Transfer::Copied { rows: (million / 2).max(64) };
        for (what, transfer) in [("in place", Transfer::InPlace), ("copied", pieces), ("resident", Transfer::Resident)]
        {
            let case = format!("figure 3, {millions} M rows each, {what}");
            bench.time_whole(&case, &tables, &Settings { transfer, ..settings })?;
        }
    }
    Ok(())
}

/// Figure 5: 16 M rows each, match rates, ways to append.
fn by_match_rate(bench: &mut Bench<'_>, million: usize) -> Result<(), GpuError> {
    let rows = 16 * million;
    for match_percent in [0.0, 1.0, 3.0, 10.0, 50.0, 100.0] {
        let pieces = Transfer::Copied { rows: (million / 2).max(64) };
        for transfer in [Transfer::InPlace, Transfer::Resident] {
            let tables = Tables::new(bench.device, [rows, rows], match_percent, transfer)?;
            for append in [Append::Direct, Append::Cached, Append::Warped] {
                let case = format!("figure 5, {match_percent} %, {transfer:?}, {append:?}");
                bench.time(&case, &tables, &Settings { append, transfer, ..Settings::default() })?;
            }
            if transfer == Transfer::InPlace {
                for transfer in [Transfer::InPlace, pieces] {
                    let case = format!("figure 5, {match_percent} %, {transfer:?}");
                    let settings = Settings { transfer, ..Settings::default() };
                    bench.time_grouped(&case, &tables, &settings)?;
                    bench.time_whole(&case, &tables, &settings)?;
                }
            }
        }
    }
    Ok(())
}

/// Figure 6: build tables of 1, 4, 16 and 64 M rows, larger and smaller probe tables, 3 % matches.
fn by_dimensions(bench: &mut Bench<'_>, million: usize, size: Size) -> Result<(), GpuError> {
    for build in [1, 4, 16, size.of(20, 64)] {
        for probe in [1, 16, size.of(20, 256)] {
            let settings = Settings::default();
            let tables = Tables::new(bench.device, [build * million, probe * million], 3.0, settings.transfer)?;
            bench.time(&format!("figure 6, {build} M and {probe} M rows"), &tables, &settings)?;
        }
    }
    Ok(())
}

/// Hashes, blocks, a table that spills to host memory.
fn beyond_the_paper(bench: &mut Bench<'_>, million: usize) -> Result<(), GpuError> {
    let rows = [16 * million, 16 * million];
    let tables = Tables::new(bench.device, rows, 3.0, Transfer::Resident)?;
    for hash in [Hash::Mixed, Hash::LowBits] {
        let settings = Settings { hash, transfer: Transfer::Resident, ..Settings::default() };
        bench.time(&format!("resident, {hash:?}"), &tables, &settings)?;
    }
    for threads in [128, 256, 512, 1024] {
        for collected_max in [64, 256] {
            let settings = Settings { threads, collected_max: Some(collected_max), ..Settings::default() };
            if (settings.threads / 32 * collected_max * 8) as usize > bench.device.properties().shared_bytes_max {
                continue;
            }
            bench.time(&format!("resident, {threads} threads, {collected_max} collected"), &tables, &settings)?;
        }
    }
    let tables = Tables::new(bench.device, rows, 3.0, Transfer::InPlace)?;
    for blocks in [66, 132, 264, 528, 1056] {
        let settings = Settings { blocks: Some(blocks), ..Settings::default() };
        bench.time(&format!("in place, {blocks} blocks"), &tables, &settings)?;
    }
    let tables = Tables::new(bench.device, rows, 3.0, Transfer::Resident)?;
    let slot_bytes = (2 * rows[0]).next_power_of_two() * 8;
    for near_percent in [100, 75, 50, 0] {
        let settings = Settings { table_bytes_max: Some(slot_bytes / 100 * near_percent), ..Settings::default() };
        bench.time(&format!("{near_percent} % of the table on the device"), &tables, &settings)?;
    }
    Ok(())
}
