//! The scan on a device: the tree resident, a kernel a level, the queue of each level left by the one before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Key, Levels};
use crate::collected::{Hits, Lists, ROOM, THREADS, grid};
use crate::device::{Device, DeviceBuffer, Event, Parameters, Pinned, Stream};
use crate::error::GpuError;

/// Results of a level for each query of which nothing is known yet.
const ROOM_OF_QUERY: usize = 4;

/// Room for a batch at least.
const ROOM_MIN: usize = 1024;

/// A tree on a device.
#[derive(Debug)]
pub struct Resident<K: Key> {
    device: Arc<Device>,
    nodes: DeviceBuffer<[u32; 2]>,
    keys: DeviceBuffer<K>,
    children: DeviceBuffer<u32>,
    height: usize,
    /// Results of a level that the last scan had, for each query: the room that the next one begins with.
    room_of_query: AtomicUsize,
}

impl<K: Key> Resident<K> {
    /// Brings a tree to the device.
    ///
    /// # Errors
    /// [`GpuError::Unsuitable`] with the [`fault`](Levels::fault) of the tree; [`GpuError::OutOfMemory`] if the
    /// device has no room for it; [`GpuError::Driver`] if a call of the driver fails.
    pub fn new(device: &Arc<Device>, tree: &Levels<'_, K>) -> Result<Self, GpuError> {
        if let Some(fault) = tree.fault() {
            return Err(GpuError::Unsuitable(fault));
        }
        Ok(Self {
            device: Arc::clone(device),
            nodes: DeviceBuffer::of(device, tree.nodes, "nodes")?,
            keys: DeviceBuffer::of(device, tree.keys, "keys")?,
            children: DeviceBuffer::of(device, tree.children, "children")?,
            height: tree.height,
            room_of_query: AtomicUsize::new(ROOM_OF_QUERY),
        })
    }

    /// Answers of all queries, in no order, and the milliseconds of the kernels.
    ///
    /// # Errors
    /// [`GpuError::Unsuitable`] if there are 2^32 queries or more; [`GpuError::OutOfMemory`] if the device has no
    /// room for the queues of a level; [`GpuError::Driver`] if a call of the driver or a kernel fails.
    pub fn scan(&self, queries: &[K]) -> Result<(Hits, f64), GpuError> {
        self.scan_within(queries, usize::MAX)
    }

    /// [`Resident::scan`] with so many results of a level at most.
    ///
    /// # Errors
    /// Those of a scan; [`GpuError::OutOfMemory`] if there are more results.
    pub fn scan_within(&self, queries: &[K], words_max: usize) -> Result<(Hits, f64), GpuError> {
        if u32::try_from(queries.len()).is_err() {
            return Err(GpuError::Unsuitable(format!("{} queries at a time", queries.len())));
        }
        let places = DeviceBuffer::of(&self.device, queries, "queries")?;
        // The root for every query.
        let roots: Vec<u64> = (0..queries.len() as u64).map(|query| query << 32).collect();
        // A hint only: no other memory depends on it.
        let mut room = (self.room_of_query.load(Ordering::Relaxed) * queries.len()).max(ROOM_MIN).min(words_max);
        let mut span_ms = 0.0;
        loop {
            let stream = Stream::new(&self.device)?;
            let first = Lists::of(&self.device, &roots, "a queue")?;
            let queues: Vec<Lists<DeviceBuffer<u64>>> =
                (1..self.height).map(|_| Lists::on_device(&self.device, room, "a queue")).collect::<Result<_, _>>()?;
            let hits = Lists::<Pinned<u64>>::pinned(&self.device, room, "hits")?;
            let mut ends = vec![first.words()?];
            for queue in &queues {
                ends.push(queue.words()?);
            }
            ends.push(hits.words()?);
            let begun = Event::of(&stream)?;
            for level in ends.windows(2) {
                self.launch(&stream, &places, level[0], level[1], room)?;
            }
            queues.iter().try_for_each(|queue| queue.note(&stream))?;
            hits.note(&stream)?;
            span_ms += Event::of(&stream)?.since_ms(&begun)?;
            stream.wait()?;
            let needed = queues.iter().map(Lists::count).max().unwrap_or(0).max(hits.count());
            if needed <= room {
                let of_query = (needed + needed / 4).div_ceil(queries.len().max(1));
                self.room_of_query.store(of_query.max(ROOM_OF_QUERY), Ordering::Relaxed);
                return Ok((Hits::of(hits), span_ms));
            }
            // Results that found no room in one level are missing in the next ones, too, so this may come again.
            if needed > words_max {
                return Err(GpuError::OutOfMemory { bytes: 8 * needed, purpose: "hits" });
            }
            room = (needed + needed / 2).min(words_max);
        }
    }

    fn launch(
        &self,
        stream: &Stream,
        queries: &DeviceBuffer<K>,
        from: [u64; 3],
        to: [u64; 3],
        room: usize,
    ) -> Result<(), GpuError> {
        let kernel = self.device.kernel(K::KERNEL)?;
        let grid = grid(&self.device, &kernel, room.saturating_mul(THREADS as usize))?;
        let mut parameters = Parameters::new()
            .words(&[self.nodes.address(), self.keys.address(), self.children.address()])
            .word(queries.address())
            .words(&from)
            .words(&to)
            .half(ROOM);
        // SAFETY: these are the kernel's parameters; the lists outlive the wait of `scan`, or their own drop, which
        // waits; nodes name slots and nodes that there are, as `fault` has checked.
        unsafe { kernel.launch(stream, grid, &mut parameters) }
    }
}
