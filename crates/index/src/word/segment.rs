//! A piece of a [`WordIndex`](super::WordIndex): the buckets for all keys with hashes that agree in some bits.
//!
//! ```text
//!  hash:  63 ........ 55 54 ......................... 0
//!         bucket number   directory number: its first `depth` bits are the same for all keys of the segment
//!
//!  segment:  depth .. | bucket 0 | ... | bucket 511 | pool 1 | ... | pool 128 |     annex: pool 129 ...
//! ```
//!
//! A bucket that is full is continued by one from the pool, which then belongs to its chain. When the pool is used
//! up, the thread that needs a bucket grows the segment: it freezes chain after chain, so that writers wait and
//! readers go on, copies the entries into two segments of one more bit, and hands those to the directory. (CCEH,
//! Nam et al., FAST 2019, and Dash, Lu et al., VLDB 2020, keep half of the entries in place; then a reader must
//! find out whether an entry is gone or has moved.) As the bucket number comes from other bits than the directory
//! number, bucket *n* goes to the buckets *n* of both.
//!
//! Where the pool went into chains that have since been emptied, one segment of the same depth takes the place. Where
//! all keys want the same buckets and splitting does not help, the successor gets an annex, twice as large each time,
//! so that growing ends whatever the keys are.
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::bucket::{Bucket, Latch};

/// How many bits of a hash choose the bucket.
pub(super) const BUCKET_BITS: u32 = 9;

const BUCKETS: usize = 1 << BUCKET_BITS;
const POOL: usize = BUCKETS / 4;

/// A segment is not split beyond this depth.
const DEPTH_MAX: u32 = 32;

/// The entries of the keys with hashes that agree in `depth` bits.
#[repr(C)]
pub(super) struct Segment<const WORDS: usize> {
    depth: u32,
    is_growing: AtomicBool,
    pool_used: AtomicUsize,
    annex: Box<[Bucket<WORDS>]>,
    buckets: [Bucket<WORDS>; BUCKETS],
    pool: [Bucket<WORDS>; POOL],
}

/// Where a key's entry is.
pub(super) struct EntryPlace<'a, const WORDS: usize> {
    pub(super) bucket: &'a Bucket<WORDS>,
    pub(super) slot: usize,
}

impl<const WORDS: usize> Segment<WORDS> {
    /// An empty segment.
    pub(super) fn new(depth: u32) -> Box<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: the layout is not empty.
        let segment = unsafe { alloc_zeroed(layout) }.cast::<Self>();
        if segment.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: the memory has the type's layout and is this function's own. Zeros are valid values of all fields
        // but the annex, which is written before anything refers to the segment as a whole.
        unsafe {
            (&raw mut (*segment).annex).write(Box::default());
            (&raw mut (*segment).depth).write(depth);
            Box::from_raw(segment)
        }
    }

    /// In how many bits, after those of the bucket number, the hashes of all keys here agree.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// The first bucket of the chain for keys with this hash.
    #[inline]
    pub(super) fn bucket(&self, hash: u64) -> &Bucket<WORDS> {
        &self.buckets[(hash >> (u64::BITS - BUCKET_BITS)) as usize]
    }

    #[inline]
    fn pool_bucket(&self, link: u64) -> &Bucket<WORDS> {
        let number = link as usize - 1;
        if number < POOL { &self.pool[number] } else { &self.annex[number - POOL] }
    }

    /// The value of a key's entry and whether the segment was already frozen before this looked for it. The value was
    /// the key's at some moment in between, provided that the segment was then in use.
    pub(super) fn read(&self, hash: u64, key: &[u64; WORDS]) -> (Option<u64>, bool) {
        let first = self.bucket(hash);
        loop {
            let before = first.header();
            let place = self.find(first, key);
            let value = place.map(|place| place.bucket.value(place.slot).load(Ordering::Acquire));
            if first.header_after_reading().has_version_of(before) {
                return (value, before.is_frozen());
            }
        }
    }

    /// A key's entry in the chain that begins with `first`.
    #[inline]
    pub(super) fn find<'a>(&'a self, first: &'a Bucket<WORDS>, key: &[u64; WORDS]) -> Option<EntryPlace<'a, WORDS>> {
        let mut bucket = first;
        loop {
            if let Some(slot) = bucket.slot_of(bucket.header(), key) {
                return Some(EntryPlace { bucket, slot });
            }
            bucket = self.next(bucket)?;
        }
    }

    #[inline]
    fn next(&self, bucket: &Bucket<WORDS>) -> Option<&Bucket<WORDS>> {
        let link = bucket.link();
        (link != 0).then(|| self.pool_bucket(link))
    }

    fn chain<'a>(&'a self, first: &'a Bucket<WORDS>) -> impl Iterator<Item = &'a Bucket<WORDS>> {
        std::iter::successors(Some(first), |bucket| self.next(bucket))
    }

    /// Adds an entry for a key that has none to the latched chain; returns false where the pool is used up.
    pub(super) fn add(
        &self,
        first: &Bucket<WORDS>,
        latch: &mut Latch<'_, WORDS>,
        key: &[u64; WORDS],
        value: u64,
    ) -> bool {
        let mut last = first;
        for bucket in self.chain(first) {
            if let Some(slot) = bucket.free_slot(bucket.header()) {
                latch.occupy(bucket, slot, key, value);
                return true;
            }
            last = bucket;
        }
        let Some(link) = self.take_from_pool() else { return false };
        self.pool_bucket(link).begin(key, value);
        last.set_link(link);
        true
    }

    fn take_from_pool(&self) -> Option<u64> {
        let room = POOL + self.annex.len();
        let take = |used| (used < room).then_some(used + 1);
        self.pool_used.try_update(Ordering::Relaxed, Ordering::Relaxed, take).ok().map(|used| used as u64 + 1)
    }

    /// Whether it falls to the caller to [grow](Self::successors) the segment; true for one only.
    pub(super) fn claim_growth(&self) -> bool {
        !self.is_growing.swap(true, Ordering::Acquire)
    }

    /// Freezes the segment and returns what takes its place: two segments of one more bit, for a 0 and a 1 there,
    /// or one of the same depth. Only the thread that claimed its growth may call this.
    pub(super) fn successors(&self, hash_of: impl Fn(&[u64; WORDS]) -> u64) -> Vec<Box<Self>> {
        for bucket in &self.buckets {
            bucket.latch().expect("only growing freezes a segment, and it is done once").freeze();
        }
        let is_split = self.is_worth_a_split();
        let depth = self.depth + u32::from(is_split);
        let mut successors: Vec<Box<Self>> = (0..1 + usize::from(is_split)).map(|_| Self::new(depth)).collect();
        for first in &self.buckets {
            for (key, value) in self.chain(first).flat_map(Bucket::entries) {
                let hash = hash_of(&key);
                let number = if is_split { directory_number(hash, depth) & 1 } else { 0 };
                successors[number].push(hash, &key, value);
            }
        }
        successors.iter_mut().for_each(|successor| successor.make_room_to_grow());
        successors
    }

    /// Whether the pool's buckets are needed where they are, so that only a split makes room.
    fn is_worth_a_split(&self) -> bool {
        let chain_len = |first| self.chain(first).map(Bucket::len).sum::<usize>();
        let needed: usize = self
            .buckets
            .iter()
            .map(|first| chain_len(first).div_ceil(Bucket::<WORDS>::ENTRIES).saturating_sub(1))
            .sum();
        needed * 2 > POOL + self.annex.len() && self.depth < DEPTH_MAX
    }

    /// Adds an entry to a segment that no other thread knows yet.
    fn push(&mut self, hash: u64, key: &[u64; WORDS], value: u64) {
        if *self.pool_used.get_mut() == POOL + self.annex.len() {
            extend(&mut self.annex);
        }
        let mut bucket = &mut self.buckets[(hash >> (u64::BITS - BUCKET_BITS)) as usize];
        while !bucket.push(key, value) {
            if bucket.link() == 0 {
                let pool_used = self.pool_used.get_mut();
                *pool_used += 1;
                bucket.set_link(*pool_used as u64);
            }
            let number = bucket.link() as usize - 1;
            bucket = if number < POOL { &mut self.pool[number] } else { &mut self.annex[number - POOL] };
        }
    }

    /// After this a quarter of the pool is free.
    fn make_room_to_grow(&mut self) {
        if *self.pool_used.get_mut() * 4 > (POOL + self.annex.len()) * 3 {
            extend(&mut self.annex);
        }
    }

    /// All buckets, whether they have entries or not.
    pub(super) fn all_buckets(&self) -> impl Iterator<Item = &Bucket<WORDS>> {
        let pool_used = self.pool_used.load(Ordering::Acquire);
        self.buckets.iter().chain(self.pool.iter().chain(&self.annex).take(pool_used))
    }

    /// The memory of the segment.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.annex)
    }
}

/// Makes the pool twice as large.
fn extend<const WORDS: usize>(annex: &mut Box<[Bucket<WORDS>]>) {
    let added = POOL + annex.len();
    let old = std::mem::take(annex).into_vec();
    *annex = old.into_iter().chain(std::iter::repeat_with(Bucket::default).take(added)).collect();
}

/// The first `depth` bits of a hash after those of the bucket number.
#[inline]
pub(super) fn directory_number(hash: u64, depth: u32) -> usize {
    debug_assert!((1..=DEPTH_MAX).contains(&depth));
    (hash << BUCKET_BITS >> (u64::BITS - depth)) as usize
}
