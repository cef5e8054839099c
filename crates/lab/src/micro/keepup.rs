//! The long run: updates at full speed, and every now and then a look at how far behind the merge is and at the memory.
//!
//! The paper asks in section 6.2 whether the merge keeps up. The most tail records that were ever unmerged answer
//! that. Whether the memory keeps up is answered by its growth for each update in the second half, when all pages
//! are warm.
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::{Figure, grouped};

use super::contestant::Kind;
use super::drive::Drive;
use super::lstore::{Lstore, StoreOptions};
use super::process;
use crate::{LabError, Progress};

/// Looks in a run, about.
const SAMPLES: u32 = 60;
/// No more often than this.
const SAMPLE_EVERY_MIN: Duration = Duration::from_millis(20);
/// The bounds are measured for this long at most.
const BOUND_MAX: Duration = Duration::from_secs(1);
const MIB: f64 = (1 << 20) as f64;

/// The state at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seconds: f64,
    transactions: u64,
    unmerged: u64,
    merges: u64,
    version_bytes: u64,
    resident: Option<u64>,
}

/// Runs the updates of `drive` on lstore for its whole time; on the bounds for a moment before.
pub(super) fn run(
    case: &str,
    drive: &Drive<'_>,
    rows: u64,
    options: &StoreOptions,
    progress: &dyn Progress,
) -> Result<Vec<Figure>, LabError> {
    let mut bounds = Vec::new();
    for kind in [Kind::HashMap, Kind::BareColumns] {
        let contestant = kind.load(rows, options)?;
        let brief = Drive { time: drive.time.min(BOUND_MAX), ..*drive };
        bounds.push((kind.name(), brief.alone(contestant.as_ref())?.rate));
    }
    let store = Lstore::load(rows, options)?;
    let samples = sampled(case, &store, drive, progress)?;
    Ok(figures(case, &samples, drive.workload.updates(), &bounds))
}

/// Runs the updates and looks at the store until they are over.
fn sampled(case: &str, store: &Lstore, drive: &Drive<'_>, progress: &dyn Progress) -> Result<Vec<Sample>, LabError> {
    let done = AtomicU64::new(0);
    let every = (drive.time / SAMPLES).max(SAMPLE_EVERY_MIN);
    let start = Instant::now();
    let look = || {
        let stats = store.stats();
        Sample {
            seconds: start.elapsed().as_secs_f64(),
            transactions: done.load(Ordering::Relaxed),
            unmerged: stats.tail_records_unmerged,
            merges: stats.merges,
            version_bytes: store.version_bytes(),
            resident: process::resident_bytes(),
        }
    };
    progress.start(case, (drive.time.as_secs_f64() / every.as_secs_f64()).ceil() as u64);
    let mut samples = vec![look()];
    thread::scope(|scope| {
        let updates = scope.spawn(|| Drive { done: Some(&done), ..*drive }.alone(store));
        while !updates.is_finished() {
            thread::sleep(every);
            let (before, now) = (samples[samples.len() - 1], look());
            progress.tell(&told(&before, &now, drive.workload.updates()));
            progress.advance(1);
            samples.push(now);
        }
        updates.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    progress.finish(&format!("{case}: {:.1} s", start.elapsed().as_secs_f64()));
    // The last interval may hold the end of the updates.
    if samples.len() > 2 {
        samples.pop();
    }
    Ok(samples)
}

/// A line on what was seen.
fn told(before: &Sample, now: &Sample, updates: u64) -> String {
    let rate = rate_between(before, now) * updates as f64;
    let resident = now.resident.map_or_else(|| "unknown".to_owned(), |bytes| grouped(bytes >> 20));
    format!(
        "{:>8.1} s  {:>10} updates/s  {:>10} tail records unmerged  {:>7} merges  {:>7} MiB of versions  {:>7} MiB resident",
        now.seconds,
        grouped(rate as u64),
        grouped(now.unmerged),
        grouped(now.merges),
        grouped(now.version_bytes >> 20),
        resident
    )
}

fn rate_between(before: &Sample, now: &Sample) -> f64 {
    (now.transactions - before.transactions) as f64 / (now.seconds - before.seconds)
}

/// The figures of the run; `bounds` are transactions a second.
fn figures(case: &str, samples: &[Sample], updates: u64, bounds: &[(&'static str, f64)]) -> Vec<Figure> {
    let per_update = updates as f64 / 1000.0;
    let rates: Vec<f64> = samples.windows(2).map(|pair| rate_between(&pair[0], &pair[1]) * per_update).collect();
    let rate = Figure::rate(case, "updates", "thousand/s", &rates);
    let rate = bounds.iter().fold(rate, |figure, (name, bound)| {
        let values = vec![bound * per_update; rates.len()];
        figure.beside(name, &values)
    });
    let part = rates.len().div_ceil(5);
    let last = Figure::rate(case, "updates, last fifth", "thousand/s", &rates[rates.len() - part..]);
    let last = last.beside("first fifth", &rates[..part]);
    let unmerged: Vec<f64> = samples.iter().map(|sample| sample.unmerged as f64).collect();
    let versions: Vec<f64> = samples.iter().map(|sample| sample.version_bytes as f64 / MIB).collect();
    let unmerged_max = unmerged.iter().copied().fold(0.0, f64::max);
    let mut figures = vec![
        rate,
        last,
        Figure::amount(case, "tail records unmerged", "count", &unmerged),
        Figure::amount(case, "tail records unmerged, max", "count", &[unmerged_max]),
        Figure::amount(case, "tail and history", "MiB", &versions),
    ];
    let late = &samples[samples.len() / 2..];
    let resident = |sample: &Sample| sample.resident.map(|bytes| bytes as f64);
    let by_time: Option<Vec<_>> = late.iter().map(|sample| Some((sample.seconds, resident(sample)? / MIB))).collect();
    let by_update: Option<Vec<_>> =
        late.iter().map(|sample| Some(((sample.transactions * updates) as f64, resident(sample)?))).collect();
    if let (Some(by_time), Some(by_update)) = (by_time, by_update) {
        let most = by_time.iter().map(|(_, mib)| *mib).fold(0.0, f64::max);
        figures.push(Figure::amount(case, "memory resident, max", "MiB", &[most]));
        figures.push(Figure::amount(case, "memory slope, second half", "MiB/s", &[slope(&by_time)]));
        figures.push(Figure::amount(case, "memory slope, second half", "bytes/update", &[slope(&by_update)]));
    }
    figures
}

/// The slope of the straight line that fits best (least squares); 0 for a single point.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (sum_x, sum_y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let both: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let square: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if square == 0.0 { 0.0 } else { both / square }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64, resident: Option<u64>) -> Sample {
        let unmerged = if at == 3 { 500 } else { 100 };
        Sample { seconds: at as f64, transactions: at * 1000, unmerged, merges: at, version_bytes: at << 20, resident }
    }

    #[test]
    fn the_slope_is_that_of_the_line() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), 2.0);
        assert_eq!(slope(&[(4.0, 1.0)]), 0.0);
    }

    #[test]
    fn the_figures_tell_rate_backlog_and_growth() {
        // The memory grows fast until the pages are warm, then by 1 MiB a second.
        let mib = |at: u64| if at < 5 { at * 10 } else { at + 45 };
        let samples: Vec<Sample> = (0..10).map(|at| sample(at, Some(mib(at) << 20))).collect();
        let figures = figures("keepup", &samples, 2, &[("hash map", 4000.0)]);
        let value = |metric: &str, unit: &str| {
            figures.iter().find(|figure| (figure.metric, figure.unit) == (metric, unit)).map(|figure| figure.value)
        };
        assert_eq!((figures[0].value, figures[0].baselines[0].ratio), (2.0, Some(0.25)));
        assert_eq!(figures[1].baselines[0].ratio, Some(1.0));
        assert_eq!(value("tail records unmerged, max", "count"), Some(500.0));
        assert_eq!(value("memory resident, max", "MiB"), Some(54.0));
        assert_eq!(value("memory slope, second half", "MiB/s"), Some(1.0));
        assert_eq!(value("memory slope, second half", "bytes/update"), Some(MIB / 2000.0));
    }

    #[test]
    fn memory_is_left_out_where_the_system_tells_nothing() {
        let samples: Vec<Sample> = (0..3).map(|at| sample(at, None)).collect();
        let figures = figures("keepup", &samples, 2, &[]);
        assert!(figures.iter().all(|figure| !figure.metric.starts_with("memory")));
        assert!(told(&samples[0], &samples[1], 2).ends_with("unknown MiB resident"));
    }
}
