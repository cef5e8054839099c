//! Bulk load, sort-tile-recursive (Leutenegger, Lopez and Edgington, *STR: A Simple and Efficient Algorithm for R-Tree Packing*,
//! 1997).
//!
//! ```text
//!  first dimension: slabs with equally many entries; second dimension: each slab cut into nodes
//!  +-------+-------+-------+
//!  |   .   |  .    |       |
//!  |-------|   .   |   .   |      Nothing is sorted: a stretch of entries is cut at a boundary near its middle, by selecting
//!  |  . .  |-------|-------|      the entry that belongs there, and both parts go on in the same way, in threads of their own
//!  |-------|  .  . | .   . |      as long as there are some.
//!  | .     |   .   |-------|
//!  +-------+-------+-------+
//! ```
//!
//! The nodes of a level are the entries of the next one.
use std::cmp::Ordering;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use types::Rid;

use super::extension::{Extension, SLOTS_MAX};
use super::node::{Content, Node, Target};
use super::tree::Gist;
use super::write::cover;

/// The fewest entries that are worth a thread.
const ENTRIES_PER_THREAD: usize = 1 << 13;

/// How a level is tiled.
#[derive(Clone, Copy)]
struct Tiling {
    /// How many entries a node gets.
    fill: usize,
    dimensions: usize,
}

impl<E: Extension> Gist<E> {
    /// Builds a tree of entries, in up to `threads` threads. Nodes have `slots` slots ([`Gist::with_slots`]) and are filled to about
    /// `fill_percent` (50 to 100).
    pub fn load(
        entries: impl IntoIterator<Item = (E::Value, Rid)>,
        slots: usize,
        fill_percent: usize,
        threads: NonZero<usize>,
    ) -> Self {
        let entries = entries.into_iter().map(|(value, rid)| (E::compress(&value), rid.word()));
        let mut records: Vec<(E::Key, u64)> = entries.collect();
        let empty = Self::with_slots(slots);
        if records.is_empty() {
            return empty;
        }
        let slots = empty.slots().min(SLOTS_MAX);
        let tiling =
            Tiling { fill: (slots * fill_percent.clamp(50, 100) / 100).max(2), dimensions: E::DIMENSIONS.max(1) };
        let entry_count = records.len() as u64;
        let mut nodes = level::<E, u64>(&mut records, 0, tiling, threads.get(), |word| Target::Record(*word));
        drop(records);
        let mut of_level = 1;
        while nodes.len() > 1 {
            nodes = level::<E, Arc<Node<E>>>(&mut nodes, of_level, tiling, threads.get(), |node| {
                Target::Child(node.clone())
            });
            of_level += 1;
        }
        nodes.pop().map_or(empty, |(_, root)| Self::with_root(slots, root, entry_count))
    }
}

/// The nodes of a level, with the keys that cover them, from the entries that they are to have.
fn level<E: Extension, T: Send + Sync>(
    entries: &mut [(E::Key, T)],
    level: usize,
    tiling: Tiling,
    threads: usize,
    target: impl Fn(&T) -> Target<E> + Sync,
) -> Vec<(E::Key, Arc<Node<E>>)> {
    let compare = |dimension: usize, one: &(E::Key, T), other: &(E::Key, T)| E::compare(dimension, &one.0, &other.0);
    tile(entries, 0, tiling, threads, &compare);
    let node = |entries: &[(E::Key, T)]| {
        let mut content = Content::new(level);
        entries.iter().for_each(|(key, of)| content.push(key, target(of)));
        (cover(&content), Node::new(content))
    };
    let of_thread = entries.len().div_ceil(threads).max(ENTRIES_PER_THREAD).next_multiple_of(tiling.fill);
    if entries.len() <= of_thread {
        return entries.chunks(tiling.fill).map(node).collect();
    }
    thread::scope(|scope| {
        let parts: Vec<_> = entries
            .chunks(of_thread)
            .map(|part| scope.spawn(|| part.chunks(tiling.fill).map(node).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().expect("a part that panics ends the load")).collect()
    })
}

/// Arranges entries such that each stretch of `tiling.fill` lies close together, from a dimension on.
fn tile<T: Send>(
    entries: &mut [T],
    dimension: usize,
    tiling: Tiling,
    threads: usize,
    compare: &(impl Fn(usize, &T, &T) -> Ordering + Sync),
) {
    let node_count = entries.len().div_ceil(tiling.fill);
    let left = tiling.dimensions - dimension;
    if node_count <= 1 {
        return;
    }
    if left == 1 {
        return cut(entries, tiling.fill, threads, &|one, other| compare(dimension, one, other), &|_, _| {});
    }
    let slab_count = (node_count as f64).powf(1.0 / left as f64).ceil().max(1.0) as usize;
    let slab = node_count.div_ceil(slab_count) * tiling.fill;
    let within = |slab: &mut [T], threads| tile(slab, dimension + 1, tiling, threads, compare);
    cut(entries, slab, threads, &|one, other| compare(dimension, one, other), &within);
}

/// Arranges entries such that stretches of length `run` are in order, the entries of a stretch in any; calls `within` for
/// each stretch.
fn cut<T: Send>(
    entries: &mut [T],
    run: usize,
    threads: usize,
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
    within: &(impl Fn(&mut [T], usize) + Sync),
) {
    if entries.len() <= run {
        return within(entries, threads);
    }
    let middle = entries.len().div_ceil(run) / 2 * run;
    entries.select_nth_unstable_by(middle, compare);
    let (low, high) = entries.split_at_mut(middle);
    if threads > 1 && low.len() >= ENTRIES_PER_THREAD {
        thread::scope(|scope| {
            scope.spawn(|| cut(low, run, threads / 2, compare, within));
            cut(high, run, threads - threads / 2, compare, within);
        });
    } else {
        cut(low, run, 1, compare, within);
        cut(high, run, 1, compare, within);
    }
}
