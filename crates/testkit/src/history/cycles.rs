//! Finds circles, short ones, and tells their kinds.
//!
//! For each promise and strictness the points are cut into strongly connected components (linear); without one of
//! several points there is no circle, and then none for a lesser promise either. In each component some edges are
//! taken, and the cheapest way back from each is looked for, where rw edges cost most and those of real time and
//! session come next: so a circle is told with as little as it needs, a read skew before a long fork before a write skew,
//! and by data alone before real time. A circle's kind is read off its edges.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::dependencies::{Graph, Label};
use super::explain::circle;
use super::points::{Components, Point, Points, Promise};
use super::report::Findings;
use super::{History, Kind, Strictness};

/// In so many components of each search circles are looked for; one is enough for a verdict.
const COMPONENTS: usize = 4;

/// So many edges of a component are followed back at first, and each with so much effort: short circles are found so.
const EDGES: usize = 8;
const EFFORT: usize = 1_000;

const COST: u64 = 1;
const COST_SESSION: u64 = 1 << 20;
const COST_REAL_TIME: u64 = 1 << 21;
const COST_READ_WRITE: u64 = 1 << 40;

/// A step of a circle, between transactions.
#[derive(Clone, Copy, Debug)]
pub(super) struct CycleStep {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) label: Label,
    pub(super) key: u64,
    pub(super) before: u64,
    pub(super) after: u64,
}

/// Tells of all kinds of circles in the graph.
pub(super) fn judge(history: &History, graph: &Graph, findings: &mut Findings) {
    let strictnesses = [Strictness::RealTime, Strictness::Session, Strictness::Plain];
    let mut was_clean = [false; 3];
    for promise in [Promise::Serializable, Promise::Snapshot, Promise::Fresh, Promise::Information, Promise::Writes] {
        let mut is_clean = false;
        for (strictness, was_clean) in strictnesses.into_iter().zip(&mut was_clean) {
            is_clean = is_clean || *was_clean;
            if !is_clean {
                let points = Points { graph, promise, strictness };
                let components = Components::of(&points);
                is_clean = components.circular.is_empty();
                tell_of_circles(history, &points, &components, findings);
            }
            *was_clean = is_clean;
        }
    }
}

fn tell_of_circles(history: &History, points: &Points, components: &Components, findings: &mut Findings) {
    for members in components.circular.iter().take(COMPONENTS) {
        let Some(steps) = shortest_circle(points, components, members) else { continue };
        let kind = kind_of(&steps);
        let transactions: Vec<u32> = steps.iter().map(|step| step.from).collect();
        findings.add(kind, &transactions, || circle(history, kind, &steps));
    }
}

/// The kind of circle that these steps make.
fn kind_of(steps: &[CycleStep]) -> Kind {
    let has = |label| steps.iter().any(|step| step.label == label);
    let order = match (has(Label::RealTime), has(Label::Session)) {
        (true, _) => Strictness::RealTime,
        (false, true) => Strictness::Session,
        (false, false) => Strictness::Plain,
    };
    // Each rw edge with the edge before it, around the circle.
    let before: Vec<Label> = (0..steps.len())
        .filter(|&place| steps[place].label == Label::ReadWrite)
        .map(|place| steps[(place + steps.len() - 1) % steps.len()].label)
        .collect();
    match before.as_slice() {
        [] if has(Label::WriteRead) => Kind::CircularInformation(order),
        [] => Kind::WriteCycle(order),
        all if all.iter().all(|label| matches!(label, Label::RealTime | Label::Session)) => Kind::StaleRead(order),
        [_] => Kind::ReadSkew(order),
        all if all.contains(&Label::ReadWrite) => Kind::WriteSkew(order),
        _ => Kind::LongFork(order),
    }
}

/// The cheapest circle that was found through one of the telling edges of a component. None if the component has no
/// such edge: then a lesser promise is broken, too, and tells.
fn shortest_circle(points: &Points, components: &Components, members: &[Point]) -> Option<Vec<CycleStep>> {
    let telling = match points.promise {
        Promise::Writes => Label::WriteWrite,
        Promise::Information => Label::WriteRead,
        Promise::Fresh | Promise::Snapshot | Promise::Serializable => Label::ReadWrite,
    };
    let component = |point: Point| components.of[point as usize];
    let mut candidates: Vec<u32> = Vec::new();
    for &member in members {
        let mut cursor = 0;
        while let Some((next, edge)) = points.next(member, &mut cursor) {
            candidates.extend(edge.filter(|&edge| {
                points.graph.edges[edge as usize].label == telling && component(next) == component(member)
            }));
        }
    }
    let mut best: Option<(u64, Vec<CycleStep>)> = None;
    for &edge in candidates.iter().step_by(candidates.len().div_ceil(EDGES).max(1)) {
        let limits = Limits { cost: best.as_ref().map_or(u64::MAX, |(cost, _)| *cost), effort: EFFORT };
        if let Some((cost, way)) = way_back(points, components, edge, limits) {
            best = Some((cost, steps(points.graph, edge, &way)));
        }
    }
    let Some((_, steps)) = best else {
        // All circles are long, so any one will do; there is one through each edge within a component.
        let &edge = candidates.first()?;
        let (_, way) = way_back(points, components, edge, Limits { cost: u64::MAX, effort: usize::MAX })?;
        return Some(steps(points.graph, edge, &way));
    };
    Some(steps)
}

/// When a search is given up.
#[derive(Clone, Copy)]
struct Limits {
    /// Ways of this cost or more are of no use.
    cost: u64,
    /// So many edges are followed.
    effort: usize,
}

fn cost(label: Label) -> u64 {
    match label {
        Label::WriteWrite | Label::WriteRead => COST,
        Label::Session => COST_SESSION,
        Label::RealTime => COST_REAL_TIME,
        Label::ReadWrite => COST_READ_WRITE,
        Label::Passing => 0,
    }
}

/// The cheapest way from where an edge leads to where it begins, within limits (Dijkstra).
fn way_back(points: &Points, components: &Components, edge: u32, limits: Limits) -> Option<(u64, Vec<u32>)> {
    let (target, source) = points.ends_of(edge)?;
    let mut reached: HashMap<Point, (u64, Point, Option<u32>)> = HashMap::from([(source, (0, source, None))]);
    let mut open = BinaryHeap::from([Reverse((0, source))]);
    let mut followed = 0;
    while let Some(Reverse((so_far, point))) = open.pop().filter(|_| followed < limits.effort) {
        if point == target {
            return Some((so_far, way(&reached, source, target)));
        }
        if reached[&point].0 < so_far {
            continue;
        }
        let mut cursor = 0;
        while let Some((next, by)) = points.next(point, &mut cursor) {
            followed += 1;
            if components.of[next as usize] != components.of[target as usize] {
                continue;
            }
            let total = so_far + by.map_or(0, |by| cost(points.graph.edges[by as usize].label));
            if total < limits.cost && reached.get(&next).is_none_or(|&(known, ..)| total < known) {
                reached.insert(next, (total, point, by));
                open.push(Reverse((total, next)));
            }
        }
    }
    None
}

/// The edges from `source` to `target`.
fn way(reached: &HashMap<Point, (u64, Point, Option<u32>)>, source: Point, target: Point) -> Vec<u32> {
    let mut edges = Vec::new();
    let mut point = target;
    while point != source {
        let (_, before, by) = reached[&point];
        edges.extend(by);
        point = before;
    }
    edges.reverse();
    edges
}

/// The circle of an edge and the way back from it; what passes along the chain of ends becomes one step.
fn steps(graph: &Graph, edge: u32, way: &[u32]) -> Vec<CycleStep> {
    let mut steps: Vec<CycleStep> = Vec::new();
    for &number in std::iter::once(&edge).chain(way) {
        let edge = &graph.edges[number as usize];
        match (edge.label, steps.last_mut()) {
            (Label::Passing, Some(step)) => step.to = edge.to,
            _ => steps.push(CycleStep {
                from: edge.from,
                to: edge.to,
                label: edge.label,
                key: edge.key,
                before: edge.before,
                after: edge.after,
            }),
        }
    }
    debug_assert!(steps.iter().all(|step| (step.to as usize) < graph.transaction_count), "a circle ends in the chain");
    steps
}
