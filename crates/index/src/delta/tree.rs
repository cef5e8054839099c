//! The way down the tree, and what an insert does on its way back: a B+tree that looks its keys up in the
//! dictionary (tsx-index, section 2).
use std::convert::Infallible;
use std::ptr::{from_ref, null_mut};

use smallvec::SmallVec;
use sync::Latch;
use sync::atomic::Ordering;

use super::dictionary::{DictionaryError, ValueId};
use super::footprint::{Holder, LineKind, Visitor};
use super::node::{HEIGHT_MAX, Inner, Kind, Leaf, Node, UpperHalf};
use super::value::DictionaryValue;
use super::{DeltaIndex, NodeSearch};

/// Where a value is, or belongs.
pub(super) struct LeafPlace<'a> {
    pub(super) leaf: &'a Leaf,
    /// How many ids of the leaf have smaller values.
    pub(super) at: usize,
    pub(super) found: Option<ValueId>,
}

/// The inner nodes on the way to a leaf, with the child that was taken in each.
type Path<'a> = SmallVec<[(&'a Inner, usize); HEIGHT_MAX]>;

impl<V: DictionaryValue + ?Sized, L: Latch> DeltaIndex<V, L> {
    /// From the root to the place of a value. `on_inner` is told the inner nodes and the children taken.
    ///
    /// # Safety
    /// `visitor` is a reader under this index's latch, or the caller holds that latch until it is done with the result.
    pub(super) unsafe fn descend<'a, S: Visitor>(
        &'a self,
        sought: V::Borrowed<'_>,
        visitor: &mut S,
        mut on_inner: impl FnMut(&'a Inner, usize),
    ) -> Result<LeafPlace<'a>, S::Error> {
        // SAFETY: the caller's promise.
        let mut node = unsafe { self.root(visitor) }?;
        loop {
            match node.kind(visitor) {
                Kind::Inner(inner) => {
                    // SAFETY: the caller's promise; the node is one of this index's.
                    let (at, _) = unsafe { self.count_before(node, sought, true, visitor) }?;
                    on_inner(inner, at);
                    // SAFETY: as above.
                    node = unsafe { self.child(inner, at, visitor) }?;
                }
                Kind::Leaf(leaf) => {
                    // SAFETY: as above.
                    let (at, is_found) = unsafe { self.count_before(node, sought, false, visitor) }?;
                    let found = is_found.then(|| node.id(at, visitor));
                    return Ok(LeafPlace { leaf, at, found });
                }
            }
        }
    }

    /// The leaf with the smallest values.
    ///
    /// # Safety
    /// `visitor` is a reader under this index's latch, or the caller holds that latch until it is done with the result.
    pub(super) unsafe fn first_leaf<S: Visitor>(&self, visitor: &mut S) -> Result<&Leaf, S::Error> {
        // SAFETY: the caller's promise.
        let mut node = unsafe { self.root(visitor) }?;
        loop {
            match node.kind(visitor) {
                // SAFETY: the caller's promise; the node is one of this index's.
                Kind::Inner(inner) => node = unsafe { self.child(inner, 0, visitor) }?,
                Kind::Leaf(leaf) => return Ok(leaf),
            }
        }
    }

    /// The root.
    ///
    /// # Safety
    /// `visitor` is a reader under this index's latch, or the caller holds that latch until it is done with the result.
    #[inline]
    unsafe fn root<S: Visitor>(&self, visitor: &mut S) -> Result<&Node, S::Error> {
        visitor.touch(LineKind::Node, &*self.root);
        let root = self.root.load(Ordering::Relaxed);
        visitor.check()?;
        // SAFETY: there always is a root. It was complete when it was linked, which the check orders before this, and
        // nodes live as long as the index.
        Ok(unsafe { &*root })
    }

    /// A child of an inner node of this index.
    ///
    /// # Safety
    /// `visitor` is a reader under this index's latch, or the caller holds that latch until it is done with the result.
    /// The node is one of this index's.
    #[inline]
    unsafe fn child<S: Visitor>(&self, inner: &Inner, at: usize, visitor: &mut S) -> Result<&Node, S::Error> {
        let child = inner.child(at, visitor);
        visitor.check()?;
        // SAFETY: the check says that count, ids and children belong together, so that this child is one. The rest is as
        // for the root.
        Ok(unsafe { &*child })
    }

    /// How many ids of a node stand before a value, and whether the value is among those that were compared. Ids of the
    /// same value count as before it in an inner node, where they begin the child to the right.
    ///
    /// # Safety
    /// `visitor` is a reader under this index's latch, or the caller holds that latch until it is done with the result.
    /// The node is one of this index's.
    #[inline]
    unsafe fn count_before<S: Visitor>(
        &self,
        node: &Node,
        sought: V::Borrowed<'_>,
        is_equal_before: bool,
        visitor: &mut S,
    ) -> Result<(usize, bool), S::Error> {
        let count = node.count(visitor);
        let mut is_found = false;
        let mut is_before = |at: usize| {
            let id = node.id(at, visitor);
            visitor.check()?;
            let (dictionary, position) = self.layout.parts(id);
            // SAFETY: an id is linked into the tree after its value was appended; the check orders both before this.
            let order = unsafe { self.parts[dictionary].dictionary.compare(position, sought, visitor) };
            is_found |= order.is_eq();
            Ok(order.is_lt() || (is_equal_before && order.is_eq()))
        };
        let (mut low, mut high) = (0, count);
        match self.search {
            NodeSearch::Linear => {
                while low < high && is_before(low)? {
                    low += 1;
                }
            }
            NodeSearch::Binary => {
                while low < high {
                    let middle = (low + high) / 2;
                    if is_before(middle)? {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
            }
        }
        Ok((low, is_found))
    }

    /// Enters a value, unless it is there meanwhile; tells which. The dictionary and the allocator are those of the
    /// part `own`.
    ///
    /// # Safety
    /// The latch is held exclusively.
    pub(super) unsafe fn insert(&self, value: V::Borrowed<'_>, own: usize) -> Result<(ValueId, bool), DictionaryError> {
        let mut path = Path::new();
        // SAFETY: the caller holds the latch.
        let Ok::<_, Infallible>(place) =
            unsafe { self.descend(value, &mut Holder, |inner, at| path.push((inner, at))) };
        if let Some(id) = place.found {
            return Ok((id, false));
        }
        // SAFETY: the caller's promise.
        let id = unsafe { self.append(value, own) }?;
        let pool = &self.parts[own].nodes;
        // SAFETY: the holder of the latch allocates alone; the latch orders one holder after the other.
        let mut risen = unsafe { place.leaf.insert(place.at, id, pool) };
        while let Some(upper) = risen {
            risen = match path.pop() {
                // SAFETY: as above.
                Some((inner, at)) => unsafe { inner.insert(at, upper, pool) },
                None => {
                    // SAFETY: as above.
                    unsafe { self.grow(&upper, own) };
                    None
                }
            };
        }
        Ok((id, true))
    }

    /// Appends a value to the dictionary of a part, or where that is full, to another.
    ///
    /// # Safety
    /// The latch is held exclusively.
    unsafe fn append(&self, value: V::Borrowed<'_>, own: usize) -> Result<ValueId, DictionaryError> {
        let part_count = self.parts.len();
        for number in (own..own + part_count).map(|number| number & (part_count - 1)) {
            let dictionary = &self.parts[number].dictionary;
            if dictionary.len() < self.layout.positions_max() {
                // SAFETY: the holder of the latch appends alone.
                return Ok(self.layout.id(number, unsafe { dictionary.append(value) }));
            }
        }
        Err(DictionaryError::Full { value_count: self.len() })
    }

    /// Puts a new root over the old one and the half that was split from it.
    ///
    /// # Safety
    /// The latch is held exclusively.
    unsafe fn grow(&self, risen: &UpperHalf, own: usize) {
        let old = self.root.load(Ordering::Relaxed);
        debug_assert_ne!(old, null_mut());
        // SAFETY: there always is a root, and nodes live as long as the index; the holder of the latch allocates
        // alone.
        let root = unsafe { Inner::new_root(&*old, risen, &self.parts[own].nodes) };
        self.root.store(from_ref(root.node()).cast_mut(), Ordering::Relaxed);
    }
}
