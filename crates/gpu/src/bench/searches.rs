//! Searches measured as their papers measure them: bitwise-distribution, Figures 6, 10 and 11, and
//! gist-coprocessor, Figure 4, with a whole tree in place of single nodes.

use std::sync::Arc;
use std::time::Instant;

use super::Size;
use super::data::Random;
use super::report::Line;
use crate::bitwise::{self, Distributed, Model, Query, Resident, Split};
use crate::device::Device;
use crate::error::GpuError;
use crate::tree;

const BITWISE: &str = "gpu.bitwise";
const TREE: &str = "gpu.tree";

/// Figure 6, which needs no device: the bits on the device for each prefix, for points and memory as the paper
/// describes its own (240 million points, 1.5 GB).
pub fn splits() -> Vec<Line> {
    let model = Model {
        points: 240_000_000,
        ranges: [[0, 2_000_000], [4_700_000, 6_000_000]],
        pointer_bits: 32,
        memory_bits: 3 << 32,
    };
    let fitting = (1..=32).filter_map(|bits| model.best_suffix(bits).map(|suffix| (bits, suffix)));
    let mut lines: Vec<Line> = fitting
        .map(|(bits, suffix)| {
            let case = format!("figure 6, prefix of {bits} bits");
            Line::counted(BITWISE, case, "bits on the device", "bits", f64::from(bits + suffix))
        })
        .collect();
    if let Some(best) = model.best() {
        let case = format!("figure 7, best: prefix {} and suffix {}", best.prefix_bits, best.suffix_bits);
        lines.push(Line::counted(
            BITWISE,
            case,
            "bits on the device",
            "bits",
            f64::from(best.prefix_bits + best.suffix_bits),
        ));
    }
    lines
}

/// All figures that need a device.
pub fn measure(device: &Arc<Device>, size: Size) -> Result<Vec<Line>, GpuError> {
    let mut lines = range_queries(device, size)?;
    lines.extend(tree_scans(device, size)?);
    if device.properties().is_emulated {
        lines = lines.into_iter().map(Line::without_times).collect();
    }
    Ok(lines)
}

fn milliseconds<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begun = Instant::now();
    let done = work();
    (done, begun.elapsed().as_secs_f64() * 1000.0)
}

/// The last answer of some runs, and their times; one run before them loads kernels and finds memory.
fn repeated<T>(runs: usize, mut work: impl FnMut() -> Result<T, GpuError>) -> Result<(T, Vec<f64>), GpuError> {
    let mut answer = work()?;
    let mut spans_ms = Vec::with_capacity(runs);
    for _ in 0..runs {
        let (next, span_ms) = milliseconds(&mut work);
        answer = next?;
        spans_ms.push(span_ms);
    }
    Ok((answer, spans_ms))
}

fn check<T: PartialEq>(what: &str, found: &T, expected: &T) -> Result<(), GpuError> {
    if found == expected { Ok(()) } else { Err(GpuError::Unsuitable(format!("{what}: differs from the CPU's"))) }
}

fn sorted(mut hits: Vec<u64>) -> Vec<u64> {
    hits.sort_unstable();
    hits
}

/// Points around some thousand places, as vehicles are; queries around points, as in the paper.
fn range_queries(device: &Arc<Device>, size: Size) -> Result<Vec<Line>, GpuError> {
    let mut random = Random::new(1);
    let count = size.of(2_000, 16 << 20);
    let places: Vec<[u64; 2]> =
        (0..size.of(10, 4000)).map(|_| [random.below(2_000_000), random.below(1_300_000)]).collect();
    let near = |random: &mut Random| {
        let place = places[random.below(places.len() as u64) as usize];
        place.map(|value| (value + random.below(4000)) as u32)
    };
    let points: Vec<[u32; 2]> = (0..count).map(|_| near(&mut random)).collect();
    let (x, y): (Vec<u32>, Vec<u32>) = points.iter().map(|point| (point[0], point[1])).unzip();
    let split = Split { prefix_bits: 22, suffix_bits: 6 };
    let mut lines = Vec::new();
    let (_, copy_ms) = milliseconds(|| (x.clone(), y.clone()));
    let (distributed, cluster_ms) = milliseconds(|| Distributed::new(&x, &y, split));
    for (metric, span_ms) in [("copy", copy_ms), ("distribute", cluster_ms)] {
        lines.push(Line::counted(BITWISE, format!("figure 10, {count} points"), metric, "ms", span_ms));
    }
    let resident = Resident::new(device, &distributed)?;
    for query_count in [1, 8, 64, 512, 2048].into_iter().take(size.of(3, 5)) {
        let queries: Vec<Query> = (0..query_count)
            .map(|_| {
                let [x, y] = near(&mut random);
                let [wide, high] = [random.below(2000) as u32, random.below(2000) as u32];
                Query { x: [x, x + wide], y: [y, y + high] }
            })
            .collect();
        let case = |what: &str| format!("figure 11, {query_count} queries, {what}");
        let (expected, twin_ms) = milliseconds(|| bitwise::twin::scan(&distributed, &queries));
        let ((found, stages), spans_ms) = repeated(size.of(1, 5), || resident.scan(&queries, 256))?;
        check(&case("device and CPU"), &sorted(found), &sorted(expected))?;
        lines.push(Line::counted(BITWISE, case("CPU"), "time", "ms", twin_ms));
        let line = Line::of_runs(BITWISE, case("device and CPU"), "time", "ms", &spans_ms);
        lines.push(line.beside("the CPU", Some(twin_ms)));
        lines.push(Line::counted(BITWISE, case("device's share"), "time", "ms", stages.device_ms));
        lines.push(Line::counted(BITWISE, case("CPU's share"), "time", "ms", stages.host_ms));
    }
    Ok(lines)
}

fn tree_scans(device: &Arc<Device>, size: Size) -> Result<Vec<Line>, GpuError> {
    let mut random = Random::new(2);
    let keys = size.of(3_000, 1 << 20);
    let mut boxes = |count: usize, side: f64| -> Vec<[f32; 4]> {
        (0..count)
            .map(|_| {
                let [x, y] = [random.fraction(), random.fraction()];
                [x, y, x + random.fraction() * side, y + random.fraction() * side].map(|end| end as f32)
            })
            .collect()
    };
    let mut records = boxes(keys, 0.001);
    // Neighbours side by side: strips across, in each the order along.
    records.sort_by(|one, other| {
        let strip = |key: &[f32; 4]| (key[0] * 1000.0) as i32;
        strip(one).cmp(&strip(other)).then(one[1].total_cmp(&other[1]))
    });
    let mut lines = Vec::new();
    for slots in [32, 96, 128, 512] {
        let packed = tree::pack(&records, slots, |keys| {
            let ends = [f32::MAX, f32::MAX, f32::MIN, f32::MIN];
            keys.iter()
                .fold(ends, |all, key| [all[0].min(key[0]), all[1].min(key[1]), all[2].max(key[2]), all[3].max(key[3])])
        });
        let resident = tree::Resident::new(device, &packed.levels())?;
        for query_count in [32, 512, 8192, 131_072].into_iter().take(size.of(2, 4)) {
            let queries = boxes(query_count, 0.01);
            let (expected, twin_ms) = milliseconds(|| tree::twin::scan(&packed.levels(), &queries));
            let ((found, kernels_ms), spans_ms) = repeated(size.of(1, 5), || resident.scan(&queries))?;
            let whole = Line::of_runs(TREE, String::new(), "whole", "ms", &spans_ms);
            let case = format!("figure 4, {slots} slots, {query_count} queries");
            check(&case, &sorted(found.to_vec()), &sorted(expected))?;
            let speedup = whole.value.map_or(0.0, |whole_ms| twin_ms / whole_ms);
            lines.push(Line::counted(TREE, case.clone(), "speedup over a thread", "", speedup));
            lines.push(Line { case: case.clone(), ..whole });
            lines.push(Line::counted(TREE, case, "kernels", "ms", kernels_ms));
        }
    }
    Ok(lines)
}
