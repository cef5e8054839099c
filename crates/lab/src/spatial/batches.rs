//! Batches beside descents (gist-coprocessor, section 4): the speed-up by slots of a node and queries of a batch (figure 4, with
//! the batch in the device's place), where the time of a batch goes (figures 5 and 6), and the scheduler between both.
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use index::{BatchScheduler, BoundsQuery, Cpu, Device, NodeScan, RTree, SLOTS_MAX};

use super::boxes::{Found, Tree};
use super::gist::{Bench, thousands};
use super::{agree, timed};
use crate::LabError;
use crate::figures::{Better, Figure, in_turns};

const DESCENTS: &str = "descents";
const BATCHES: &str = "batches alone";

/// Small batches are repeated with other queries until a turn has asked so many.
const QUERIES_A_TURN: usize = 4_096;
/// Batches that the scheduler gets in a turn.
const SCHEDULED: usize = 600;

/// The processor, with the time that its tests of nodes take.
#[derive(Default)]
struct Timed {
    device: Cpu,
    scan_ns: AtomicU64,
}

impl Device<RTree<f64, 2>> for Timed {
    fn name(&self) -> &str {
        "cpu, timed"
    }

    fn scan(&self, scans: &[NodeScan<'_, RTree<f64, 2>>], queries: &[BoundsQuery<f64, 2>], found: &mut [u64]) {
        let started = Instant::now();
        self.device.scan(scans, queries, found);
        self.scan_ns.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

/// Figures 4 to 6.
pub(super) fn speed_up(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    let sizes = [16, 64, 256, 1_024, 4_096, 16_384];
    for slots in [8, 16, 32, SLOTS_MAX] {
        let tree = bench.data.load(slots, NonZero::<usize>::MIN);
        for size in sizes.into_iter().filter(|size| *size <= bench.data.queries.len()) {
            of_size(bench, &tree, slots, size)?;
        }
    }
    Ok(())
}

/// Batches of one size with one tree.
fn of_size(bench: &mut Bench<'_, '_>, tree: &Tree, slots: usize, size: usize) -> Result<(), LabError> {
    let case = format!("{slots} slots, {size} queries");
    let queries = &bench.data.queries;
    let asked = size * (QUERIES_A_TURN.min(queries.len()) / size).max(1);
    let expected = Found::by_descents(tree, &queries[..asked]).count;
    let measured = in_turns(bench.progress, bench.args.runs, &case, 2, |at, _| {
        let batches = queries[..asked].chunks(size);
        if at == 1 {
            let (seconds, found) = timed(|| {
                let of_batch = |batch: &[_]| batch.iter().map(|query| tree.rids(query).len()).sum::<usize>();
                batches.map(of_batch).sum()
            });
            agree("a descent", &expected, &found)?;
            return Ok(vec![thousands(asked, seconds)]);
        }
        let device = Timed::default();
        let (seconds, found) = timed(|| batches.map(|batch| tree.search_batch(batch, &device).len()).sum());
        agree("a batch", &expected, &found)?;
        let tests_s = device.scan_ns.into_inner() as f64 / 1e9;
        let of_query = |seconds: f64| seconds * 1e6 / asked as f64;
        let phases = [of_query(tests_s), of_query(seconds - tests_s), 100.0 * tests_s / seconds];
        Ok([thousands(asked, seconds)].into_iter().chain(phases).collect())
    })?;
    let [rate, tests, rest, share] = &measured[0][..] else { unreachable!("as many values as a batch returns") };
    let report = &mut bench.report;
    report.push(Figure::rate(&case, "queries", "k/s", rate).beside(DESCENTS, &measured[1][0]))?;
    report.push(Figure::amount(&case, "tests of nodes", "us", tests))?;
    report.push(Figure::amount(&case, "queues, results", "us", rest))?;
    Ok(report.push(Figure::amount(&case, "tests of nodes", "%", share))?)
}

/// Batches of many sizes, each the way that the scheduler decides, beside one way for all.
pub(super) fn scheduler(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    let tree = bench.data.load(SLOTS_MAX, NonZero::<usize>::MIN);
    let queries = &bench.data.queries;
    let batch = |number: usize| {
        let size = (1 << (number * 5 % 11)).min(queries.len());
        &queries[number % (queries.len() - size + 1)..][..size]
    };
    let batches = || (0..SCHEDULED.min(queries.len())).map(batch);
    let asked: usize = batches().map(<[_]>::len).sum();
    let device = Cpu::default();
    let mut expected = None;
    let measured = in_turns(bench.progress, bench.args.runs, "scheduler", 3, |at, _| {
        let scheduler = BatchScheduler::new(2);
        let (seconds, found) = timed(|| match at {
            0 => batches().map(|batch| tree.search_scheduled(batch, &scheduler, &[&device]).len()).sum::<usize>(),
            1 => batches().flatten().map(|query| tree.rids(query).len()).sum(),
            _ => batches().map(|batch| tree.search_batch(batch, &device).len()).sum(),
        });
        agree("the scheduler or a way", expected.get_or_insert(found), &found)?;
        Ok(vec![thousands(asked, seconds), 100.0 * scheduler.regret().share()])
    })?;
    let rate = Figure::rate("scheduler", "queries", "k/s", &measured[0][0]);
    bench.report.push(rate.beside(DESCENTS, &measured[1][0]).beside(BATCHES, &measured[2][0]))?;
    Ok(bench.report.push(Figure::new("scheduler", "regret", "%", Better::Less, &measured[0][1]))?)
}
