//! A node, and how threads share it.
//!
//! ```text
//! Node                       Content (never changes)
//! +-------------------+      +--------------------------------------+
//! | latch | is dead?  |      | level, count                         |
//! | content ----------+----->| keys, dimension by dimension         |
//! +-------------------+      | Rids, or references to children      |
//!                            +--------------------------------------+
//! ```
//!
//! **Readers** take no latch and never begin again. They pin the epoch, load the contents of a node once, and go on to the
//! children that they find there. **Writers** hold a node's latch while they put new contents in the place of the old. A node
//! that is split or merged *dies*: its parent gets contents that name the successors instead, in one step, and the dead node
//! keeps its last contents. A writer that comes to a dead node begins again at the root.
//!
//! What a reader may rely on: an entry that is in the tree from before the search began until it ends is found.
//!
//! - *I1*: the key that a live node has for a child covers all keys of that child; it only grows while the child lives. So a
//!   writer makes the keys on its way large enough from the top down, before it puts the entry into the leaf.
//! - *I2*: a live node is the child of one live node. A child dies only under the latches of both.
//! - *I3*: an entry moves from one leaf to another only when the first dies, with the entry in its last contents.
//!
//! Take a reader that has loaded contents which lead to the entry's leaf. If the child is alive when it is visited, I1 holds for
//! it; if it has died since the search began, its last contents led to the entry when it died, and so on downward. Nothing is seen
//! twice either: a parent's contents name either a node or its successors.
//!
//! Latches are taken from the top down, and of two siblings under the latch of their parent, so that no circle of waits arises.
//! Kornacker, Mohan and Hellerstein (*Concurrency and Recovery in Generalized Search Trees*, 1997) have sequence numbers and links
//! to the right instead, as their nodes are pages that change in place; here a copy is made anyway, so that kernels read plain
//! memory.
use std::sync::Arc;

use smallvec::SmallVec;
use sync::latch::Restart;
use sync::{EpochCell, Guard, Latched, SpinLatch};
use types::Rid;

use super::extension::{Extension, SLOTS_MAX, Slots};

/// What the slots of a node lead to.
pub(super) enum Targets<E: Extension> {
    Records([u64; SLOTS_MAX]),
    Children(SmallVec<[Arc<Node<E>>; SLOTS_MAX]>),
}

/// The contents of a node.
pub(super) struct Content<E: Extension> {
    /// 0 for a leaf.
    pub(super) level: usize,
    pub(super) count: usize,
    pub(super) slots: E::Slots,
    targets: Targets<E>,
}

impl<E: Extension> Clone for Content<E> {
    fn clone(&self) -> Self {
        let targets = match &self.targets {
            Targets::Records(records) => Targets::Records(*records),
            Targets::Children(children) => Targets::Children(children.clone()),
        };
        Content { level: self.level, count: self.count, slots: self.slots.clone(), targets }
    }
}

/// An entry of a node: a key, and what it leads to.
pub(super) enum Target<E: Extension> {
    Record(u64),
    Child(Arc<Node<E>>),
}

impl<E: Extension> Clone for Target<E> {
    fn clone(&self) -> Self {
        match self {
            Target::Record(word) => Target::Record(*word),
            Target::Child(node) => Target::Child(node.clone()),
        }
    }
}

impl<E: Extension> Content<E> {
    pub(super) fn new(level: usize) -> Self {
        let targets = if level == 0 { Targets::Records([0; SLOTS_MAX]) } else { Targets::Children(SmallVec::new()) };
        Content { level, count: 0, slots: E::Slots::new(), targets }
    }

    #[inline]
    pub(super) fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// The Rid in a slot of a leaf.
    #[inline]
    pub(super) fn rid(&self, slot: usize) -> Rid {
        match &self.targets {
            Targets::Records(records) => Rid::from_word(records[slot]),
            Targets::Children(_) => unreachable!("an inner node has no records"),
        }
    }

    /// The children of an inner node; a leaf has none.
    #[inline]
    pub(super) fn children(&self) -> &[Arc<Node<E>>] {
        match &self.targets {
            Targets::Records(_) => &[],
            Targets::Children(children) => children,
        }
    }

    /// The slot that leads to a child.
    pub(super) fn slot_of(&self, child: &Node<E>) -> Option<usize> {
        self.children().iter().position(|other| std::ptr::eq(&**other, child))
    }

    pub(super) fn keys(&self) -> Vec<E::Key> {
        (0..self.count).map(|slot| self.slots.key(slot)).collect()
    }

    /// What a slot leads to.
    pub(super) fn target(&self, slot: usize) -> Target<E> {
        match &self.targets {
            Targets::Records(records) => Target::Record(records[slot]),
            Targets::Children(children) => Target::Child(children[slot].clone()),
        }
    }

    /// Appends an entry of the node's kind; the node has room.
    pub(super) fn push(&mut self, key: &E::Key, target: Target<E>) {
        let slot = self.count;
        self.slots.set(slot, key);
        match (&mut self.targets, target) {
            (Targets::Records(records), Target::Record(word)) => records[slot] = word,
            (Targets::Children(children), Target::Child(node)) => children.push(node),
            _ => unreachable!("records stand in leaves, nodes in inner nodes"),
        }
        self.count += 1;
    }

    /// Takes the entry of a slot out; the last one gets its place.
    pub(super) fn swap_remove(&mut self, slot: usize) {
        let last = self.count - 1;
        let key = self.slots.key(last);
        self.slots.set(slot, &key);
        self.slots.truncate(last);
        match &mut self.targets {
            Targets::Records(records) => records[slot] = records[last],
            Targets::Children(children) => drop(children.swap_remove(slot)),
        }
        self.count = last;
    }

    /// The smallest key that covers all of the node; `None` for an empty one.
    pub(super) fn cover(&self) -> Option<E::Key> {
        (0..self.count).map(|slot| self.slots.key(slot)).reduce(|left, right| E::union(&left, &right))
    }
}

/// A node of the tree.
pub(super) struct Node<E: Extension> {
    /// Whether the node is dead. Contents change under this latch only.
    is_dead: Latched<bool, SpinLatch>,
    content: EpochCell<Content<E>>,
}

impl<E: Extension> Node<E> {
    pub(super) fn new(content: Content<E>) -> Arc<Self> {
        Arc::new(Node { is_dead: Latched::new(false), content: EpochCell::new(content) })
    }

    /// The contents now.
    #[inline]
    pub(super) fn content<'g>(&'g self, guard: &'g Guard) -> &'g Content<E> {
        self.content.load(guard)
    }

    /// Runs `body` while this thread alone may change the node.
    ///
    /// # Errors
    /// [`Restart`] if the node is dead, and what `body` returns.
    pub(super) fn hold<R>(
        &self,
        guard: &Guard,
        body: impl FnOnce(Held<'_, E>) -> Result<R, Restart>,
    ) -> Result<R, Restart> {
        self.is_dead.write(|is_dead| if *is_dead { Err(Restart) } else { body(Held { node: self, is_dead, guard }) })
    }
}

/// A live node that this thread alone may change.
pub(super) struct Held<'h, E: Extension> {
    node: &'h Node<E>,
    is_dead: &'h mut bool,
    guard: &'h Guard,
}

impl<E: Extension> Held<'_, E> {
    /// The contents, which no other thread replaces meanwhile.
    pub(super) fn content(&self) -> &Content<E> {
        self.node.content(self.guard)
    }

    /// Puts new contents in the place of the old.
    pub(super) fn replace(&mut self, content: Content<E>) {
        debug_assert_eq!(content.level, self.content().level);
        self.node.content.replace(content, self.guard);
    }

    /// Ends the node's life: its contents stay what they are.
    pub(super) fn kill(&mut self) {
        *self.is_dead = true;
    }
}
