//! The answer of a join in which no probe row has several partners: a bit for each probe row, and the rows of the build table in the order
//! of the probe rows that have one.
//!
//! ```text
//! pairs      8 bytes a match
//! partners   4 bytes a match, a bit for each probe row, and 4 bytes for each 256 of them
//! ```
//!
//! The bus takes less of each direction while both are busy. A probe of which every row matches reads 8 bytes a row (key and number) and
//! writes 8 as pairs, 4.14 as partners.

use std::sync::Arc;
use std::time::Instant;

use crate::device::{Device, DeviceBuffer, Event, Pinned, Stream};
use crate::error::GpuError;
use crate::join::gathered::{BUFFERS, gather};
use crate::join::on_device::{PIECE_ROWS, Times, finish, milliseconds_since};
use crate::join::source::Source;
use crate::join::table::{PartnersAt, TILE_ROWS, TILE_WORDS};
use crate::join::{Delivery, Input, Keys, Results, Settings, Table, Transfer, pair};

/// The rows of a probe table with the row of the build table that each has for a partner, if it has one.
#[derive(Debug)]
pub struct Partners {
    probe_rows: usize,
    bits: Pinned<u32>,
    /// Where the partners of each tile begin, from the begin of its piece's on.
    starts: Pinned<u32>,
    rows: Pinned<u32>,
    count: usize,
    piece_tiles: usize,
    /// Where the partners of each piece begin.
    pieces: Vec<usize>,
    /// Where the time went.
    pub times: Times,
}

impl Partners {
    /// `None` if some row has several.
    pub(super) fn find(
        device: &Arc<Device>,
        table: &Table,
        probe: &Keys<'_>,
        settings: &Settings,
    ) -> Result<Option<Self>, GpuError> {
        let begun = Instant::now();
        let transfer = match settings.transfer {
            // A tile is in one piece.
            Transfer::Copied { rows } => Transfer::Copied { rows: rows.max(1).next_multiple_of(TILE_ROWS) },
            other => other,
        };
        let source = Source::new(device, probe, &Settings { transfer, ..*settings }, BUFFERS)?;
        let tiles = probe.len().div_ceil(TILE_ROWS);
        let piece_rows = source.piece_rows().unwrap_or(PIECE_ROWS);
        let repeated = DeviceBuffer::<u32>::filled(device, 1, 0, "a counter")?;
        let mut partners = Self {
            probe_rows: probe.len(),
            bits: Pinned::new(device, tiles * TILE_WORDS, "results")?,
            starts: Pinned::new(device, tiles, "results")?,
            rows: Pinned::new(device, probe.len(), "results")?,
            count: 0,
            piece_tiles: piece_rows / TILE_ROWS,
            pieces: Vec::new(),
            times: Times::default(),
        };
        partners.times.inputs_ms = milliseconds_since(begun);
        let (bits, starts) = (partners.bits.address()?, partners.starts.address()?);
        let launch = |stream: &Stream, input: &Input, results: Results| {
            let tile = u64::from(input.first_row) / TILE_ROWS as u64;
            let to = PartnersAt {
                bits: bits + tile * TILE_WORDS as u64 * 4,
                starts: starts + tile * 4,
                rows: results.pairs,
                count: results.count,
                repeated: repeated.address(),
            };
            // SAFETY: the input is pinned or on the device. There are bits and a start for each of its tiles, and a row for each of its
            // rows; all of it outlives the waits below and its own `drop`, which waits for the device.
            unsafe { table.partners(stream, input, &to) }
        };
        match settings.delivery {
            Delivery::Copied => {
                let gathered = gather(device, &source, &partners.rows, PIECE_ROWS, launch)?;
                partners.count = gathered.count;
                partners.pieces = gathered.starts;
                partners.times.probe_ms = gathered.span_ms;
            }
            Delivery::InPlace => partners.write_in_place(device, &source, launch)?,
        }
        Ok((repeated.read()?[0] == 0).then_some(partners))
    }

    fn write_in_place(
        &mut self,
        device: &Arc<Device>,
        source: &Source<'_>,
        launch: impl Fn(&Stream, &Input, Results) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let streams = [Stream::new(device)?, Stream::new(device)?];
        let counter = DeviceBuffer::<u64>::filled(device, 1, 0, "a counter")?;
        let results = Results { pairs: self.rows.address()?, count: counter.address(), capacity: self.rows.len() };
        let start = Event::of(&streams[0])?;
        source.for_each(&streams, |stream, input| launch(stream, input, results))?;
        self.times.probe_ms = finish(&streams, &start)?;
        self.count = usize::try_from(counter.read()?[0]).expect("a list that fits into memory");
        self.piece_tiles = usize::MAX;
        self.pieces = vec![0];
        Ok(())
    }

    /// Rows that have a partner.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A bit for each row of the probe table, lowest first; those behind the last row are not set.
    pub fn bits(&self) -> &[u32] {
        &self.bits[..self.probe_rows.div_ceil(32)]
    }

    /// The rows of the build table, in the order of the rows of the probe table that have one.
    pub fn rows(&self) -> Vec<u32> {
        let mut rows = Vec::with_capacity(self.count);
        for (tile, (bits, start)) in self.bits.chunks(TILE_WORDS).zip(&*self.starts).enumerate() {
            let first = self.pieces[tile / self.piece_tiles] + *start as usize;
            let count: u32 = bits.iter().map(|word| word.count_ones()).sum();
            rows.extend_from_slice(&self.rows[first..first + count as usize]);
        }
        rows
    }

    /// The pairs of rows that [`super::Built::probe`] would give, of a probe table whose rows are numbered from 0 on.
    pub fn pairs(&self) -> Vec<u64> {
        let is_set = |row: &usize| self.bits[row / 32] >> (row % 32) & 1 == 1;
        let having = (0..self.probe_rows).filter(is_set);
        having.zip(self.rows()).map(|(row, partner)| pair(partner, row as u32)).collect()
    }
}
