//! Errors of a device, shaped by what a caller can do: answer on the CPU, use less memory, or give the device up.

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUresult;

/// A device's error. The CPU's twin answers after any of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// No library of the driver was found.
    #[error("no CUDA driver is installed (libcuda.so.1 was not found); operators run on the CPU")]
    NoDriver,
    /// The driver is older than what the kernels were compiled for.
    #[error("the CUDA driver is of version {found}, but version {needed} is needed; install a newer driver")]
    OldDriver {
        /// As the driver says it, for instance 12040.
        found: i32,
        /// The oldest that will do.
        needed: i32,
    },
    /// The driver knows no device with this number.
    #[error("there is no CUDA device {ordinal}; the driver knows {count}")]
    NoDevice {
        /// The device that was asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// Too little device memory; nothing else is wrong with the device.
    #[error("the device has no room for {bytes} bytes of {purpose}; use smaller inputs or the CPU")]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
        /// The purpose of the memory.
        purpose: &'static str,
    },
    /// An input that this operator does not do.
    #[error("the device cannot do this: {0}")]
    Unsuitable(String),
    /// A call of the driver failed.
    #[error("{call} failed on the device: {name}")]
    Driver {
        /// The call that failed.
        call: &'static str,
        /// The driver's name for the error.
        name: String,
        /// Whether the device answers no later call of this process.
        is_lost: bool,
    },
}

impl GpuError {
    /// The error of a driver's call.
    pub(crate) fn of(call: &'static str) -> impl Fn(DriverError) -> Self {
        move |error| Self::Driver {
            call,
            name: error
                .error_name()
                .map_or_else(|_| format!("{:?}", error.0), |name| name.to_string_lossy().into_owned()),
            is_lost: is_lost(error.0),
        }
    }

    /// The error of an allocation.
    pub(crate) fn of_memory(bytes: usize, purpose: &'static str) -> impl Fn(DriverError) -> Self {
        move |error| match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Self::OutOfMemory { bytes, purpose },
            _ => Self::of("an allocation of memory")(error),
        }
    }

    /// Whether the device is of no more use to this process.
    pub fn is_device_lost(&self) -> bool {
        matches!(self, Self::Driver { is_lost: true, .. })
    }
}

/// Errors that stay: every later call of the process gives them again.
fn is_lost(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
    )
}
