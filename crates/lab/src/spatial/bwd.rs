//! `bench bwd`: bitwise-distributed columns beside plain columns, a tree of points, and our B+tree on one coordinate.
use std::io::Write;
use std::num::NonZero;

use index::{
    BPlusTree, BitSplit, BitwiseColumns, Bounds, BoundsQuery, Cpu, Gist, Matches, RTree, SLOTS_MAX, SearchDevice,
    SpaceModel,
};
use types::Rid;

use super::args::BwdArgs;
use super::scan::PointColumns;
use super::{B_TREE, FEW, agree, timed, trajectories};
use crate::figures::{Figure, Report, grouped, in_turns};
use crate::{LabError, Progress};

const PLAIN: &str = "plain columns";
const BLOCKS: &str = "plain, by blocks";
const TREE: &str = "tree, batch";

type Tree = Gist<RTree<i64, 2>>;

/// Runs the benchmark, also on a device if there is one, and writes its report to `out`.
///
/// # Errors
/// [`LabError::Output`] if `out` does not take more; [`LabError::Failed`] if the budget is too small, or a participant finds
/// something else than the others.
pub fn bench_bwd(
    args: &BwdArgs,
    device: Option<&dyn SearchDevice>,
    progress: &dyn Progress,
    out: &mut dyn Write,
) -> Result<(), LabError> {
    let mut report = Report::new(out, args.json, "bwd", &[PLAIN, BLOCKS, TREE, B_TREE]);
    let points = trajectories::points(args.points as usize);
    let input = Input::new(&points, args.budget);
    // First, as it says whether the budget is enough.
    cuts(input.columns()?.model(), args.budget, &mut report)?;
    load(args, &input, progress, &mut report)?;
    let searched =
        Searched { points: &points, columns: input.columns()?, tree: input.tree(), b_tree: PointTree::new(&points)? };
    drop(input);
    memory(&searched, &mut report)?;
    let most = args.queries.iter().copied().max().unwrap_or(1) as usize;
    let windows = trajectories::windows(&points, most);
    for count in &args.queries {
        search(args, device, &searched, &windows[..*count as usize], progress, &mut report)?;
    }
    let (points, budget) = (grouped(args.points.into()), grouped(args.budget as u64));
    Ok(report.finish(&format!("Bitwise-distributed columns: {points} points in {budget} bytes."))?)
}

/// What structures are made from.
struct Input<'a> {
    points: &'a PointColumns,
    wide: [Vec<i64>; 2],
    rids: Vec<Rid>,
    budget_bytes: usize,
}

impl Input<'_> {
    fn new(points: &PointColumns, budget_bytes: usize) -> Input<'_> {
        let wide = [&points.x, &points.y].map(|column| column.iter().map(|value| i64::from(*value)).collect());
        let rids = (0..points.x.len()).map(|at| Rid::base(0, at)).collect();
        Input { points, wide, rids, budget_bytes }
    }

    fn columns(&self) -> Result<BitwiseColumns<2>, LabError> {
        let built = BitwiseColumns::new([&self.wide[0], &self.wide[1]], &self.rids, self.budget_bytes);
        built.map_err(|error| LabError::Failed(format!("--budget: {error}")))
    }

    fn tree(&self) -> Tree {
        let [x, y] = &self.wide;
        let point = |at: [i64; 2]| Bounds::point(at).expect("whole numbers are neither NaN nor in a wrong order");
        let entries = x.iter().zip(y).zip(&self.rids).map(|((x, y), rid)| (point([*x, *y]), *rid));
        Tree::load(entries, SLOTS_MAX, 100, NonZero::<usize>::MIN)
    }
}

/// A B+tree on x, with y for its values. No coordinate is below 0.
pub(super) struct PointTree(BPlusTree<u64, u64>);

fn key_of(x: i64, place: u32) -> u64 {
    (x.max(0) as u64) << 32 | u64::from(place)
}

impl PointTree {
    pub(super) fn new(points: &PointColumns) -> Result<PointTree, LabError> {
        let columns = points.x.iter().zip(&points.y).zip(0..);
        let mut entries: Vec<(u64, u64)> =
            columns.map(|((x, y), place)| (key_of(i64::from(*x), place), *y as u64)).collect();
        entries.sort_unstable();
        let tree = BPlusTree::from_sorted(entries, 100);
        tree.map(PointTree).map_err(|error| LabError::Failed(error.to_string()))
    }

    /// How many points there are in a window, edges included.
    pub(super) fn count(&self, window: &Bounds<i64, 2>) -> usize {
        let (low, high) = (window.low(), window.high());
        let candidates = self.0.range(key_of(low[0], 0)..=key_of(high[0], u32::MAX));
        candidates.filter(|(_, y)| low[1] <= *y as i64 && *y as i64 <= high[1]).count()
    }
}

/// Figure 6, the most bits that cuts keep by their prefix, and the cuts that are found.
fn cuts(model: &SpaceModel, budget_bytes: usize, report: &mut Report<'_>) -> Result<(), LabError> {
    let most = model.coordinate_bits();
    for prefix_bits in 1..=most {
        let suffixes = 1..=(most - prefix_bits).min(SpaceModel::SUFFIX_BITS_MAX);
        let mut cuts = suffixes.map(|suffix_bits| BitSplit { prefix_bits, suffix_bits });
        if let Some(cut) = cuts.rfind(|cut| model.bits(*cut) <= budget_bytes as u128 * 8) {
            let case = format!("cuts with p = {prefix_bits}");
            report.push(Figure::rate(&case, "p + s", "bits", &[cut.kept_bits().into()]))?;
        }
    }
    let found = [
        ("cut by the search (figure 7)", model.optimum()),
        ("cut by the relaxation", model.relaxed()),
        ("cut that is taken", model.choose()),
    ];
    for (case, cut) in found.into_iter().filter_map(|(case, cut)| Some((case, cut?))) {
        report.push(Figure::rate(case, "prefix p", "bits", &[cut.prefix_bits.into()]))?;
        report.push(Figure::rate(case, "suffix s", "bits", &[cut.suffix_bits.into()]))?;
        report.push(Figure::amount(case, "space by the model", "MiB", &[mib(model.bits(cut) as f64 / 8.0)]))?;
    }
    Ok(())
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// Figure 10: reading the columns, and what clustering them adds; the others as well.
fn load(args: &BwdArgs, input: &Input<'_>, progress: &dyn Progress, report: &mut Report<'_>) -> Result<(), LabError> {
    let count = input.rids.len();
    let measured = in_turns(progress, args.runs, "load", 4, |at, _| {
        let (seconds, loaded) = match at {
            0 => {
                let (seconds, columns) = timed(|| input.columns());
                (seconds, columns?.len())
            }
            1 => {
                let (seconds, copied) = timed(|| (input.points.x.clone(), input.points.y.clone()));
                (seconds, std::hint::black_box(copied).0.len())
            }
            2 => {
                let (seconds, tree) = timed(|| input.tree());
                (seconds, tree.len())
            }
            _ => {
                let (seconds, tree) = timed(|| PointTree::new(input.points));
                (seconds, tree?.0.len())
            }
        };
        agree("a load", &count, &loaded)?;
        Ok(vec![count as f64 / seconds / 1e6])
    })?;
    let figure = Figure::rate("load", "points", "M/s", &measured[0][0]).beside(PLAIN, &measured[1][0]);
    Ok(report.push(figure.beside(TREE, &measured[2][0]).beside(B_TREE, &measured[3][0]))?)
}

/// What is searched.
struct Searched<'a> {
    points: &'a PointColumns,
    columns: BitwiseColumns<2>,
    tree: Tree,
    b_tree: PointTree,
}

/// The memory of a point with each.
fn memory(searched: &Searched<'_>, report: &mut Report<'_>) -> Result<(), LabError> {
    let columns = &searched.columns;
    let of_point = |bytes: usize| [bytes as f64 / columns.len() as f64];
    let image = columns.image();
    report.push(Figure::amount("memory of a point", "in the budget", "bytes", &of_point(image.memory())))?;
    let all = of_point(image.memory() + columns.memory_apart());
    let figure =
        Figure::amount("memory of a point", "in all", "bytes", &all).beside(PLAIN, &of_point(8 * columns.len()));
    let figure = figure.beside(TREE, &of_point(searched.tree.memory().0));
    report.push(figure.beside(B_TREE, &of_point(searched.b_tree.0.bytes())))?;
    let clusters = image.clusters_in_use() as f64;
    Ok(report.push(Figure::amount("clusters", "with points", "clusters", &[clusters]))?)
}

/// Figure 11: microseconds a query, and those of the two phases, where so many are asked together.
fn search(
    args: &BwdArgs,
    beside: Option<&dyn SearchDevice>,
    searched: &Searched<'_>,
    windows: &[Bounds<i64, 2>],
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let Searched { points, columns, tree, b_tree } = searched;
    let few = &windows[..windows.len().min(FEW)];
    let queries: Vec<_> = windows.iter().map(|window| BoundsQuery::overlaps(*window)).collect();
    let device = Cpu::default();
    let places: Vec<Vec<usize>> = few.iter().map(|window| scanned(points, window)).collect();
    let few_rows: usize = places.iter().map(Vec::len).sum();
    let all_rows = columns.search_batch(windows, &device).len();
    let case = if windows.len() == 1 { "1 query".to_owned() } else { format!("{} queries", windows.len()) };
    let measured = in_turns(progress, args.runs, &case, 5, |at, _| {
        let of_few = |seconds: f64| vec![seconds * 1e6 / few.len() as f64];
        let of_all = |seconds: f64| seconds * 1e6 / windows.len() as f64;
        match at {
            0 => {
                let (first_s, partials) = timed(|| columns.preselect(windows, &device));
                let (second_s, matches) = timed(|| columns.refine(windows, &partials));
                agree("the columns", &all_rows, &matches.len())?;
                agree("the columns", &places, &(0..few.len()).map(|query| sorted(&matches, query)).collect())?;
                Ok([first_s + second_s, first_s, second_s].map(of_all).to_vec())
            }
            1 => {
                let (seconds, found) = timed(|| few.iter().map(|window| scanned(points, window)).collect());
                agree("a plain scan", &places, &found)?;
                Ok(of_few(seconds))
            }
            2 => {
                let mut found = 0;
                let (seconds, ()) = timed(|| points.scan_blocks(few, |_, _| found += 1));
                agree("a scan by blocks", &few_rows, &found)?;
                Ok(of_few(seconds))
            }
            3 => {
                let (seconds, matches) = timed(|| tree.search_batch(&queries, &device));
                agree("the tree", &all_rows, &matches.len())?;
                Ok(vec![of_all(seconds)])
            }
            _ => {
                let (seconds, found) = timed(|| few.iter().map(|window| b_tree.count(window)).sum());
                agree("the B+tree", &few_rows, &found)?;
                Ok(of_few(seconds))
            }
        }
    })?;
    let figure = Figure::amount(&case, "a query", "us", &measured[0][0]);
    let rivals = [PLAIN, BLOCKS, TREE, B_TREE].into_iter().zip(&measured[1..]);
    report.push(rivals.fold(figure, |figure, (name, values)| figure.beside(name, &values[0])))?;
    report.push(Figure::amount(&case, "preselection", "us", &measured[0][1]))?;
    report.push(Figure::amount(&case, "refinement", "us", &measured[0][2]))?;
    if let Some(device) = beside {
        super::beside::points(args, device, columns, (windows, all_rows), &case, progress, report)?;
    }
    Ok(report.push(Figure::amount(&case, "found", "rows", &[all_rows as f64 / windows.len() as f64]))?)
}

/// The places of the points in a window.
fn scanned(points: &PointColumns, window: &Bounds<i64, 2>) -> Vec<usize> {
    let mut found = Vec::new();
    points.scan(window, |place| found.push(place));
    found
}

/// The places that a query of a batch has found, in order.
fn sorted(matches: &Matches, query: usize) -> Vec<usize> {
    let mut places: Vec<usize> = matches.of_query(query).iter().map(|rid| rid.slot()).collect();
    places.sort_unstable();
    places
}
