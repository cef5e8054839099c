//! Batched reads: several descents side by side, a level at a time, so that the processor waits for the nodes of all of
//! them at once.
use sync::Guard;

use super::key::Key;
use super::latching::Latching;
use super::node::Node;
use super::{BPlusTree, Value};

/// Descents side by side.
const BATCH: usize = 16;

impl<K: Key, V: Value, L: Latching> BPlusTree<K, V, L> {
    /// Looks up many keys, several at a time, and appends one answer for each to `found`, in their order.
    pub fn get_batch(&self, keys: &[K::Ref<'_>], found: &mut Vec<Option<V>>) {
        let guard = sync::pin();
        found.reserve(keys.len());
        for group in keys.chunks(BATCH) {
            let values = self.latching.read(|section| Ok(self.get_group(section, group, &guard)));
            let values = group.iter().zip(values);
            found.extend(values.map(|(key, value)| value.unwrap_or_else(|| self.get_pinned(*key, &guard))));
        }
    }

    /// The answers, by key; none where a writer has disturbed the descent.
    fn get_group(&self, section: L::Section<'_>, keys: &[K::Ref<'_>], guard: &Guard) -> [Option<Option<V>>; BATCH] {
        let root = self.begin(section, guard);
        let (mut visits, mut indexes) = ([Some(root); BATCH], [0; BATCH]);
        for _ in 0..root.shape().level {
            for ((key, visit), index) in keys.iter().zip(&mut visits).zip(&mut indexes) {
                let found = visit.and_then(|visit| visit.search_inner(*key, false).ok());
                if let (Some(visit), Some(found)) = (&visit, found) {
                    Node::prefetch(visit.address(found));
                }
                (*visit, *index) = (visit.filter(|_| found.is_some()), found.unwrap_or(0));
            }
            for (visit, index) in visits.iter_mut().zip(indexes).take(keys.len()) {
                *visit = visit.and_then(|visit| visit.child(index).ok());
            }
        }
        let mut values = [None; BATCH];
        for ((key, visit), value) in keys.iter().zip(visits).zip(&mut values) {
            *value = visit.filter(|visit| visit.shape().is_leaf()).and_then(|leaf| {
                let found = leaf.search_leaf(*key).ok()?.ok().map(|index| leaf.value(index));
                leaf.check().ok().map(|()| found)
            });
        }
        values
    }
}
