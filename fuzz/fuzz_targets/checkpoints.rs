//! A checkpoint: its manifest and its blobs.
#![no_main]
use std::sync::Arc;

use durability::Device;

fn device() -> Arc<dyn Device> {
    Arc::new(testkit::FaultyDevice::new(1))
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| durability::fuzzing::checkpoints(data, &device()));
