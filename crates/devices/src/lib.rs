//! CUDA devices as coprocessors of SQL: crate `sql` declares what it asks of a device, crate `gpu` has kernels over plain slices, and
//! here the one becomes the other. Whatever goes wrong on a device is an error that tells `sql` whether to ask again.
//!
//! ```text
//! program ── open() ──▶ Offload ──▶ SessionOptions
//!                          └ Cuda: Coprocessor ──▶ gpu::group, gpu::join; `searches`: gpu::bitwise, gpu::tree
//! ```
#![forbid(unsafe_code)]

mod searches;
mod told;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gpu::group::{self, Measured, Measurement, Totals, resident};
use gpu::join::{self, Bits, Keys, Settings, Times, Transfer};
use gpu::{Device, GpuError};
use sql::{
    BoxesImage, ColumnTotals, Coprocessor, DeviceBoxes, DeviceColumn, DeviceError, DeviceFacts, DevicePoints,
    GroupTotals, GroupedRows, HashTable, JoinKeys, Offload, Partners, PointsImage, Probed, ResidentRows, Spent,
};
use told::{nanoseconds, told};

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
        group::measure(&self.device, rows.codes, rows.group_count, &columns).map(totals_of).map_err(told)
    }

    fn column(&self, rows: usize) -> Result<Box<dyn DeviceColumn>, DeviceError> {
        resident::Numbers::new(&self.device, rows).map(|numbers| Box::new(Resident(numbers)) as _).map_err(told)
    }

    fn group_residents(&self, rows: &ResidentRows<'_>) -> Result<GroupTotals, DeviceError> {
        let keys =
            rows.keys.iter().map(|key| Ok(resident::Key { values: own(key.column)?, min: key.min, width: key.width }));
        let columns = rows.columns.iter().map(|of| {
            let (sum, min, max) = (of.sum, of.min, of.max);
            Ok(resident::Values { values: own(of.column)?, largest: of.largest, sum, min, max })
        });
        let keys = keys.collect::<Result<Vec<_>, DeviceError>>()?;
        let columns = columns.collect::<Result<Vec<_>, DeviceError>>()?;
        resident::measure(&self.device, rows.rows, rows.count, &keys, &columns).map(totals_of).map_err(told)
    }

    fn points(&self, image: &PointsImage<'_>) -> Result<Box<dyn DevicePoints>, DeviceError> {
        searches::points(&self.device, image)
    }

    fn boxes(&self, image: &BoxesImage) -> Result<Box<dyn DeviceBoxes>, DeviceError> {
        searches::boxes(&self.device, image)
    }

    fn hash_table(&self, build: &JoinKeys<'_>) -> Result<(Box<dyn HashTable>, Spent), DeviceError> {
        // Each statement brings its keys, which are read once or twice: a copy costs less than pinning them.
        let settings = Settings { transfer: Transfer::Resident, ..Settings::default() };
        let built = join::Built::new(&self.device, &keys(build), &settings).map_err(told)?;
        let spent = spent_by(&built.times);
        Ok((Box::new(Built(built, AtomicBool::new(false))), spent))
    }
}

/// A hash table on the device, and whether a row had several partners there.
#[derive(Debug)]
struct Built(join::Built, AtomicBool);

impl HashTable for Built {
    fn probe(&self, probe: &JoinKeys<'_>, pairs_max: usize) -> Result<Probed, DeviceError> {
        // Half the bytes, in the order of the rows; for pairs, the rows are probed once more, and those of the next portion, too.
        if !self.1.load(Ordering::Relaxed) {
            if let Some(found) = self.0.probe_partners(&keys(probe)).map_err(told)? {
                let partners = Partners::One { bits: found.bits().to_vec(), rows: found.rows() };
                return Ok(Probed { partners, spent: spent_by(&found.times) });
            }
            self.1.store(true, Ordering::Relaxed);
        }
        let found = self.0.probe(&keys(probe), Some(pairs_max)).map_err(told)?;
        Ok(Probed { partners: Partners::Pairs(found.pairs().to_vec()), spent: spent_by(&found.times) })
    }
}

fn spent_by(times: &Times) -> Spent {
    let kernels_ns = nanoseconds(times.build_ms + times.probe_ms);
    Spent { transfer_ns: nanoseconds(times.inputs_ms), kernels_ns, results_ns: 0.0, launches: 1 }
}

/// A column on the device.
#[derive(Debug)]
struct Resident(resident::Numbers);

impl DeviceColumn for Resident {
    fn write(&self, first: usize, values: &[i64]) -> Result<(), DeviceError> {
        self.0.write(first, values).map_err(told)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A column of this device.
fn own(column: &dyn DeviceColumn) -> Result<&resident::Numbers, DeviceError> {
    let column = column.as_any().downcast_ref::<Resident>();
    column.map(|column| &column.0).ok_or_else(|| DeviceError::Declined("a column of another device".to_owned()))
}

fn totals_of(found: Measurement) -> GroupTotals {
    let spent = Spent {
        transfer_ns: nanoseconds(found.times.inputs_ms),
        kernels_ns: nanoseconds(found.times.kernels_ms),
        results_ns: nanoseconds(found.times.others_ms),
        launches: found.times.launches,
    };
    let totals = |Totals { counts, sums, mins, maxs }| ColumnTotals { counts, sums, mins, maxs };
    GroupTotals { counts: found.counts, columns: found.columns.into_iter().map(totals).collect(), spent }
}

fn keys<'a>(keys: &JoinKeys<'a>) -> Keys<'a> {
    let bits = |valid: Option<&'a [u8]>| valid.map(|bytes| Bits { bytes, first_bit: 0 });
    match *keys {
        JoinKeys::Narrow(keys, valid) => Keys::Column32(keys, bits(valid)),
        JoinKeys::Wide(keys, valid) => Keys::Column64(keys, bits(valid)),
    }
}
