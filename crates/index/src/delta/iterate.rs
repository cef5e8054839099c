//! Ids in the order of their values, a leaf at a time.
//!
//! A leaf is copied under the latch, with the way to the next one. A leaf that is split meanwhile keeps its smaller half
//! and is linked to the other, and what is inserted to the right of the copy never comes before it; so the way
//! stays right, and nothing is seen twice.
use std::iter::FusedIterator;
use std::ops::Bound;

use sync::Latch;
use sync::latch::Restart;

use super::DeltaIndex;
use super::dictionary::ValueId;
use super::footprint::{Reader, Visitor};
use super::node::{IDS, Leaf};
use super::value::DictionaryValue;

/// The part of a leaf that was copied.
struct CopiedLeaf<'a> {
    ids: [ValueId; IDS],
    at: usize,
    count: usize,
    next: Option<&'a Leaf>,
}

impl<'a> CopiedLeaf<'a> {
    /// Copies a leaf from the id at `at` on.
    ///
    /// # Safety
    /// `visitor` reads under the latch of the index that the leaf is of.
    unsafe fn of(leaf: &'a Leaf, at: usize, visitor: &mut Reader<'_>) -> Result<Self, Restart> {
        let node = leaf.node();
        let count = node.count(visitor);
        let ids = std::array::from_fn(|from| node.id(from, visitor));
        let next = leaf.next();
        visitor.check()?;
        // SAFETY: the check says that the pointer was linked; leaves live as long as the index, for which `leaf` was
        // borrowed.
        Ok(CopiedLeaf { ids, at, count, next: unsafe { next.as_ref() } })
    }
}

/// An iterator over ids in the order of their values; see [`DeltaIndex::ids`].
pub struct Ids<'a, V: DictionaryValue + ?Sized, L> {
    index: &'a DeltaIndex<V, L>,
    copied: CopiedLeaf<'a>,
    end: Bound<V::Borrowed<'a>>,
}

impl<'a, V: DictionaryValue + ?Sized, L: Latch> Ids<'a, V, L> {
    pub(super) fn new(index: &'a DeltaIndex<V, L>, start: Bound<V::Borrowed<'a>>, end: Bound<V::Borrowed<'a>>) -> Self {
        let copied = index.latch().read(|reading| {
            let mut visitor = Reader(reading);
            let (leaf, at) = match start {
                // SAFETY: the visitor is a reader under this index's latch.
                Bound::Unbounded => (unsafe { index.first_leaf(&mut visitor) }?, 0),
                Bound::Included(value) | Bound::Excluded(value) => {
                    // SAFETY: as above.
                    let place = unsafe { index.descend(value, &mut visitor, |_, _| ()) }?;
                    let is_skipped = place.found.is_some() && matches!(start, Bound::Excluded(_));
                    (place.leaf, place.at + usize::from(is_skipped))
                }
            };
            // SAFETY: as above.
            unsafe { CopiedLeaf::of(leaf, at, &mut visitor) }
        });
        Ids { index, copied, end }
    }

    fn is_behind_end(&self, id: ValueId) -> bool {
        let value = || self.index.value(id).expect("an id in the tree has a value");
        match self.end {
            Bound::Unbounded => false,
            Bound::Included(end) => value() > end,
            Bound::Excluded(end) => value() >= end,
        }
    }
}

impl<V: DictionaryValue + ?Sized, L: Latch> Iterator for Ids<'_, V, L> {
    type Item = ValueId;

    fn next(&mut self) -> Option<ValueId> {
        while self.copied.at >= self.copied.count {
            let next = self.copied.next?;
            let latch = self.index.latch();
            // SAFETY: the visitor is a reader under this index's latch.
            self.copied = latch.read(|reading| unsafe { CopiedLeaf::of(next, 0, &mut Reader(reading)) });
        }
        let id = self.copied.ids[self.copied.at];
        if self.is_behind_end(id) {
            self.copied.count = 0;
            self.copied.next = None;
            return None;
        }
        self.copied.at += 1;
        Some(id)
    }
}

impl<V: DictionaryValue + ?Sized, L: Latch> FusedIterator for Ids<'_, V, L> {}
