//! Errors and times of crate `gpu` in the words of `sql`.

use gpu::GpuError;
use sql::DeviceError;

pub(crate) fn nanoseconds(milliseconds: f64) -> f64 {
    milliseconds * 1e6
}

pub(crate) fn told(error: GpuError) -> DeviceError {
    let text = error.to_string();
    match error {
        GpuError::OutOfMemory { .. } => DeviceError::Full(text),
        error if error.is_device_lost() => DeviceError::Lost(text),
        _ => DeviceError::Declined(text),
    }
}
