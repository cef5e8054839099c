//! What a mechanism costs apart: the beginning of a snapshot, the first update of a page after it, and reading it.
use std::hint::black_box;
use std::time::Instant;

use snapshot::{Candidate, Mechanism, Options, SnapshotArray};

use super::args::SnapshotArgs;
use super::arrays::{PHYSICAL, failed, filled, size_text};
use crate::figures::{Better, Figure, Report, in_turns};
use crate::{LabError, Progress};

/// The pages that are updated for the first time in a run.
const FIRST_PAGES: usize = 2_048;

/// The items of a page.
const PAGE_ITEMS: usize = 512;

type Named = (String, SnapshotArray<u64>);

/// An array for each candidate.
fn arrays(size_bytes: usize, candidates: &[Candidate]) -> Result<Vec<Named>, LabError> {
    let one = |candidate: &Candidate| Ok((candidate.name(), filled(size_bytes, &candidate.options())?));
    candidates.iter().map(one).collect()
}

/// The time from `start` on, in microseconds.
fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

/// Figures 1 and 2: the beginning of a snapshot by size, physical ones by several numbers of threads.
pub(super) fn creation(
    args: &SnapshotArgs,
    candidates: &[Candidate],
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    for size_bytes in args.sizes_bytes() {
        let mut arrays = arrays(size_bytes, candidates)?;
        for threads in args.threads.iter().filter(|threads| **threads > 1) {
            let options = Options { copy_threads: *threads as usize, ..Options::of(Mechanism::Physical) };
            arrays.push((format!("{PHYSICAL}, {threads} threads"), filled(size_bytes, &options)?));
        }
        if let Some(first) = arrays.first_mut().filter(|first| first.0 == PHYSICAL) {
            let options = Options { copy_threads: 1, ..Options::of(Mechanism::Physical) };
            first.1 = filled(size_bytes, &options)?;
        }
        // Memory for the first copy.
        arrays.iter().try_for_each(|(_, array)| array.snapshot().map(drop)).map_err(failed)?;
        let case = format!("creation, {}", size_text(size_bytes));
        let measured = in_turns(progress, args.runs, &case, arrays.len(), |at, _| {
            let start = Instant::now();
            let snapshot = arrays[at].1.snapshot().map_err(failed)?;
            let begin = micros(start);
            let start = Instant::now();
            snapshot.end();
            Ok(vec![begin, micros(start)])
        })?;
        for ((name, _), values) in arrays.iter().zip(&measured) {
            let case = format!("{case}, {name}");
            for (metric, which) in [("begin", 0), ("end", 1)] {
                let figure = Figure::new(&case, metric, "us", Better::Less, &values[which]);
                report.push(if which == 0 { figure.beside(PHYSICAL, &measured[0][0]) } else { figure })?;
            }
            if name.starts_with(PHYSICAL) {
                let rates: Vec<f64> = values[0].iter().map(|micros| size_bytes as f64 / micros / 1e3).collect();
                report.push(Figure::rate(&case, "copied", "GB/s", &rates))?;
            }
        }
    }
    Ok(())
}

/// Figure 4: the first update of a page that a snapshot shares, and a later one.
pub(super) fn first_update(
    args: &SnapshotArgs,
    candidates: &[Candidate],
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let size_bytes = args.largest_bytes();
    let arrays = arrays(size_bytes, candidates)?;
    let case = format!("first update, {}", size_text(size_bytes));
    let measured = in_turns(progress, args.runs, &case, arrays.len(), |at, _| {
        let array = &arrays[at].1;
        let granule_items = candidates[at].granule_bytes / size_of::<u64>();
        let count = (array.len() / granule_items).min(FIRST_PAGES);
        let update_all = || {
            let (mut writer, start) = (array.writer(), Instant::now());
            // An odd step goes through all granules in an order that jumps.
            for step in 0..count {
                writer.add(step * 7_919 % count * granule_items, 1).map_err(failed)?;
            }
            Ok::<f64, LabError>(micros(start) * 1e3 / count as f64)
        };
        let snapshot = array.snapshot().map_err(failed)?;
        let values = vec![update_all()?, update_all()?];
        snapshot.end();
        Ok(values)
    })?;
    for ((name, _), values) in arrays.iter().zip(&measured) {
        let case = format!("{case}, {name}");
        for (metric, which) in [("first", 0), ("later", 1)] {
            let figure = Figure::new(&case, metric, "ns", Better::Less, &values[which]);
            report.push(figure.beside(PHYSICAL, &measured[0][which]))?;
        }
    }
    Ok(())
}

/// Section 3.3: a number and a sum from a snapshot of which every second page has been updated since.
pub(super) fn queries(
    args: &SnapshotArgs,
    candidates: &[Candidate],
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let size_bytes = args.largest_bytes();
    let arrays = arrays(size_bytes, candidates)?;
    let case = format!("queries, {}", size_text(size_bytes));
    let mut snapshots = Vec::new();
    for (_, array) in &arrays {
        snapshots.push(array.snapshot().map_err(failed)?);
        let mut writer = array.writer();
        for item in (0..array.len()).step_by(2 * PAGE_ITEMS) {
            writer.add(item, 1).map_err(failed)?;
        }
    }
    let pages = (size_bytes / size_of::<u64>() / PAGE_ITEMS) as i128;
    let measured = in_turns(progress, args.runs, &case, arrays.len(), |at, run| {
        let start = Instant::now();
        let item = run as usize * 7_919 % snapshots[at].len();
        black_box(snapshots[at].get(item).map_err(failed)?);
        let get = micros(start);
        let start = Instant::now();
        let sum = snapshots[at].sum(..).map_err(failed)?;
        let rate = size_bytes as f64 / micros(start) / 1e3;
        if sum != pages {
            return Err(LabError::Failed(format!(
                "a snapshot by {} adds up to {sum} and not to {pages}",
                arrays[at].0
            )));
        }
        Ok(vec![get, rate])
    })?;
    for ((name, _), values) in arrays.iter().zip(&measured) {
        let case = format!("{case}, {name}");
        let get = Figure::new(&case, "get", "us", Better::Less, &values[0]);
        report.push(get.beside(PHYSICAL, &measured[0][0]))?;
        report.push(Figure::rate(&case, "sum", "GB/s", &values[1]).beside(PHYSICAL, &measured[0][1]))?;
    }
    Ok(())
}
