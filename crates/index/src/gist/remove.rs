//! Removing an entry, and merging the nodes that have few.
//!
//! Keys of inner nodes are not made smaller for a removal alone (I1: they only grow while their child lives). They are computed
//! anew where nodes are merged. A node that has become empty leaves its parent, one with at most a quarter of its slots in
//! use is merged with the sibling that it fits best, under the latch of the parent and both. The last child of a node stays, so
//! that an inner node always has one; a root with one child gives way to it.
//!
//! Where another thread has changed the nodes meanwhile, tidying is left to the next removal: a node with few entries is right,
//! only not tight.
use std::sync::Arc;

use sync::Guard;
use sync::hint::SpinWait;
use sync::latch::Restart;
use types::Rid;

use super::extension::{Extension, Slots, slots_of};
use super::node::{Content, Held, Node, Target};
use super::tree::Gist;

impl<E: Extension> Gist<E> {
    /// Takes one entry of this key and Rid out; returns whether there was one.
    pub fn remove(&self, value: &E::Value, rid: Rid) -> bool {
        let key = E::compress(value);
        let mut wait = SpinWait::new();
        loop {
            match self.try_remove(&key, rid, &sync::pin()) {
                Ok(is_removed) => return is_removed,
                Err(Restart) => wait.pause(),
            }
        }
    }

    fn try_remove(&self, key: &E::Key, rid: Rid, guard: &Guard) -> Result<bool, Restart> {
        let mut path = vec![self.root_node(guard)];
        if !find(&mut path, key, rid, guard) {
            return Ok(false);
        }
        let leaf = path[path.len() - 1];
        let left = leaf.hold(guard, |mut leaf| {
            let slot = slot_of(leaf.content(), key, rid).ok_or(Restart)?;
            let mut content = leaf.content().clone();
            content.swap_remove(slot);
            let left = content.count;
            leaf.replace(content);
            Ok(left)
        })?;
        self.count_removed();
        if left <= self.slots() / 4 {
            // What fails here is only left undone.
            let _ = self.tidy(&path, guard);
        }
        Ok(true)
    }

    /// Merges the nodes of a path that have few entries, from the leaf upward.
    fn tidy(&self, path: &[&Node<E>], guard: &Guard) -> Result<(), Restart> {
        for pair in path.windows(2).rev() {
            if pair[1].content(guard).count > self.slots() / 4 {
                break;
            }
            self.merge(pair[0], pair[1], guard)?;
        }
        let root = path[0];
        if let [only] = root.content(guard).children() {
            self.replace_root(root, guard, || {
                root.hold(guard, |mut held| match held.content().children() {
                    [child] if Arc::ptr_eq(child, only) => {
                        held.kill();
                        Ok(only.clone())
                    }
                    _ => Err(Restart),
                })
            })?;
        }
        Ok(())
    }

    /// Takes an empty node out of its parent, or merges one that has few entries with a sibling.
    fn merge(&self, parent: &Node<E>, child: &Node<E>, guard: &Guard) -> Result<(), Restart> {
        parent.hold(guard, |mut parent| {
            let content = parent.content();
            let slot = content.slot_of(child).ok_or(Restart)?;
            if content.count < 2 {
                return Ok(());
            }
            child.hold(guard, |mut child| {
                if child.content().count == 0 {
                    let mut without = parent.content().clone();
                    without.swap_remove(slot);
                    child.kill();
                    parent.replace(without);
                    return Ok(());
                }
                let Some(partner) = self.partner(parent.content(), slot, &child, guard) else { return Ok(()) };
                let sibling = parent.content().children()[partner].clone();
                sibling.hold(guard, |mut sibling| {
                    let count = child.content().count + sibling.content().count;
                    if count > self.slots() * 3 / 4 {
                        return Err(Restart);
                    }
                    let mut merged = sibling.content().clone();
                    append(&mut merged, child.content());
                    let cover = merged.cover().expect("the child has entries");
                    let mut content = parent.content().clone();
                    content.swap_remove(slot.max(partner));
                    content.swap_remove(slot.min(partner));
                    content.push(&cover, Target::Child(Node::new(merged)));
                    child.kill();
                    sibling.kill();
                    parent.replace(content);
                    Ok(())
                })
            })
        })
    }

    /// The sibling that covers the child's entries at the least penalty and has room for them.
    fn partner(&self, parent: &Content<E>, slot: usize, child: &Held<'_, E>, guard: &Guard) -> Option<usize> {
        let cover = child.content().cover()?;
        let has_room = |other: &usize| {
            let count = parent.children()[*other].content(guard).count;
            *other != slot && count + child.content().count <= self.slots() * 3 / 4
        };
        let penalty = |other: &usize| E::penalty(&parent.slots.key(*other), &cover);
        (0..parent.count)
            .filter(has_room)
            .min_by(|one, other| penalty(one).partial_cmp(&penalty(other)).expect("not NaN"))
    }
}

fn append<E: Extension>(content: &mut Content<E>, other: &Content<E>) {
    for slot in 0..other.count {
        content.push(&other.slots.key(slot), other.target(slot));
    }
}

/// The slot of an entry in a leaf.
fn slot_of<E: Extension>(leaf: &Content<E>, key: &E::Key, rid: Rid) -> Option<usize> {
    slots_of(E::covering(&leaf.slots, leaf.count, key))
        .find(|slot| leaf.rid(*slot) == rid && leaf.slots.key(*slot) == *key)
}

/// Extends a path by the nodes down to the leaf that has an entry; returns whether there is one.
fn find<'g, E: Extension>(path: &mut Vec<&'g Node<E>>, key: &E::Key, rid: Rid, guard: &'g Guard) -> bool {
    let content = path[path.len() - 1].content(guard);
    if content.is_leaf() {
        return slot_of(content, key, rid).is_some();
    }
    for slot in slots_of(E::covering(&content.slots, content.count, key)) {
        path.push(&content.children()[slot]);
        if find(path, key, rid, guard) {
            return true;
        }
        path.pop();
    }
    false
}
