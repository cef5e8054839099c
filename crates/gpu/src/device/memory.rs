//! Memory that a device reaches: its own, pinned host memory, and host memory pinned for a while. What is given up is kept for its next
//! use ([`super::pool`]).
//!
//! All three are of numbers only ([`Plain`]), so any bytes that a kernel leaves are a value.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::slice;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::pool::{Pool, free_near, free_pinned, rounded};
use super::{Device, Stream};
use crate::error::GpuError;

/// Types of which any bytes are a value.
///
/// # Safety
///
/// Every pattern of bits is a value of the type, and there is no padding in it.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: a number.
unsafe impl Plain for u8 {}
// SAFETY: a number.
unsafe impl Plain for u32 {}
// SAFETY: a number.
unsafe impl Plain for u64 {}
// SAFETY: a number.
unsafe impl Plain for i64 {}
// SAFETY: numbers without padding between them.
unsafe impl Plain for [u32; 2] {}
// SAFETY: as above.
unsafe impl Plain for [u32; 4] {}
// SAFETY: as above.
unsafe impl Plain for [u32; 6] {}
// SAFETY: as above.
unsafe impl Plain for [u32; 8] {}
// SAFETY: as above.
unsafe impl Plain for [u64; 8] {}
// SAFETY: as above.
unsafe impl Plain for [f32; 4] {}
// SAFETY: as above.
unsafe impl Plain for [i64; 2] {}

/// Pinned for every context, and mapped into the device's addresses.
const PINNED: u32 = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
const REGISTERED: u32 = sys::CU_MEMHOSTREGISTER_PORTABLE | sys::CU_MEMHOSTREGISTER_DEVICEMAP;

/// Bytes of an allocation for `count` values. The driver gives no empty ones.
fn reserved<T>(device: &Device, count: usize) -> usize {
    rounded(bytes_of::<T>(count.max(1)), device.properties.is_emulated)
}

fn bytes_of<T>(count: usize) -> usize {
    count.checked_mul(size_of::<T>()).expect("a size that fits into memory")
}

/// Memory of this size, a kept one before one that `allocate` asks the driver for; and whether it is a kept one.
fn find(
    device: &Device,
    pool: &Pool,
    bytes: usize,
    purpose: &'static str,
    allocate: impl Fn() -> Result<u64, DriverError>,
) -> Result<(u64, bool), GpuError> {
    device.bind()?;
    if let Some(place) = pool.take(bytes) {
        return Ok((place, true));
    }
    let found = match allocate() {
        // What is kept may be in the way.
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY && device.give_back_kept() => allocate(),
        found => found,
    };
    found.map(|place| (place, false)).map_err(GpuError::of_memory(bytes, purpose))
}

/// Keeps memory for its next use or gives it to the driver, once the device does nothing that could still use it.
fn give_up(device: &Device, pool: &Pool, bytes: usize, place: u64, free: impl Fn(u64)) {
    // A lost device has no memory to give back; what it has pinned stays until the process ends.
    if device.bind().is_ok() && !(device.wait().is_ok() && pool.keep(bytes, place)) {
        free(place);
    }
}

/// Device memory.
#[derive(Debug)]
pub struct DeviceBuffer<T: Plain> {
    device: Arc<Device>,
    place: sys::CUdeviceptr,
    count: usize,
    kind: PhantomData<T>,
}

impl<T: Plain> DeviceBuffer<T> {
    /// Memory for `count` values, whatever it held before.
    pub fn new(device: &Arc<Device>, count: usize, purpose: &'static str) -> Result<Self, GpuError> {
        let bytes = reserved::<T>(device, count);
        // SAFETY: the context is current; the memory is given up by `drop` alone.
        let (place, _) = find(device, &device.kept, bytes, purpose, || unsafe { result::malloc_sync(bytes) })?;
        Ok(Self { device: Arc::clone(device), place, count, kind: PhantomData })
    }

    /// A copy of `values`.
    pub fn of(device: &Arc<Device>, values: &[T], purpose: &'static str) -> Result<Self, GpuError> {
        let buffer = Self::new(device, values.len(), purpose)?;
        let stream = Stream::new(device)?;
        buffer.fill_from(&stream, values)?;
        stream.wait()?;
        Ok(buffer)
    }

    /// Memory for `count` values of which every byte is `byte`.
    pub fn filled(device: &Arc<Device>, count: usize, byte: u8, purpose: &'static str) -> Result<Self, GpuError> {
        let buffer = Self::new(device, count, purpose)?;
        let stream = Stream::new(device)?;
        buffer.fill(&stream, byte)?;
        stream.wait()?;
        Ok(buffer)
    }

    /// Sets every byte, once the stream comes to it.
    pub fn fill(&self, stream: &Stream, byte: u8) -> Result<(), GpuError> {
        self.fill_part(stream, 0..self.count, byte)
    }

    /// Sets every byte of some values, once the stream comes to it.
    pub(crate) fn fill_part(&self, stream: &Stream, values: Range<usize>, byte: u8) -> Result<(), GpuError> {
        let has_room = values.start <= values.end && values.end <= self.count;
        assert!(has_room, "values {values:?} of {}", self.count);
        self.device.bind()?;
        if values.is_empty() {
            return Ok(());
        }
        let place = self.place + bytes_of::<T>(values.start) as u64;
        // SAFETY: the memory is `count` values long, and it is freed only after the device is done with it.
        unsafe { result::memset_d8_async(place, byte, bytes_of::<T>(values.len()), stream.handle()) }
            .map_err(GpuError::of("a fill"))
    }

    /// Copies `values` to the places from `first` on, of which there are enough.
    pub(crate) fn write(&self, first: usize, values: &[T]) -> Result<(), GpuError> {
        let stream = Stream::new(&self.device)?;
        self.fill_at(&stream, first, values)?;
        stream.wait()
    }

    /// Copies `values` to the front, once the stream comes to it.
    ///
    /// The caller waits for the stream before it changes `values` or gives them up: this module's users do.
    pub(crate) fn fill_from(&self, stream: &Stream, values: &[T]) -> Result<(), GpuError> {
        self.fill_at(stream, 0, values)
    }

    fn fill_at(&self, stream: &Stream, first: usize, values: &[T]) -> Result<(), GpuError> {
        let has_room = first <= self.count && values.len() <= self.count - first;
        assert!(has_room, "{} values from {first} on do not fit into {}", values.len(), self.count);
        self.device.bind()?;
        if values.is_empty() {
            return Ok(());
        }
        let place = self.place + bytes_of::<T>(first) as u64;
        // SAFETY: the memory has room, as asserted.
        unsafe { result::memcpy_htod_async(place, values, stream.handle()) }
            .map_err(GpuError::of("a copy to the device"))
    }

    /// Copies the values to pinned memory, once the stream comes to it; the caller looks there after it has
    /// waited for the stream: this crate's users do.
    pub(crate) fn copy_to(&self, stream: &Stream, to: &Pinned<T>) -> Result<(), GpuError> {
        assert!(self.count <= to.count, "{} values do not fit into {}", self.count, to.count);
        self.device.bind()?;
        if self.count == 0 {
            return Ok(());
        }
        let bytes = bytes_of::<T>(self.count);
        // SAFETY: both are `count` values long, and freed only after the device is done with them.
        unsafe { sys::cuMemcpyDtoHAsync_v2(to.place.cast(), self.place, bytes, stream.handle()) }
            .result()
            .map_err(GpuError::of("a copy from the device"))
    }

    /// Copies the first `count` values to pinned memory, to the places from `first` on, as [`Self::copy_to`] does.
    pub(crate) fn copy_part_to(
        &self,
        stream: &Stream,
        count: usize,
        to: &Pinned<T>,
        first: usize,
    ) -> Result<(), GpuError> {
        let has_room = count <= self.count && first <= to.count && count <= to.count - first;
        assert!(has_room, "{count} values of {} do not fit from {first} on into {}", self.count, to.count);
        self.device.bind()?;
        if count == 0 {
            return Ok(());
        }
        // SAFETY: there are `first` values before the place, and `count` from it on, as asserted.
        let place = unsafe { to.place.add(first) };
        // SAFETY: as above; both are freed only after the device is done with them.
        unsafe { sys::cuMemcpyDtoHAsync_v2(place.cast(), self.place, bytes_of::<T>(count), stream.handle()) }
            .result()
            .map_err(GpuError::of("a copy from the device"))
    }

    /// The values, after everything that the device was given.
    pub fn read(&self) -> Result<Vec<T>, GpuError> {
        self.device.wait()?;
        let stream = Stream::new(&self.device)?;
        let mut values: Vec<T> = Vec::with_capacity(self.count);
        if self.count > 0 {
            let bytes = bytes_of::<T>(self.count);
            let to: *mut c_void = values.as_mut_ptr().cast();
            // SAFETY: `values` has room for `count`, and is waited for below.
            unsafe { sys::cuMemcpyDtoHAsync_v2(to, self.place, bytes, stream.handle()) }
                .result()
                .map_err(GpuError::of("a copy from the device"))?;
        }
        stream.wait()?;
        // SAFETY: the copy has written all of them, and any bytes are a value.
        unsafe { values.set_len(self.count) };
        Ok(values)
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Where it lies, as a kernel sees it.
    pub fn address(&self) -> u64 {
        self.place
    }
}

impl<T: Plain> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        give_up(&self.device, &self.device.kept, reserved::<T>(&self.device, self.count), self.place, free_near);
    }
}

/// Host memory that is pinned and that the device reads and writes in place.
#[derive(Debug)]
pub struct Pinned<T: Plain> {
    device: Arc<Device>,
    place: *mut T,
    count: usize,
}

// SAFETY: it owns its memory as a vector does.
unsafe impl<T: Plain> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Pinned<T> {}

impl<T: Plain> Pinned<T> {
    /// Memory for `count` values, whatever it held before.
    pub fn new(device: &Arc<Device>, count: usize, purpose: &'static str) -> Result<Self, GpuError> {
        let bytes = reserved::<T>(device, count);
        // SAFETY: the context is current; the memory is given up by `drop` alone.
        let allocate = || unsafe { result::malloc_host(bytes, PINNED) }.map(|place| place.expose_provenance() as u64);
        let (place, is_used) = find(device, &device.kept_pinned, bytes, purpose, allocate)?;
        let place = std::ptr::with_exposed_provenance_mut::<u8>(place as usize);
        if !is_used {
            // SAFETY: the driver has just given out this many bytes, and Rust has to see them written once.
            unsafe { place.write_bytes(0, bytes) };
        }
        Ok(Self { device: Arc::clone(device), place: place.cast(), count })
    }

    /// A copy of `values`.
    pub fn of(device: &Arc<Device>, values: &[T], purpose: &'static str) -> Result<Self, GpuError> {
        let mut pinned = Self::new(device, values.len(), purpose)?;
        pinned.copy_from_slice(values);
        Ok(pinned)
    }

    /// Where it lies, as a kernel sees it.
    pub fn address(&self) -> Result<u64, GpuError> {
        device_address(&self.device, self.place.cast())
    }

    /// Sets every byte, once the stream comes to it; kernels of later work see it.
    ///
    /// The caller waits for the stream before it looks at the memory itself: this crate's users do.
    pub(crate) fn fill_bytes(&self, stream: &Stream, byte: u8) -> Result<(), GpuError> {
        let address = self.address()?;
        // SAFETY: the memory is `count` values long, and freed only after the device is done with it.
        unsafe { result::memset_d8_async(address, byte, bytes_of::<T>(self.count), stream.handle()) }
            .map_err(GpuError::of("a fill"))
    }
}

impl<T: Plain> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `count` values are allocated and initialised; operators wait for their kernels before
        // they hand out what kernels write.
        unsafe { slice::from_raw_parts(self.place, self.count) }
    }
}

impl<T: Plain> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.place, self.count) }
    }
}

impl<T: Plain> Drop for Pinned<T> {
    fn drop(&mut self) {
        let (pool, bytes) = (&self.device.kept_pinned, reserved::<T>(&self.device, self.count));
        give_up(&self.device, pool, bytes, self.place.expose_provenance() as u64, free_pinned);
    }
}

/// A slice of the program's own memory, pinned as long as this lives: kernels read it in place.
#[derive(Debug)]
pub struct Registered<'a, T: Plain> {
    device: Arc<Device>,
    values: &'a [T],
}

impl<'a, T: Plain> Registered<'a, T> {
    /// Pins `values`. Empty slices have nothing to pin.
    pub fn new(device: &Arc<Device>, values: &'a [T]) -> Result<Self, GpuError> {
        device.bind()?;
        if !values.is_empty() {
            let place = values.as_ptr().cast_mut().cast::<c_void>();
            let bytes = size_of_val(values);
            // SAFETY: the slice is borrowed as long as it is pinned, and the kernels only read it.
            unsafe { sys::cuMemHostRegister_v2(place, bytes, REGISTERED) }
                .result()
                .map_err(GpuError::of_memory(bytes, "pinned input"))?;
        }
        Ok(Self { device: Arc::clone(device), values })
    }

    /// Where it lies, as a kernel sees it.
    pub fn address(&self) -> Result<u64, GpuError> {
        if self.values.is_empty() {
            return Ok(0);
        }
        device_address(&self.device, self.values.as_ptr().cast_mut().cast())
    }

    /// The slice.
    pub fn values(&self) -> &'a [T] {
        self.values
    }
}

impl<T: Plain> Drop for Registered<'_, T> {
    fn drop(&mut self) {
        if self.device.bind().is_ok() && !self.values.is_empty() {
            // SAFETY: registered in `new`, unregistered here only.
            let code = unsafe { sys::cuMemHostUnregister(self.values.as_ptr().cast_mut().cast()) };
            // As for other memory: nothing is left to do on a lost device.
            code.result().ok();
        }
    }
}

fn device_address(device: &Device, place: *mut c_void) -> Result<u64, GpuError> {
    device.bind()?;
    let mut address = 0;
    // SAFETY: `place` is the start of memory that the driver has pinned and mapped.
    unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, place, 0) }
        .result()
        .map_err(GpuError::of("the question for an address"))?;
    Ok(address)
}
