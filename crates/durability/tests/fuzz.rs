//! The fuzz targets of the log and of checkpoints on their kept corpus.
use std::sync::Arc;

use durability::{Device, fuzzing};
use testkit::FaultyDevice;
use testkit::fuzz::replay;

fn device() -> Arc<dyn Device> {
    Arc::new(FaultyDevice::new(1))
}

#[test]
fn headers_are_refused_or_decode_to_what_they_encode() {
    replay("headers", 60_000, fuzzing::headers);
}

#[test]
fn logs_are_refused_or_give_the_same_each_time() {
    replay("log", 8_000, |data| fuzzing::log(data, &device()));
}

#[test]
fn checkpoints_are_refused_or_read() {
    replay("checkpoints", 8_000, |data| fuzzing::checkpoints(data, &device()));
}
