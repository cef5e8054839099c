//! A whole join on a device: inputs brought there in one of three ways, the table, the results.
//!
//! ```text
//! in place   pin inputs --> build kernel reads host memory --> probe kernel reads host memory      (a large table is built as below)
//! copied     piece 0 -> buffer 0 | kernel 0        piece 2 -> buffer 0 | kernel 2 ...    stream 0
//!                      piece 1 -> buffer 1 | kernel 1      ...                           stream 1
//! resident   copy inputs --> build kernel --> probe kernel
//! ```
//!
//! Results are always written to pinned host memory. If there are more than there is room for, the counter
//! has told how many, and the rows are probed once more.

use std::sync::Arc;
use std::time::Instant;

use crate::device::{Device, DeviceBuffer, Event, Pinned, Plain, Registered, Stream};
use crate::error::GpuError;
use crate::join::{Bits, Form, Input, Keys, Results, Settings, Table, Transfer};

/// Rows of a piece, where pieces are not asked for.
const PIECE_ROWS: usize = 1 << 19;

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
        let source = Source::new(device, build, &of_build)?;
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
        if probe.form().slot_words() != self.table.form().slot_words() {
            return Err(GpuError::Unsuitable("keys of two widths".to_owned()));
        }
        let mut times = Times::default();
        let streams = [Stream::new(device)?, Stream::new(device)?];
        let begun = Instant::now();
        let source = Source::new(device, probe, settings)?;
        let counter = DeviceBuffer::<u64>::filled(device, 1, 0, "a counter")?;
        let mut pairs = Pinned::new(device, settings.result_rows.unwrap_or(probe.len()), "results")?;
        times.inputs_ms = milliseconds_since(begun);
        loop {
            let results = Results { pairs: pairs.address()?, count: counter.address(), capacity: pairs.len() };
            let start = Event::of(&streams[0])?;
            source.for_each(&streams, |stream, input| {
                // SAFETY: the input is pinned or on the device, and `source`, `pairs` and `counter` outlive the waits below and their own
                // `drop`, which waits for the device.
                unsafe { self.table.probe(stream, input, results, settings.append) }
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
    let sources = [Source::new(device, build, settings)?, Source::new(device, probe, settings)?];
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
    let table = Table::new(device, &streams[0], source.form, source.count, settings)?;
    // The other stream must find the table cleared.
    streams[1].wait_for(&Event::of(&streams[0])?)?;
    source.for_each(streams, |stream, input| {
        // SAFETY: the input is pinned or on the device and outlives the wait below.
        unsafe { table.insert(stream, input) }
    })?;
    times.build_ms = finish(streams, &start)?;
    table.check()?;
    Ok(table)
}

/// Waits for both streams; milliseconds since `start`.
fn finish(streams: &[Stream; 2], start: &Event) -> Result<f64, GpuError> {
    streams[0].wait_for(&Event::of(&streams[1])?)?;
    let span_ms = Event::of(&streams[0])?.since_ms(start)?;
    streams[0].wait()?;
    streams[1].wait()?;
    Ok(span_ms)
}

fn milliseconds_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}

/// A column that kernels can read. `Pinned` is a copy, where the column cannot be pinned itself: pages are
/// pinned once, and another column may have a page in common with it.
enum Column<'a, T: Plain> {
    Host(Registered<'a, T>),
    Pinned(Pinned<T>),
    Device(DeviceBuffer<T>),
}

impl<'a, T: Plain> Column<'a, T> {
    fn new(device: &Arc<Device>, values: &'a [T], settings: &Settings) -> Result<Self, GpuError> {
        match settings.transfer {
            Transfer::Resident => DeviceBuffer::of(device, values, "input").map(Self::Device),
            Transfer::InPlace | Transfer::Copied { .. } => match Registered::new(device, values) {
                Ok(registered) => Ok(Self::Host(registered)),
                Err(error) if error.is_device_lost() => Err(error),
                Err(_) => Pinned::of(device, values, "input").map(Self::Pinned),
            },
        }
    }

    /// The values, where they are in host memory.
    fn on_host(&self) -> Option<&[T]> {
        match self {
            Self::Host(registered) => Some(registered.values()),
            Self::Pinned(pinned) => Some(pinned),
            Self::Device(_) => None,
        }
    }

    fn address(&self) -> Result<u64, GpuError> {
        match self {
            Self::Host(registered) => registered.address(),
            Self::Pinned(pinned) => pinned.address(),
            Self::Device(buffer) => Ok(buffer.address()),
        }
    }
}

/// The keys of one table, ready to be read by kernels, and staging buffers where they are copied in pieces.
struct Source<'a> {
    form: Form,
    count: usize,
    first_bit: u32,
    words: Option<Column<'a, u64>>,
    halves: Option<Column<'a, u32>>,
    valid: Option<Column<'a, u8>>,
    staging: Option<Staging>,
}

struct Staging {
    rows: usize,
    words: [DeviceBuffer<u64>; 2],
    halves: [DeviceBuffer<u32>; 2],
}

impl<'a> Source<'a> {
    fn new(device: &Arc<Device>, keys: &Keys<'a>, settings: &Settings) -> Result<Self, GpuError> {
        if u32::try_from(keys.len()).is_err() {
            return Err(GpuError::Unsuitable(format!("an input of {} rows", keys.len())));
        }
        let (words, halves, valid) = match *keys {
            Keys::Tuples(tuples) => (Some(tuples), None, None),
            Keys::Column32(keys, valid) => (None, Some(keys), valid),
            Keys::Column64(keys, valid) => (Some(keys), None, valid),
        };
        let bits = valid.map(|bits| usable(bits, keys.len())).transpose()?;
        let staging = match settings.transfer {
            Transfer::Copied { rows } => Some(Staging::new(device, rows.max(1), words.is_some())?),
            Transfer::InPlace | Transfer::Resident => None,
        };
        Ok(Self {
            form: keys.form(),
            count: keys.len(),
            first_bit: bits.map_or(0, |(_, first_bit)| first_bit),
            words: words.map(|keys| Column::new(device, keys, settings)).transpose()?,
            halves: halves.map(|keys| Column::new(device, keys, settings)).transpose()?,
            valid: bits.map(|(bytes, _)| Column::new(device, bytes, settings)).transpose()?,
            staging,
        })
    }

    /// Gives the input to `work`: whole, or piece by piece on the two streams in turn.
    fn for_each(
        &self,
        streams: &[Stream; 2],
        mut work: impl FnMut(&Stream, &Input) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let valid = self.valid.as_ref().map_or(Ok(0), Column::address)?;
        let Some(staging) = &self.staging else {
            let keys = match (&self.words, &self.halves) {
                (Some(words), _) => words.address()?,
                (None, Some(halves)) => halves.address()?,
                (None, None) => 0,
            };
            let input = Input { valid, first_bit: self.first_bit, ..Input::new(self.form, keys, self.count) };
            return work(&streams[0], &input);
        };
        for (turn, first) in (0..self.count).step_by(staging.rows).enumerate() {
            let rows = first..self.count.min(first + staging.rows);
            let stream = &streams[turn % 2];
            // A buffer is written again only after its stream's last kernel, as streams keep their order.
            let words = self.words.as_ref().and_then(Column::on_host);
            let halves = self.halves.as_ref().and_then(Column::on_host);
            let keys = match (words, halves) {
                (Some(words), _) => {
                    staging.words[turn % 2].fill_from(stream, &words[rows.clone()])?;
                    staging.words[turn % 2].address()
                }
                (None, Some(halves)) => {
                    staging.halves[turn % 2].fill_from(stream, &halves[rows.clone()])?;
                    staging.halves[turn % 2].address()
                }
                (None, None) => unreachable!("pieces are copied from host memory"),
            };
            let first_row = u32::try_from(first).expect("an input of at most 2^32 rows");
            let input = Input {
                valid,
                first_row,
                first_bit: self.first_bit + first_row,
                ..Input::new(self.form, keys, rows.len())
            };
            work(stream, &input)?;
        }
        Ok(())
    }
}

impl Staging {
    fn new(device: &Arc<Device>, rows: usize, is_wide: bool) -> Result<Self, GpuError> {
        let words = if is_wide { rows } else { 0 };
        let halves = if is_wide { 0 } else { rows };
        Ok(Self {
            rows,
            words: [DeviceBuffer::new(device, words, "a piece")?, DeviceBuffer::new(device, words, "a piece")?],
            halves: [DeviceBuffer::new(device, halves, "a piece")?, DeviceBuffer::new(device, halves, "a piece")?],
        })
    }
}

/// The bytes of validity from the first row's on, and its bit in them.
fn usable<'a>(bits: Bits<'a>, rows: usize) -> Result<(&'a [u8], u32), GpuError> {
    let first_byte = bits.first_bit / 8;
    let first_bit = bits.first_bit % 8;
    let end = first_byte + (first_bit + rows).div_ceil(8);
    match bits.bytes.get(first_byte..end) {
        Some(bytes) => Ok((bytes, first_bit as u32)),
        None => Err(GpuError::Unsuitable(format!("{rows} rows with fewer bits of validity"))),
    }
}
