//! Resident joins by the order in which rows are inserted and looked for, with and without a filter: 16 M rows each.
//!
//! Results stay on the device. What orders need besides the table is there before the clock starts, as the table is.

use super::{Bench, TUPLE, Tables, check_count};
use crate::bench::Size;
use crate::bench::timing::{billions_a_second, milliseconds};
use crate::device::{DeviceBuffer, Stream};
use crate::error::GpuError;
use crate::join::{Append, Form, Input, KeyFilter, Order, Results, Settings, Table, Transfer};

const ORDERS: [Order; 8] = [
    Order::AsTheyCome,
    Order::Windows(1),
    Order::Windows(2),
    Order::Windows(4),
    Order::Windows(8),
    Order::Windows(16),
    Order::Windows(32),
    Order::Parts(1),
];

/// Threads of a block and parts at least, besides those of [`ORDERS`].
fn shapes(size: Size) -> [(u32, u32); 5] {
    let many = size.of(8, 1 << 12) as u32;
    [(128, 1), (512, 1), (128, many), (256, many), (512, many)]
}

/// Both tables on the device, the hash table, and room for results.
struct Side {
    begin: String,
    table: Table,
    inputs: [Input; 2],
    matches: usize,
    pairs: DeviceBuffer<u64>,
    count: DeviceBuffer<u64>,
}

/// The cases that begin with `order,`.
pub(super) fn by_order(bench: &mut Bench<'_>, million: usize) -> Result<(), GpuError> {
    let settings = Settings { transfer: Transfer::Resident, ..Settings::default() };
    for match_percent in [3.0, 100.0] {
        let begin = format!("order, {match_percent} %");
        if !bench.only.may_take(&begin) {
            continue;
        }
        let tables = Tables::new(bench.device, [16 * million; 2], match_percent, Transfer::Resident)?;
        let side = Side::new(bench, &tables, &settings, begin)?;
        // The last one is that of the probes.
        let mut build_ms = Vec::new();
        for order in ORDERS {
            build_ms = side.time_build(bench, order)?;
        }
        side.time_parts(bench, 1)?;
        for order in ORDERS {
            side.time_probe(bench, order, None, &build_ms)?;
        }
        let (filter, filter_ms) = side.time_filter(bench)?;
        build_ms.iter_mut().zip(filter_ms).for_each(|(build, filter)| *build += filter);
        for order in [Order::Windows(1), Order::Windows(2), Order::Windows(4)] {
            side.time_probe(bench, order, Some(&filter), &build_ms)?;
        }
    }
    Ok(())
}

/// The cases that begin with `order by shapes,`.
pub(super) fn by_shape(bench: &mut Bench<'_>, million: usize, size: Size) -> Result<(), GpuError> {
    for match_percent in [3.0, 100.0] {
        let begin = format!("order by shapes, {match_percent} %");
        if !bench.only.may_take(&begin) {
            continue;
        }
        let tables = Tables::new(bench.device, [16 * million; 2], match_percent, Transfer::Resident)?;
        for (threads, parts) in shapes(size) {
            let settings = Settings { threads, transfer: Transfer::Resident, ..Settings::default() };
            let side = Side::new(bench, &tables, &settings, format!("{begin}, {threads} threads"))?;
            let build_ms = side.time_build(bench, Order::Parts(parts))?;
            side.time_parts(bench, parts)?;
            side.time_probe(bench, Order::Parts(parts), None, &build_ms)?;
        }
    }
    Ok(())
}

/// The cases that begin with `as chosen,`: what the settings are where nothing is said.
pub(super) fn as_chosen(bench: &mut Bench<'_>, million: usize) -> Result<(), GpuError> {
    let settings = Settings { transfer: Transfer::Resident, ..Settings::default() };
    for match_percent in [3.0, 50.0, 100.0] {
        let begin = format!("as chosen, {match_percent} %");
        if !bench.only.may_take(&begin) {
            continue;
        }
        let tables = Tables::new(bench.device, [16 * million; 2], match_percent, Transfer::Resident)?;
        let side = Side::new(bench, &tables, &settings, begin)?;
        let build_ms = side.time_build(bench, settings.build_order)?;
        side.time_probe(bench, settings.probe_order, None, &build_ms)?;
    }
    Ok(())
}

impl Side {
    fn new(bench: &Bench<'_>, tables: &Tables, settings: &Settings, begin: String) -> Result<Self, GpuError> {
        let inputs = tables.inputs()?;
        Ok(Self {
            begin,
            table: Table::new(bench.device, Form::Tuples, inputs[0].count, settings)?,
            inputs,
            matches: tables.matches,
            pairs: DeviceBuffer::new(bench.device, tables.matches.max(1), "results")?,
            count: DeviceBuffer::filled(bench.device, 1, 0, "a counter")?,
        })
    }

    fn bytes(&self, side: usize) -> f64 {
        self.inputs[side].count as f64 * TUPLE
    }

    fn time_build(&self, bench: &mut Bench<'_>, order: Order) -> Result<Vec<f64>, GpuError> {
        let case = format!("{}, build {order:?}", self.begin);
        let way = self.table.way(order, self.inputs[0].count)?;
        let build_ms = milliseconds(bench.device, bench.runs, |stream| {
            // SAFETY: the input is on the device, and all of it is kept until the stream is waited for.
            unsafe { self.table.fill(stream, &self.inputs[0], &way) }
        })?;
        self.table.check()?;
        self.check(bench)?;
        let bound = ("device memory's reads", bench.roofs.device_read);
        bench.push(&case, "build", &billions_a_second(self.bytes(0), &build_ms), bound);
        Ok(build_ms)
    }

    /// Putting rows in the order of parts alone.
    fn time_parts(&self, bench: &mut Bench<'_>, parts: u32) -> Result<(), GpuError> {
        let Some(parted) = self.table.parted(self.inputs[1].count, parts)? else { return Ok(()) };
        let spans_ms = milliseconds(bench.device, bench.runs, |stream| {
            // SAFETY: as above.
            unsafe { self.table.part(stream, &self.inputs[1], &parted) }
        })?;
        // Rows are read once and written once.
        let bound = ("half of device memory's reads", bench.roofs.device_read.map(|read| read / 2.0));
        let case = format!("{}, by {parts} parts alone", self.begin);
        bench.push(&case, "throughput", &billions_a_second(self.bytes(1), &spans_ms), bound);
        Ok(())
    }

    fn time_filter(&self, bench: &mut Bench<'_>) -> Result<(KeyFilter, Vec<f64>), GpuError> {
        let stream = Stream::new(bench.device)?;
        let filter = self.table.filter(&stream)?;
        stream.wait()?;
        let spans_ms = milliseconds(bench.device, bench.runs, |stream| self.table.fill_filter(stream, &filter))?;
        let bound = ("device memory's reads", bench.roofs.device_read);
        let case = format!("{}, filter", self.begin);
        bench.push(&case, "build rows", &billions_a_second(self.bytes(0), &spans_ms), bound);
        Ok((filter, spans_ms))
    }

    fn time_probe(
        &self,
        bench: &mut Bench<'_>,
        order: Order,
        filter: Option<&KeyFilter>,
        before_ms: &[f64],
    ) -> Result<(), GpuError> {
        let with = if filter.is_some() { "with" } else { "without" };
        let case = format!("{}, probe {order:?}, {with} filter", self.begin);
        let way = self.table.way(order, self.inputs[1].count)?;
        let probe_ms = milliseconds(bench.device, bench.runs, |stream| {
            self.count.fill(stream, 0)?;
            let results = self.results();
            let by = (&way, filter);
            // SAFETY: the input, the filter, the results and `way` are kept until the stream is waited for.
            unsafe { self.table.probe_by(stream, &self.inputs[1], results, Append::Warped, by) }
        })?;
        check_count(self.count.read()?[0], self.matches)?;
        let bound = ("device memory's reads", bench.roofs.device_read);
        bench.push(&case, "probe", &billions_a_second(self.bytes(1), &probe_ms), bound);
        let whole_ms: Vec<f64> = before_ms.iter().zip(&probe_ms).map(|(before, probe)| before + probe).collect();
        bench.push(&case, "end to end", &billions_a_second(self.bytes(0) + self.bytes(1), &whole_ms), bound);
        Ok(())
    }

    /// Whether a plain probe finds all matches.
    fn check(&self, bench: &Bench<'_>) -> Result<(), GpuError> {
        let stream = Stream::new(bench.device)?;
        self.count.fill(&stream, 0)?;
        // SAFETY: as above.
        unsafe { self.table.probe(&stream, &self.inputs[1], self.results(), Append::Warped) }?;
        stream.wait()?;
        check_count(self.count.read()?[0], self.matches)
    }

    fn results(&self) -> Results {
        Results { pairs: self.pairs.address(), count: self.count.address(), capacity: self.pairs.len() }
    }
}
