//! An index with duplicates: a tree keyed by pairs of the indexed key and the record, without values.
use std::ops::{Bound, RangeBounds};

use smallvec::SmallVec;
use sync::Guard;
use types::Rid;

use super::BPlusTree;
use super::key::Key;
use super::latching::Latching;
use super::range::TreeRange;

/// Below and above all records.
const FIRST: u64 = 0;
const LAST: u64 = u64::MAX;

/// Records that are listed; of few no memory is taken.
pub type ListedRids = SmallVec<[Rid; 32]>;

impl<K: Key, L: Latching> BPlusTree<(K, Rid), (), L> {
    /// The records of a key, in the order of their numbers, from either end.
    pub fn rids<'t>(&'t self, key: K::Ref<'_>) -> impl DoubleEndedIterator<Item = Rid> + use<'t, K, L> {
        self.entries(key..=key).map(|((_, rid), ())| rid)
    }

    /// The first of the key's records, the one with the highest number first, for which `accept` returns something.
    pub fn find<T>(&self, key: K::Ref<'_>, accept: impl FnMut(Rid) -> Option<T>) -> Option<T> {
        self.rids(key).rev().find_map(accept)
    }

    /// Appends the records of a key to `out`, in the order of their numbers, leaf by leaf, each as of one moment: at least `count`, if
    /// there are so many. A look at them all takes a fraction of the time that an iterator takes.
    pub fn list(&self, key: K::Ref<'_>, guard: &Guard, count: usize, out: &mut ListedRids) {
        let (begin, wanted) = (out.len(), K::to_owned(key));
        let mut from = Some((wanted.clone(), Rid::from_word(FIRST)));
        while let Some(low) = from.take().filter(|_| out.len() - begin < count) {
            let known = out.len();
            from = self.latching().read(|section| {
                out.truncate(known);
                let (leaf, next) = self.node_from(section, 0, Some(<(K, Rid)>::of(&low)), guard)?;
                let begin = leaf.search_leaf(<(K, Rid)>::of(&low))?.unwrap_or_else(|index| index);
                // Only where it ends does a leaf have other keys, which are not looked at one by one.
                let next = next.filter(|(key, _)| *key == wanted);
                let end = match next {
                    Some(_) => leaf.shape().count,
                    None => {
                        leaf.search_leaf((key, Rid::from_word(LAST)))?.map_or_else(|index| index, |index| index + 1)
                    }
                };
                for index in begin..end {
                    out.push(leaf.rid(index)?);
                }
                leaf.check()?;
                Ok(next)
            });
        }
    }

    /// The entries with a key in `range`, not counting the record.
    pub fn entries<'k>(&self, range: impl RangeBounds<K::Ref<'k>>) -> TreeRange<'_, (K, Rid), (), L> {
        let with = |key: &K::Ref<'k>, word| (*key, Rid::from_word(word));
        let low = match range.start_bound() {
            Bound::Included(key) => Bound::Included(with(key, FIRST)),
            Bound::Excluded(key) => Bound::Excluded(with(key, LAST)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let high = match range.end_bound() {
            Bound::Included(key) => Bound::Included(with(key, LAST)),
            Bound::Excluded(key) => Bound::Excluded(with(key, FIRST)),
            Bound::Unbounded => Bound::Unbounded,
        };
        self.range((low, high))
    }
}
