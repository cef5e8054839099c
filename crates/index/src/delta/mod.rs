//! The Delta Storage Index of SAP HANA (tsx-index, sections 2 and 5): the dictionary of a column that takes inserts.
//!
//! Values are appended to a dictionary in the order in which they come, and the column holds their ids. A B+tree
//! with nodes of ids only finds a value again; its order is that of the values behind the ids:
//!
//! ```text
//! column        dictionary            tree
//! | 1 |         0 | Fresno |          [ 0  2 ]          a search looks up, for each id that it meets, the value
//! | 0 |         1 | Oakland |         /   |   \
//! | 1 |         2 | Palo Alto |   [ 3 ] [ 0 1 ] [ 2 ]   leaf by leaf the ids are in the order of their values:
//! | 3 |         3 | Albany |                            what a merge sorts its dictionary by
//! ```
//!
//! (A tree over four values would have one leaf; here it has three.)
//!
//! | | original form | tuned form (section 5) |
//! |---|---|---|
//! | search in a node | linear | binary: half as many cache lines |
//! | dictionary | one | one for each core, its number is part of the id |
//! | allocator | one | one for each core |
//!
//! One latch protects the tree, of any kind: the index was made for a reader-writer latch, and tuned for an elided one. The
//! value of an id is read without it. Nothing is ever removed: a delta grows until a merge puts its values in the
//! sorted dictionary of the base pages and a new delta begins.
//!
//! Otherwise than in the paper:
//! - A value is looked up before it is inserted, in two sections, as most rows repeat a value. A reader of the first
//!   writes nothing, and holds nothing where the latch is optimistic.
//! - Memory that an insert will need is asked for before its critical section ([`pool`]).
//! - The core is that of the thread's number, as workers stay on their cores; the processor need not be asked.
mod buckets;
mod column;
mod dictionary;
mod footprint;
mod iterate;
mod lines;
mod node;
mod pool;
mod sorted;
mod tree;
mod value;

#[cfg(all(test, shuttle))]
mod models;
#[cfg(test)]
mod races;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::ops::{Bound, RangeBounds};
use std::thread::available_parallelism;

use sync::atomic::{AtomicPtr, Ordering};
use sync::{CachePadded, Latch, RwSpinLatch, thread_slot};

pub use column::DeltaColumn;
pub use dictionary::{DictionaryError, ValueId};
pub use footprint::Footprint;
pub use iterate::Ids;
pub use sorted::SortedIds;
pub use value::DictionaryValue;

use dictionary::{Dictionary, IdLayout};
use footprint::{Counting, Reader};
use node::{HEIGHT_MAX, Leaf, Node};
use pool::Pool;

/// How a node is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeSearch {
    /// Id by id, up to the first value that is not before the one sought.
    Linear,
    /// By halves.
    Binary,
}

/// The form of a [`DeltaIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaForm {
    /// How a node is searched.
    pub search: NodeSearch,
    /// Dictionaries, each with an allocator for nodes; rounded up to a power of two, at most 1,024.
    pub dictionary_count: usize,
}

impl DeltaForm {
    /// The form that the paper found.
    pub const ORIGINAL: DeltaForm = DeltaForm { search: NodeSearch::Linear, dictionary_count: 1 };

    /// The form that the paper proposes, for this machine.
    pub fn tuned() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        DeltaForm { search: NodeSearch::Binary, dictionary_count: cores }
    }
}

impl Default for DeltaForm {
    fn default() -> Self {
        Self::tuned()
    }
}

/// The state that inserts of one core write beside the tree.
struct Part<V: DictionaryValue + ?Sized> {
    dictionary: Dictionary<V>,
    nodes: CachePadded<Pool>,
}

impl<V: DictionaryValue + ?Sized> Default for Part<V> {
    fn default() -> Self {
        Part { dictionary: Dictionary::default(), nodes: CachePadded::default() }
    }
}

/// A dictionary in order of arrival with an index in order of value. `V` is `u64` or `[u8]`, `L` the latch of the tree.
pub struct DeltaIndex<V: DictionaryValue + ?Sized, L = RwSpinLatch> {
    latch: CachePadded<L>,
    root: CachePadded<AtomicPtr<Node>>,
    search: NodeSearch,
    layout: IdLayout,
    parts: Box<[Part<V>]>,
}

impl<V: DictionaryValue + ?Sized, L: Latch> Default for DeltaIndex<V, L> {
    fn default() -> Self {
        Self::new(DeltaForm::default())
    }
}

impl<V: DictionaryValue + ?Sized, L: Latch> DeltaIndex<V, L> {
    /// An empty index.
    pub fn new(form: DeltaForm) -> Self {
        Self::with_latch(form, L::default())
    }

    /// An empty index over a latch that was prepared by hand.
    pub fn with_latch(form: DeltaForm, latch: L) -> Self {
        Self::with_id_bits(form, latch, u32::BITS)
    }

    fn with_id_bits(form: DeltaForm, latch: L, id_bits: u32) -> Self {
        let part_count = form.dictionary_count.clamp(1, 1_024).next_power_of_two();
        let parts: Box<[Part<V>]> = (0..part_count).map(|_| Part::default()).collect();
        // SAFETY: no other thread knows of the pool yet.
        let root = unsafe { Leaf::new_in(&parts[0].nodes) };
        DeltaIndex {
            latch: CachePadded::new(latch),
            root: CachePadded::new(AtomicPtr::new(std::ptr::from_ref(root.node()).cast_mut())),
            search: form.search,
            layout: IdLayout::new(part_count, id_bits),
            parts,
        }
    }

    /// The latch of the tree.
    pub fn latch(&self) -> &L {
        &self.latch
    }

    /// The id of a value, which is entered if it is new.
    ///
    /// # Errors
    /// As [`enter_unseen`](Self::enter_unseen); none for a value that is there.
    pub fn encode(&self, value: V::Borrowed<'_>) -> Result<ValueId, DictionaryError> {
        match self.lookup(value) {
            Some(id) => Ok(id),
            None => Ok(self.enter_unseen(value)?.0),
        }
    }

    /// The id of a value that is most likely new, which is entered if it is: the value is not looked up before the
    /// latch is acquired to enter it. Tells as well whether this call has entered it; of several calls with one new
    /// value, one has.
    ///
    /// # Errors
    /// [`DictionaryError::TooLong`] if the value has 2^32 - 1 bytes or more; [`DictionaryError::Full`] if all ids are
    /// taken.
    pub fn enter_unseen(&self, value: V::Borrowed<'_>) -> Result<(ValueId, bool), DictionaryError> {
        let size_bytes = V::pool_bytes(value);
        if size_bytes >= u32::MAX as usize {
            return Err(DictionaryError::TooLong { size_bytes });
        }
        let own = thread_slot() & (self.parts.len() - 1);
        self.parts[own].dictionary.prepare(value);
        self.parts[own].nodes.prepare(HEIGHT_MAX * size_of::<node::Inner>());
        let _alone = self.latch.exclusive();
        // SAFETY: the latch is held exclusively.
        unsafe { self.insert(value, own) }
    }

    /// The id of a value, if it is there.
    pub fn lookup(&self, value: V::Borrowed<'_>) -> Option<ValueId> {
        // SAFETY: the visitor is a reader under this index's latch.
        self.latch.read(|reading| Ok(unsafe { self.descend(value, &mut Reader(reading), |_, _| ()) }?.found))
    }

    /// The value of an id, without a latch. None for an id that this index has not given.
    #[inline]
    pub fn value(&self, id: ValueId) -> Option<V::Borrowed<'_>> {
        let (dictionary, position) = self.layout.parts(id);
        self.parts.get(dictionary)?.dictionary.value(position)
    }

    /// The ids in the order of their values. While others insert, it returns every id that was there when it began, and of
    /// those that come meanwhile some; it holds no latch between two steps.
    pub fn ids(&self) -> Ids<'_, V, L> {
        Ids::new(self, Bound::Unbounded, Bound::Unbounded)
    }

    /// The ids of the values in a range, in the order of the values; see [`DeltaIndex::ids`].
    pub fn range<'a>(&'a self, range: impl RangeBounds<V::Borrowed<'a>>) -> Ids<'a, V, L> {
        Ids::new(self, range.start_bound().cloned(), range.end_bound().cloned())
    }

    /// The order of the values for a merge: the ids sorted by value, and the place of each id among them.
    pub fn sorted(&self) -> SortedIds {
        SortedIds::new(self.layout, self.parts.len(), self.ids())
    }

    /// How many values there are.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.dictionary.len())).sum()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the index has asked for. A part that was never written takes address space only.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.dictionary.bytes() + part.nodes.bytes()).sum()
    }

    /// Nodes above one another: 1 while the root is a leaf.
    pub fn height(&self) -> usize {
        let _held = self.latch.shared();
        // SAFETY: nodes live as long as the index.
        unsafe { &*self.root.load(Ordering::Relaxed) }.level() + 1
    }

    /// Looks a value up and counts the cache lines that this touches. Slow; for tests and benchmarks.
    pub fn footprint(&self, value: V::Borrowed<'_>) -> (Option<ValueId>, Footprint) {
        let mut counting = Counting::default();
        let _held = self.latch.shared();
        // SAFETY: the latch is held.
        let Ok::<_, Infallible>(place) = unsafe { self.descend(value, &mut counting, |_, _| ()) };
        (place.found, counting.footprint())
    }
}
