//! The compressed levels above the pages: a trie of 64-bit keys with nodes that hold only what is there.
//!
//! The paper wants further levels for larger keys, with "compression mechanisms for sparsely occupied nodes as well as
//! a vertical compression of node chains" (KISS-Tree, section 7). An inner node has a bitmap and a link for each bit; a
//! chain of nodes with one child is left out, so each node carries its prefix. Leaves are nodes of the third level.
//!
//! ```text
//! shifts of the inner nodes   58 52 46 40 34 28 22 16 | 11 6 |      key bits above 16 by six, the 10 of a page by five
//!
//! inner  | prefix | bitmap | shift | link | link | ...        leaf  | base | bitmap | value | ...
//! link   | address | CLOSED | FROZEN | LEAF |      zero: nothing
//! ```
//!
//! Leaves and nodes are replaced as a whole: copied, and the link to them exchanged by one compare-and-swap. So
//! that no change of a link is lost while its node is copied, the copier first freezes all links of the node. A
//! writer that wants to change a frozen link replaces the node by a copy that is not frozen and tries again, which
//! makes the copier's swap fail: no thread waits. The descent helps at the first frozen link that it meets, so a
//! link to a node that is replaced is itself never frozen.
//!
//! A link marked closed leads to a subtree that is being moved into a page; it can be read, and no longer be changed.
use sync::Guard;
use sync::zeroed::AtomicPtr;

use super::level_two::PAGE_SHIFT;
use super::link::{Child, Inner, Leaf, Link};
use super::node::{Edit, Node};

/// A node below a page with as many links, of 32, makes its page dense. Keys inserted at random over a page reach it at
/// about 31 leaves, consecutive keys at 1,280. A page costs as little memory as its part of the trie only from 90 leaves
/// on, some 60 bytes a key, and here up to 150. But an insert into a crowded trie copies long nodes: measured with keys at
/// random over all pages, 0.3 million inserts a second where pages wait for 90 leaves, against 1 to 3 million in pages,
/// and batched reads are four times slower.
const CROWDED: usize = if cfg!(shuttle) { 3 } else { 20 };

/// The trie.
pub(super) struct Trie {
    root: AtomicPtr<u8>,
}

/// The outcome of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Done,
    /// Done, and the page of the key has enough nodes to become dense.
    Crowded,
    /// The page of the key is moving, or has moved.
    Moved,
}

/// The end of a descent.
pub(super) struct SlotPlace<'g> {
    pub(super) slot: &'g AtomicPtr<u8>,
    pub(super) seen: Link,
    /// The slot that holds the node with `slot`, and what it held; `None` at the root.
    owner: Option<(&'g AtomicPtr<u8>, Link)>,
}

impl Trie {
    pub(super) fn new() -> Self {
        Trie { root: AtomicPtr::default() }
    }

    /// The root link, where a reader starts.
    #[inline]
    pub(super) fn root(&self) -> Link {
        Link::load(&self.root)
    }

    /// The node of a key.
    pub(super) fn node<'g>(&'g self, key: u64, guard: &'g Guard) -> Option<Node<'g>> {
        let mut link = self.root();
        loop {
            match link.step(key, guard) {
                Ok(next) => link = next,
                Err(node) => return node,
            }
        }
    }

    /// Goes down to the link that a change of `base` concerns, at the latest to a node with a shift below `floor`.
    /// Stops early at a frozen link, and at a closed one on the way to `base`.
    pub(super) fn descend<'g>(&'g self, base: u64, floor: u32, guard: &'g Guard) -> SlotPlace<'g> {
        let mut place = SlotPlace { slot: &self.root, seen: self.root(), owner: None };
        loop {
            if place.seen.is_frozen() || place.seen.is_closed() {
                return place;
            }
            let Child::Inner(inner) = place.seen.child(guard) else { return place };
            if inner.shift() < floor || !inner.covers(base) {
                return place;
            }
            let Some(slot) = inner.slot(base) else { return place };
            place = SlotPlace { slot, seen: Link::load(slot), owner: Some((place.slot, place.seen)) };
        }
    }

    /// Applies an edit to the leaf of its keys.
    pub(super) fn change<E: Edit>(&self, edit: &mut E, guard: &Guard) -> Outcome {
        loop {
            let place = self.descend(edit.base(), 0, guard);
            if place.seen.is_frozen() {
                place.thaw(guard);
            } else if let Some(outcome) = self.attempt(&place, edit, guard) {
                return outcome;
            }
        }
    }

    /// Tries an edit at the end of a descent; `None` if another thread was quicker.
    fn attempt<E: Edit>(&self, place: &SlotPlace<'_>, edit: &mut E, guard: &Guard) -> Option<Outcome> {
        let base = edit.base();
        let child = place.seen.child(guard);
        let old = match child {
            Child::Leaf(leaf) if leaf.base() == base => Some(leaf),
            Child::Inner(inner) if place.seen.is_closed() && is_same_page(inner.prefix(), base) => {
                return Some(Outcome::Moved);
            }
            _ => None,
        };
        let old_node = old.map(Leaf::node);
        let Some(bitmap) = edit.plan(old_node) else { return Some(Outcome::Done) };
        if bitmap == 0 {
            let leaf = old?;
            place.swap(Link::EMPTY)?;
            // SAFETY: this thread has taken the leaf out of its link.
            unsafe { leaf.retire(guard) };
            self.prune(base, guard);
            return Some(Outcome::Done);
        }
        // SAFETY: the plan is for `old_node`, and `write` gets the fresh memory of a leaf for this bitmap.
        let leaf = Leaf::create(base, bitmap, |memory| unsafe { edit.write(old_node, bitmap, memory) });
        let mut outcome = Outcome::Done;
        let new = match child {
            Child::Empty => leaf,
            Child::Leaf(_) if old.is_some() => leaf,
            Child::Leaf(other) => Inner::fork(place.seen, other.base(), leaf, base),
            Child::Inner(inner) if !inner.covers(base) => Inner::fork(place.seen, inner.prefix(), leaf, base),
            Child::Inner(inner) => {
                inner.freeze();
                let (copy, len) = inner.copy(Some((base, leaf)));
                if inner.shift() < PAGE_SHIFT && len >= CROWDED {
                    outcome = Outcome::Crowded;
                }
                copy
            }
        };
        if place.swap(new).is_none() {
            // SAFETY: neither was published, nor seen by another thread.
            unsafe {
                if new != leaf {
                    new.free();
                }
                leaf.free();
            }
            return None;
        }
        match child {
            // SAFETY: this thread has put another leaf into the link.
            Child::Leaf(leaf) if old.is_some() => unsafe { leaf.retire(guard) },
            // SAFETY: this thread has put another node into the link.
            Child::Inner(inner) if inner.covers(base) => unsafe { inner.retire(guard) },
            _ => {}
        }
        Some(outcome)
    }

    /// After a removal: replaces nodes on the way to `base` that have become half empty.
    pub(super) fn prune(&self, base: u64, guard: &Guard) {
        loop {
            let place = self.descend(base, 0, guard);
            let Some((_, owner)) = place.owner else { return };
            let Child::Inner(inner) = owner.child(guard) else { return };
            let is_sparse = place.seen.is_empty() && inner.used_len() * 2 <= inner.len();
            if !(place.seen.is_frozen() || is_sparse) {
                return;
            }
            place.thaw(guard);
        }
    }

    /// The first leaf that has a key at or after `from`.
    pub(super) fn first_from<'g>(&'g self, from: u64, guard: &'g Guard) -> Option<Leaf<'g>> {
        first_from(self.root(), from, guard)
    }

    /// The last leaf that has a key at or before `to`.
    pub(super) fn last_to<'g>(&'g self, to: u64, guard: &'g Guard) -> Option<Leaf<'g>> {
        last_to(self.root(), to, guard)
    }

    /// The bytes of all nodes and leaves.
    pub(super) fn bytes(&self, guard: &Guard) -> u64 {
        fn below(link: Link, guard: &Guard) -> u64 {
            match link.child(guard) {
                Child::Empty => 0,
                Child::Leaf(leaf) => leaf.bytes(),
                Child::Inner(inner) => inner.links().map(|link| below(link, guard)).sum::<u64>() + inner.bytes(),
            }
        }
        below(self.root(), guard)
    }
}

impl SlotPlace<'_> {
    /// Exchanges the link, if it still is what was seen.
    pub(super) fn swap(&self, new: Link) -> Option<()> {
        self.seen.swap(self.slot, new).then_some(())
    }

    /// Replaces the node with this link by a copy without frozen links, or by its only child, or by nothing.
    pub(super) fn thaw(&self, guard: &Guard) {
        let Some((slot, link)) = self.owner else { return };
        let Child::Inner(inner) = link.child(guard) else { return };
        inner.freeze();
        let (new, len) = inner.copy(None);
        if link.swap(slot, new) {
            // SAFETY: this thread has put the copy into the link.
            unsafe { inner.retire(guard) };
        } else if len > 1 {
            // SAFETY: the copy was not published.
            unsafe { new.free() };
        }
    }
}

/// Whether two keys share a page.
pub(super) fn is_same_page(one: u64, other: u64) -> bool {
    (one ^ other) >> PAGE_SHIFT == 0
}

fn first_from<'g>(link: Link, from: u64, guard: &'g Guard) -> Option<Leaf<'g>> {
    match link.child(guard) {
        Child::Empty => None,
        Child::Leaf(leaf) => (leaf.base() >= from).then_some(leaf),
        Child::Inner(inner) if inner.last_key() < from => None,
        Child::Inner(inner) => {
            let skip = if inner.prefix() < from { inner.places_below(from) } else { 0 };
            inner.links().skip(skip).find_map(|link| first_from(link, from, guard))
        }
    }
}

fn last_to<'g>(link: Link, to: u64, guard: &'g Guard) -> Option<Leaf<'g>> {
    match link.child(guard) {
        Child::Empty => None,
        Child::Leaf(leaf) => (leaf.base() <= to).then_some(leaf),
        Child::Inner(inner) if inner.prefix() > to => None,
        Child::Inner(inner) => {
            let end = if inner.last_key() > to { inner.places_to(to) } else { inner.len() };
            inner.links().take(end).rev().find_map(|link| last_to(link, to, guard))
        }
    }
}

impl Drop for Trie {
    fn drop(&mut self) {
        fn free(link: Link, guard: &Guard) {
            if let Child::Inner(inner) = link.child(guard) {
                inner.links().for_each(|link| free(link, guard));
            }
            // SAFETY: the trie is dropped, so no reader is left, and each link leads to a node of its own.
            unsafe { link.free() };
        }
        free(self.root(), &sync::pin());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kiss::link::shift_between;
    use crate::kiss::node::{Change, OneKey};
    use std::collections::BTreeMap;

    fn set(trie: &Trie, key: u64, change: Change<u64>) {
        trie.change(&mut OneKey::new(key, |_| change), &sync::pin());
    }

    #[test]
    fn chains_of_single_children_are_left_out() {
        let trie = Trie::new();
        set(&trie, 7, Change::Set(1));
        assert_eq!(trie.bytes(&sync::pin()), 24);
        set(&trie, 7 | 1 << 63, Change::Set(2));
        assert_eq!(trie.bytes(&sync::pin()), 2 * 24 + 3 * 8 + 2 * 8, "one inner node for two far leaves");
        assert_eq!(shift_between(7, 7 | 1 << 63), 58);
    }

    #[test]
    fn what_is_removed_leaves_nothing_behind() {
        let trie = Trie::new();
        let keys: Vec<u64> = (0..3_000u64).map(|index| index.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        keys.iter().for_each(|key| set(&trie, *key, Change::Set(*key)));
        keys.iter().for_each(|key| set(&trie, *key, Change::Remove));
        assert!(trie.root().is_empty());
    }

    #[test]
    fn a_frozen_node_holds_up_neither_readers_nor_writers() {
        let trie = Trie::new();
        let mut model = BTreeMap::new();
        for key in (0..64 * 20).step_by(64) {
            set(&trie, key, Change::Set(key));
            model.insert(key, key);
        }
        let guard = sync::pin();
        let Child::Inner(inner) = trie.root().child(&guard) else { panic!("one inner node") };
        inner.freeze();
        assert_eq!(trie.node(64, &guard).and_then(|node| node.get(64)), Some(64));
        for key in [64, 65, 64 * 30, 1 << 40] {
            set(&trie, key, Change::Set(9));
            model.insert(key, 9);
        }
        set(&trie, 128, Change::Remove);
        model.remove(&128);
        let mut found = BTreeMap::new();
        let mut from = 0;
        while let Some(leaf) = trie.first_from(from, &guard) {
            found.extend(leaf.node().entries(leaf.base()));
            from = leaf.base() + 64;
        }
        assert_eq!(found, model);
    }
}
