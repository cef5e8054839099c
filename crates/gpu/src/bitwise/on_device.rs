//! The scan on a device: prefixes and suffixes resident, queries in batches, and the host's second look at one
//! batch while the device is at the next.
//!
//! ```text
//! device   prune 0, scan 0 | prune 1, scan 1 | ...
//! host                       look again 0    | look again 1 ...
//! ```

use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use super::{Distributed, Query, hit};
use crate::collected::{Lists, ROOM, THREADS};
use crate::device::{Device, DeviceBuffer, Event, Parameters, Pinned, Stream, halves};
use crate::error::GpuError;

/// Room for pairs and hits of the first batch; later ones have what earlier ones took.
const ROOM_FIRST: usize = 1024;

/// The fewest words that are worth a thread, which takes some twenty microseconds to begin.
const WORDS_OF_THREAD: usize = 1 << 13;

/// The mark of a hit that needs no second look.
const SURE: u64 = 1 << 63;

/// Where the time of a scan went, and what it found on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stages {
    /// Milliseconds of the kernels.
    pub device_ms: f64,
    /// Milliseconds of the second look.
    pub host_ms: f64,
    /// Hits that the device was sure of.
    pub sure: u64,
    /// Hits that were looked at again.
    pub unsure: u64,
}

/// Points of which the device has the upper bits.
#[derive(Debug)]
pub struct Resident<'a> {
    device: Arc<Device>,
    points: &'a Distributed,
    chunks: DeviceBuffer<[u32; 4]>,
    suffixes: DeviceBuffer<u32>,
}

/// One batch under way.
struct Batch {
    first_query: usize,
    queries: DeviceBuffer<[u32; 4]>,
    query_count: usize,
    stream: Stream,
    queue: Lists<DeviceBuffer<u64>>,
    hits: Lists<Pinned<u64>>,
    begun: Event,
    ended: Event,
}

impl<'a> Resident<'a> {
    /// Brings the upper bits to the device.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] if the device has no room for them; [`GpuError::Driver`] if a call of the driver
    /// fails.
    pub fn new(device: &Arc<Device>, points: &'a Distributed) -> Result<Self, GpuError> {
        let chunks: Vec<[u32; 4]> =
            points.chunks.iter().map(|chunk| [chunk.prefix[0], chunk.prefix[1], chunk.first, chunk.count]).collect();
        Ok(Self {
            device: Arc::clone(device),
            points,
            chunks: DeviceBuffer::of(device, &chunks, "clusters")?,
            suffixes: DeviceBuffer::of(device, points.suffixes.words(), "suffixes")?,
        })
    }

    /// Hits of all queries, in no order. `batch` queries are on the device at a time.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] if the device has no room for a batch and its hits; [`GpuError::Driver`] if a call
    /// of the driver or a kernel fails.
    pub fn scan(&self, queries: &[Query], batch: usize) -> Result<(Vec<u64>, Stages), GpuError> {
        let mut hits = Vec::new();
        let mut stages = Stages::default();
        if self.points.is_empty() {
            return Ok((hits, stages));
        }
        let mut under_way: Option<Batch> = None;
        let mut room = ROOM_FIRST;
        for (number, part) in queries.chunks(batch.max(1)).enumerate() {
            let next = self.start(number * batch.max(1), part, room)?;
            if let Some(done) = under_way.replace(next) {
                room = room.max(self.finish(done, queries, &mut hits, &mut stages)?);
            }
        }
        if let Some(done) = under_way {
            self.finish(done, queries, &mut hits, &mut stages)?;
        }
        Ok((hits, stages))
    }

    /// Gives a batch to the device, with room for so many pairs and hits.
    fn start(&self, first_query: usize, queries: &[Query], room: usize) -> Result<Batch, GpuError> {
        let stream = Stream::new(&self.device)?;
        let flat: Vec<[u32; 4]> =
            queries.iter().map(|query| [query.x[0], query.x[1], query.y[0], query.y[1]]).collect();
        let places = DeviceBuffer::of(&self.device, &flat, "queries")?;
        let queue = Lists::on_device(&self.device, room, "a queue")?;
        let hits = Lists::pinned(&self.device, room, "hits")?;
        let split = self.points.split;
        let points = [
            self.chunks.address(),
            self.suffixes.address(),
            self.chunks.len() as u64,
            halves(split.prefix_bits, split.suffix_bits),
        ];
        let begun = Event::of(&stream)?;
        let prune = self.device.kernel("bitwise_prune")?;
        let scan = self.device.kernel("bitwise_scan")?;
        let grid = crate::collected::grid(&self.device, &prune, self.chunks.len() * queries.len())?;
        let mut parameters = Parameters::new()
            .words(&points)
            .word(places.address())
            .word(queries.len() as u64)
            .words(&queue.words()?)
            .half(ROOM);
        // SAFETY: these are the kernel's parameters; a batch owns its memory, and is waited for before it goes.
        unsafe { prune.launch(&stream, grid, &mut parameters) }?;
        let grid = crate::collected::grid(&self.device, &scan, room * THREADS as usize)?;
        let mut parameters = Parameters::new()
            .words(&points)
            .word(places.address())
            .words(&queue.words()?)
            .words(&hits.words()?)
            .half(ROOM);
        // SAFETY: as above; the queue names chunks and queries that there are.
        unsafe { scan.launch(&stream, grid, &mut parameters) }?;
        queue.note(&stream)?;
        hits.note(&stream)?;
        let ended = Event::of(&stream)?;
        Ok(Batch { first_query, queries: places, query_count: queries.len(), stream, queue, hits, begun, ended })
    }

    /// Waits for a batch and looks again at what is unsure. A batch that found no room runs once more; returns the
    /// room that it took.
    fn finish(
        &self,
        mut batch: Batch,
        queries: &[Query],
        hits: &mut Vec<u64>,
        stages: &mut Stages,
    ) -> Result<usize, GpuError> {
        loop {
            batch.stream.wait()?;
            stages.device_ms += batch.ended.since_ms(&batch.begun)?;
            let needed = batch.queue.count().max(batch.hits.count());
            if needed <= batch.hits.capacity() {
                break;
            }
            let again = &queries[batch.first_query..batch.first_query + batch.query_count];
            batch = self.start(batch.first_query, again, needed)?;
        }
        debug_assert_eq!(batch.queries.len(), batch.query_count, "a batch has its queries");
        let begun = Instant::now();
        let found = batch.hits.found();
        let sure = found.iter().filter(|word| *word & SURE != 0).count() as u64;
        stages.sure += sure;
        stages.unsure += found.len() as u64 - sure;
        self.look_again(found, &queries[batch.first_query..], batch.first_query, hits);
        stages.host_ms += begun.elapsed().as_secs_f64() * 1000.0;
        Ok(batch.hits.capacity())
    }

    /// Appends the hits among what the device has found for `queries`, the first of which is number `first_query`. A long list is cut
    /// among threads: what it names lies all over memory.
    fn look_again(&self, found: &[u64], queries: &[Query], first_query: usize, hits: &mut Vec<u64>) {
        let look = &|found: &[u64], hits: &mut Vec<u64>| {
            hits.extend(found.iter().filter_map(|word| {
                let (query, at) = (((word & !SURE) >> 32) as usize, *word as u32);
                let is_hit = word & SURE != 0 || self.points.is_hit(&queries[query], at);
                is_hit.then(|| hit((first_query + query) as u32, self.points.rows[at as usize]))
            }));
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(found.len() / WORDS_OF_THREAD);
        if threads <= 1 {
            return look(found, hits);
        }
        let parts: Vec<Vec<u64>> = thread::scope(|scope| {
            let workers: Vec<_> = found
                .chunks(found.len().div_ceil(threads))
                .map(|part| {
                    scope.spawn(move || {
                        let mut hits = Vec::with_capacity(part.len());
                        look(part, &mut hits);
                        hits
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().expect("a look at plain numbers")).collect()
        });
        hits.reserve(parts.iter().map(Vec::len).sum());
        parts.iter().for_each(|part| hits.extend_from_slice(part));
    }
}
