//! Adding a run of new keys in ascending order: as many as go into one leaf take one descent and one latch.
//!
//! ```text
//! leaf    | 10 | 20 | 70 |   end: 90      run  30 40 60 80    30, 40 and 60 go in here; 80 is another place
//! ```
//!
//! A key goes in here as long as it is below what follows in the leaf, or below the end of the leaf where nothing follows. The
//! end is the next separator on the way down. It is read before the leaf is latched, and the node that has it is checked then:
//! a leaf's end changes only with the leaf itself, which is latched only if it is as it was when it was entered.
use sync::Guard;

use super::key::Key;
use super::latching::Latching;
use super::node::Node;
use super::{BPlusTree, Value};

impl<K: Key, V: Value, L: Latching> BPlusTree<K, V, L> {
    /// Adds entries whose keys ascend; one whose key is there already stays as it is.
    pub fn insert_sorted(&self, keys: &[K::Owned], value: V) {
        let (guard, mut done) = (&sync::pin(), 0);
        while done < keys.len() {
            let added = self.add_run(guard, keys.len() - done, |at| (&keys[done + at], value.word()));
            debug_assert!(added <= keys.len() - done, "more keys were added than there are");
            done += added.max(1);
        }
    }

    /// Adds the first of `len` entries whose keys ascend, as many as are new and go into one leaf. Returns how many; 0 where the
    /// first key is there already.
    pub(super) fn add_run<'k>(&self, guard: &Guard, len: usize, entry: impl Fn(usize) -> (&'k K::Owned, u64)) -> usize {
        debug_assert!(len > 0);
        self.latching.write(|section| {
            let place = self.place_with_room(section, K::of(entry(0).0), guard)?;
            let Err(index) = place.index else {
                place.leaf.check()?;
                return Ok(0);
            };
            let limit = if index < place.leaf.shape().count { Some(place.leaf.key(index)?) } else { place.end()? };
            let (leaf, mut added, mut last) = (place.leaf.upgrade()?, 0, None);
            while added < len && !Node::<K, V, L>::is_full(leaf.shape()) {
                let (key, word) = entry(added);
                let ascends = last.is_none_or(|last| K::of(last) < K::of(key));
                if !ascends || limit.as_ref().is_some_and(|limit| K::of(key) >= K::of(limit)) {
                    break;
                }
                // SAFETY: the leaf is held.
                unsafe { leaf.insert(index + added, K::of(key), word) };
                (added, last) = (added + 1, Some(key));
            }
            debug_assert!(added > 0, "the first key has its place here");
            Ok(added)
        })
    }
}
