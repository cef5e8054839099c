//! A whole join on a device: inputs brought there in one of three ways, the table, the results.
//!
//! ```text
//! in place   pin inputs --> build kernel reads host memory --> probe kernel reads host memory      (a large table is built as below)
//! copied     piece 0 -> buffer 0 | kernel 0        piece 2 -> buffer 0 | kernel 2 ...    stream 0
//!                      piece 1 -> buffer 1 | kernel 1      ...                           stream 1
//! resident   copy inputs --> build kernel --> probe kernel
//! ```
//!
//! Results are written to pinned host memory by the kernels, or by the copy engine (`gathered`). If there are more than there is room for,
//! the counter has told how many, and the rows are probed once more.

use std::sync::Arc;
use std::time::Instant;

use crate::device::{Device, DeviceBuffer, Event, Pinned, Stream};
use crate::error::GpuError;
use crate::join::gathered::{BUFFERS, gather};
use crate::join::source::{Column, Source};
use crate::join::{
    Delivery, Filter, Form, Input, KeyFilter, Keys, Order, Partners, Results, Settings, Table, Transfer,
};

/// Rows of a piece, where pieces are not asked for.
pub(super) const PIECE_ROWS: usize = 1 << 19;

/// Where the time of a join went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// Pinning the inputs, or copying them whole.
    pub inputs_ms: f64,
    /// The hash table: making room, clearing it, inserting.
    pub build_ms: f64,
    /// Probing, with the results written.
    pub probe_ms: f64,
}

/// The answer of a join.
#[derive(Debug)]
pub struct Outcome {
    pairs: Pinned<u64>,
    count: usize,
    /// Where the time went.
    pub times: Times,
}

impl Outcome {
    /// Pairs of rows, see [`crate::join::pair`].
    pub fn pairs(&self) -> &[u64] {
        &self.pairs[..self.count]
    }
}

/// The sums of a join with a group-by: `SELECT code, COUNT(*), SUM(value) ... GROUP BY code`.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    /// The group of each row of the build table; `None`: one group.
    pub codes: Option<&'a [u32]>,
    /// The value of each row of the probe table; `None`: matches are counted only.
    pub values: Option<&'a [i64]>,
    /// Groups.
    pub count: u32,
}

/// The hash table of a build table on a device, for any number of probe tables.
#[derive(Debug)]
pub struct Built {
    device: Arc<Device>,
    table: Table,
    settings: Settings,
    /// Where the time went.
    pub times: Times,
}

impl Built {
    /// Makes the table.
    ///
    /// # Errors
    /// - [`GpuError::Unsuitable`] if there are too many rows, fewer bits of validity than rows, too many equal keys, or the settings ask
    ///   for threads that a block cannot have.
    /// - [`GpuError::OutOfMemory`] if there is no room for the input or the table; [`GpuError::Driver`] if a call of the driver or a
    ///   kernel fails.
    pub fn new(device: &Arc<Device>, build: &Keys<'_>, settings: &Settings) -> Result<Self, GpuError> {
        let mut times = Times::default();
        let streams = [Stream::new(device)?, Stream::new(device)?];
        let begun = Instant::now();
        let of_build = settings_of_build(device, build, settings);
        let source = Source::new(device, build, &of_build, 2)?;
        times.inputs_ms = milliseconds_since(begun);
        let table = build_table(device, &streams, &source, settings, &mut times)?;
        Ok(Self { device: Arc::clone(device), table, settings: *settings, times })
    }

    /// Finds the partners of a probe table's rows, `most` at the most.
    ///
    /// # Errors
    /// - [`GpuError::Unsuitable`] if there are too many rows or results, fewer bits of validity than rows, keys of another width, or the
    ///   settings ask for shared memory that a block cannot have.
    /// - [`GpuError::OutOfMemory`] if there is no room for the input or the results; [`GpuError::Driver`] if a call of the driver or a
    ///   kernel fails.
    pub fn probe(&self, probe: &Keys<'_>, most: Option<usize>) -> Result<Outcome, GpuError> {
        let (device, settings) = (&self.device, &self.settings);
        self.check_width(probe)?;
        let mut times = Times::default();
        let streams = [Stream::new(device)?, Stream::new(device)?];
        let begun = Instant::now();
        let source = Source::new(device, probe, settings, BUFFERS)?;
        let room = settings.result_rows.unwrap_or(probe.len());
        let mut pairs = Pinned::new(device, room, "results")?;
        if settings.delivery == Delivery::Copied {
            let probe_piece = |stream: &Stream, input: &Input, results: Results| {
                // SAFETY: the input is pinned or on the device; `gather` keeps it and the results until it has waited.
                unsafe { self.table.probe(stream, input, results, settings.append) }
            };
            let gathered = gather(device, &source, &pairs, PIECE_ROWS, probe_piece)?;
            times.inputs_ms = milliseconds_since(begun) - gathered.span_ms;
            times.probe_ms = gathered.span_ms;
            if gathered.is_whole && most.is_none_or(|most| gathered.count <= most) {
                return Ok(Outcome { pairs, count: gathered.count, times });
            }
        } else {
            times.inputs_ms = milliseconds_since(begun);
        }
        let counter = DeviceBuffer::<u64>::filled(device, 1, 0, "a counter")?;
        let filter_start = Event::of(&streams[0])?;
        let filter = self.filter(&streams[0], &source)?;
        let order = match settings.probe_order {
            _ if !source.is_resident() => Order::AsTheyCome,
            Order::Parts(_) if filter.is_some() => Order::AsTheyCome,
            order => order,
        };
        let way = self.table.way(order, source.count)?;
        streams[1].wait_for(&Event::of(&streams[0])?)?;
        times.probe_ms += finish(&streams, &filter_start)?;
        loop {
            let results = Results { pairs: pairs.address()?, count: counter.address(), capacity: pairs.len() };
            let start = Event::of(&streams[0])?;
            source.for_each(&streams, |stream, input| {
                // SAFETY: the input is pinned or on the device, and `source`, `pairs`, `counter`, `way` and `filter` outlive the waits
                // below and their own `drop`, which waits for the device.
                unsafe { self.table.probe_by(stream, input, results, settings.append, (&way, filter.as_ref())) }
            })?;
            times.probe_ms += finish(&streams, &start)?;
            let found = counter.read()?[0];
            let count = usize::try_from(found).map_err(|_| GpuError::Unsuitable(format!("{found} results")))?;
            if most.is_some_and(|most| count > most) {
                return Err(GpuError::Unsuitable(format!("{count} results")));
            }
            if count <= pairs.len() {
                return Ok(Outcome { pairs, count, times });
            }
            pairs = Pinned::new(device, count, "results")?;
            counter.fill(&streams[0], 0)?;
            streams[0].wait()?;
        }
    }
}

impl Built {
    /// Finds the partner of each row of a probe table; `None` if some row has several, and [`Self::probe`] is to be asked.
    ///
    /// # Errors
    /// As [`Self::probe`].
    pub fn probe_partners(&self, probe: &Keys<'_>) -> Result<Option<Partners>, GpuError> {
        self.check_width(probe)?;
        Partners::find(&self.device, &self.table, probe, &self.settings)
    }

    /// The filter that a probe looks at, if it does.
    fn filter(&self, stream: &Stream, source: &Source<'_>) -> Result<Option<KeyFilter>, GpuError> {
        let is_wanted = self.settings.filter == Filter::With && source.is_resident();
        is_wanted.then(|| self.table.filter(stream)).transpose()
    }

    fn check_width(&self, probe: &Keys<'_>) -> Result<(), GpuError> {
        if probe.form().slot_words() == self.table.form().slot_words() {
            return Ok(());
        }
        Err(GpuError::Unsuitable("keys of two widths".to_owned()))
    }
}

/// Insertions into a table that the device's cache does not hold slow down reads of host memory: on an H100, 64 M rows are inserted at
/// 14 GB/s in place, and at 49 GB/s, which is what the bus takes, when the copy engine brings them.
fn settings_of_build(device: &Device, build: &Keys<'_>, settings: &Settings) -> Settings {
    let table_bytes = 2 * build.len() * 8 * build.form().slot_words();
    match settings.transfer {
        Transfer::InPlace if table_bytes > device.properties().l2_bytes => {
            Settings { transfer: Transfer::Copied { rows: PIECE_ROWS }, ..*settings }
        }
        _ => *settings,
    }
}

/// Joins on a device.
///
/// # Errors
/// As [`Built::new`] and [`Built::probe`].
pub fn join(
    device: &Arc<Device>,
    build: &Keys<'_>,
    probe: &Keys<'_>,
    settings: &Settings,
) -> Result<Outcome, GpuError> {
    let built = Built::new(device, build, settings)?;
    let mut outcome = built.probe(probe, settings.result_rows_max)?;
    outcome.times.inputs_ms += built.times.inputs_ms;
    outcome.times.build_ms = built.times.build_ms;
    Ok(outcome)
}

/// Joins on a device and adds up what matches: counts and sums a group. Sums wrap around.
///
/// # Errors
/// As [`join`]; [`GpuError::Unsuitable`], too, if the keys are tuples, there are no groups, a code is too high, or
/// there is not one code or value for each row.
pub fn join_grouped(
    device: &Arc<Device>,
    build: &Keys<'_>,
    probe: &Keys<'_>,
    groups: &Groups<'_>,
    settings: &Settings,
) -> Result<(Vec<u64>, Vec<i64>, Times), GpuError> {
    check_groups(build, probe, groups)?;
    let mut times = Times::default();
    let streams = [Stream::new(device)?, Stream::new(device)?];
    let begun = Instant::now();
    let sources = [Source::new(device, build, settings, 2)?, Source::new(device, probe, settings, 2)?];
    let codes = groups.codes.map(|codes| DeviceBuffer::of(device, codes, "group codes")).transpose()?;
    let values = groups.values.map(|values| Column::new(device, values, settings)).transpose()?;
    let counts = DeviceBuffer::<u64>::filled(device, groups.count as usize, 0, "aggregates")?;
    let sums = DeviceBuffer::<i64>::filled(device, groups.count as usize, 0, "aggregates")?;
    times.inputs_ms = milliseconds_since(begun);
    let table = build_table(device, &streams, &sources[0], settings, &mut times)?;
    let start = Event::of(&streams[0])?;
    let codes_at = codes.as_ref().map_or(0, DeviceBuffer::address);
    let values_at = values.as_ref().map_or(Ok(0), Column::address)?;
    sources[1].for_each(&streams, |stream, input| {
        let values_here = if values_at == 0 { 0 } else { values_at + u64::from(input.first_row) * 8 };
        let addresses = [codes_at, values_here, counts.address(), sums.address()];
        // SAFETY: codes are below the number of groups and there is a value for each row, as checked; all of
        // this memory outlives the waits below and its own `drop`.
        unsafe { table.group(stream, input, addresses, groups.count) }
    })?;
    times.probe_ms = finish(&streams, &start)?;
    Ok((counts.read()?, sums.read()?, times))
}

fn check_groups(build: &Keys<'_>, probe: &Keys<'_>, groups: &Groups<'_>) -> Result<(), GpuError> {
    let complain = |what: String| Err(GpuError::Unsuitable(what));
    if build.form() == Form::Tuples || probe.form() == Form::Tuples {
        return complain("a group-by over tuples, whose rows are in no order".to_owned());
    }
    if let Some(codes) = groups.codes {
        if codes.len() != build.len() {
            return complain(format!("{} codes for {} rows", codes.len(), build.len()));
        }
        if let Some(code) = codes.iter().find(|code| **code >= groups.count) {
            return complain(format!("group {code} of {}", groups.count));
        }
    }
    match groups.values {
        Some(values) if values.len() != probe.len() => {
            complain(format!("{} values for {} rows", values.len(), probe.len()))
        }
        _ if groups.count == 0 => complain("no groups".to_owned()),
        _ => Ok(()),
    }
}

fn build_table(
    device: &Arc<Device>,
    streams: &[Stream; 2],
    source: &Source<'_>,
    settings: &Settings,
    times: &mut Times,
) -> Result<Table, GpuError> {
    let start = Event::of(&streams[0])?;
    let table = Table::new(device, source.form, source.count, settings)?;
    if source.is_resident() {
        let input = source.piece(&streams[0], 0, 0..source.count)?;
        let way = table.way(settings.build_order, source.count)?;
        // SAFETY: the input is on the device and outlives the wait below; so does `way`, whose own `drop` waits for the device.
        unsafe { table.fill(&streams[0], &input, &way) }?;
    } else {
        table.clear(&streams[0])?;
        // The other stream must find the table cleared.
        streams[1].wait_for(&Event::of(&streams[0])?)?;
        source.for_each(streams, |stream, input| {
            // SAFETY: the input is pinned or on the device and outlives the wait below.
            unsafe { table.insert(stream, input) }
        })?;
    }
    times.build_ms = finish(streams, &start)?;
    table.check()?;
    Ok(table)
}

/// Waits for both streams; milliseconds since `start`.
pub(super) fn finish(streams: &[Stream; 2], start: &Event) -> Result<f64, GpuError> {
    streams[0].wait_for(&Event::of(&streams[1])?)?;
    let span_ms = Event::of(&streams[0])?.since_ms(start)?;
    streams[0].wait()?;
    streams[1].wait()?;
    Ok(span_ms)
}

pub(super) fn milliseconds_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}
