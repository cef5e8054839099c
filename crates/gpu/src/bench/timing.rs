//! Timing what a stream does, by the device's own clock.

use std::sync::Arc;

use crate::device::{Device, Event, Stream};
use crate::error::GpuError;

/// Milliseconds of each of `runs` runs of `work`, after one that is not counted.
pub(super) fn milliseconds(
    device: &Arc<Device>,
    runs: usize,
    mut work: impl FnMut(&Stream) -> Result<(), GpuError>,
) -> Result<Vec<f64>, GpuError> {
    let stream = Stream::new(device)?;
    work(&stream)?;
    stream.wait()?;
    let mut spans = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Event::of(&stream)?;
        work(&stream)?;
        spans.push(Event::of(&stream)?.since_ms(&start)?);
        stream.wait()?;
    }
    Ok(spans)
}

/// Converts spans for an amount into rates: `amount` a second, in billions.
pub(super) fn billions_a_second(amount: f64, spans_ms: &[f64]) -> Vec<f64> {
    spans_ms.iter().map(|span_ms| amount / span_ms / 1e6).collect()
}
