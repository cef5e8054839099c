//! How the tree grows and shrinks: on the way down, one node and its parent at a time.
//!
//! An insert splits every full node that it comes by, so that a parent always has room for one more child. A
//! removal that leaves a node underfull goes down again and merges or evens out each underfull node with a
//! neighbour. Either way two or three nodes are latched, parent first, neighbours from left to right, none with
//! waiting: a writer that cannot have a latch at once gives back what it has and begins again.
//!
//! The root stays where it is, and what is in it moves: no pointer to it has to be watched.
//!
//! ```text
//!    root | a b c d |      split        root | . | c |        take over       root | a b c |
//!                        -------->           |     |          --------->
//!                                         | a b | | c d |     (of one child
//!                                                              that is left)
//! ```
use sync::Guard;
use sync::latch::Restart;

use super::descent::{Held, Visit, into_word};
use super::key::Key;
use super::latching::Latching;
use super::node::{Node, Shape};
use super::{BPlusTree, Value};

/// The place of a key.
pub(super) struct EntryPlace<'s, 'g, K: Key, V: Value, L: Latching> {
    pub(super) leaf: Visit<'s, 'g, K, V, L>,
    /// where in the leaf the key is, or would have to be inserted
    pub(super) index: Result<usize, usize>,
    /// the node and the place in it of the next separator on the way to the leaf
    next: Option<(Visit<'s, 'g, K, V, L>, usize)>,
}

impl<K: Key, V: Value, L: Latching> EntryPlace<'_, '_, K, V, L> {
    /// The key at which the leaf ends; `None` if it is the last one. Right if the leaf can be held afterwards.
    pub(super) fn end(&self) -> Result<Option<K::Owned>, Restart> {
        let Some((node, index)) = &self.next else { return Ok(None) };
        let end = node.key(*index)?;
        node.check()?;
        Ok(Some(end))
    }
}

impl<K: Key, V: Value, L: Latching> BPlusTree<K, V, L> {
    /// The leaf for a key, with room for it if it is not there.
    pub(super) fn place_with_room<'s, 'g>(
        &'g self,
        section: L::Section<'s>,
        key: K::Ref<'_>,
        guard: &'g Guard,
    ) -> Result<EntryPlace<'s, 'g, K, V, L>, Restart> {
        let (mut parent, mut next) = (None, None);
        let mut visit = self.begin(section, guard);
        while !visit.shape().is_leaf() {
            let index = visit.search_inner(key, false)?;
            if Node::<K, V, L>::is_full(visit.shape()) {
                return Err(self.make_room(parent, visit, index + 1, guard));
            }
            let child = visit.child(index)?;
            parent = Some((visit, index));
            if index + 1 < visit.shape().count {
                next = Some((visit, index + 1));
            }
            visit = child;
        }
        let index = visit.search_leaf(key)?;
        match index {
            Err(index) if Node::<K, V, L>::is_full(visit.shape()) => Err(self.make_room(parent, visit, index, guard)),
            _ => Ok(EntryPlace { leaf: visit, index, next }),
        }
    }

    /// Splits a full node, if it is still as it was seen. Either way the descent has to begin again.
    #[cold]
    fn make_room<'g>(
        &self,
        parent: Option<(Visit<'_, 'g, K, V, L>, usize)>,
        node: Visit<'_, 'g, K, V, L>,
        index: usize,
        guard: &'g Guard,
    ) -> Restart {
        let split = || {
            let Some((parent, child_index)) = parent else {
                split_root(&node.upgrade()?, index, guard);
                return Ok(());
            };
            let (parent, node) = (parent.upgrade()?, node.upgrade()?);
            let right = Node::new(node.shape().level);
            // SAFETY: the node is held, and no other thread knows the right one; a full node has at least four entries.
            let separator = unsafe { node.split(split_point(node.shape(), index), &right, guard) };
            // SAFETY: the parent is held.
            unsafe { parent.insert(child_index + 1, K::of(&separator), into_word(right)) };
            Ok(())
        };
        split().err().unwrap_or(Restart)
    }

    /// Merges or evens out the underfull nodes on the way to a key.
    #[cold]
    pub(super) fn tidy(&self, key: K::Ref<'_>, guard: &Guard) {
        self.latching.write(|section| {
            let mut visit = self.begin(section, guard);
            let mut is_root = true;
            while !visit.shape().is_leaf() {
                if is_root && visit.shape().count == 1 {
                    take_over_child(&visit.upgrade()?, guard)?;
                    return Err(Restart);
                }
                let index = visit.search_inner(key, false)?;
                let child = visit.child(index)?;
                if visit.shape().count > 1 && Node::<K, V, L>::is_underfull(child.shape()) {
                    join_neighbours(&visit.upgrade()?, index.max(1), guard)?;
                    return Err(Restart);
                }
                (visit, is_root) = (child, false);
            }
            visit.check()
        });
    }
}

/// Where to split: in the middle; at the end if the new entry comes there, so that keys in ascending order fill their
/// nodes.
fn split_point(shape: Shape, index: usize) -> usize {
    if index == shape.count { shape.count - 1 } else { shape.count / 2 }
}

/// Puts the contents of the root into two new nodes below it.
fn split_root<K: Key, V: Value, L: Latching>(root: &Held<'_, K, V, L>, index: usize, guard: &Guard) {
    let shape = root.shape();
    let (left, right) = (Node::new(shape.level), Node::new(shape.level));
    left.take_over(root);
    // SAFETY: no other thread knows the two, and the left one has all that the full root had: at least four entries.
    let separator = unsafe { left.split(split_point(shape, index), &right, guard) };
    let level = shape.level + 1;
    root.set_shape(Shape { level, count: 1 });
    root.set_payload(level, 0, into_word(left));
    // SAFETY: the root is held, and has no key that is stored.
    unsafe { root.insert(1, K::of(&separator), into_word(right)) };
}

/// Puts the contents of the only child into the root.
fn take_over_child<K: Key, V: Value, L: Latching>(root: &Held<'_, K, V, L>, guard: &Guard) -> Result<(), Restart> {
    let child = root.acquire_child(0, guard)?;
    root.take_over(&child);
    child.retire(guard);
    Ok(())
}

/// Merges the child at `index` into its left neighbour or lets the two have equally many entries.
fn join_neighbours<K: Key, V: Value, L: Latching>(
    parent: &Held<'_, K, V, L>,
    index: usize,
    guard: &Guard,
) -> Result<(), Restart> {
    let (left, right) = (parent.acquire_child(index - 1, guard)?, parent.acquire_child(index, guard)?);
    let level = left.shape().level;
    if ![&left, &right].iter().any(|node| Node::<K, V, L>::is_underfull(node.shape())) {
        return Ok(());
    }
    // SAFETY: the parent is held, and so are both children below.
    let separator = unsafe { parent.own_key(level + 1, index) };
    if left.shape().count + right.shape().count <= Node::<K, V, L>::merged_max(level) {
        // SAFETY: both are held, and together have less than one has room for.
        unsafe { left.merge(&right, K::of(&separator)) };
        // SAFETY: the parent is held.
        unsafe { parent.remove(index, guard) };
        right.retire(guard);
    } else {
        let word = parent.payload_word(level + 1, index);
        // SAFETY: both are held.
        let separator = unsafe { left.even_out(&right, K::of(&separator), guard) };
        // SAFETY: the parent is held.
        unsafe { parent.remove(index, guard) };
        // SAFETY: the parent is held.
        unsafe { parent.insert(index, K::of(&separator), word) };
    }
    Ok(())
}
