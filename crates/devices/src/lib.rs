//! CUDA devices as coprocessors of SQL: crate `sql` declares what it asks of a device, crate `gpu` has kernels over plain slices, and
//! here the one becomes the other. Whatever goes wrong on a device is an error that tells `sql` whether to ask again.
//!
//! ```text
//! program ── open() ──▶ Offload ──▶ SessionOptions
//!                          └ Cuda: Coprocessor ──▶ gpu::group::measure, gpu::join::join
//! ```
#![forbid(unsafe_code)]

use std::sync::Arc;

use gpu::group::{self, Measured, Totals};
use gpu::join::{self, Bits, Keys, Settings, Transfer};
use gpu::{Device, GpuError};
use sql::{
    ColumnTotals, Coprocessor, DeviceError, DeviceFacts, GroupTotals, GroupedRows, JoinKeys, JoinSides, Offload, Pairs,
    Spent,
};

/// The first device of the driver, for the sessions of this process.
///
/// # Errors
/// There is none that can be used, which leaves everything to the CPU: [`GpuError::NoDriver`] and its like.
pub fn open() -> Result<Offload, GpuError> {
    let device = Device::open(0)?;
    let known = device.properties();
    let facts = DeviceFacts {
        name: known.name.clone(),
        memory_bytes: known.memory_bytes as u64,
        is_emulated: known.is_emulated,
    };
    Ok(Offload::new(Arc::new(Cuda { device, facts })))
}

/// A device of the CUDA driver.
#[derive(Debug)]
struct Cuda {
    device: Arc<Device>,
    facts: DeviceFacts,
}

impl Coprocessor for Cuda {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn group(&self, rows: &GroupedRows<'_>) -> Result<GroupTotals, DeviceError> {
        let columns: Vec<Measured<'_>> = rows
            .columns
            .iter()
            .map(|column| Measured {
                codes: column.codes,
                values: column.values,
                sum: column.sum,
                min: column.min,
                max: column.max,
            })
            .collect();
        let found = group::measure(&self.device, rows.codes, rows.group_count, &columns).map_err(told)?;
        let spent = Spent {
            transfer_ns: nanoseconds(found.times.inputs_ms),
            kernels_ns: nanoseconds(found.times.kernels_ms),
            results_ns: nanoseconds(found.times.others_ms),
            launches: found.times.launches,
        };
        let totals = |Totals { counts, sums, mins, maxs }| ColumnTotals { counts, sums, mins, maxs };
        let columns = found.columns.into_iter().map(totals).collect();
        Ok(GroupTotals { counts: found.counts, columns, spent })
    }

    fn join(&self, sides: &JoinSides<'_>) -> Result<Pairs, DeviceError> {
        // Each statement brings its keys, which are read once or twice: a copy costs less than pinning them.
        let settings =
            Settings { transfer: Transfer::Resident, result_rows_max: Some(sides.pairs_max), ..Settings::default() };
        let found = join::join(&self.device, &keys(&sides.build), &keys(&sides.probe), &settings).map_err(told)?;
        let spent = Spent {
            transfer_ns: nanoseconds(found.times.inputs_ms),
            kernels_ns: nanoseconds(found.times.build_ms + found.times.probe_ms),
            results_ns: 0.0,
            launches: 2,
        };
        Ok(Pairs { pairs: found.pairs().to_vec(), spent })
    }
}

fn keys<'a>(keys: &JoinKeys<'a>) -> Keys<'a> {
    let bits = |valid: Option<&'a [u8]>| valid.map(|bytes| Bits { bytes, first_bit: 0 });
    match *keys {
        JoinKeys::Narrow(keys, valid) => Keys::Column32(keys, bits(valid)),
        JoinKeys::Wide(keys, valid) => Keys::Column64(keys, bits(valid)),
    }
}

fn nanoseconds(milliseconds: f64) -> f64 {
    milliseconds * 1e6
}

fn told(error: GpuError) -> DeviceError {
    let text = error.to_string();
    match error {
        GpuError::OutOfMemory { .. } => DeviceError::Full(text),
        error if error.is_device_lost() => DeviceError::Lost(text),
        _ => DeviceError::Declined(text),
    }
}
