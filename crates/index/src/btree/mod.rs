//! B+tree: an ordered index for keys of fixed or any length, generic over how it is latched.
//!
//! ```text
//!                     +-----------------------+
//!                     |    .    | m     | t   |            inner nodes: child n has the keys from key n on
//!                     +---|---------|------|--+
//!            +------------+         |      +-------+
//!            v                      v              v
//!   +-----------------+   +-----------------+   +------+
//!   | a | c | f | ... |   | m | n | p | ... |   |  ... |   leaves: keys and values
//!   +-----------------+   +-----------------+   +------+
//! ```
//!
//! Two ways of latching share all of it ([`Latching`]): one latch around the tree, as in tsx-index (Karnagel et al.,
//! *Improving In-Memory Database Index Performance with Intel TSX*, section 2.1), which may be a spin latch, a
//! reader-writer latch or an elided one; and by default a version latch in each node, optimistic lock coupling (Leis
//! et al., 2019): a reader remembers the version of each node and checks it before it relies on what it has read, a
//! writer latches the one node that it changes, or a parent and its children where one is split or merged. A reader
//! writes nothing but its own epoch.
//!
//! - Nodes and their layout: [`node`]; keys: [`key`], [`bytes`]; splitting and merging: [`exchange`], [`growth`].
//! - Leaves are not linked. A scan goes down once for each leaf, with the bound that the parent had for the last one:
//!   [`range`].
//! - Nodes that leave the tree are freed when no thread pinned at that time is left.
//! - Duplicates: a tree whose keys are pairs `(key, Rid)`, without values: [`duplicates`]. Unique keys, with the records
//!   that had them: [`UniqueTree`].
mod batch;
mod bytes;
mod descent;
mod duplicates;
mod exchange;
mod growth;
mod key;
mod latching;
mod load;
mod node;
mod range;
mod run;
mod unique;

#[cfg(all(loom, test))]
mod model;
#[cfg(all(test, not(any(loom, shuttle))))]
mod races;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use sync::Guard;
use sync::atomic::{AtomicU64, Ordering::Relaxed};
use sync::latch::Restart;

pub use bytes::Bytes;
pub use duplicates::ListedRids;
pub use key::Key;
pub use latching::{Latching, NodeLatches, TreeLatch};
pub use load::LoadError;
pub use range::TreeRange;
pub use unique::{KeyRids, UniqueRange, UniqueTree};

use crate::{Change, Word};
use descent::Visit;
use node::Node;

/// A value of the tree: a word, or `()` where the keys are all that there is.
pub trait Value: Copy + Send + Sync + 'static {
    /// How many words a leaf keeps of it: one or none.
    const WORDS: usize;
    /// The value as a word.
    fn word(self) -> u64;
    /// The value of a word that [`Value::word`] returned.
    fn from_word(word: u64) -> Self;
}

impl<W: Word + Send + Sync + 'static> Value for W {
    const WORDS: usize = 1;

    #[inline]
    fn word(self) -> u64 {
        Word::word(self)
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        Word::from_word(word)
    }
}

impl Value for () {
    const WORDS: usize = 0;

    #[inline]
    fn word(self) -> u64 {
        0
    }

    #[inline]
    fn from_word(_word: u64) {}
}

/// An ordered index from keys to values. All operations take `&self`, from any number of threads.
///
/// ```
/// use index::{BPlusTree, Bytes, TreeLatch};
///
/// let tree: BPlusTree<u64, u64> = BPlusTree::new();
/// tree.insert(7, 70);
/// assert_eq!(tree.get(7), Some(70));
///
/// let names: BPlusTree<Bytes, u64, TreeLatch<sync::RwSpinLatch>> = BPlusTree::new();
/// names.insert(b"anna", 1);
/// names.insert(b"bert", 2);
/// assert_eq!(names.range(..).map(|(_, value)| value).collect::<Vec<_>>(), [1, 2]);
/// ```
pub struct BPlusTree<K: Key, V: Value, L: Latching = NodeLatches> {
    root: Box<Node<K, V, L>>,
    latching: L,
}

impl<K: Key, V: Value, L: Latching> Default for BPlusTree<K, V, L> {
    fn default() -> Self {
        BPlusTree { root: Node::new(0), latching: L::default() }
    }
}

impl<K: Key, V: Value, L: Latching> BPlusTree<K, V, L> {
    /// An empty tree, of one node.
    pub fn new() -> Self {
        Self::default()
    }

    /// How the tree is latched.
    pub fn latching(&self) -> &L {
        &self.latching
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: K::Ref<'_>) -> Option<V> {
        self.get_pinned(key, &sync::pin())
    }

    /// The value of a key, for a caller that has already pinned the epoch, for several lookups.
    #[inline]
    pub fn get_pinned(&self, key: K::Ref<'_>, guard: &Guard) -> Option<V> {
        self.latching.read(|section| {
            let leaf = self.leaf(section, key, guard)?;
            let found = leaf.search_leaf(key)?.ok().map(|index| leaf.value(index));
            leaf.check()?;
            Ok(found)
        })
    }

    /// Gives a key a value unless it has one, and returns the one that it has.
    pub fn insert(&self, key: K::Ref<'_>, value: V) -> Option<V> {
        self.change(key, |found| if found.is_some() { Change::Keep } else { Change::Set(value) })
    }

    /// Gives a key a value, and returns the one that it had.
    pub fn upsert(&self, key: K::Ref<'_>, value: V) -> Option<V> {
        self.change(key, |_| Change::Set(value))
    }

    /// Removes a key, and returns the value that it had.
    pub fn remove(&self, key: K::Ref<'_>) -> Option<V> {
        let mut removed = None;
        self.alter(key, &sync::pin(), false, |found| {
            removed = found.map(|word| V::from_word(word.load(Relaxed)));
            Change::Remove
        });
        removed
    }

    /// Changes the entry of a key in one step: `decide` sees its value and says what to do. It is asked once, while
    /// the key's leaf is latched, and must not use the tree. Returns the value before.
    pub fn change(&self, key: K::Ref<'_>, decide: impl FnOnce(Option<V>) -> Change<V>) -> Option<V> {
        let mut before = None;
        self.alter(key, &sync::pin(), true, |found| {
            before = found.map(|word| V::from_word(word.load(Relaxed)));
            match decide(before) {
                Change::Keep => Change::Keep,
                Change::Set(value) => Change::Set(value.word()),
                Change::Remove => Change::Remove,
            }
        });
        before
    }

    /// Lets `act` look at the word of a key's value, change it in place, or say what else to do. Without `may_insert` it
    /// is asked only about keys that are there.
    fn alter(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
        may_insert: bool,
        act: impl FnOnce(Option<&AtomicU64>) -> Change<u64>,
    ) {
        let (mut act, no_value) = (Some(act), AtomicU64::new(0));
        let is_underfull = self.latching.write(|section| {
            let (leaf, place) = if may_insert {
                let place = self.place_with_room(section, key, guard)?;
                (place.leaf, place.index)
            } else {
                let leaf = self.leaf(section, key, guard)?;
                (leaf, leaf.search_leaf(key)?)
            };
            if place.is_err() && !may_insert {
                leaf.check()?;
                return Ok(false);
            }
            let leaf = leaf.upgrade()?;
            let found = place.ok().map(|index| if V::WORDS > 0 { leaf.payload(0, index) } else { &no_value });
            let act = act.take().expect("asked once, when the leaf is held");
            match (act(found), place) {
                (Change::Set(word), Ok(index)) => leaf.set_payload(0, index, word),
                // SAFETY: the leaf is held.
                (Change::Set(word), Err(index)) => unsafe { leaf.insert(index, key, word) },
                (Change::Remove, Ok(index)) => {
                    // SAFETY: the leaf is held.
                    unsafe { leaf.remove(index, guard) };
                    return Ok(Node::<K, V, L>::is_underfull(leaf.shape()) && !std::ptr::eq(&*leaf, &*self.root));
                }
                (Change::Keep, _) | (Change::Remove, Err(_)) => {}
            }
            Ok(false)
        });
        if is_underfull {
            self.tidy(key, guard);
        }
    }

    #[inline]
    fn begin<'s, 'g>(&'g self, section: L::Section<'s>, guard: &'g Guard) -> Visit<'s, 'g, K, V, L> {
        Visit::begin(&self.root, section, guard)
    }

    /// The leaf that has a key if any has.
    #[inline]
    fn leaf<'s, 'g>(
        &'g self,
        section: L::Section<'s>,
        key: K::Ref<'_>,
        guard: &'g Guard,
    ) -> Result<Visit<'s, 'g, K, V, L>, Restart> {
        let mut visit = self.begin(section, guard);
        while !visit.shape().is_leaf() {
            visit = visit.child(visit.search_inner(key, false)?)?;
        }
        Ok(visit)
    }

    /// How many entries there are, counted leaf by leaf: exact if no thread writes meanwhile.
    pub fn len(&self) -> usize {
        self.sum_of_level(0, |visit| Ok(visit.shape().count))
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.range(..).next().is_none()
    }

    /// The memory that the tree takes, looked up node by node: exact if no thread writes meanwhile.
    pub fn bytes(&self) -> usize {
        let top = self.root.shape().level;
        let nodes_below = |level| self.sum_of_level(level, |visit| Ok(visit.shape().count));
        let node_count = 1 + (1..=top).map(nodes_below).sum::<usize>();
        let outside = |level| {
            self.sum_of_level(level, |visit| {
                let keys = visit.shape().first_key()..visit.shape().count;
                keys.map(|index| visit.key_bytes_outside(index)).sum()
            })
        };
        // Keys of fixed length have nothing outside; the leaves need not be visited for that.
        let levels = if K::SHARED_WORDS == 0 { 0..0 } else { 0..top + 1 };
        size_of::<Self>() + node_count * size_of::<Node<K, V, L>>() + levels.map(outside).sum::<usize>()
    }

    /// The sum of what `of` says of each node of a level.
    fn sum_of_level(&self, level: usize, of: impl Fn(&Visit<'_, '_, K, V, L>) -> Result<usize, Restart>) -> usize {
        let mut sum = 0;
        self.each_of_level(level, of, |of_node| sum += of_node);
        sum
    }

    /// Passes on what `of` says of each node of a level, once.
    fn each_of_level<T>(
        &self,
        level: usize,
        of: impl Fn(&Visit<'_, '_, K, V, L>) -> Result<T, Restart>,
        mut take: impl FnMut(T),
    ) {
        let (mut from, mut is_done) = (None::<K::Owned>, false);
        while !is_done {
            // Pinned anew for each node, so that a long walk holds nothing back.
            let guard = sync::pin();
            let (of_node, next) = self.latching.read(|section| {
                let (visit, next) = self.node_from(section, level, from.as_ref().map(K::of), &guard)?;
                let of_node = of(&visit)?;
                visit.check()?;
                Ok((of_node, next))
            });
            take(of_node);
            is_done = next.is_none();
            from = next;
        }
    }
}

impl<K: Key, V: Value, L: Latching> Drop for BPlusTree<K, V, L> {
    fn drop(&mut self) {
        // SAFETY: `&mut self` proves that no thread uses the tree, and nobody will.
        unsafe { free_below(&self.root) };
    }
}

/// Frees what is below a node, and what its keys keep outside.
///
/// # Safety
///
/// No thread uses the node, or will use what is below it or its keys.
unsafe fn free_below<K: Key, V: Value, L: Latching>(node: &Node<K, V, L>) {
    let shape = node.shape();
    // SAFETY: the caller's promise.
    unsafe { node.free_keys() };
    if shape.is_leaf() {
        return;
    }
    for index in 0..shape.count {
        let address = node.payload_word(shape.level, index) as usize;
        // SAFETY: the tree is being dropped, every child comes from a box, and each is visited once.
        let child: Box<Node<K, V, L>> = unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut(address)) };
        // SAFETY: the caller's promise.
        unsafe { free_below(&child) };
    }
}
