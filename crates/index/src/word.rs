//! A hash index from keys of one or two words to base Rids. Readers take no latch and write nothing.
//!
//! Extendible hashing in memory, as in CCEH (Nam et al., FAST 2019) and Dash (Lu et al., VLDB 2020): some bits of a
//! key's hash choose an entry of the directory, which leads to a segment; others choose the bucket there.
//!
//! ```text
//!  root -> directory (2^depth)     segments
//!          +---+
//!          | 00|---------------->  depth 2
//!          | 01|---------------->  depth 2        each: 512 buckets of a cache line, three keys a line
//!          | 10|----------+----->  depth 1
//!          | 11|----------+
//!          +---+
//! ```
//!
//! A reader that finds what it seeks touches one cache line of the segment in nearly all cases, and the directory,
//! which is small enough (eight bytes for about a thousand keys) to stay in the cache. A writer latches one chain
//! of buckets. A segment that is full is replaced by two while all others are in use, and its readers go on; see
//! [`segment`]. Only a thread that replaces a segment takes the latch of the directory, and no other thread waits
//! for that.
//!
//! Why a reader is right: a chain that is not frozen belongs to a segment in use, as segments are frozen before
//! they are replaced. If a chain is frozen, the reader makes sure that the directory still leads there: the key
//! does not change until the directory leads elsewhere.
//!
//! Segments and directories that are replaced are freed when no thread pinned at that time is left.
//!
//! **Hash.** The folded multiply of foldhash and wyhash, the two halves of a 128-bit product xored, once for each word.
//! The multiplier is the golden ratio's, and the *upper* bits of the hash choose the place. For small dense integers,
//! which is what keys mostly are, the upper half of the product hardly varies, and the lower half's upper bits place
//! consecutive keys as evenly as can be (Fibonacci hashing; Knuth, volume 3, section 6.4): all segments fill up
//! completely before any is split, where random places would leave a third empty. For keys that differ in upper bits
//! only, the other half of the product brings them down. A seed of each index keeps an adversary from knowing.
mod bucket;
mod segment;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use sync::{Backoff, EpochCell, Guard};
use types::Rid;

use crate::{Holder, rids};
use bucket::{Bucket, Unsettled};
use segment::{Segment, directory_number};

/// 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash index from keys of `WORDS` words, one or two, to base Rids.
pub struct WordIndex<const WORDS: usize> {
    seed: u64,
    multiplier: u64,
    root: EpochCell<Directory<WORDS>>,
    /// held to change the directory's entries, or to exchange it
    directory_latch: Mutex<()>,
}

/// From the first bits of a hash, after those of the bucket number, to the segment. Null before the first insert.
struct Directory<const WORDS: usize> {
    depth: u32,
    segments: Box<[AtomicPtr<Segment<WORDS>>]>,
}

impl<const WORDS: usize> Directory<WORDS> {
    #[inline]
    fn entry(&self, hash: u64) -> &AtomicPtr<Segment<WORDS>> {
        let number = directory_number(hash, self.depth);
        debug_assert!(number < self.segments.len());
        // SAFETY: a number of `depth` bits is below 2^depth, which is how many entries there are.
        unsafe { self.segments.get_unchecked(number) }
    }

    /// A directory of twice the size, with one more bit.
    fn doubled(&self) -> Self {
        let twice = |entry: &AtomicPtr<Segment<WORDS>>| {
            let segment = entry.load(Ordering::Relaxed);
            [AtomicPtr::new(segment), AtomicPtr::new(segment)]
        };
        Directory { depth: self.depth + 1, segments: self.segments.iter().flat_map(twice).collect() }
    }

    /// Lets the entries that lead to the segment of `hash`, all that agree with it in `depth` bits, lead elsewhere.
    fn lead(&self, hash: u64, depth: u32, successors: &[*mut Segment<WORDS>]) {
        let share = self.segments.len() >> depth;
        let first = directory_number(hash, self.depth) & !(share - 1);
        for (number, entry) in self.segments[first..first + share].iter().enumerate() {
            let successor = successors[number * successors.len() / share];
            entry.store(successor, Ordering::Release);
        }
    }

    /// The segments, each once.
    fn each_segment(&self) -> impl Iterator<Item = *mut Segment<WORDS>> {
        let mut last = std::ptr::null_mut();
        let segments = self.segments.iter().map(|entry| entry.load(Ordering::Acquire));
        segments.filter(move |segment| !segment.is_null() && std::mem::replace(&mut last, *segment) != *segment)
    }
}

impl<const WORDS: usize> Default for WordIndex<WORDS> {
    fn default() -> Self {
        Self::with_hash(RandomState::new().hash_one(MULTIPLIER), MULTIPLIER)
    }
}

impl<const WORDS: usize> WordIndex<WORDS> {
    /// An empty index, which has no segment yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn with_hash(seed: u64, multiplier: u64) -> Self {
        const { assert!(WORDS == 1 || WORDS == 2) };
        let segments = (0..2).map(|_| AtomicPtr::default()).collect();
        let root = EpochCell::new(Directory { depth: 1, segments });
        WordIndex { seed, multiplier, root, directory_latch: Mutex::new(()) }
    }

    #[inline]
    fn hash(&self, key: &[u64; WORDS]) -> u64 {
        key.iter().fold(self.seed, |hash, word| {
            let product = u128::from(hash ^ word) * u128::from(self.multiplier);
            product as u64 ^ (product >> 64) as u64
        })
    }

    /// The segment for keys with this hash, `None` while the index never had a key there.
    #[inline]
    fn segment<'g>(&'g self, guard: &'g Guard, hash: u64) -> Option<&'g Segment<WORDS>> {
        let segment = self.root.load(guard).entry(hash).load(Ordering::Acquire);
        // SAFETY: the directory's pointers are null or come from boxes that are whole when they are stored; a segment is
        // freed after every guard is gone that was pinned when the directory led there, or with the index.
        unsafe { segment.as_ref() }
    }

    /// The first of the key's Rids, newest first, for which `accept` returns something. `accept` may be asked twice
    /// about a Rid.
    #[inline]
    pub fn find<T>(&self, guard: &Guard, key: &[u64; WORDS], accept: impl FnMut(Rid) -> Option<T>) -> Option<T> {
        let hash = self.hash(key);
        let value = match self.segment(guard, hash)?.bucket(hash).glance(key) {
            Ok(value) => value,
            Err(Unsettled) => self.read(guard, hash, key),
        };
        // SAFETY: the value was loaded from an entry under this guard.
        unsafe { rids::find(value?, guard, accept) }
    }

    /// The value of a key's entry.
    #[inline(never)]
    fn read(&self, guard: &Guard, hash: u64, key: &[u64; WORDS]) -> Option<u64> {
        let mut segment = self.segment(guard, hash)?;
        loop {
            let (value, was_frozen) = segment.read(hash, key);
            if !was_frozen {
                return value;
            }
            let now = self.segment(guard, hash)?;
            if std::ptr::eq(now, segment) {
                return value;
            }
            segment = now;
        }
    }

    /// Asks the processor for the memory where the key is, if it is there. Worth it where several keys are then
    /// sought.
    #[inline]
    pub fn prefetch(&self, guard: &Guard, key: &[u64; WORDS]) {
        let hash = self.hash(key);
        if let Some(segment) = self.segment(guard, hash) {
            sync::prefetch(std::ptr::from_ref(segment.bucket(hash)));
        }
    }

    /// Adds an entry, even if other records have the key.
    pub fn insert(&self, key: &[u64; WORDS], rid: Rid) {
        let _ = self.insert_unique(key, rid, |_| Holder::Past);
    }

    /// Adds an entry unless a record that has the key already is there. `holder` is asked
    /// about the other records that had the key, newest first, and must not use the index; of two callers with one
    /// key, one sees the other's entry. Records entered before one that is [`Holder::Former`] are not asked about.
    ///
    /// # Errors
    /// The record that has the key already, for which `holder` has said [`Holder::Present`]; nothing was added.
    pub fn insert_unique(&self, key: &[u64; WORDS], rid: Rid, holder: impl FnMut(Rid) -> Holder) -> Result<(), Rid> {
        debug_assert!(!rid.is_tail());
        let (guard, hash, backoff) = (&sync::pin(), self.hash(key), Backoff::new());
        loop {
            let segment = self.segment(guard, hash).unwrap_or_else(|| self.first_segment(guard, hash));
            let first = segment.bucket(hash);
            let Some(mut latch) = first.latch() else {
                backoff.snooze();
                continue;
            };
            if let Some(place) = segment.find(first, key) {
                // SAFETY: the entry's chain is latched, and the guard was pinned before.
                return unsafe { rids::add(place.bucket.value(place.slot), guard, rid, holder) };
            }
            if segment.add(first, &mut latch, key, rid.word()) {
                return Ok(());
            }
            drop(latch);
            self.grow(guard, hash, segment);
        }
    }

    /// Removes the entry of `rid` under `key`, if there is one.
    pub fn remove(&self, key: &[u64; WORDS], rid: Rid) {
        self.remove_if(key, rid, || true);
    }

    /// Removes the entry of `rid` under `key`, if there is one and `may_go` says so. `may_go` is called while no
    /// other thread can enter the key, and must not use the index.
    pub fn remove_if(&self, key: &[u64; WORDS], rid: Rid, may_go: impl FnOnce() -> bool) {
        let (guard, hash, backoff) = (&sync::pin(), self.hash(key), Backoff::new());
        while let Some(segment) = self.segment(guard, hash) {
            let first = segment.bucket(hash);
            let Some(mut latch) = first.latch() else {
                backoff.snooze();
                continue;
            };
            let Some(place) = segment.find(first, key) else { return };
            let value = place.bucket.value(place.slot);
            // SAFETY: the entry's chain is latched, and the guard was pinned before.
            if may_go() && unsafe { rids::take(value, guard, rid) } {
                latch.vacate(place.bucket, place.slot);
                // SAFETY: the entry is taken out of use under its latch, so that this happens once; a reader of its
                // value was pinned before.
                unsafe { rids::retire(value.load(Ordering::Relaxed), guard) };
            }
            return;
        }
    }

    /// Makes the segment that is the only one at first.
    #[cold]
    fn first_segment<'g>(&'g self, guard: &'g Guard, hash: u64) -> &'g Segment<WORDS> {
        let latch = self.latch_directory();
        let directory = self.root.load(guard);
        if directory.entry(hash).load(Ordering::Relaxed).is_null() {
            directory.lead(hash, 0, &[Box::into_raw(Segment::new(0))]);
        }
        drop(latch);
        self.segment(guard, hash).expect("it was made, and an entry never becomes null again")
    }

    /// Replaces a segment in which a chain cannot grow, or waits a little for another thread that does.
    #[cold]
    fn grow(&self, guard: &Guard, hash: u64, segment: &Segment<WORDS>) {
        if !segment.claim_growth() {
            std::thread::yield_now();
            return;
        }
        let successors = segment.successors(|key| self.hash(key));
        let successor_depth = successors[0].depth();
        let successors: Vec<_> = successors.into_iter().map(Box::into_raw).collect();
        let latch = self.latch_directory();
        let directory = self.root.load(guard);
        let replaced = directory.entry(hash).load(Ordering::Relaxed);
        if successor_depth <= directory.depth {
            directory.lead(hash, segment.depth(), &successors);
        } else {
            let doubled = directory.doubled();
            doubled.lead(hash, segment.depth(), &successors);
            self.root.replace(doubled, guard);
        }
        drop(latch);
        debug_assert!(std::ptr::eq(replaced, segment));
        let replaced = AtomicPtr::new(replaced);
        // SAFETY: the pointer comes from a box. No directory in use leads to the segment any more, only the thread
        // that claimed its growth gets here, and the closure runs when no thread that could have found it is
        // pinned.
        guard.defer(move || drop(unsafe { Box::from_raw(replaced.into_inner()) }));
    }

    fn latch_directory(&self) -> impl Drop {
        self.directory_latch.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The sum of what `of` says of each segment.
    fn sum(&self, of: impl Fn(&Guard, &Segment<WORDS>) -> usize) -> usize {
        let guard = sync::pin();
        // SAFETY: as in `segment`.
        self.root.load(&guard).each_segment().map(|segment| of(&guard, unsafe { &*segment })).sum()
    }

    /// How many keys there are, counted bucket by bucket: exact if none is added or removed meanwhile.
    pub fn len(&self) -> usize {
        self.sum(|_, segment| segment.all_buckets().map(Bucket::len).sum())
    }

    /// Passes on every key with its Rids, newest first: all of them if none is added or removed meanwhile.
    pub fn for_each(&self, mut visit: impl FnMut(&[u64; WORDS], &[Rid])) {
        let guard = sync::pin();
        let mut listed = Vec::new();
        for segment in self.root.load(&guard).each_segment() {
            // SAFETY: as in `segment`.
            for (key, value) in unsafe { &*segment }.all_buckets().flat_map(Bucket::entries) {
                listed.clear();
                // SAFETY: the value was loaded from an entry under this guard.
                let _: Option<()> = unsafe {
                    rids::find(value, &guard, |rid| {
                        listed.push(rid);
                        None
                    })
                };
                visit(&key, &listed);
            }
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the index uses, looked up bucket by bucket.
    pub fn bytes(&self) -> usize {
        let lists = |guard: &Guard, segment: &Segment<WORDS>| -> usize {
            // SAFETY: the value was loaded from an entry under this guard.
            let list = |(_, value)| unsafe { rids::bytes(value, guard) };
            segment.all_buckets().flat_map(Bucket::entries).map(list).sum()
        };
        let directory = size_of_val(&*self.root.load(&sync::pin()).segments);
        size_of::<Self>() + directory + self.sum(|guard, segment| segment.bytes() + lists(guard, segment))
    }
}

impl<const WORDS: usize> Drop for WordIndex<WORDS> {
    fn drop(&mut self) {
        let guard = sync::pin();
        for segment in self.root.load(&guard).each_segment() {
            // SAFETY: the pointer comes from a box, is here once, and `&mut self` proves that the index is not in
            // use.
            let segment = unsafe { Box::from_raw(segment) };
            for (_, value) in segment.all_buckets().flat_map(Bucket::entries) {
                // SAFETY: the same is true of the entry, which goes with the segment.
                unsafe { rids::free(value) };
            }
        }
    }
}
