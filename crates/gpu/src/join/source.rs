//! An input of a join, where kernels read it: pinned, on the device, or copied there piece by piece.

use std::ops::Range;
use std::sync::Arc;

use crate::device::{Device, DeviceBuffer, Pinned, Plain, Registered, Stream};
use crate::error::GpuError;
use crate::join::{Bits, Form, Input, Keys, Settings, Transfer};

/// A column that kernels can read. `Pinned` is a copy, where the column cannot be pinned itself: pages are
/// pinned once, and another column may have a page in common with it.
pub(super) enum Column<'a, T: Plain> {
    Host(Registered<'a, T>),
    Pinned(Pinned<T>),
    Device(DeviceBuffer<T>),
}

impl<'a, T: Plain> Column<'a, T> {
    pub(super) fn new(device: &Arc<Device>, values: &'a [T], settings: &Settings) -> Result<Self, GpuError> {
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

    pub(super) fn address(&self) -> Result<u64, GpuError> {
        match self {
            Self::Host(registered) => registered.address(),
            Self::Pinned(pinned) => pinned.address(),
            Self::Device(buffer) => Ok(buffer.address()),
        }
    }
}

/// The keys of one table, ready to be read by kernels, and staging buffers where they are copied in pieces.
pub(super) struct Source<'a> {
    pub(super) form: Form,
    pub(super) count: usize,
    first_bit: u32,
    words: Option<Column<'a, u64>>,
    halves: Option<Column<'a, u32>>,
    valid: Option<Column<'a, u8>>,
    staging: Option<Staging>,
}

struct Staging {
    rows: usize,
    words: Vec<DeviceBuffer<u64>>,
    halves: Vec<DeviceBuffer<u32>>,
}

impl<'a> Source<'a> {
    /// The keys of a table; `buffers` take pieces in turn, if they are copied so.
    pub(super) fn new(
        device: &Arc<Device>,
        keys: &Keys<'a>,
        settings: &Settings,
        buffers: usize,
    ) -> Result<Self, GpuError> {
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
            Transfer::Copied { rows } => Some(Staging::new(device, rows.max(1), words.is_some(), buffers)?),
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

    /// Whether all of it is on the device.
    pub(super) fn is_resident(&self) -> bool {
        let is_near = |column: &Option<Column<'_, u64>>| matches!(column, Some(Column::Device(_)));
        is_near(&self.words) || matches!(self.halves, Some(Column::Device(_)))
    }

    /// Rows of a piece, where it is copied in pieces.
    pub(super) fn piece_rows(&self) -> Option<usize> {
        self.staging.as_ref().map(|staging| staging.rows)
    }

    /// Rows where a kernel reads them that `stream` is given next: those of a piece are copied to this buffer first, which no kernel reads
    /// any more.
    pub(super) fn piece(&self, stream: &Stream, buffer: usize, rows: Range<usize>) -> Result<Input, GpuError> {
        let first_row = u32::try_from(rows.start).expect("an input of at most 2^32 rows");
        let keys = match (&self.words, &self.halves) {
            (Some(words), _) => {
                let buffers = self.staging.as_ref().map(|staging| &staging.words[buffer]);
                place_of(words, buffers, stream, rows.clone())?
            }
            (None, Some(halves)) => {
                let buffers = self.staging.as_ref().map(|staging| &staging.halves[buffer]);
                place_of(halves, buffers, stream, rows.clone())?
            }
            (None, None) => unreachable!("a table has keys"),
        };
        Ok(Input {
            valid: self.valid.as_ref().map_or(Ok(0), Column::address)?,
            first_row,
            first_bit: self.first_bit + first_row,
            ..Input::new(self.form, keys, rows.len())
        })
    }

    /// Gives the input to `work`: whole, or piece by piece on the two streams in turn.
    pub(super) fn for_each(
        &self,
        streams: &[Stream; 2],
        mut work: impl FnMut(&Stream, &Input) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let rows = self.piece_rows().unwrap_or(self.count).max(1);
        for (turn, first) in (0..self.count).step_by(rows).enumerate() {
            // A buffer is written again only after its stream's last kernel, as streams keep their order.
            let stream = &streams[turn % 2];
            let input = self.piece(stream, turn % 2, first..self.count.min(first + rows))?;
            work(stream, &input)?;
        }
        Ok(())
    }
}

/// Where kernels find some values of a column: where it lies, or in a buffer to which `stream` copies them.
fn place_of<T: Plain>(
    column: &Column<'_, T>,
    buffer: Option<&DeviceBuffer<T>>,
    stream: &Stream,
    rows: Range<usize>,
) -> Result<u64, GpuError> {
    match (buffer, column.on_host()) {
        (Some(buffer), Some(values)) => {
            buffer.fill_from(stream, &values[rows])?;
            Ok(buffer.address())
        }
        _ => Ok(column.address()? + (rows.start * size_of::<T>()) as u64),
    }
}

impl Staging {
    fn new(device: &Arc<Device>, rows: usize, is_wide: bool, buffers: usize) -> Result<Self, GpuError> {
        let words = if is_wide { rows } else { 0 };
        let halves = if is_wide { 0 } else { rows };
        Ok(Self {
            rows,
            words: (0..buffers).map(|_| DeviceBuffer::new(device, words, "a piece")).collect::<Result<_, _>>()?,
            halves: (0..buffers).map(|_| DeviceBuffer::new(device, halves, "a piece")).collect::<Result<_, _>>()?,
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
