//! The promise of each isolation level, as an order of begins and commits.
//!
//! Every transaction has two points, its begin and its commit, and the levels differ in which points an edge of the
//! graph ties together. A circle of points cannot be in time, so it is an anomaly of the level.
//!
//! ```text
//!                      ww, wr                   rw                       session, real time
//!   READ COMMITTED     commit A before commit B begin A before commit B  commit A before begin B
//!   SNAPSHOT           commit A before begin B  begin A before commit B  commit A before begin B
//!   SERIALIZABLE       commit A before begin B  commit A before begin B  commit A before begin B
//!   all                begin A before commit A
//! ```
//!
//! Under READ COMMITTED a statement looks somewhere between begin and commit, so a transaction may see one half of
//! another; but what it misses is committed after its begin, and a begin comes after what ended before it. Under
//! SNAPSHOT all reads look at the begin, and a writer begins after the commit of the transaction that it
//! overwrites. A commit leads to begins only, and an rw edge leads from a begin to a commit, so two rw edges in
//! succession are on no circle: this is the theorem of Fekete et al., "Making Snapshot Isolation Serializable",
//! TODS 2005, section 3, as a graph. Under SERIALIZABLE begin and commit are one.
//! SERIALIZABLE begin and commit are one.

use super::Strictness;
use super::dependencies::{Graph, Label};

/// Which circles are looked for, from few to many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Promise {
    /// By ww edges alone: G0.
    Writes,
    /// By ww and wr edges: G1c.
    Information,
    /// Also by rw edges of a reader that follows another transaction in its session or in real time.
    Fresh,
    /// All that SNAPSHOT forbids.
    Snapshot,
    /// All that SERIALIZABLE forbids.
    Serializable,
}

/// A begin or a commit: twice the node, plus one for the commit.
pub(super) type Point = u32;

const BEGIN: u32 = 0;
const COMMIT: u32 = 1;

/// The graph as a promise and a strictness see it.
#[derive(Clone, Copy)]
pub(super) struct Points<'g> {
    pub(super) graph: &'g Graph,
    pub(super) promise: Promise,
    pub(super) strictness: Strictness,
}

impl Points<'_> {
    pub(super) fn count(&self) -> usize {
        self.graph.node_count() * 2
    }

    /// The points that an edge ties together, if it counts.
    pub(super) fn ends_of(&self, edge: u32) -> Option<(Point, Point)> {
        let edge = &self.graph.edges[edge as usize];
        let (leaves, reaches) = match edge.label {
            Label::WriteRead if self.promise < Promise::Information => return None,
            Label::WriteWrite | Label::WriteRead if self.promise < Promise::Snapshot => (COMMIT, COMMIT),
            Label::WriteWrite | Label::WriteRead => (COMMIT, BEGIN),
            Label::ReadWrite if self.promise < Promise::Fresh => return None,
            Label::ReadWrite if self.promise < Promise::Serializable => (BEGIN, COMMIT),
            Label::Session if self.strictness < Strictness::Session => return None,
            Label::RealTime | Label::Passing if self.strictness < Strictness::RealTime => return None,
            Label::ReadWrite | Label::Session | Label::RealTime | Label::Passing => (COMMIT, BEGIN),
        };
        Some((edge.from * 2 + leaves, edge.to * 2 + reaches))
    }

    /// The next point behind `point`, and the edge that leads there (none leads from a begin to its own commit).
    /// `cursor` starts at 0 and keeps the place.
    pub(super) fn next(&self, point: Point, cursor: &mut u32) -> Option<(Point, Option<u32>)> {
        let is_begin = point % 2 == BEGIN;
        if is_begin && *cursor == 0 {
            *cursor = 1;
            return Some((point + 1, None));
        }
        let edges = self.graph.edges_from(point / 2);
        while let Some(edge) = Some(edges.start + *cursor - u32::from(is_begin)).filter(|edge| edges.contains(edge)) {
            *cursor += 1;
            if let Some((leaves, reaches)) = self.ends_of(edge)
                && leaves == point
            {
                return Some((reaches, Some(edge)));
            }
        }
        None
    }
}

/// The strongly connected components, those of more than one point by themselves, smallest first.
#[derive(Debug, Default)]
pub(super) struct Components {
    /// The component of each point.
    pub(super) of: Vec<u32>,
    /// The points of each component that has several.
    pub(super) circular: Vec<Vec<Point>>,
}

const UNVISITED: u32 = u32::MAX;

impl Components {
    /// Tarjan's algorithm, with a stack of its own instead of recursion.
    pub(super) fn of(points: &Points) -> Components {
        let mut search = Search {
            index: vec![UNVISITED; points.count()],
            low: vec![0; points.count()],
            found: Components { of: vec![UNVISITED; points.count()], circular: Vec::new() },
            ..Search::default()
        };
        for root in 0..points.count() as u32 {
            if search.index[root as usize] == UNVISITED {
                search.visit_from(root, points);
            }
        }
        search.found.circular.sort_by_key(Vec::len);
        search.found
    }
}

#[derive(Default)]
struct Search {
    /// In which order points were reached.
    index: Vec<u32>,
    /// The lowest index reachable from below a point, among those that have no component yet.
    low: Vec<u32>,
    reached: u32,
    components: u32,
    without_component: Vec<Point>,
    path: Vec<(Point, u32)>,
    found: Components,
}

impl Search {
    fn visit_from(&mut self, root: Point, points: &Points) {
        self.enter(root);
        while let Some((point, cursor)) = self.path.last_mut() {
            let point = *point;
            match points.next(point, cursor) {
                Some((next, _)) if self.index[next as usize] == UNVISITED => self.enter(next),
                Some((next, _)) if self.found.of[next as usize] == UNVISITED => {
                    self.low[point as usize] = self.low[point as usize].min(self.index[next as usize]);
                }
                Some(_) => {}
                None => self.leave(point),
            }
        }
    }

    fn enter(&mut self, point: Point) {
        self.index[point as usize] = self.reached;
        self.low[point as usize] = self.reached;
        self.reached += 1;
        self.without_component.push(point);
        self.path.push((point, 0));
    }

    fn leave(&mut self, point: Point) {
        self.path.pop();
        let low = self.low[point as usize];
        if let Some(&(above, _)) = self.path.last() {
            self.low[above as usize] = self.low[above as usize].min(low);
        }
        if low != self.index[point as usize] {
            return;
        }
        let members = self.without_component.iter().rposition(|&member| member == point);
        let members = self.without_component.split_off(members.expect("a point is kept until it has a component"));
        members.iter().for_each(|&member| self.found.of[member as usize] = self.components);
        self.components += 1;
        if members.len() > 1 {
            self.found.circular.push(members);
        }
    }
}
