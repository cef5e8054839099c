//! Streams, which run what they are given in order, and events, which mark moments of a stream.

use std::sync::Arc;

use cudarc::driver::result;
use cudarc::driver::sys;

use super::Device;
use crate::error::GpuError;

/// A queue of work for a device.
#[derive(Debug)]
pub struct Stream {
    device: Arc<Device>,
    handle: sys::CUstream,
}

// SAFETY: the driver's functions on a stream may be called from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream of its own: it waits for no other.
    pub fn new(device: &Arc<Device>) -> Result<Self, GpuError> {
        device.bind()?;
        let handle = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(GpuError::of("the start of a stream"))?;
        Ok(Self { device: Arc::clone(device), handle })
    }

    /// Waits until everything that the stream was given is done, and says how it went.
    pub fn wait(&self) -> Result<(), GpuError> {
        self.device.bind()?;
        // SAFETY: the handle is ours.
        unsafe { result::stream::synchronize(self.handle) }.map_err(GpuError::of("a kernel or a copy"))
    }

    /// Lets what this stream is given from now on wait for an event.
    pub fn wait_for(&self, event: &Event) -> Result<(), GpuError> {
        self.device.bind()?;
        // SAFETY: both handles are ours, and of one context.
        unsafe { result::stream::wait_event(self.handle, event.handle, sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
            .map_err(GpuError::of("a wait for an event"))
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(crate) fn handle(&self) -> sys::CUstream {
        self.handle
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: the handle is ours and used no more; what the stream was given still runs.
            let destroyed = unsafe { result::stream::destroy(self.handle) };
            // A lost device has no streams.
            destroyed.ok();
        }
    }
}

/// A moment of a stream.
#[derive(Debug)]
pub struct Event {
    device: Arc<Device>,
    handle: sys::CUevent,
}

// SAFETY: the driver's functions on an event may be called from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// The moment at which `stream` has done everything that it was given so far.
    pub fn of(stream: &Stream) -> Result<Self, GpuError> {
        let device = Arc::clone(stream.device());
        device.bind()?;
        let handle = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
            .map_err(GpuError::of("the making of an event"))?;
        let event = Self { device, handle };
        // SAFETY: both handles are ours, and of one context.
        unsafe { result::event::record(handle, stream.handle) }.map_err(GpuError::of("the mark of an event"))?;
        Ok(event)
    }

    /// Waits until the stream has come to it.
    pub fn wait(&self) -> Result<(), GpuError> {
        self.device.bind()?;
        // SAFETY: the handle is ours.
        unsafe { result::event::synchronize(self.handle) }.map_err(GpuError::of("a kernel or a copy"))
    }

    /// Milliseconds from `earlier` to this event; waits for both.
    pub fn since_ms(&self, earlier: &Self) -> Result<f64, GpuError> {
        earlier.wait()?;
        self.wait()?;
        // SAFETY: both are recorded and reached.
        let span = unsafe { result::event::elapsed(earlier.handle, self.handle) };
        Ok(f64::from(span.map_err(GpuError::of("the question for a time"))?))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: the handle is ours and used no more.
            let destroyed = unsafe { result::event::destroy(self.handle) };
            // A lost device has no events.
            destroyed.ok();
        }
    }
}
