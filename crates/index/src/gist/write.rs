//! Inserting an entry, and splitting the nodes that have no room.
//!
//! One descent chooses the child with the least penalty on each level, splits a full node on its way (so that a parent always has
//! room for one more child), and makes the key for the child cover the new one. Each step holds the latch of one node, a split
//! those of the parent and the node. In most cases nothing is to be done before the leaf, and the leaf's latch is the only one.
use sync::Guard;
use sync::hint::SpinWait;
use sync::latch::Restart;
use types::Rid;

use super::extension::{Extension, Slots, slots_of};
use super::node::{Content, Node, Target};
use super::tree::Gist;

impl<E: Extension> Gist<E> {
    /// Adds an entry. One that is there already is there once more afterwards.
    pub fn insert(&self, value: &E::Value, rid: Rid) {
        let key = E::compress(value);
        let mut wait = SpinWait::new();
        while self.try_insert(&key, rid, &sync::pin()).is_err() {
            wait.pause();
        }
        self.count_inserted();
    }

    /// One attempt, which ends with the entry in its leaf, or with a step on the way there that has to be seen anew.
    fn try_insert(&self, key: &E::Key, rid: Rid, guard: &Guard) -> Result<(), Restart> {
        let mut node = self.root_node(guard);
        if node.content(guard).count >= self.slots() {
            self.grow(node, guard)?;
            return Err(Restart);
        }
        loop {
            let content = node.content(guard);
            if content.is_leaf() {
                return self.add(node, key, rid, guard);
            }
            let slot = choose(content, key);
            let child = &*content.children()[slot];
            if child.content(guard).count >= self.slots() {
                self.split(node, child, guard)?;
                return Err(Restart);
            }
            if !E::covers(&content.slots.key(slot), key) {
                widen(node, child, key, guard)?;
            }
            node = child;
        }
    }

    /// Puts the entry into a leaf.
    fn add(&self, leaf: &Node<E>, key: &E::Key, rid: Rid, guard: &Guard) -> Result<(), Restart> {
        leaf.hold(guard, |mut leaf| {
            if leaf.content().count >= self.slots() {
                return Err(Restart);
            }
            let mut content = leaf.content().clone();
            content.push(key, Target::Record(rid.word()));
            leaf.replace(content);
            Ok(())
        })
    }

    /// Splits a full node below `parent`, which has room for one more child.
    fn split(&self, parent: &Node<E>, child: &Node<E>, guard: &Guard) -> Result<(), Restart> {
        parent.hold(guard, |mut parent| {
            let slot = parent.content().slot_of(child).ok_or(Restart)?;
            if parent.content().count >= self.slots() {
                return Err(Restart);
            }
            child.hold(guard, |mut child| {
                let [left, right] = halves(child.content(), self.slots())?;
                let mut content = parent.content().clone();
                content.swap_remove(slot);
                for half in [left, right] {
                    content.push(&cover(&half), Target::Child(Node::new(half)));
                }
                child.kill();
                parent.replace(content);
                Ok(())
            })
        })
    }

    /// Splits a full root, so that the tree gets one more level.
    fn grow(&self, root: &Node<E>, guard: &Guard) -> Result<(), Restart> {
        self.replace_root(root, guard, || {
            root.hold(guard, |mut root| {
                let mut content = Content::new(root.content().level + 1);
                for half in halves(root.content(), self.slots())? {
                    content.push(&cover(&half), Target::Child(Node::new(half)));
                }
                root.kill();
                Ok(Node::new(content))
            })
        })
    }
}

/// The child that a new key goes to: one that covers it already and would get the least penalty, else the one with the least.
fn choose<E: Extension>(content: &Content<E>, key: &E::Key) -> usize {
    let covering = E::covering(&content.slots, content.count, key);
    if covering.is_power_of_two() {
        return covering.trailing_zeros() as usize;
    }
    if covering == 0 {
        return E::choose(&content.slots, content.count, key);
    }
    let penalty = |slot: &usize| E::penalty(&content.slots.key(*slot), key);
    slots_of(covering).min_by(|one, other| penalty(one).partial_cmp(&penalty(other)).expect("not NaN")).expect("some")
}

/// Makes the key that a node has for a child cover one more (I1).
fn widen<E: Extension>(node: &Node<E>, child: &Node<E>, key: &E::Key, guard: &Guard) -> Result<(), Restart> {
    node.hold(guard, |mut node| {
        let slot = node.content().slot_of(child).ok_or(Restart)?;
        let before = node.content().slots.key(slot);
        if !E::covers(&before, key) {
            let mut content = node.content().clone();
            content.slots.set(slot, &E::union(&before, key));
            node.replace(content);
        }
        Ok(())
    })
}

/// The two parts of a full node.
fn halves<E: Extension>(content: &Content<E>, slots: usize) -> Result<[Content<E>; 2], Restart> {
    if content.count < slots {
        return Err(Restart);
    }
    let keys = content.keys();
    let moved = E::pick_split(&keys);
    let mut halves = [Content::new(content.level), Content::new(content.level)];
    for (slot, key) in keys.iter().enumerate() {
        halves[(moved >> slot & 1) as usize].push(key, content.target(slot));
    }
    assert!(halves.iter().all(|half| half.count > 0), "pick_split leaves keys on both sides");
    Ok(halves)
}

/// The key for a node that is not empty.
pub(super) fn cover<E: Extension>(content: &Content<E>) -> E::Key {
    content.cover().expect("a node with entries")
}
