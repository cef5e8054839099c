//! Keys: how each kind is laid out in the words of a node, compared there and moved from node to node.
//!
//! A node keeps its keys by column, first words together, then second words, so that a search reads few cache lines:
//!
//! ```text
//! u64, i64, Rid       | key |
//! u128, i128          | upper half | lower half |
//! Bytes               | head | rest |                  see `bytes`
//! (A, B)              | words of A | words of B |      B of fixed length; (key, Rid) for an index with duplicates
//! ```
//!
//! All words are atomics, as optimistic readers look at them while a writer changes them. A key may keep memory
//! outside of its node; a reader that follows a word that leads there makes sure first that it has read it
//! undisturbed.
use std::cmp::Ordering;
use std::fmt::Debug;

use sync::Guard;
use sync::atomic::{AtomicU64, Ordering::Relaxed};
use sync::latch::Restart;
use types::Rid;

use super::node::NODE_WORDS;

/// The words of one key in a node.
#[derive(Clone, Copy)]
pub struct Slot<'n> {
    words: &'n [AtomicU64; NODE_WORDS],
    first: usize,
    stride: usize,
}

impl<'n> Slot<'n> {
    /// The words at `first`, `first + stride`, and so on.
    #[inline]
    pub(super) fn new(words: &'n [AtomicU64; NODE_WORDS], first: usize, stride: usize) -> Self {
        Slot { words, first, stride }
    }

    /// The word in a column.
    #[inline]
    pub(super) fn load(self, column: usize) -> u64 {
        self.words[self.first + column * self.stride].load(Relaxed)
    }

    /// Changes the word in a column.
    #[inline]
    pub(super) fn store(self, column: usize, word: u64) {
        self.words[self.first + column * self.stride].store(word, Relaxed);
    }

    /// The key without its first columns.
    #[inline]
    pub(super) fn skip(self, columns: usize) -> Self {
        Slot { first: self.first + columns * self.stride, ..self }
    }
}

/// A kind of key. Implemented for integers, [`Rid`], [`Bytes`](super::Bytes) and pairs; the words of a node cannot be
/// named outside of this crate, so that others cannot implement it.
pub trait Key: 'static {
    /// A key as callers hand it in.
    type Ref<'k>: Copy + Ord + Debug;
    /// A key as it is handed out.
    type Owned: Clone + Ord + Debug + Send + Sync;
    /// The part that all keys of a node have in common and do not store.
    type Shared: Copy + PartialEq;
    /// A key prepared for the search in one node.
    type Probe<'k>: Copy;

    /// How many words a node keeps of each key.
    const WORDS: usize;
    /// How many words a node keeps of what its keys share.
    const SHARED_WORDS: usize;

    /// The key for a call.
    fn of(owned: &Self::Owned) -> Self::Ref<'_>;

    /// A copy of the key.
    fn to_owned(key: Self::Ref<'_>) -> Self::Owned;

    /// A short key above `left` and not above `right`, which are neighbours in this order.
    fn separator<'k>(left: Self::Ref<'k>, right: Self::Ref<'k>) -> Self::Owned;

    /// The part that two keys, and so all between them, have in common.
    fn common(first: Self::Ref<'_>, last: Self::Ref<'_>) -> Self::Shared;

    /// The part that is common to keys with `shared` and keys with `other`.
    fn union(shared: &Self::Shared, other: &Self::Shared) -> Self::Shared;

    /// The part that remains in common if `key` comes in addition, if that is less.
    fn narrowed(shared: &Self::Shared, key: Self::Ref<'_>) -> Option<Self::Shared>;

    /// Reads what the keys of a node share; anything where a writer disturbs.
    fn load_shared(words: Slot<'_>) -> Self::Shared;

    /// Writes what the keys of a node share.
    fn store_shared(words: Slot<'_>, shared: &Self::Shared);

    /// Prepares a search.
    ///
    /// (The bound says nothing; implementations without it are not taken for the same signature.)
    ///
    /// # Errors
    /// How all keys of the node compare to this one, if that can be told already.
    fn probe<'k>(shared: &Self::Shared, key: Self::Ref<'k>) -> Result<Self::Probe<'k>, Ordering>
    where
        'k: 'k;

    /// How a stored key compares to the one sought.
    ///
    /// # Safety
    ///
    /// `check` succeeds only if what was read of the slot before was its content at one moment, since when the
    /// caller has been pinned and the memory that the slot leads to was freed only by a deferred call.
    ///
    /// # Errors
    /// What `check` fails with: the slot may have changed meanwhile.
    unsafe fn compare(
        slot: Slot<'_>,
        probe: &Self::Probe<'_>,
        check: impl Fn() -> Result<(), Restart>,
    ) -> Result<Ordering, Restart>;

    /// A copy of a stored key.
    ///
    /// # Safety
    ///
    /// As for [`Key::compare`]. Without an error from `check` afterwards the copy may be of parts of several keys.
    ///
    /// # Errors
    /// What `check` fails with: the slot may have changed meanwhile.
    unsafe fn load(
        shared: &Self::Shared,
        slot: Slot<'_>,
        check: impl Fn() -> Result<(), Restart>,
    ) -> Result<Self::Owned, Restart>;

    /// Stores a key that has what is shared.
    fn store(shared: &Self::Shared, slot: Slot<'_>, key: Self::Ref<'_>);

    /// Stores a key again, in another place or with less or more in common, and leaves the old place without it.
    ///
    /// # Safety
    ///
    /// The caller alone may change both slots, `from` holds a key stored under the first of the two, and the
    /// key has what is shared by the second.
    unsafe fn carry(shared: (&Self::Shared, &Self::Shared), from: Slot<'_>, to: Slot<'_>);

    /// Frees the memory that a stored key keeps outside, once no thread pinned now is left (with a guard) or at
    /// once.
    ///
    /// # Safety
    ///
    /// The slot holds a stored key that is not used again; without a guard, by no other thread either.
    unsafe fn retire(slot: Slot<'_>, guard: Option<&Guard>);

    /// The memory that a stored key takes outside.
    ///
    /// # Safety
    ///
    /// As for [`Key::compare`].
    ///
    /// # Errors
    /// What `check` fails with: the slot may have changed meanwhile.
    unsafe fn bytes_outside(slot: Slot<'_>, check: impl Fn() -> Result<(), Restart>) -> Result<usize, Restart>;
}

/// Implements `Key` for a key of a fixed number of words that sorts as its words do.
macro_rules! fixed_key {
    ($key:ty, $words:literal, $to_words:expr, $from_words:expr) => {
        impl Key for $key {
            type Ref<'k> = $key;
            type Owned = $key;
            type Shared = ();
            type Probe<'k> = $key;

            const WORDS: usize = $words;
            const SHARED_WORDS: usize = 0;

            #[inline]
            fn of(owned: &$key) -> $key {
                *owned
            }

            #[inline]
            fn to_owned(key: $key) -> $key {
                key
            }

            #[inline]
            fn separator(_left: $key, right: $key) -> $key {
                right
            }

            #[inline]
            fn common(_first: $key, _last: $key) {}

            #[inline]
            fn union((): &(), (): &()) {}

            #[inline]
            fn narrowed((): &(), _key: $key) -> Option<()> {
                None
            }

            #[inline]
            fn load_shared(_words: Slot<'_>) {}

            #[inline]
            fn store_shared(_words: Slot<'_>, (): &()) {}

            #[inline]
            fn probe<'k>((): &(), key: $key) -> Result<$key, Ordering>
            where
                'k: 'k,
            {
                Ok(key)
            }

            #[inline]
            unsafe fn compare(
                slot: Slot<'_>,
                probe: &$key,
                _check: impl Fn() -> Result<(), Restart>,
            ) -> Result<Ordering, Restart> {
                let words: [u64; $words] = std::array::from_fn(|column| slot.load(column));
                Ok(($from_words)(words).cmp(probe))
            }

            #[inline]
            unsafe fn load((): &(), slot: Slot<'_>, _check: impl Fn() -> Result<(), Restart>) -> Result<$key, Restart> {
                let words: [u64; $words] = std::array::from_fn(|column| slot.load(column));
                Ok(($from_words)(words))
            }

            #[inline]
            fn store((): &(), slot: Slot<'_>, key: $key) {
                let words: [u64; $words] = ($to_words)(key);
                words.into_iter().enumerate().for_each(|(column, word)| slot.store(column, word));
            }

            #[inline]
            unsafe fn carry(_shared: (&(), &()), from: Slot<'_>, to: Slot<'_>) {
                (0..$words).for_each(|column| to.store(column, from.load(column)));
            }

            #[inline]
            unsafe fn retire(_slot: Slot<'_>, _guard: Option<&Guard>) {}

            #[inline]
            unsafe fn bytes_outside(
                _slot: Slot<'_>,
                _check: impl Fn() -> Result<(), Restart>,
            ) -> Result<usize, Restart> {
                Ok(0)
            }
        }
    };
}

fixed_key!(u64, 1, |key| [key], |[word]: [u64; 1]| word);
fixed_key!(i64, 1, |key| [key as u64], |[word]: [u64; 1]| word as i64);
fixed_key!(u32, 1, |key| [u64::from(key)], |[word]: [u64; 1]| word as u32);
fixed_key!(i32, 1, |key| [key as u64], |[word]: [u64; 1]| word as i32);
fixed_key!(Rid, 1, |key: Rid| [key.word()], |[word]: [u64; 1]| Rid::from_word(word));
fixed_key!(u128, 2, |key| [(key >> 64) as u64, key as u64], |[upper, lower]: [u64; 2]| u128::from(upper) << 64
    | u128::from(lower));
fixed_key!(i128, 2, |key| [(key >> 64) as u64, key as u64], |[upper, lower]: [u64; 2]| (u128::from(upper) << 64
    | u128::from(lower))
    as i128);

/// The order of the first, then of the second.
impl<A: Key, B: Key<Shared = ()>> Key for (A, B) {
    type Ref<'k> = (A::Ref<'k>, B::Ref<'k>);
    type Owned = (A::Owned, B::Owned);
    type Shared = A::Shared;
    type Probe<'k> = (A::Probe<'k>, B::Probe<'k>);

    const WORDS: usize = A::WORDS + B::WORDS;
    const SHARED_WORDS: usize = A::SHARED_WORDS;

    #[inline]
    fn of(owned: &Self::Owned) -> Self::Ref<'_> {
        (A::of(&owned.0), B::of(&owned.1))
    }

    #[inline]
    fn to_owned(key: Self::Ref<'_>) -> Self::Owned {
        (A::to_owned(key.0), B::to_owned(key.1))
    }

    fn separator<'k>(left: Self::Ref<'k>, right: Self::Ref<'k>) -> Self::Owned {
        if left.0 == right.0 {
            return (A::to_owned(right.0), B::separator(left.1, right.1));
        }
        // Whether the first is below that of `right` or the same, the second part of `right` is not too large.
        (A::separator(left.0, right.0), B::to_owned(right.1))
    }

    #[inline]
    fn common(first: Self::Ref<'_>, last: Self::Ref<'_>) -> A::Shared {
        A::common(first.0, last.0)
    }

    #[inline]
    fn union(shared: &A::Shared, other: &A::Shared) -> A::Shared {
        A::union(shared, other)
    }

    #[inline]
    fn narrowed(shared: &A::Shared, key: Self::Ref<'_>) -> Option<A::Shared> {
        A::narrowed(shared, key.0)
    }

    #[inline]
    fn load_shared(words: Slot<'_>) -> A::Shared {
        A::load_shared(words)
    }

    #[inline]
    fn store_shared(words: Slot<'_>, shared: &A::Shared) {
        A::store_shared(words, shared);
    }

    #[inline]
    fn probe<'k>(shared: &A::Shared, key: Self::Ref<'k>) -> Result<Self::Probe<'k>, Ordering>
    where
        'k: 'k,
    {
        Ok((A::probe(shared, key.0)?, B::probe(&(), key.1)?))
    }

    #[inline]
    unsafe fn compare(
        slot: Slot<'_>,
        probe: &Self::Probe<'_>,
        check: impl Fn() -> Result<(), Restart>,
    ) -> Result<Ordering, Restart> {
        // SAFETY: the caller's promise, for the words of the first part.
        let first = unsafe { A::compare(slot, &probe.0, &check)? };
        // SAFETY: the same for those of the second.
        let second = unsafe { B::compare(slot.skip(A::WORDS), &probe.1, &check)? };
        Ok(first.then(second))
    }

    #[inline]
    unsafe fn load(
        shared: &A::Shared,
        slot: Slot<'_>,
        check: impl Fn() -> Result<(), Restart>,
    ) -> Result<Self::Owned, Restart> {
        // SAFETY: the caller's promise, for the words of the first part.
        let first = unsafe { A::load(shared, slot, &check)? };
        // SAFETY: the same for those of the second.
        Ok((first, unsafe { B::load(&(), slot.skip(A::WORDS), &check)? }))
    }

    #[inline]
    fn store(shared: &A::Shared, slot: Slot<'_>, key: Self::Ref<'_>) {
        A::store(shared, slot, key.0);
        B::store(&(), slot.skip(A::WORDS), key.1);
    }

    #[inline]
    unsafe fn carry(shared: (&A::Shared, &A::Shared), from: Slot<'_>, to: Slot<'_>) {
        // SAFETY: the caller's promise, for the words of the first part.
        unsafe { A::carry(shared, from, to) };
        // SAFETY: the same for those of the second.
        unsafe { B::carry((&(), &()), from.skip(A::WORDS), to.skip(A::WORDS)) };
    }

    #[inline]
    unsafe fn retire(slot: Slot<'_>, guard: Option<&Guard>) {
        // SAFETY: the caller's promise, for the words of the first part.
        unsafe { A::retire(slot, guard) };
        // SAFETY: the same for those of the second.
        unsafe { B::retire(slot.skip(A::WORDS), guard) };
    }

    #[inline]
    unsafe fn bytes_outside(slot: Slot<'_>, check: impl Fn() -> Result<(), Restart>) -> Result<usize, Restart> {
        // SAFETY: the caller's promise, for the words of the first part; the second has none outside, as it shares none.
        unsafe { A::bytes_outside(slot, check) }
    }
}
