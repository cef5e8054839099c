//! What the tree has to be told about its keys: the methods of Hellerstein and others, section 3.2, and a distance.
//!
//! | method | answers |
//! |---|---|
//! | `compress`, `decompress` | the key that nodes keep of a value, and back |
//! | `consistent` | whether a query may find something below a key; on a leaf, whether the entry is found |
//! | `union` | the smallest key that covers two |
//! | `penalty` | how much worse a key gets by covering another one |
//! | `pick_split` | which keys of a full node move to the new one |
//! | `distance` | how far the nearest that a key covers can be, for the search of nearest neighbours |
//!
//! The methods on [`Slots`] are these for all keys of a node at once, which is where the time goes. Their defaults ask key by
//! key; [`RTree`](super::RTree) has kernels instead.
use std::cmp::Ordering;

/// The most slots that a node has: a bit each in one word, which is the result of testing a node.
pub const SLOTS_MAX: usize = 64;

/// The keys of a node.
pub trait Slots: Clone + Send + Sync + 'static {
    /// A key.
    type Key;

    /// No keys.
    fn new() -> Self;

    /// The key in a slot that has one.
    fn key(&self, slot: usize) -> Self::Key;

    /// Puts a key into a slot: one that has a key already, or the first that has none.
    fn set(&mut self, slot: usize, key: &Self::Key);

    /// Leaves keys in the first `count` slots only.
    fn truncate(&mut self, count: usize);
}

/// Keys of any kind, one after the other.
#[derive(Debug, Clone)]
pub struct KeyList<K>(Vec<K>);

impl<K: Clone + Send + Sync + 'static> Slots for KeyList<K> {
    type Key = K;

    fn new() -> Self {
        KeyList(Vec::new())
    }

    fn key(&self, slot: usize) -> K {
        self.0[slot].clone()
    }

    fn set(&mut self, slot: usize, key: &K) {
        match self.0.get_mut(slot) {
            Some(place) => *place = key.clone(),
            None => self.0.push(key.clone()),
        }
    }

    fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }
}

/// A kind of keys for a [`Gist`](super::Gist). What the methods promise each other: `union` covers both of its keys; a query
/// that is consistent with a key on a leaf is consistent, on inner nodes, with every key that covers it; the distance of a
/// key is at most that of any key that it covers.
pub trait Extension: Send + Sync + Sized + 'static {
    /// What callers insert.
    type Value;
    /// What nodes keep of it.
    type Key: Clone + PartialEq + Send + Sync + 'static;
    /// What is searched for.
    type Query: Send + Sync;
    /// What distances are measured from.
    type Origin;
    /// The keys of a node.
    type Slots: Slots<Key = Self::Key>;

    /// How many orders [`Extension::compare`] knows: a bulk load tiles the keys by one after the other.
    const DIMENSIONS: usize;

    /// The key of a value.
    fn compress(value: &Self::Value) -> Self::Key;

    /// The value of a key of a leaf.
    fn decompress(key: &Self::Key) -> Self::Value;

    /// Whether a query finds an entry with this key, or on an inner node whether it may find one below.
    fn consistent(key: &Self::Key, query: &Self::Query, is_leaf: bool) -> bool;

    /// The smallest key that covers both.
    fn union(left: &Self::Key, right: &Self::Key) -> Self::Key;

    /// Whether a key covers another one.
    fn covers(outer: &Self::Key, inner: &Self::Key) -> bool {
        Self::union(outer, inner) == *outer
    }

    /// How much worse a key gets by covering a new one; the second number decides among equals.
    fn penalty(key: &Self::Key, new: &Self::Key) -> (f64, f64);

    /// Which of a full node's keys move to a new node: a bit each, some set and some not.
    fn pick_split(keys: &[Self::Key]) -> u64;

    /// How far from an origin the nearest that a key covers can be. Never NaN.
    fn distance(key: &Self::Key, origin: &Self::Origin) -> f64;

    /// An order that keeps keys together that lie near each other in a dimension.
    fn compare(dimension: usize, left: &Self::Key, right: &Self::Key) -> Ordering;

    /// [`Extension::consistent`] for the first `count` keys: a bit each.
    fn matches(slots: &Self::Slots, count: usize, query: &Self::Query, is_leaf: bool) -> u64 {
        bits(count, |slot| Self::consistent(&slots.key(slot), query, is_leaf))
    }

    /// [`Extension::covers`] for the first `count` keys: a bit each.
    fn covering(slots: &Self::Slots, count: usize, inner: &Self::Key) -> u64 {
        bits(count, |slot| Self::covers(&slots.key(slot), inner))
    }

    /// The slot with the least [`Extension::penalty`] among the first `count`, of which there is one at least.
    fn choose(slots: &Self::Slots, count: usize, new: &Self::Key) -> usize {
        let mut best = (0, (f64::INFINITY, f64::INFINITY));
        for slot in 0..count {
            let penalty = Self::penalty(&slots.key(slot), new);
            if penalty < best.1 {
                best = (slot, penalty);
            }
        }
        best.0
    }

    /// [`Extension::distance`] for the first `count` keys.
    fn distances(slots: &Self::Slots, count: usize, origin: &Self::Origin, distances: &mut [f64; SLOTS_MAX]) {
        for (slot, distance) in distances.iter_mut().enumerate().take(count) {
            *distance = Self::distance(&slots.key(slot), origin);
        }
    }
}

/// The word with the bits of those of `count` slots for which `test` holds.
fn bits(count: usize, test: impl Fn(usize) -> bool) -> u64 {
    (0..count).filter(|slot| test(*slot)).fold(0, |word, slot| word | 1 << slot)
}

/// The slots whose bits are set, ascending.
#[inline]
pub(super) fn slots_of(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(slot)
    })
}
