//! The nodes of the tree, at the paper's sizes (tsx-index, section 5.1.1): branching factor 31, a leaf of 3 cache lines
//! and an inner node of 6. They hold ids only, so all values have nodes of one size.
//!
//! ```text
//! leaf:   | count, level | 30 ids | next leaf   |
//! inner:  | count, level | 30 ids | 31 children |     child n: values from that of id n-1 on, before that of id n
//! ```
//!
//! Everything is atomic, as optimistic readers may look at a node while it changes; they ask their latch before they
//! follow what they have seen. Nodes stay where they are until the index goes, since a delta never shrinks.
use std::ptr::{NonNull, null_mut};

use sync::atomic::Ordering;
use sync::zeroed::{AtomicPtr, AtomicU32};

use super::dictionary::ValueId;
use super::footprint::{LineKind, Visitor};
use super::pool::Pool;

/// Ids in a node.
pub(super) const IDS: usize = 30;
/// Children of an inner node.
const CHILDREN: usize = IDS + 1;
/// Nodes above one another. An inner node has at least 16 children, and there are less than 2^32 ids.
pub(super) const HEIGHT_MAX: usize = 9;

const LEAF_BYTES: usize = 3 * 64;
const INNER_BYTES: usize = 6 * 64;
const _: () = assert!(size_of::<Leaf>() == LEAF_BYTES && size_of::<Inner>() == INNER_BYTES);

/// The beginning of both kinds of nodes.
#[repr(C)]
pub(super) struct Node {
    count: AtomicU32,
    /// 0 for a leaf. Does not change.
    level: AtomicU32,
    ids: [AtomicU32; IDS],
}

/// A node at level 0.
#[repr(C, align(64))]
pub(super) struct Leaf {
    node: Node,
    next: AtomicPtr<Leaf>,
}

/// A node above others.
#[repr(C, align(64))]
pub(super) struct Inner {
    node: Node,
    children: [AtomicPtr<Node>; CHILDREN],
}

/// A node by its kind.
pub(super) enum Kind<'a> {
    Leaf(&'a Leaf),
    Inner(&'a Inner),
}

/// The upper half of a node that was split: the id of its first value, and the node.
pub(super) struct UpperHalf {
    pub(super) id: ValueId,
    pub(super) right: NonNull<Node>,
}

impl Node {
    /// The level of the node above leaves.
    pub(super) fn level(&self) -> usize {
        self.level.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(super) fn kind(&self, visitor: &mut impl Visitor) -> Kind<'_> {
        visitor.touch(LineKind::Node, &self.level);
        let start = std::ptr::from_ref(self);
        if self.level.load(Ordering::Relaxed) == 0 {
            // SAFETY: a node of level 0 is the beginning of a leaf; see `Leaf::new_in`.
            Kind::Leaf(unsafe { &*start.cast() })
        } else {
            // SAFETY: any other is the beginning of an inner node; see `Inner::new_in`.
            Kind::Inner(unsafe { &*start.cast() })
        }
    }

    #[inline]
    pub(super) fn count(&self, visitor: &mut impl Visitor) -> usize {
        visitor.touch(LineKind::Node, &self.count);
        // A reader that is too late may see any number that was there; none is larger.
        (self.count.load(Ordering::Relaxed) as usize).min(IDS)
    }

    #[inline]
    pub(super) fn id(&self, at: usize, visitor: &mut impl Visitor) -> ValueId {
        visitor.touch(LineKind::Node, &self.ids[at]);
        ValueId::from_word(self.ids[at].load(Ordering::Relaxed))
    }

    fn set_count(&self, count: usize) {
        self.count.store(count as u32, Ordering::Relaxed);
    }

    fn set_id(&self, at: usize, id: ValueId) {
        self.ids[at].store(id.word(), Ordering::Relaxed);
    }

    fn word(&self, at: usize) -> ValueId {
        ValueId::from_word(self.ids[at].load(Ordering::Relaxed))
    }

    fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    /// Puts an id between others, in a node with room.
    fn insert_id(&self, at: usize, id: ValueId) {
        let count = self.len();
        (at..count).rev().for_each(|from| self.set_id(from + 1, self.word(from)));
        self.set_id(at, id);
        self.set_count(count + 1);
    }
}

impl Leaf {
    /// # Safety
    /// As for [`Pool::allocate`].
    pub(super) unsafe fn new_in(pool: &Pool) -> &Leaf {
        // SAFETY: the caller's promise.
        let memory = unsafe { pool.allocate(size_of::<Leaf>(), align_of::<Leaf>()) };
        // SAFETY: zeros are an empty leaf; the memory has its size and alignment, and lives as long as the pool.
        unsafe { memory.cast().as_ref() }
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// The leaf with the values that follow.
    #[inline]
    pub(super) fn next(&self) -> *mut Leaf {
        self.next.load(Ordering::Relaxed)
    }

    /// Puts an id at its place; where there is no room, half of the leaf moves into a new one.
    ///
    /// # Safety
    /// As for [`Pool::allocate`].
    pub(super) unsafe fn insert(&self, at: usize, id: ValueId, pool: &Pool) -> Option<UpperHalf> {
        if self.node.len() < IDS {
            self.node.insert_id(at, id);
            return None;
        }
        const HALF: usize = IDS / 2;
        // SAFETY: the caller's promise.
        let right = unsafe { Leaf::new_in(pool) };
        (HALF..IDS).for_each(|from| right.node.set_id(from - HALF, self.node.word(from)));
        right.node.set_count(IDS - HALF);
        right.next.store(self.next(), Ordering::Relaxed);
        self.node.set_count(HALF);
        self.next.store(std::ptr::from_ref(right).cast_mut(), Ordering::Relaxed);
        if at <= HALF {
            self.node.insert_id(at, id);
        } else {
            right.node.insert_id(at - HALF, id);
        }
        Some(UpperHalf { id: right.node.word(0), right: NonNull::from(right).cast() })
    }
}

impl Inner {
    /// # Safety
    /// As for [`Pool::allocate`].
    unsafe fn new_in(level: usize, pool: &Pool) -> &Inner {
        // SAFETY: the caller's promise.
        let memory = unsafe { pool.allocate(size_of::<Inner>(), align_of::<Inner>()) };
        // SAFETY: zeros are values of all its parts; the memory has its size and alignment, and lives as long as the
        // pool.
        let inner: &Inner = unsafe { memory.cast().as_ref() };
        inner.node.level.store(level as u32, Ordering::Relaxed);
        inner
    }

    /// A root over two nodes.
    ///
    /// # Safety
    /// As for [`Pool::allocate`].
    pub(super) unsafe fn new_root<'a>(left: &Node, risen: &UpperHalf, pool: &'a Pool) -> &'a Inner {
        // SAFETY: the caller's promise.
        let root = unsafe { Inner::new_in(left.level() + 1, pool) };
        root.children[0].store(std::ptr::from_ref(left).cast_mut(), Ordering::Relaxed);
        root.children[1].store(risen.right.as_ptr(), Ordering::Relaxed);
        root.node.insert_id(0, risen.id);
        root
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    #[inline]
    pub(super) fn child(&self, at: usize, visitor: &mut impl Visitor) -> *mut Node {
        visitor.touch(LineKind::Node, &self.children[at]);
        self.children[at].load(Ordering::Relaxed)
    }

    /// Puts a node to the right of child `at`, which it was split from; where there is no room, half of this node moves
    /// into a new one.
    ///
    /// # Safety
    /// As for [`Pool::allocate`].
    pub(super) unsafe fn insert(&self, at: usize, risen: UpperHalf, pool: &Pool) -> Option<UpperHalf> {
        let count = self.node.len();
        if count < IDS {
            for from in (at + 1..=count).rev() {
                self.children[from + 1].store(self.children[from].load(Ordering::Relaxed), Ordering::Relaxed);
            }
            self.children[at + 1].store(risen.right.as_ptr(), Ordering::Relaxed);
            self.node.insert_id(at, risen.id);
            return None;
        }
        // SAFETY: the caller's promise.
        Some(unsafe { self.split(at, risen, pool) })
    }

    /// Lays ids and children out as if there were room for one more, and divides them; the id in the middle rises.
    ///
    /// # Safety
    /// As for [`Pool::allocate`].
    unsafe fn split(&self, at: usize, risen: UpperHalf, pool: &Pool) -> UpperHalf {
        const MIDDLE: usize = CHILDREN / 2;
        let mut ids = [risen.id; IDS + 1];
        let mut children = [null_mut(); CHILDREN + 1];
        (0..IDS).for_each(|from| ids[from + usize::from(from >= at)] = self.node.word(from));
        for from in 0..CHILDREN {
            children[from + usize::from(from > at)] = self.children[from].load(Ordering::Relaxed);
        }
        children[at + 1] = risen.right.as_ptr();
        // SAFETY: the caller's promise.
        let right = unsafe { Inner::new_in(self.node.level(), pool) };
        self.fill(&ids[..MIDDLE], &children[..=MIDDLE]);
        right.fill(&ids[MIDDLE + 1..], &children[MIDDLE + 1..]);
        UpperHalf { id: ids[MIDDLE], right: NonNull::from(right).cast() }
    }

    fn fill(&self, ids: &[ValueId], children: &[*mut Node]) {
        debug_assert_eq!(ids.len() + 1, children.len());
        ids.iter().enumerate().for_each(|(at, id)| self.node.set_id(at, *id));
        self.children.iter().zip(children).for_each(|(slot, child)| slot.store(*child, Ordering::Relaxed));
        self.node.set_count(ids.len());
    }
}

#[cfg(test)]
mod tests {
    use super::super::footprint::Holder;
    use super::*;

    fn words(node: &Node) -> Vec<u32> {
        (0..node.count(&mut Holder)).map(|at| node.id(at, &mut Holder).word()).collect()
    }

    #[test]
    fn a_full_leaf_divides_at_every_place() {
        for at in 0..=IDS {
            let pool = Pool::default();
            // SAFETY: one thread.
            let left = unsafe { Leaf::new_in(&pool) };
            // SAFETY: one thread.
            (0..IDS).for_each(|word| unsafe {
                assert!(left.insert(word, ValueId::from_word(word as u32), &pool).is_none());
            });
            // SAFETY: one thread.
            let risen = unsafe { left.insert(at, ValueId::from_word(99), &pool) }.unwrap();
            assert_eq!(risen.right.cast().as_ptr(), left.next());
            // SAFETY: the new leaf lives as long as the pool.
            let right = unsafe { risen.right.as_ref() };
            let mut expected: Vec<u32> = (0..IDS as u32).collect();
            expected.insert(at, 99);
            let (low, high) = (words(left.node()), words(right));
            assert!(low.len() >= 15 && high.len() >= 15 && high[0] == risen.id.word());
            assert_eq!([low, high].concat(), expected);
        }
    }

    #[test]
    fn a_full_inner_node_divides_at_every_place_and_keeps_children_beside_their_ids() {
        for at in 0..=IDS {
            let pool = Pool::default();
            let child = |word: usize| NonNull::new(std::ptr::without_provenance_mut::<Node>(8 * word)).unwrap();
            let risen = |word: usize| UpperHalf { id: ValueId::from_word(word as u32), right: child(word) };
            // SAFETY: one thread; the children are never followed.
            let left = unsafe { Inner::new_in(1, &pool) };
            left.children[0].store(child(1_000).as_ptr(), Ordering::Relaxed);
            // SAFETY: as above.
            (1..=IDS).for_each(|word| unsafe { assert!(left.insert(word - 1, risen(word), &pool).is_none()) });
            // SAFETY: as above.
            let top = unsafe { left.insert(at, risen(99), &pool) }.unwrap();
            // SAFETY: the new node lives as long as the pool.
            let upper = unsafe { top.right.as_ref() };
            let Kind::Inner(right) = upper.kind(&mut Holder) else { panic!("the upper half of an inner node is one") };
            let mut expected: Vec<u32> = (1..=IDS as u32).collect();
            expected.insert(at, 99);
            assert_eq!([words(left.node()), vec![top.id.word()], words(right.node())].concat(), expected);
            let children = |inner: &Inner| -> Vec<usize> {
                (0..=inner.node().len()).map(|at| inner.child(at, &mut Holder).addr() / 8).collect()
            };
            let expected: Vec<usize> = std::iter::once(1_000).chain(expected.iter().map(|id| *id as usize)).collect();
            assert_eq!([children(left), children(right)].concat(), expected);
        }
    }
}
