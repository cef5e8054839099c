//! A device as the operators see it: opened once, shared, with its kernels loaded when first used.
//!
//! A device runs its work later than the call that asks for it. Every operator therefore waits for its streams
//! before it returns, so that no caller sees memory that a kernel still writes.

mod kernel;
mod memory;
mod pool;
mod stream;

use std::ffi::c_int;
use std::sync::{Arc, OnceLock};

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};

use crate::error::GpuError;
use pool::Pool;

pub(crate) use kernel::halves;
pub use kernel::{Grid, Kernel, Module, Parameters};
pub use memory::{DeviceBuffer, Pinned, Plain, Registered};
pub use stream::{Event, Stream};

/// The version of CUDA that the kernels are compiled for, as the driver counts.
const VERSION_NEEDED: i32 = 13000;

/// Of the device's memory, the part that may wait for its next use.
const KEPT_PART: usize = 16;

/// Pinned memory that may wait for its next use.
const PINNED_KEPT_MAX: usize = 512 << 20;

/// The properties that a device reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// The maker's name.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    /// The driver's version, for instance 13000.
    pub driver_version: i32,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Device memory.
    pub memory_bytes: usize,
    /// Shared memory that one block may ask for.
    pub shared_bytes_max: usize,
    /// Shared memory of a multiprocessor.
    pub shared_bytes_total: usize,
    /// Threads that a multiprocessor keeps at a time.
    pub threads_resident: u32,
    /// The cache that all multiprocessors share.
    pub l2_bytes: usize,
    /// Whether this is the emulated device of the tests. Its times mean nothing.
    pub is_emulated: bool,
}

/// An open device.
#[derive(Debug)]
pub struct Device {
    handle: sys::CUdevice,
    context: sys::CUcontext,
    properties: Properties,
    /// Memory of the device that nothing uses.
    kept: Pool,
    /// Pinned memory that nothing uses.
    kept_pinned: Pool,
    modules: [OnceLock<Result<Module, GpuError>>; kernel::BINARIES.len()],
}

// SAFETY: the context may be current in any number of threads, and the driver's functions are safe to call
// from all of them; the other fields are plain data.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// How many devices there are.
    ///
    /// # Errors
    /// [`GpuError::NoDriver`] if no driver is installed; [`GpuError::OldDriver`] if it is too old for the kernels;
    /// [`GpuError::Driver`] if it does not start.
    pub fn count() -> Result<usize, GpuError> {
        // SAFETY: opening the driver's library runs its initialisers only, which is what it is for.
        if !unsafe { sys::is_culib_present() } {
            return Err(GpuError::NoDriver);
        }
        let found = driver_version()?;
        if found < VERSION_NEEDED {
            return Err(GpuError::OldDriver { found, needed: VERSION_NEEDED });
        }
        result::init().map_err(GpuError::of("the start of the driver"))?;
        let count = result::device::get_count().map_err(GpuError::of("the count of devices"))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Opens a device.
    ///
    /// # Errors
    /// [`GpuError::NoDevice`] if the driver knows no device with this number; otherwise as [`count`](Self::count).
    pub fn open(ordinal: usize) -> Result<Arc<Self>, GpuError> {
        let count = Self::count()?;
        if ordinal >= count {
            return Err(GpuError::NoDevice { ordinal, count });
        }
        let handle = result::device::get(ordinal as c_int).map_err(GpuError::of("the choice of a device"))?;
        let properties = read_properties(handle)?;
        // SAFETY: the handle is one that the driver has just given out.
        let context =
            unsafe { result::primary_ctx::retain(handle) }.map_err(GpuError::of("the context of a device"))?;
        let modules = std::array::from_fn(|_| OnceLock::new());
        let kept = Pool::new(properties.memory_bytes / KEPT_PART);
        let kept_pinned = Pool::new(PINNED_KEPT_MAX);
        let device = Arc::new(Self { handle, context, properties, kept, kept_pinned, modules });
        device.bind()?;
        Ok(device)
    }

    /// The properties that the device reports.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Waits until everything that the device was given is done.
    pub(crate) fn wait(&self) -> Result<(), GpuError> {
        self.bind()?;
        result::ctx::synchronize().map_err(GpuError::of("a kernel or a copy"))
    }

    /// A kernel by its name in `kernels/*.cu`.
    pub(crate) fn kernel(self: &Arc<Self>, name: &'static str) -> Result<Kernel, GpuError> {
        let at = kernel::binary_of(name);
        let module = self.modules[at].get_or_init(|| Module::load(self, &kernel::BINARIES[at]));
        let module = module.as_ref().map_err(Clone::clone)?;
        Kernel::find(self, module, name)
    }

    /// Blocks of this kernel that fill the device once.
    pub(crate) fn blocks_that_fit(&self, kernel: &Kernel, threads: u32, shared_bytes: usize) -> Result<u32, GpuError> {
        let each = kernel.blocks_on_multiprocessor(threads, shared_bytes)?;
        Ok(each.max(1) * self.properties.multiprocessors)
    }

    /// Gives memory that nothing uses back to the driver; whether there was any.
    fn give_back_kept(&self) -> bool {
        let (near, pinned) = (self.kept.drain(), self.kept_pinned.drain());
        for place in &near {
            pool::free_near(*place);
        }
        for place in &pinned {
            pool::free_pinned(*place);
        }
        !near.is_empty() || !pinned.is_empty()
    }

    /// Makes the device the one that this thread's calls of the driver mean.
    pub(crate) fn bind(&self) -> Result<(), GpuError> {
        // SAFETY: the context is retained as long as `self` lives.
        unsafe { result::ctx::set_current(self.context) }.map_err(GpuError::of("the choice of a context"))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.bind().is_err() {
            return;
        }
        self.give_back_kept();
        for module in &mut self.modules {
            drop(module.take());
        }
        // SAFETY: retained in `open`, and nothing that needs it is left: whatever does holds the device.
        let released = unsafe { result::primary_ctx::release(self.handle) };
        // A device that is lost cannot be given back either, and there is nothing more to do about it.
        released.ok();
    }
}

fn driver_version() -> Result<i32, GpuError> {
    let mut version = 0;
    // SAFETY: `version` outlives the call; the library is present, as the caller has asked.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .map_err(GpuError::of("the question for the driver's version"))?;
    Ok(version)
}

fn read_properties(handle: sys::CUdevice) -> Result<Properties, GpuError> {
    let ask = |which: Attribute| {
        // SAFETY: the handle comes from the driver.
        unsafe { result::device::get_attribute(handle, which) }.map_err(GpuError::of("the question for an attribute"))
    };
    let number = |which| ask(which).map(|value| u32::try_from(value).unwrap_or(0));
    let name = result::device::get_name(handle).map_err(GpuError::of("the question for a name"))?;
    // SAFETY: the handle comes from the driver.
    let memory_bytes = unsafe { result::device::total_mem(handle) }.map_err(GpuError::of("the question for memory"))?;
    Ok(Properties {
        capability: (
            ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        driver_version: driver_version()?,
        multiprocessors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory_bytes,
        shared_bytes_max: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
        shared_bytes_total: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)? as usize,
        threads_resident: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        l2_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
        is_emulated: name.starts_with("emulated"),
        name,
    })
}
