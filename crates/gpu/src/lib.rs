//! Operators on a graphics processor, each with a twin on the CPU.
//!
//! The crate sees plain slices only: columns of numbers, bits of validity as Arrow keeps them. The driver
//! is loaded when a device is first asked for, so the program is the same with and without one; without
//! one [`Device::open`] says so and the twins answer. The kernels (`kernels/*.cu`) travel in the program as
//! machine code and as PTX. For tests, `emulator/` is a stand-in for the driver that runs the kernels'
//! sources on the CPU.
//!
//! ```text
//! device       the driver, memory, streams, kernels that are loaded
//! join         hash join over host memory                               gpu-join
//! group        grouped aggregation and dimension lookup                 gpu-contention
//! bitwise      range queries over points, upper bits on the device       bitwise-distribution
//! tree         scans of generalized search trees, level by level        gist-coprocessor
//! contention   the optimizer that rewrites codes so that threads do not meet, and its counters
//! bench        roofs, checks against the twins, timings: the program `gpu-bench`
//! ```

pub mod bench;
pub mod bitwise;
mod collected;
pub mod contention;
mod device;
mod error;
pub mod group;
pub mod join;
pub mod tree;

pub use collected::Hits;
pub use device::{Device, Properties};
pub use error::GpuError;
