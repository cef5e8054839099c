//! Preselection over a dense directory of clusters, as the product's indexes have it: coordinates of up to 64 bits, of which the owner
//! says which are kept, and what a query may and must have in these.
//!
//! ```text
//! device   select 0, test 0 | select 1, test 1 | ...        select: chunks that the edge of a query crosses; test: their points
//! host                        its owner, 0     | its owner, 1 ...
//! ```

use std::sync::Arc;

use super::CHUNK_POINTS_MAX;
use crate::collected::{Lists, ROOM, grid};
use crate::device::{Device, DeviceBuffer, Event, Parameters, Pinned, Stream, halves};
use crate::error::GpuError;

/// Queries of a batch: two at least are under way where there are many.
const BATCH: usize = 1024;

/// Warps for the rows of one query, where there are few queries.
const PARTS_MAX: usize = 64;

/// Warps that keep a device busy.
const WARPS: usize = 4096;

/// Room for chunks and results, for each query of which nothing is known yet.
const ROOM_OF_QUERY: usize = 64;

/// Bits of a result below its query, below its chunk, and below its point.
const SHIFTS: (u32, u32, u32) = (42, 10, 1);

/// Points in the order of their clusters. A cluster is a pair of prefixes; there is a place for each, row by row.
#[derive(Debug, Clone, Copy)]
pub struct Directory<'a> {
    /// The first point of each cluster, and the end of the last one's.
    pub starts: &'a [u32],
    /// Clusters of a row.
    pub row_clusters: u64,
    /// The suffixes of each side, lowest bits first, with 16 bytes behind them: of the prefix that is a row, and of that within.
    pub suffixes: [&'a [u8]; 2],
    /// Bits of a suffix, 32 at most.
    pub suffix_bits: [u32; 2],
}

/// A window in terms of the kept bits: of each side, from a first to a last that may answer, and from a first to one before an end that
/// does in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The first and the last that may.
    pub may: [[u64; 2]; 2],
    /// The first that must, and the end of those that do.
    pub must: [[u64; 2]; 2],
}

/// A point that may answer a query, where its cluster does not as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The query.
    pub query: u32,
    /// The place of the point.
    pub place: u32,
    /// Its cluster.
    pub cluster: u32,
    /// Whether it answers, whatever the bits are that are not kept.
    pub is_sure: bool,
}

impl Directory<'_> {
    /// The first point and the cluster of each chunk, and an end; and the first chunk of each cluster, and an end.
    fn chunks(&self) -> (Vec<[u32; 2]>, Vec<u32>) {
        let (mut chunks, mut chunk_of) = (Vec::new(), Vec::with_capacity(self.starts.len()));
        for (cluster, points) in (0..).zip(self.starts.windows(2)) {
            chunk_of.push(chunks.len() as u32);
            chunks.extend((points[0]..points[1]).step_by(CHUNK_POINTS_MAX as usize).map(|first| [first, cluster]));
        }
        chunk_of.push(chunks.len() as u32);
        chunks.push([self.starts.last().copied().unwrap_or(0), 0]);
        (chunks, chunk_of)
    }

    fn fault(&self) -> Option<String> {
        let clusters = self.starts.len().saturating_sub(1) as u64;
        let points = self.starts.last().map_or(0, |end| u64::from(*end));
        if clusters == 0 || self.row_clusters == 0 || !clusters.is_multiple_of(self.row_clusters) {
            return Some(format!("{clusters} clusters in rows of {}", self.row_clusters));
        }
        if !self.starts.is_sorted() || self.starts[0] != 0 {
            return Some("clusters that are not in order".to_owned());
        }
        let needed = |bits: u32| (points * u64::from(bits)).div_ceil(8) + if bits > 0 { 16 } else { 0 };
        let mut sides = self.suffixes.iter().zip(&self.suffix_bits);
        let short = sides.find(|(bytes, bits)| **bits > 32 || (bytes.len() as u64) < needed(**bits));
        short.map(|(bytes, bits)| format!("{} bytes for {points} suffixes of {bits} bits", bytes.len()))
    }
}

/// What a side without suffixes has there.
const EMPTY: usize = 16;

/// A directory with its suffixes on a device.
#[derive(Debug)]
pub struct Resident {
    device: Arc<Device>,
    chunk_of: DeviceBuffer<u32>,
    chunks: DeviceBuffer<[u32; 2]>,
    suffixes: [DeviceBuffer<u8>; 2],
    row_clusters: u64,
    suffix_bits: [u32; 2],
    /// What `chunks` has, for the results that come back.
    known: Vec<[u32; 2]>,
}

/// One batch under way.
struct Batch {
    first_query: usize,
    query_count: usize,
    stream: Stream,
    queue: Lists<DeviceBuffer<u64>>,
    found: Lists<Pinned<u64>>,
    begun: Event,
    ended: Event,
    /// Used by the kernels until the stream has been waited for.
    _queries: DeviceBuffer<[u64; 8]>,
}

impl Resident {
    /// Brings a directory to the device.
    ///
    /// # Errors
    /// [`GpuError::Unsuitable`] if its slices do not fit each other; [`GpuError::OutOfMemory`] if the device has no room for it;
    /// [`GpuError::Driver`] if a call of the driver fails.
    pub fn new(device: &Arc<Device>, of: &Directory<'_>) -> Result<Self, GpuError> {
        if let Some(fault) = of.fault() {
            return Err(GpuError::Unsuitable(fault));
        }
        let (known, chunk_of) = of.chunks();
        let suffixes = |side: usize| {
            let bytes = of.suffixes[side];
            DeviceBuffer::of(device, if bytes.is_empty() { &[0; EMPTY] } else { bytes }, "suffixes")
        };
        Ok(Self {
            device: Arc::clone(device),
            chunk_of: DeviceBuffer::of(device, &chunk_of, "clusters")?,
            chunks: DeviceBuffer::of(device, &known, "clusters")?,
            suffixes: [suffixes(0)?, suffixes(1)?],
            row_clusters: of.row_clusters,
            suffix_bits: of.suffix_bits,
            known,
        })
    }

    /// Gives the points that may answer the queries to `take`, batch by batch, while the device is at the next one, and the milliseconds
    /// of the kernels. No list may need more than `words_max` words at a time. `may` lies within the kept bits of the directory, `must`
    /// within `may`. After an error, what was taken is not all.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] if the device has no room for a batch and its results, or there are too many of them;
    /// [`GpuError::Driver`] if a call of the driver or a kernel fails.
    pub fn scan(&self, queries: &[Asked], words_max: usize, take: &mut dyn FnMut(&[Found])) -> Result<f64, GpuError> {
        let (mut kernels_ms, mut under_way) = (0.0, None);
        let mut room = (BATCH.min(queries.len()) * ROOM_OF_QUERY).min(words_max);
        let mut finish = |batch: Batch| -> Result<usize, GpuError> {
            let (batch, ms) = self.finish(batch, queries, words_max)?;
            kernels_ms += ms;
            take(&self.read(&batch));
            Ok(batch.found.capacity())
        };
        for (number, part) in queries.chunks(BATCH).enumerate() {
            let next = self.start(number * BATCH, part, room)?;
            if let Some(done) = under_way.replace(next) {
                room = room.max(finish(done)?);
            }
        }
        if let Some(done) = under_way {
            finish(done)?;
        }
        Ok(kernels_ms)
    }

    /// Gives a batch to the device, with room for so many chunks and results.
    fn start(&self, first_query: usize, queries: &[Asked], room: usize) -> Result<Batch, GpuError> {
        let stream = Stream::new(&self.device)?;
        let flat = |query: &Asked| {
            let [[rows, clusters], [whole_rows, whole]] = [query.may, query.must];
            [rows, clusters, whole_rows, whole].concat().try_into().expect("four pairs")
        };
        let flat: Vec<[u64; 8]> = queries.iter().map(flat).collect();
        let places = DeviceBuffer::of(&self.device, &flat, "queries")?;
        let queue = Lists::on_device(&self.device, room, "a queue")?;
        let found = Lists::pinned(&self.device, room, "hits")?;
        let points = [
            self.chunk_of.address(),
            self.chunks.address(),
            self.suffixes[0].address(),
            self.suffixes[1].address(),
            self.row_clusters,
            halves(self.suffix_bits[0], self.suffix_bits[1]),
        ];
        let begun = Event::of(&stream)?;
        let [select, test] = [self.device.kernel("bitwise_select")?, self.device.kernel("bitwise_test")?];
        let parts = (WARPS / queries.len().max(1)).clamp(1, PARTS_MAX);
        let mut parameters = Parameters::new()
            .words(&points)
            .word(places.address())
            .word(queries.len() as u64)
            .words(&queue.words()?)
            .half(parts as u32)
            .half(ROOM);
        let of_select = grid(&self.device, &select, queries.len() * parts * 32)?;
        // SAFETY: these are the kernel's parameters; a batch owns its memory, and is waited for before it goes. Queries lie within the
        // directory.
        unsafe { select.launch(&stream, of_select, &mut parameters) }?;
        let mut parameters = Parameters::new()
            .words(&points)
            .word(places.address())
            .words(&queue.words()?)
            .words(&found.words()?)
            .half(ROOM);
        let of_test = grid(&self.device, &test, room.saturating_mul(8))?;
        // SAFETY: as above; the queue names chunks and queries that there are.
        unsafe { test.launch(&stream, of_test, &mut parameters) }?;
        queue.note(&stream)?;
        found.note(&stream)?;
        let ended = Event::of(&stream)?;
        let query_count = queries.len();
        Ok(Batch { first_query, query_count, stream, queue, found, begun, ended, _queries: places })
    }

    /// Waits for a batch, which runs once more where it found no room, and says how long its kernels took.
    fn finish(&self, batch: Batch, queries: &[Asked], words_max: usize) -> Result<(Batch, f64), GpuError> {
        let (mut batch, mut kernels_ms) = (batch, 0.0);
        loop {
            batch.stream.wait()?;
            kernels_ms += batch.ended.since_ms(&batch.begun)?;
            let needed = batch.queue.count().max(batch.found.count());
            if needed <= batch.found.capacity() {
                return Ok((batch, kernels_ms));
            }
            if needed > words_max {
                return Err(GpuError::OutOfMemory { bytes: 8 * needed, purpose: "hits" });
            }
            let again = &queries[batch.first_query..batch.first_query + batch.query_count];
            batch = self.start(batch.first_query, again, needed)?;
        }
    }

    fn read(&self, batch: &Batch) -> Vec<Found> {
        let (of_query, of_chunk, of_point) = SHIFTS;
        let point = |word: &u64| {
            let [first, cluster] = self.known[(word >> of_chunk) as u32 as usize];
            Found {
                query: batch.first_query as u32 + (word >> of_query) as u32,
                place: first + (word >> of_point) as u32 % CHUNK_POINTS_MAX,
                cluster,
                is_sure: word & 1 != 0,
            }
        };
        batch.found.found().iter().map(point).collect()
    }
}

/// The scan on the CPU: every cluster for every query.
pub fn twin(of: &Directory<'_>, queries: &[Asked]) -> Vec<Found> {
    let suffix = |side: usize, place: usize| {
        let bit = |at: usize| u64::from(of.suffixes[side][at / 8] >> (at % 8) & 1);
        let bits = of.suffix_bits[side] as usize;
        (0..bits).fold(0, |word, at| word | bit(place * bits + at) << at)
    };
    let mut found = Vec::new();
    for (query, asked) in (0..).zip(queries) {
        for (cluster, places) in (0..).zip(of.starts.windows(2)) {
            let prefixes = [u64::from(cluster) / of.row_clusters, u64::from(cluster) % of.row_clusters];
            // What all points of a cluster have is not told point by point.
            let is_whole = (0..2).all(|side| {
                let (first, bits) = (prefixes[side] << of.suffix_bits[side], of.suffix_bits[side]);
                asked.must[side][0] <= first && first + (1 << bits) <= asked.must[side][1]
            });
            for place in if is_whole { 0..0 } else { places[0]..places[1] } {
                let kept = [0, 1].map(|side| prefixes[side] << of.suffix_bits[side] | suffix(side, place as usize));
                let may = |side: usize| (asked.may[side][0]..=asked.may[side][1]).contains(&kept[side]);
                let must = |side: usize| (asked.must[side][0]..asked.must[side][1]).contains(&kept[side]);
                if may(0) && may(1) {
                    found.push(Found { query, place, cluster, is_sure: must(0) && must(1) });
                }
            }
        }
    }
    found
}
