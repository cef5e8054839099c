//! The generalized search tree beside `rstar` and a scan of all boxes by vectors, in turns; each figure is the median of the rounds.
//!
//! `cargo run --release -p lstore-index --example gist -- [boxes] [queries] [rounds]`
//!
//! A last table has figure 4 of gist-coprocessor with the batch in the device's place: how many times as fast a batch is as descents,
//! by slots of a node and queries of a batch; and the share of its time that goes into tests of nodes (figures 5 and 6).
//!
//! Boxes of two dimensions lie at random in a square, with sides up to 500 where the square has a million; a window finds some
//! thirty of a million. All give the same counts, or the run ends with an error.
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use index::{BatchScheduler, Bounds, BoundsQuery, Cpu, Device, Gist, NodeScan, RTree, SLOTS_MAX};
use rstar::AABB;
use rstar::primitives::{GeomWithData, Rectangle};
use types::Rid;

const SQUARE: f64 = 1e6;
const SIDE_MAX: f64 = 500.0;
const WINDOW: f64 = 5_000.0;

type Tree = Gist<RTree<f64, 2>>;
type Peer = rstar::RTree<GeomWithData<Rectangle<[f64; 2]>, u64>>;

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: f64) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64 * bound
    }

    fn bounds(&mut self, side_max: f64) -> ([f64; 2], [f64; 2]) {
        let low = [self.below(SQUARE), self.below(SQUARE)];
        (low, [low[0] + self.below(side_max), low[1] + self.below(side_max)])
    }
}

/// All boxes, end by end.
struct Columns([Vec<f64>; 4]);

impl Columns {
    #[inline(always)]
    fn count_body(&self, low: [f64; 2], high: [f64; 2]) -> usize {
        let [low_x, low_y, high_x, high_y] = &self.0;
        let ends = low_x.iter().zip(low_y).zip(high_x.iter().zip(high_y));
        ends.map(|((low_x, low_y), (high_x, high_y))| {
            usize::from((*low_x <= high[0]) & (*low_y <= high[1]) & (*high_x >= low[0]) & (*high_y >= low[1]))
        })
        .sum()
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,avx512f,avx512vl,avx512bw,avx512dq")]
    fn count_wide(&self, low: [f64; 2], high: [f64; 2]) -> usize {
        self.count_body(low, high)
    }

    fn count(&self, low: [f64; 2], high: [f64; 2]) -> usize {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has what was asked for.
            return unsafe { self.count_wide(low, high) };
        }
        self.count_body(low, high)
    }
}

/// Seconds of each round by line.
struct Report {
    lines: Vec<(&'static str, f64, Vec<f64>)>,
}

impl Report {
    /// Runs something that does `units` of work.
    fn run<R>(&mut self, name: &'static str, units: usize, body: impl FnOnce() -> R) -> R {
        let started = Instant::now();
        let result = body();
        let seconds = started.elapsed().as_secs_f64();
        match self.lines.iter_mut().find(|line| line.0 == name) {
            Some(line) => line.2.push(seconds),
            None => self.lines.push((name, units as f64, vec![seconds])),
        }
        result
    }

    /// The median time of a unit, in microseconds.
    fn unit_us(&self, name: &str) -> f64 {
        let line = self.lines.iter().find(|line| line.0 == name).expect("a line of this run");
        let mut seconds = line.2.clone();
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2] / line.1 * 1e6
    }

    fn print(&self, pairs: &[(&str, &str)]) {
        println!("{:<34} {:>12} {:>14}", "", "us a unit", "units a second");
        for (name, ..) in &self.lines {
            println!("{name:<34} {:>12.4} {:>14.0}", self.unit_us(name), 1e6 / self.unit_us(name));
        }
        for (ours, other) in pairs {
            println!("{ours} is {:.2} times as fast as {other}", self.unit_us(other) / self.unit_us(ours));
        }
    }
}

/// Searches in all ways, each of which finds as much.
fn search(report: &mut Report, tree: &Tree, peer: &Peer, columns: &Columns, windows: &[([f64; 2], [f64; 2])]) {
    let queries: Vec<_> =
        windows.iter().map(|(low, high)| BoundsQuery::overlaps(Bounds::new(*low, *high).expect("a box"))).collect();
    let single = report.run("range, one by one", windows.len(), || {
        let mut sum = 0;
        for query in &queries {
            let _: ControlFlow<()> = tree.search(query, |rid| {
                sum += rid.slot();
                ControlFlow::Continue(())
            });
        }
        sum
    });
    let with_peer: usize = report.run("range, rstar", windows.len(), || {
        let boxes = |(low, high): &([f64; 2], [f64; 2])| -> usize {
            peer.locate_in_envelope_intersecting(AABB::from_corners(*low, *high)).map(|of| of.data as usize).sum()
        };
        windows.iter().map(boxes).sum()
    });
    let mut batch = |name, device: &Cpu| {
        report.run(name, windows.len(), || {
            let mut sum = 0;
            tree.search_batch_each(&queries, device, |_, rid| sum += rid.slot());
            sum
        })
    };
    let sums = [batch("range, batch", &Cpu::default()), batch("range, batch, two threads", &two_threads())];
    let in_order = report
        .run("range, batch, results by query", windows.len(), || tree.search_batch(&queries, &Cpu::default()).len());
    let few = &windows[..windows.len().min(100)];
    let scanned: usize = report
        .run("range, scan of all boxes", few.len(), || few.iter().map(|(low, high)| columns.count(*low, *high)).sum());
    assert!(sums.iter().all(|sum| *sum == single) && single == with_peer, "all find the same boxes");
    let of_few: usize = queries[..few.len()].iter().map(|query| tree.rids(query).len()).sum();
    assert!(of_few == scanned && in_order >= scanned, "the scan finds as many");
}

fn two_threads() -> Cpu {
    Cpu::new(NonZero::new(2).expect("two"))
}

/// Boxes one by one, and searching what has come about.
fn insert(
    report: &mut Report,
    entries: &[(Bounds<f64, 2>, Rid)],
    rectangles: &[GeomWithData<Rectangle<[f64; 2]>, u64>],
    windows: &[([f64; 2], [f64; 2])],
) {
    let tree = report.run("insert", entries.len(), || {
        let tree = Tree::new();
        entries.iter().for_each(|(bounds, rid)| tree.insert(bounds, *rid));
        tree
    });
    let peer = report.run("insert, rstar", entries.len(), || {
        let mut peer = Peer::new();
        rectangles.iter().for_each(|rectangle| peer.insert(*rectangle));
        peer
    });
    let found: usize = report.run("range after inserts", windows.len(), || {
        let query =
            |(low, high): &([f64; 2], [f64; 2])| BoundsQuery::overlaps(Bounds::new(*low, *high).expect("a box"));
        windows.iter().map(|window| tree.rids(&query(window)).len()).sum()
    });
    let with_peer: usize = report.run("range after inserts, rstar", windows.len(), || {
        let boxes = |(low, high): &([f64; 2], [f64; 2])| {
            peer.locate_in_envelope_intersecting(AABB::from_corners(*low, *high)).count()
        };
        windows.iter().map(boxes).sum()
    });
    assert_eq!(found, with_peer, "both find the same boxes");
}

/// The ten nearest of points.
fn nearest(report: &mut Report, tree: &Tree, peer: &Peer, windows: &[([f64; 2], [f64; 2])]) {
    let few = &windows[..windows.len().min(2_000)];
    let ours: f64 = report.run("10 nearest", few.len(), || {
        few.iter().map(|(at, _)| tree.nearest(at, 10, |_| true).last().map_or(0.0, |found| found.0)).sum()
    });
    let theirs: f64 = report.run("10 nearest, rstar", few.len(), || {
        let farthest = |at: &[f64; 2]| {
            peer.nearest_neighbor_iter_with_distance_2(*at).take(10).last().map_or(0.0, |found| found.1.sqrt())
        };
        few.iter().map(|(at, _)| farthest(at)).sum()
    });
    assert!((ours - theirs).abs() <= 1e-6 * theirs, "{ours} {theirs}");
}

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

/// Figures 4 to 6: descents over batches, by slots and queries.
fn figures(entries: &[(Bounds<f64, 2>, Rid)], windows: &[([f64; 2], [f64; 2])], rounds: usize) {
    let sizes: Vec<usize> =
        [16, 64, 256, 1_024, 4_096, 16_384].into_iter().filter(|size| *size <= windows.len()).collect();
    println!(
        "{:>6} {:>8} {:>14} {:>12} {:>9} {:>12}",
        "slots", "queries", "descents, us", "batch, us", "speed-up", "in tests"
    );
    for slots in [8, 16, 32, SLOTS_MAX] {
        let tree = Tree::load(entries.iter().copied(), slots, 100, NonZero::<usize>::MIN);
        for size in &sizes {
            let mut times = [vec![], vec![], vec![]];
            for round in 0..rounds {
                let from = round * 31 % (windows.len() - size + 1);
                let queries: Vec<_> = windows[from..from + size]
                    .iter()
                    .map(|(low, high)| BoundsQuery::overlaps(Bounds::new(*low, *high).expect("a box")))
                    .collect();
                let started = Instant::now();
                let descents: usize = queries.iter().map(|query| tree.rids(query).len()).sum();
                times[0].push(started.elapsed().as_secs_f64());
                let device = Timed::default();
                let started = Instant::now();
                let batch = tree.search_batch(&queries, &device).len();
                times[1].push(started.elapsed().as_secs_f64());
                times[2].push(device.scan_ns.into_inner() as f64 / 1e9);
                assert_eq!(descents, batch, "both find the same boxes");
            }
            let [descents, batch, tests] = times.map(|mut seconds| {
                seconds.sort_by(f64::total_cmp);
                seconds[seconds.len() / 2] * 1e6 / *size as f64
            });
            let (speed_up, share) = (descents / batch, 100.0 * tests / batch);
            println!("{slots:>6} {size:>8} {descents:>14.3} {batch:>12.3} {speed_up:>9.2} {share:>10.0} %");
        }
    }
}

/// Batches of many sizes, each the way that the scheduler decides.
fn schedule(tree: &Tree, windows: &[([f64; 2], [f64; 2])]) {
    let mut scheduler = BatchScheduler::new(2);
    let device = Cpu::default();
    let devices: [&dyn Device<RTree<f64, 2>>; 1] = [&device];
    for batch in 0..600 {
        let size = (1usize << (batch * 5 % 11)).min(windows.len());
        let queries: Vec<_> = windows[batch % (windows.len() - size + 1)..][..size]
            .iter()
            .map(|(low, high)| BoundsQuery::overlaps(Bounds::new(*low, *high).expect("a box")))
            .collect();
        tree.search_scheduled(&queries, &mut scheduler, &devices);
    }
    let regret = scheduler.regret();
    println!("scheduler: regret {:.1} % over {} audits", 100.0 * regret.share(), regret.audits);
}

fn run(box_count: usize, query_count: usize, rounds: usize) {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let boxes: Vec<_> = (0..box_count).map(|_| numbers.bounds(SIDE_MAX)).collect();
    let windows: Vec<_> = (0..query_count).map(|_| numbers.bounds(WINDOW * 2.0)).collect();
    let entries: Vec<_> = boxes
        .iter()
        .zip(0..)
        .map(|((low, high), at)| (Bounds::new(*low, *high).expect("a box"), Rid::base(0, at)))
        .collect();
    let rectangles: Vec<_> = boxes
        .iter()
        .zip(0..)
        .map(|((low, high), at)| GeomWithData::new(Rectangle::from_corners(*low, *high), at))
        .collect();
    let columns = Columns(
        [0, 1, 2, 3]
            .map(|end| boxes.iter().map(|(low, high)| if end < 2 { low[end] } else { high[end - 2] }).collect()),
    );
    let mut report = Report { lines: vec![] };
    let few = box_count / 5;
    for _ in 0..rounds {
        let load =
            |threads| Tree::load(entries.iter().copied(), SLOTS_MAX, 100, NonZero::new(threads).expect("one or two"));
        let tree = report.run("bulk load, one thread", box_count, || load(1));
        drop(report.run("bulk load, two threads", box_count, || load(2)));
        let peer = report.run("bulk load, rstar", box_count, || Peer::bulk_load(rectangles.clone()));
        insert(&mut report, &entries[..few], &rectangles[..few], &windows);
        search(&mut report, &tree, &peer, &columns, &windows);
        nearest(&mut report, &tree, &peer, &windows);
    }
    report.print(&[
        ("bulk load, one thread", "bulk load, rstar"),
        ("bulk load, two threads", "bulk load, rstar"),
        ("insert", "insert, rstar"),
        ("range after inserts", "range after inserts, rstar"),
        ("range, one by one", "range, rstar"),
        ("range, batch", "range, rstar"),
        ("range, batch, two threads", "range, rstar"),
        ("range, batch, results by query", "range, rstar"),
        ("range, one by one", "range, scan of all boxes"),
        ("10 nearest", "10 nearest, rstar"),
    ]);
    figures(&entries, &windows, rounds);
    schedule(&Tree::load(entries, SLOTS_MAX, 100, NonZero::<usize>::MIN), &windows);
}

fn main() {
    let argument = |at, default| std::env::args().nth(at).and_then(|number| number.parse().ok()).unwrap_or(default);
    run(argument(1, 1_000_000), argument(2, 20_000), argument(3, 5));
}

#[test]
fn all_ways_find_the_same_boxes() {
    run(3_000, 200, 1);
}
