//! `bench gist`: the generalized search tree beside rstar, a scan of all boxes, and our B+tree on one coordinate.
use std::io::Write;
use std::num::NonZero;

use index::{Cpu, SLOTS_MAX, SearchDevice};

use super::args::{GistArgs, GistCase};
use super::boxes::{Boxes, Found, LowEnds, Tree};
use super::scan::BoxColumns;
use super::{B_TREE, FEW, agree, batches, beside, timed};
use crate::figures::{Figure, Report, grouped, in_turns};
use crate::peers::r_star_tree::RStarTree;
use crate::{LabError, Progress};

const RSTAR: &str = "rstar";
const SCAN: &str = "scan of all";

/// So many are the nearest.
const NEAREST: usize = 10;
/// Points whose nearest are asked for, at most.
const NEAREST_QUERIES: usize = 2_000;

/// Runs the benchmark, also on a device if there is one, and writes its report to `out`.
///
/// # Errors
/// [`LabError::Output`] if `out` does not take more; [`LabError::Failed`] if a participant finds something else than the others.
pub fn bench_gist(
    args: &GistArgs,
    device: Option<&dyn SearchDevice>,
    progress: &dyn Progress,
    out: &mut dyn Write,
) -> Result<(), LabError> {
    let report = Report::new(out, args.json, "gist", &[RSTAR, SCAN, B_TREE]);
    let data = Boxes::new(args.boxes as usize, args.queries as usize);
    let mut bench = Bench { args, data: &data, progress, report };
    for case in args.chosen_cases() {
        match case {
            GistCase::Load => load(&mut bench)?,
            GistCase::Insert => insert(&mut bench)?,
            GistCase::Range => range(&mut bench, device)?,
            GistCase::Nearest => nearest(&mut bench)?,
            GistCase::Batches => batches::speed_up(&mut bench)?,
            GistCase::Scheduler => batches::scheduler(&mut bench)?,
        }
    }
    let (boxes, queries) = (grouped(args.boxes.into()), grouped(args.queries.into()));
    Ok(bench.report.finish(&format!("Generalized search tree: {boxes} boxes, {queries} queries a run."))?)
}

/// The input of every case.
pub(super) struct Bench<'a, 'w> {
    pub(super) args: &'a GistArgs,
    pub(super) data: &'a Boxes,
    pub(super) progress: &'a dyn Progress,
    pub(super) report: Report<'w>,
}

/// Thousand queries a second.
pub(super) fn thousands(queries: usize, seconds: f64) -> f64 {
    queries as f64 / seconds / 1e3
}

fn millions(boxes: usize, seconds: f64) -> f64 {
    boxes as f64 / seconds / 1e6
}

/// A case by its number of threads.
fn with_threads(case: &str, threads: NonZero<usize>) -> String {
    match threads.get() {
        1 => case.to_owned(),
        threads => format!("{case}, {threads} threads"),
    }
}

/// All boxes at once.
fn load(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    let (data, count, threads) = (bench.data, bench.data.entries.len(), bench.args.thread_counts());
    let measured = in_turns(bench.progress, bench.args.runs, "bulk load", threads.len() + 1, |at, _| {
        let (seconds, loaded) = if let Some(threads) = threads.get(at) {
            let (seconds, tree) = timed(|| data.load(SLOTS_MAX, *threads));
            (seconds, tree.len())
        } else {
            let boxes = data.numbered(count);
            let (seconds, peer) = timed(|| RStarTree::load(boxes));
            (seconds, peer.len())
        };
        agree("a bulk load", &count, &loaded)?;
        Ok(vec![millions(count, seconds)])
    })?;
    for (threads, ours) in threads.iter().zip(&measured) {
        let figure = Figure::rate(&with_threads("bulk load", *threads), "boxes", "M/s", &ours[0]);
        bench.report.push(figure.beside(RSTAR, &measured[measured.len() - 1][0]))?;
    }
    Ok(())
}

/// Boxes one by one, and ranges of what has come about.
fn insert(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    let data = bench.data;
    let (count, queries) = (data.entries.len() / 5, data.queries.len());
    let mut expected = None;
    let measured = in_turns(bench.progress, bench.args.runs, "insert", 2, |at, _| {
        let (insert_s, range_s, found) = if at == 0 {
            let (insert_s, tree) = timed(|| {
                let tree = Tree::new();
                data.entries[..count].iter().for_each(|(bounds, rid)| tree.insert(bounds, *rid));
                tree
            });
            let (range_s, found) = timed(|| Found::by_descents(&tree, &data.queries));
            (insert_s, range_s, found)
        } else {
            let boxes = data.numbered(count);
            let (insert_s, peer) = timed(|| RStarTree::insert_all(boxes));
            let (range_s, found) = timed(|| of_peer(data, &peer, queries));
            (insert_s, range_s, found)
        };
        agree("a range after inserts", expected.get_or_insert(found), &found)?;
        Ok(vec![millions(count, insert_s), thousands(queries, range_s)])
    })?;
    let figure = Figure::rate("insert", "boxes", "M/s", &measured[0][0]).beside(RSTAR, &measured[1][0]);
    bench.report.push(figure)?;
    let figure = Figure::rate("range after inserts", "queries", "k/s", &measured[0][1]).beside(RSTAR, &measured[1][1]);
    Ok(bench.report.push(figure)?)
}

fn of_peer(data: &Boxes, peer: &RStarTree, queries: usize) -> Found {
    let mut found = Found::default();
    let windows = data.windows[..queries].iter();
    windows.for_each(|window| peer.overlapping(window.low(), window.high(), |number| found.add(number)));
    found
}

/// A way of asking for ranges.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    OneByOne,
    Batch(NonZero<usize>),
    /// A batch, with the results by query.
    ByQuery,
    RStar,
    Scan,
    BTree,
}

/// What ranges are asked of.
struct Searched<'a> {
    data: &'a Boxes,
    tree: Tree,
    peer: RStarTree,
    columns: BoxColumns,
    low_ends: LowEnds,
}

impl Searched<'_> {
    /// Asks the first queries one way; the seconds, and what was found.
    fn run(&self, way: Way, count: usize) -> (f64, Found) {
        let (queries, windows) = (&self.data.queries[..count], &self.data.windows[..count]);
        let mut found = Found::default();
        let (seconds, ()) = match way {
            Way::OneByOne => timed(|| found = Found::by_descents(&self.tree, queries)),
            Way::Batch(threads) => timed(|| {
                self.tree.search_batch_each(queries, &Cpu::new(threads), |_, rid| found.add(rid.slot()));
            }),
            Way::ByQuery => {
                let (seconds, matches) = timed(|| self.tree.search_batch(queries, &Cpu::default()));
                let rids = (0..count).flat_map(|query| matches.of_query(query));
                rids.for_each(|rid| found.add(rid.slot()));
                (seconds, ())
            }
            Way::RStar => timed(|| found = of_peer(self.data, &self.peer, count)),
            Way::Scan => timed(|| {
                windows.iter().for_each(|window| self.columns.scan(window, |place| found.add(place)));
            }),
            Way::BTree => timed(|| {
                windows.iter().for_each(|window| self.low_ends.scan(self.data, window, |place| found.add(place)));
            }),
        };
        (seconds, found)
    }
}

/// Ranges in all ways.
fn range(bench: &mut Bench<'_, '_>, device: Option<&dyn SearchDevice>) -> Result<(), LabError> {
    let data = bench.data;
    let bounds: Vec<_> = data.entries.iter().map(|(bounds, _)| *bounds).collect();
    let searched = Searched {
        data,
        tree: data.load(SLOTS_MAX, NonZero::<usize>::MIN),
        peer: RStarTree::load(data.numbered(data.entries.len())),
        columns: BoxColumns::new(&bounds),
        low_ends: LowEnds::new(data)?,
    };
    let mut ours = vec![("range, one by one".to_owned(), Way::OneByOne)];
    let batches = bench.args.thread_counts().into_iter();
    ours.extend(batches.map(|threads| (with_threads("range, batch", threads), Way::Batch(threads))));
    ours.push(("range, batch, results by query".to_owned(), Way::ByQuery));
    let rivals = [(RSTAR, Way::RStar), (SCAN, Way::Scan), (B_TREE, Way::BTree)];
    let ways: Vec<Way> = ours.iter().map(|(_, way)| *way).chain(rivals.map(|(_, way)| way)).collect();
    let count_of =
        |way| if matches!(way, Way::Scan | Way::BTree) { data.queries.len().min(FEW) } else { data.queries.len() };
    let [of_all, of_few] =
        [Way::OneByOne, Way::Scan].map(|way| Found::by_descents(&searched.tree, &data.queries[..count_of(way)]));
    let measured = in_turns(bench.progress, bench.args.runs, "range", ways.len(), |at, _| {
        let count = count_of(ways[at]);
        let (seconds, found) = searched.run(ways[at], count);
        agree("a range", if count == data.queries.len() { &of_all } else { &of_few }, &found)?;
        Ok(vec![thousands(count, seconds)])
    })?;
    let (of_ours, of_rivals) = measured.split_at(ours.len());
    for ((case, _), values) in ours.iter().zip(of_ours) {
        let figure = Figure::rate(case, "queries", "k/s", &values[0]);
        let beside = rivals.iter().zip(of_rivals);
        bench.report.push(beside.fold(figure, |figure, ((name, _), values)| figure.beside(name, &values[0])))?;
    }
    device.map_or(Ok(()), |device| beside::boxes(bench, device, &searched.tree))
}

/// The nearest of points.
fn nearest(bench: &mut Bench<'_, '_>) -> Result<(), LabError> {
    let data = bench.data;
    let tree = data.load(SLOTS_MAX, NonZero::<usize>::MIN);
    let peer = RStarTree::load(data.numbered(data.entries.len()));
    let points: Vec<[f64; 2]> = data.windows.iter().take(NEAREST_QUERIES).map(|window| window.low()).collect();
    let mut expected = None;
    let measured = in_turns(bench.progress, bench.args.runs, "nearest", 2, |at, _| {
        let farthest = |point: &[f64; 2]| match at {
            0 => tree.nearest(point, NEAREST, |_| true).last().map_or(0.0, |found| found.0),
            _ => peer.nearest(*point, NEAREST),
        };
        let (seconds, sum) = timed(|| points.iter().map(farthest).sum::<f64>());
        let expected = *expected.get_or_insert(sum);
        // Squares of distances are rounded where ours are not.
        if (sum - expected).abs() > 1e-6 * expected {
            return Err(LabError::Failed(format!("the nearest are {sum} away with one, {expected} with another")));
        }
        Ok(vec![thousands(points.len(), seconds)])
    })?;
    let figure = Figure::rate("10 nearest", "queries", "k/s", &measured[0][0]).beside(RSTAR, &measured[1][0]);
    Ok(bench.report.push(figure)?)
}
