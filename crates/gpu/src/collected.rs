//! Lists that kernels append to (`kernels/collect.cuh`): room for words, and a counter that goes on when the
//! room is full, so that the caller learns how much there must be.

use std::ops::Deref;
use std::sync::Arc;

use crate::device::{Device, DeviceBuffer, Grid, Kernel, Pinned, Stream};
use crate::error::GpuError;

/// Threads of a block.
pub(crate) const THREADS: u32 = 256;

/// Words that a warp collects before it writes them.
pub(crate) const ROOM: u32 = 128;

const LANES: u32 = 32;

/// One list, in device memory or where the host reads it.
#[derive(Debug)]
pub(crate) struct Lists<M> {
    words: M,
    capacity: usize,
    count: DeviceBuffer<u64>,
    /// The counter as it was when the stream came to [`Lists::note`].
    noted: Pinned<u64>,
    address: u64,
}

impl Lists<DeviceBuffer<u64>> {
    pub(crate) fn on_device(device: &Arc<Device>, capacity: usize, purpose: &'static str) -> Result<Self, GpuError> {
        let words = DeviceBuffer::new(device, capacity, purpose)?;
        let address = words.address();
        let count = DeviceBuffer::filled(device, 1, 0, "a counter")?;
        Ok(Self { words, capacity, count, noted: Pinned::new(device, 1, "a counter")?, address })
    }

    /// A list that the host has filled.
    pub(crate) fn of(device: &Arc<Device>, values: &[u64], purpose: &'static str) -> Result<Self, GpuError> {
        let words = DeviceBuffer::of(device, values, purpose)?;
        let address = words.address();
        let count = DeviceBuffer::of(device, &[values.len() as u64], "a counter")?;
        Ok(Self { words, capacity: values.len(), count, noted: Pinned::new(device, 1, "a counter")?, address })
    }
}

impl Lists<Pinned<u64>> {
    pub(crate) fn pinned(device: &Arc<Device>, capacity: usize, purpose: &'static str) -> Result<Self, GpuError> {
        let words = Pinned::new(device, capacity, purpose)?;
        let address = words.address()?;
        let count = DeviceBuffer::filled(device, 1, 0, "a counter")?;
        Ok(Self { words, capacity, count, noted: Pinned::new(device, 1, "a counter")?, address })
    }

    /// The values that kernels have written, after [`Lists::note`] and the wait for its stream.
    pub(crate) fn found(&self) -> &[u64] {
        &self.words[..self.count().min(self.capacity)]
    }
}

/// What kernels have found, where they have written it.
#[derive(Debug)]
pub struct Hits {
    words: Lists<Pinned<u64>>,
}

impl Hits {
    /// Of a list whose stream has been waited for.
    pub(crate) fn of(words: Lists<Pinned<u64>>) -> Self {
        Self { words }
    }
}

impl Deref for Hits {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        self.words.found()
    }
}

impl<M> Lists<M> {
    /// The kernels' structure `Results`.
    pub(crate) fn words(&self) -> Result<[u64; 3], GpuError> {
        Ok([self.address, self.count.address(), self.capacity as u64])
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Keeps the counter for [`Lists::count`], once the stream comes to it: a look that waits for no other work.
    pub(crate) fn note(&self, stream: &Stream) -> Result<(), GpuError> {
        self.count.copy_to(stream, &self.noted)
    }

    /// How many words there were, with those that found no room; after the wait for the stream of the note.
    pub(crate) fn count(&self) -> usize {
        usize::try_from(self.noted[0]).expect("a list that fits into memory")
    }
}

/// A grid that fills the device once, or is as small as the work.
pub(crate) fn grid(device: &Arc<Device>, kernel: &Kernel, threads_needed: usize) -> Result<Grid, GpuError> {
    let shared_bytes = 8 * (ROOM * THREADS / LANES) as usize;
    let fitting = device.blocks_that_fit(kernel, THREADS, shared_bytes)?;
    let needed = u32::try_from(threads_needed.div_ceil(THREADS as usize)).unwrap_or(u32::MAX);
    Ok(Grid { blocks: fitting.min(needed).max(1), threads: THREADS, shared_bytes })
}
