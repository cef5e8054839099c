//! Bitwise-distributed columns beside a plain scan of all points by vectors, one block by block for all
//! queries, and a tree of points, on trajectories along roads.
//!
//! `cargo run --release -p lstore-index --example bitwise -- [points] [budget in MiB] [rounds]`
//!
//! Vehicles move along straight roads between towns, and stand where roads meet; coordinates are units of 10^-5 degrees, as in the
//! paper's data. Windows lie around points of the data, with sides up to 5,000 units. The figures are medians of the rounds, in
//! microseconds a query; what a plain scan takes is measured with few queries, as each takes the same.
use std::num::NonZero;
use std::time::Instant;

use index::{BitwiseColumns, Bounds, BoundsQuery, Cpu, Gist, RTree, SLOTS_MAX};
use types::Rid;

const QUERIES_MAX: usize = 2_048;
const SCANNED: usize = 16;
const SIDE_MAX: u64 = 5_000;

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }
}

/// Points of trips along roads: `[x, y]`.
fn trajectories(count: usize, numbers: &mut Numbers) -> [Vec<i64>; 2] {
    let towns: Vec<[i64; 2]> = (0..300)
        .map(|_| [300_000 + numbers.below(900_000) as i64, 4_700_000 + numbers.below(800_000) as i64])
        .collect();
    let near = |from: usize, numbers: &mut Numbers| {
        let apart = |to: &usize| (0..2).map(|d| (towns[*to][d] - towns[from][d]).abs()).sum::<i64>();
        let candidates: Vec<usize> = (0..8).map(|_| numbers.below(300) as usize).filter(|to| *to != from).collect();
        candidates.into_iter().min_by_key(apart).unwrap_or((from + 1) % 300)
    };
    let mut points = [Vec::with_capacity(count), Vec::with_capacity(count)];
    let mut town = 0;
    while points[0].len() < count {
        let next = near(town, numbers);
        let (from, to) = (towns[town], towns[next]);
        let steps = 200 + numbers.below(800) as i64;
        for step in 0..steps {
            // Slow at both ends, where towns are.
            let share = step as f64 / steps as f64;
            let share = share * share * (3.0 - 2.0 * share);
            for d in 0..2 {
                let off_road = numbers.below(40) as i64 - 20;
                points[d].push(from[d] + ((to[d] - from[d]) as f64 * share) as i64 + off_road);
            }
        }
        town = next;
    }
    points.iter_mut().for_each(|column| column.truncate(count));
    points
}

#[inline(always)]
fn scan_body(columns: [&[i64]; 2], window: &Bounds<i64, 2>, found: &mut Vec<u32>) {
    let (low, high) = (window.low(), window.high());
    for (part, (x, y)) in columns[0].chunks(64).zip(columns[1].chunks(64)).enumerate() {
        let mut bytes = [0u8; 64];
        for (byte, (x, y)) in bytes.iter_mut().zip(x.iter().zip(y)) {
            *byte = u8::from((low[0] <= *x) & (*x <= high[0]) & (low[1] <= *y) & (*y <= high[1]));
        }
        if bytes != [0; 64] {
            let hits = bytes.iter().zip(0..).filter(|(byte, _)| **byte != 0);
            found.extend(hits.map(|(_, at)| part as u32 * 64 + at));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512vl,avx512bw,avx512dq")]
fn scan_wide(columns: [&[i64]; 2], window: &Bounds<i64, 2>, found: &mut Vec<u32>) {
    scan_body(columns, window, found);
}

/// The places of all points in a window.
fn scan(columns: [&[i64]; 2], window: &Bounds<i64, 2>) -> Vec<u32> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        // SAFETY: the processor has what was asked for.
        unsafe { scan_wide(columns, window, &mut found) };
        return found;
    }
    scan_body(columns, window, &mut found);
    found
}

/// The places of all points in each window, found in one pass over the points, block by block in a near cache: the paper's
/// QueryJoin on plain data.
fn scan_blocks(columns: [&[i64]; 2], windows: &[Bounds<i64, 2>]) -> usize {
    let mut count = 0;
    for (x, y) in columns[0].chunks(1 << 14).zip(columns[1].chunks(1 << 14)) {
        count += windows.iter().map(|window| scan([x, y], window).len()).sum::<usize>();
    }
    count
}

fn seconds<R>(body: impl FnOnce() -> R) -> (f64, R) {
    let started = Instant::now();
    let result = body();
    (started.elapsed().as_secs_f64(), result)
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn print_build(columns: &BitwiseColumns<2>, build_s: f64) {
    let (split, image) = (columns.split(), columns.image());
    println!(
        "{} points, {} bits a coordinate: prefix {}, suffix {}; optimum of figure 7 {:?}, relaxed {:?}",
        columns.len(),
        columns.model().coordinate_bits(),
        split.prefix_bits,
        split.suffix_bits,
        columns.model().optimum(),
        columns.model().relaxed(),
    );
    println!(
        "image {:.1} MiB, apart {:.1} MiB, {} clusters in use; built at {:.1} million points a second",
        image.memory() as f64 / 1_048_576.0,
        columns.memory_apart() as f64 / 1_048_576.0,
        image.clusters_in_use(),
        columns.len() as f64 / build_s / 1e6,
    );
}

fn run(point_count: usize, budget_mib: usize, rounds: usize) {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let data = trajectories(point_count, &mut numbers);
    let rids: Vec<Rid> = (0..point_count).map(|slot| Rid::base(0, slot)).collect();
    let windows: Vec<Bounds<i64, 2>> = (0..QUERIES_MAX)
        .map(|_| {
            let at = numbers.below(point_count as u64) as usize;
            let half = [0, 1].map(|_| numbers.below(SIDE_MAX / 2) as i64);
            let corner = |sign: i64| [data[0][at] + sign * half[0], data[1][at] + sign * half[1]];
            Bounds::new(corner(-1), corner(1)).expect("low ends below high ends")
        })
        .collect();
    let both = [&data[0][..], &data[1][..]];
    let build = || BitwiseColumns::new(both, &rids, budget_mib << 20).expect("the budget is enough");
    let (build_s, columns) = seconds(build);
    print_build(&columns, build_s);
    let entries =
        rids.iter().enumerate().map(|(at, rid)| (Bounds::point([data[0][at], data[1][at]]).expect("numbers"), *rid));
    let tree = Gist::<RTree<i64, 2>>::load(entries, SLOTS_MAX, 100, NonZero::new(2).expect("two"));
    let queries: Vec<_> = windows.iter().map(|window| BoundsQuery::overlaps(*window)).collect();
    println!(
        "{:>8} {:>12} {:>12} {:>12} {:>12} {:>14} {:>10}",
        "queries", "plain scan", "blocks", "bitwise", "tree, batch", "rows a query", "ratio"
    );
    for count in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, QUERIES_MAX] {
        let mut times = [vec![], vec![], vec![], vec![]];
        let mut rows = 0;
        for _ in 0..rounds {
            let few = count.min(SCANNED);
            let (plain_s, plain) =
                seconds(|| windows[..few].iter().map(|window| scan(both, window)).collect::<Vec<_>>());
            let (blocks_s, of_blocks) = seconds(|| scan_blocks(both, &windows[..few]));
            let (bitwise_s, matches) = seconds(|| columns.search_batch(&windows[..count], &Cpu::default()));
            let (tree_s, of_tree) = seconds(|| tree.search_batch(&queries[..count], &Cpu::default()));
            times[0].push(plain_s / few as f64);
            times[1].push(bitwise_s / count as f64);
            times[2].push(tree_s / count as f64);
            times[3].push(blocks_s / few as f64);
            rows = matches.len();
            assert_eq!(of_blocks, plain.iter().map(Vec::len).sum::<usize>(), "blocks have as many");
            assert_eq!(of_tree.len(), rows, "the tree finds as many");
            for (number, places) in plain.iter().enumerate() {
                let mut found: Vec<u32> = matches.of_query(number).iter().map(|rid| rid.slot() as u32).collect();
                found.sort_unstable();
                assert_eq!(found, *places, "both find the same points");
            }
        }
        let [plain, bitwise, of_tree, blocks] = times.map(|seconds| median(seconds) * 1e6);
        let of_query = rows as f64 / count as f64;
        println!(
            "{count:>8} {plain:>12.1} {blocks:>12.1} {bitwise:>12.2} {of_tree:>12.2} {of_query:>14.0} {:>10.1}",
            plain / bitwise
        );
    }
}

fn main() {
    let argument = |at, default| std::env::args().nth(at).and_then(|number| number.parse().ok()).unwrap_or(default);
    run(argument(1, 10_000_000), argument(2, 32), argument(3, 5));
}

#[test]
fn both_find_the_same_points() {
    run(20_000, 1, 1);
}
