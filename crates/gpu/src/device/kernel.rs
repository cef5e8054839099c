//! Kernels: which binary fits a device, loading it, and launching one of its functions.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUfunction_attribute_enum as Attribute};

use super::{Device, Stream};
use crate::error::GpuError;

/// The output of `kernels/build` for one source.
#[derive(Debug)]
pub struct Binary {
    /// Names of kernels begin with one of these.
    prefixes: &'static [&'static str],
    /// Machine code for [`MACHINE_CODE_FOR`].
    cubin: &'static [u8],
    /// For any later device.
    ptx: &'static [u8],
}

macro_rules! binary {
    ($name:literal, $prefixes:expr) => {
        Binary {
            prefixes: $prefixes,
            cubin: include_bytes!(concat!("../../kernels/binary/", $name, ".cubin")),
            ptx: include_bytes!(concat!("../../kernels/binary/", $name, ".ptx")),
        }
    };
}

/// The sources in `kernels/`.
pub(super) const BINARIES: [Binary; 5] = [
    binary!("join", &["join_"]),
    binary!("group", &["group_", "dimension_"]),
    binary!("bitwise", &["bitwise_"]),
    binary!("tree", &["tree_"]),
    binary!("roof", &["roof_"]),
];

/// The compute capability of the machine code.
const MACHINE_CODE_FOR: (i32, i32) = (9, 0);

/// Shared memory that a block gets without asking for it.
const SHARED_BYTES_PLAIN: usize = 48 * 1024;

/// The place in [`BINARIES`] of a kernel.
pub(super) fn binary_of(name: &str) -> usize {
    BINARIES
        .iter()
        .position(|binary| binary.prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .expect("a kernel of one of the sources")
}

/// A binary that the driver has loaded.
#[derive(Debug)]
pub struct Module {
    handle: sys::CUmodule,
}

// SAFETY: the driver's functions on a module may be called from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    pub(super) fn load(device: &Device, binary: &Binary) -> Result<Self, GpuError> {
        device.bind()?;
        let is_exact = device.properties().capability == MACHINE_CODE_FOR;
        // PTX is a text that ends with a zero byte.
        let mut image = if is_exact { binary.cubin.to_vec() } else { binary.ptx.to_vec() };
        image.push(0);
        // SAFETY: the image is whole, and the driver copies what it needs.
        let handle =
            unsafe { result::module::load_data(image.as_ptr().cast()) }.map_err(GpuError::of("loading kernels"))?;
        Ok(Self { handle })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded in `load`, used by kernels that hold the device, which drops its modules last and
        // has made its context current.
        let unloaded = unsafe { result::module::unload(self.handle) };
        // A lost device has no modules.
        unloaded.ok();
    }
}

/// How many blocks of how many threads, and the shared memory of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Shared memory of a block.
    pub shared_bytes: usize,
}

/// A kernel that can be launched.
#[derive(Debug)]
pub struct Kernel {
    device: Arc<Device>,
    function: sys::CUfunction,
}

// SAFETY: the driver's functions on a kernel may be called from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    pub(super) fn find(device: &Arc<Device>, module: &Module, name: &'static str) -> Result<Self, GpuError> {
        device.bind()?;
        let symbol = CString::new(name).expect("a name without zero bytes");
        // SAFETY: the module is loaded.
        let function = unsafe { result::module::get_function(module.handle, symbol) }
            .map_err(GpuError::of("the search for a kernel"))?;
        Ok(Self { device: Arc::clone(device), function })
    }

    /// Blocks that one multiprocessor keeps at a time.
    pub fn blocks_on_multiprocessor(&self, threads: u32, shared_bytes: usize) -> Result<u32, GpuError> {
        self.allow_shared(shared_bytes)?;
        let mut count = 0;
        let threads = i32::try_from(threads).expect("a block's threads");
        // SAFETY: `count` outlives the call, the function is loaded.
        unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut count, self.function, threads, shared_bytes)
        }
        .result()
        .map_err(GpuError::of("the question for occupancy"))?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// More shared memory than usual must be asked for.
    fn allow_shared(&self, shared_bytes: usize) -> Result<(), GpuError> {
        self.device.bind()?;
        let most = self.device.properties().shared_bytes_max;
        if shared_bytes > most {
            let what = format!("{shared_bytes} bytes of shared memory in a block, of which there are {most}");
            return Err(GpuError::Unsuitable(what));
        }
        if shared_bytes <= SHARED_BYTES_PLAIN {
            return Ok(());
        }
        let bytes = i32::try_from(shared_bytes).expect("within the device's limit");
        let which = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded.
        unsafe { result::function::set_function_attribute(self.function, which, bytes) }
            .map_err(GpuError::of("the request for shared memory"))
    }

    /// Gives the kernel to a stream.
    ///
    /// # Safety
    ///
    /// The parameters are those that the source declares, in number, order and size; what they point to
    /// stays until the stream has been waited for, and nothing else touches what the kernel writes till then.
    pub unsafe fn launch(&self, stream: &Stream, grid: Grid, parameters: &mut Parameters) -> Result<(), GpuError> {
        self.allow_shared(grid.shared_bytes)?;
        let mut places: Vec<*mut c_void> =
            parameters.values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
        let shared_bytes = u32::try_from(grid.shared_bytes).expect("within the device's limit");
        // SAFETY: the caller promises that the parameters are right; the driver copies them.
        unsafe {
            result::launch_kernel(
                self.function,
                (grid.blocks.max(1), 1, 1),
                (grid.threads, 1, 1),
                shared_bytes,
                stream.handle(),
                &mut places,
            )
        }
        .map_err(GpuError::of("the launch of a kernel"))
    }
}

/// The parameters of one launch, by value.
#[derive(Debug, Default)]
pub struct Parameters {
    /// Words, so that each value is aligned as strictly as any.
    values: Vec<Vec<u64>>,
}

impl Parameters {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One of 8 bytes: a count or an address.
    pub fn word(mut self, value: u64) -> Self {
        self.values.push(vec![value]);
        self
    }

    /// One of 4 bytes.
    pub fn half(mut self, value: u32) -> Self {
        self.values.push(vec![u64::from(value)]);
        self
    }

    /// A structure of words, where two halves share one, the earlier below.
    pub fn words(mut self, values: &[u64]) -> Self {
        self.values.push(values.to_vec());
        self
    }
}

/// Two fields of 4 bytes in the word of a structure.
pub(crate) fn halves(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}
