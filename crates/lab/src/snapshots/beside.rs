//! Updates at full speed while a snapshot is taken each period, beside arrays that do without.
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use snapshot::{Candidate, Case, Distribution, Snapshot, SnapshotArray};

use super::args::SnapshotArgs;
use super::arrays::{filled, size_text};
use super::rivals::{Chunks, Locked, Persistent, Plain, Rival};
use crate::figures::{Figure, Report, in_turns};
use crate::{LabError, Progress};

/// The updates between two looks at the clock.
const BATCH: usize = 4_096;

/// The updates that a thread has drawn, and goes round in.
const DRAWN: usize = 1 << 20;

/// The distributions that are measured: every page alike, and most updates to few pages.
const DISTRIBUTIONS: [Distribution; 2] = [Distribution::Uniform, Distribution::SelfSimilar];

/// An array of ours and its newest snapshot.
struct Ours {
    array: SnapshotArray<u64>,
    /// The updates that a writer announces together.
    batch: usize,
    last: Mutex<Option<Snapshot<u64>>>,
    /// The first refusal.
    refusal: Mutex<Option<String>>,
}

impl Rival for Ours {
    fn update(&self, items: &[usize]) {
        let mut writer = self.array.writer();
        let add = |items: &[usize]| match items {
            [item] => writer.add(*item, 1).err(),
            items => writer.batch(|batch| items.iter().find_map(|item| batch.add(*item, 1).err())),
        };
        if let Some(error) = items.chunks(self.batch).find_map(add) {
            self.refusal.lock().get_or_insert_with(|| error.to_string());
        }
    }

    fn snapshot(&self) -> usize {
        let mut last = self.last.lock();
        let own = last.take().map_or(0, |snapshot| snapshot.own_bytes());
        match self.array.snapshot() {
            Ok(snapshot) => *last = Some(snapshot),
            Err(error) => {
                self.refusal.lock().get_or_insert_with(|| error.to_string());
            }
        }
        own
    }
}

/// What a run gave: updates a second, and the most memory that a snapshot had for itself, in MiB.
struct Run {
    per_s: f64,
    own_mib: f64,
}

/// Has a thread for each list of `items` update the array for `time`, and takes a snapshot each `period`, the first at once.
fn run(rival: &dyn Rival, items: &[Vec<usize>], time: Duration, period: Duration) -> Run {
    let (is_over, together) = (AtomicBool::new(false), Barrier::new(items.len() + 1));
    let (mut counts, mut own_bytes, mut elapsed) = (0, 0, Duration::ZERO);
    std::thread::scope(|threads| {
        let write = |items: &Vec<usize>| {
            together.wait();
            let batches = items.chunks(BATCH).cycle().take_while(|_| !is_over.load(Ordering::Relaxed));
            batches.map(|batch| (rival.update(batch), batch.len()).1).sum::<usize>()
        };
        let writers: Vec<_> = items.iter().map(|items| threads.spawn(move || write(items))).collect();
        together.wait();
        let start = Instant::now();
        let mut taken = 0;
        while start.elapsed() < time {
            own_bytes = own_bytes.max(rival.snapshot());
            taken += 1;
            let next = (period * taken).min(time);
            std::thread::sleep(next.saturating_sub(start.elapsed()));
        }
        is_over.store(true, Ordering::Relaxed);
        counts = writers.into_iter().filter_map(|writer| writer.join().ok()).sum();
        elapsed = start.elapsed();
    });
    own_bytes = own_bytes.max(rival.snapshot());
    Run { per_s: counts as f64 / elapsed.as_secs_f64(), own_mib: own_bytes as f64 / f64::from(1 << 20) }
}

/// Updates a second by each mechanism and each rival, in turns.
pub(super) fn beside(
    args: &SnapshotArgs,
    candidates: &[Candidate],
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let size_bytes = args.largest_bytes();
    let len = size_bytes / size_of::<u64>();
    let new = |candidate: &Candidate| -> Result<Ours, LabError> {
        let array = filled(size_bytes, &candidate.options())?;
        Ok(Ours { array, batch: args.batch.max(1), last: Mutex::new(None), refusal: Mutex::new(None) })
    };
    let ours = candidates.iter().map(new).collect::<Result<Vec<_>, _>>()?;
    let (plain, locked, chunks, tree) = (Plain::new(len), Locked::new(len), Chunks::new(len), Persistent::new(len));
    let mut all: Vec<&dyn Rival> = vec![&plain, &locked, &chunks, &tree];
    all.extend(ours.iter().map(|ours| ours as &dyn Rival));
    for distribution in DISTRIBUTIONS {
        for threads in &args.threads {
            let workload = Case { size_bytes, distribution, updates: 0 };
            let draw = |thread: u32| workload.updates(u64::from(thread)).take(DRAWN).collect::<Vec<usize>>();
            let items: Vec<Vec<usize>> = (0..*threads).map(draw).collect();
            let period = args.period.as_secs_f64();
            let size = size_text(size_bytes);
            let case = format!("{size}, {}, {threads} threads, each {period} s", distribution.name());
            let measured = in_turns(progress, args.runs, &case, all.len(), |at, _| {
                let run = run(all[at], &items, args.seconds, args.period);
                Ok(vec![run.per_s / 1e6, run.own_mib])
            })?;
            for (candidate, values) in candidates.iter().zip(&measured[4..]) {
                let case = format!("{case}, {}", candidate.name());
                let figure = Figure::rate(&case, "updates", "M/s", &values[0]);
                let figure = figure.beside("plain array", &measured[0][0]).beside("mutex", &measured[1][0]);
                let figure = figure.beside("arc-swap chunks", &measured[2][0]);
                report.push(figure.beside("persistent vector", &measured[3][0]))?;
                report.push(Figure::amount(&case, "own memory", "MiB", &values[1]))?;
            }
        }
    }
    let refusal = ours.iter().find_map(|ours| ours.refusal.lock().take());
    refusal.map_or(Ok(()), |refusal| Err(LabError::Failed(refusal)))
}
