//! One cache line of a [`WordIndex`](super::WordIndex): a header, a link and the entries of two or three keys.
//!
//! ```text
//! byte 0          8        16                                            64
//!      +----------+--------+---------------------------------------------+
//!      |  header  |  link  |  3 x (key, value)  or  2 x (key, key, value)|
//!      +----------+--------+---------------------------------------------+
//! header:  63 ........ 8   7 ... 5   4 ... 2   1        0
//!          version         0         occupied  frozen   latched
//! ```
//!
//! A link leads to the next bucket of the chain (0 where it ends), as in the cache-line hash table of David,
//! Guerraoui and Trigonakis (ASPLOS 2015). The header of the chain's first bucket latches the whole chain, and holds
//! the version that counts its removals; in the others only the occupied bits are used.
//!
//! Readers write nothing. Their protocol is a sequence lock (Boehm, "Can seqlocks get along with programming
//! language memory models?", MSPC 2012: atomic data, an acquire fence, then the version once more), but for one
//! thing: it needs no odd version during which readers wait. An entry is written while its occupied bit is off, so
//! that no reader looks at it, and appears whole when the header is stored with the bit on; an entry's value is one
//! word and changes by one store. A reader can be deceived only by an entry that was removed and its place given to
//! another key between two of its loads, and each removal raises the version:
//!
//! ```text
//! remove:  latch (acquire) ............................. header = version + 1, bit off (release)
//! reuse:   latch (acquire), release fence, key, value .. header = bit on (release)
//! read:    header (acquire), key, value, acquire fence,  header: is the version the same?
//! ```
//!
//! A reader of a key or value of the reuse reads, after its fence, a header at least as new as the reuse's latch
//! (the two fences synchronise), which is newer than the removal's: it sees that the version changed, and repeats.
#[cfg(not(loom))]
use sync::Backoff;
use sync::atomic::{AtomicU64, Ordering, fence};

/// The words of a bucket that are there for entries.
const ENTRY_WORDS: usize = 6;

const LATCHED: u64 = 1;
const FROZEN: u64 = 2;
const OCCUPIED_SHIFT: u32 = 2;
const VERSION_SHIFT: u32 = 8;
const VERSION_ONE: u64 = 1 << VERSION_SHIFT;

/// A bucket's header as some thread saw it.
#[derive(Clone, Copy)]
pub(super) struct Header(u64);

impl Header {
    /// Whether the bucket's segment has been taken out of use, or is about to be.
    #[inline]
    pub(super) fn is_frozen(self) -> bool {
        self.0 & FROZEN != 0
    }

    /// Whether nothing was removed between the two looks.
    #[inline]
    pub(super) fn has_version_of(self, other: Header) -> bool {
        (self.0 ^ other.0) >> VERSION_SHIFT == 0
    }

    fn is_occupied(self, slot: usize) -> bool {
        self.0 >> OCCUPIED_SHIFT >> slot & 1 != 0
    }
}

/// Says that one look at one bucket does not tell.
#[derive(Debug)]
pub(super) struct Unsettled;

fn occupied_bit(slot: usize) -> u64 {
    1 << OCCUPIED_SHIFT << slot
}

/// A cache line with the entries of a few keys. All zeros is an empty bucket.
#[repr(C, align(64))]
#[derive(Default)]
pub(super) struct Bucket<const WORDS: usize> {
    header: AtomicU64,
    link: AtomicU64,
    words: [AtomicU64; ENTRY_WORDS],
}

impl<const WORDS: usize> Bucket<WORDS> {
    /// How many keys a bucket has room for.
    pub(super) const ENTRIES: usize = ENTRY_WORDS / (WORDS + 1);

    /// The header. A thread that loads it sees what was written before it was stored.
    #[inline]
    pub(super) fn header(&self) -> Header {
        Header(self.header.load(Ordering::Acquire))
    }

    /// The header as it is after all loads that came before.
    #[inline]
    pub(super) fn header_after_reading(&self) -> Header {
        fence(Ordering::Acquire);
        Header(self.header.load(Ordering::Relaxed))
    }

    /// The number of the chain's next bucket, or 0.
    #[inline]
    pub(super) fn link(&self) -> u64 {
        self.link.load(Ordering::Acquire)
    }

    /// Appends a bucket to the chain. The caller holds the chain's latch, or is the only one to know it.
    pub(super) fn set_link(&self, link: u64) {
        self.link.store(link, Ordering::Release);
    }

    /// The value of a key's entry, where a look at the chain's first bucket says it for certain: the key is there, or is
    /// not and there is no other bucket, and nothing disturbs.
    #[inline]
    pub(super) fn glance(&self, key: &[u64; WORDS]) -> Result<Option<u64>, Unsettled> {
        let before = self.header();
        let slot = self.slot_of(before, key);
        let value = slot.map(|slot| self.value(slot).load(Ordering::Acquire));
        let is_continued = slot.is_none() && self.link() != 0;
        let is_settled = self.header_after_reading().has_version_of(before) && !before.is_frozen();
        if is_settled && !is_continued { Ok(value) } else { Err(Unsettled) }
    }

    /// Which occupied entry has this key. Compares them all and does not branch, as a branch could not be
    /// predicted.
    #[inline]
    pub(super) fn slot_of(&self, header: Header, key: &[u64; WORDS]) -> Option<usize> {
        let mut matches = 0;
        for slot in 0..Self::ENTRIES {
            let entry = &self.words[slot * (WORDS + 1)..];
            let is_key = (0..WORDS).fold(true, |same, word| same & (entry[word].load(Ordering::Relaxed) == key[word]));
            matches |= u64::from(is_key) << slot;
        }
        matches &= header.0 >> OCCUPIED_SHIFT;
        (matches != 0).then(|| matches.trailing_zeros() as usize)
    }

    /// An entry that has no key, if there is one.
    pub(super) fn free_slot(&self, header: Header) -> Option<usize> {
        (0..Self::ENTRIES).find(|slot| !header.is_occupied(*slot))
    }

    /// An entry's value.
    #[inline]
    pub(super) fn value(&self, slot: usize) -> &AtomicU64 {
        &self.words[slot * (WORDS + 1) + WORDS]
    }

    /// Keys and values of the occupied entries, as they are now.
    pub(super) fn entries(&self) -> impl Iterator<Item = ([u64; WORDS], u64)> {
        let header = self.header();
        (0..Self::ENTRIES).filter(move |slot| header.is_occupied(*slot)).map(|slot| {
            let entry = &self.words[slot * (WORDS + 1)..];
            (std::array::from_fn(|word| entry[word].load(Ordering::Relaxed)), self.value(slot).load(Ordering::Acquire))
        })
    }

    /// How many entries have a key.
    pub(super) fn len(&self) -> usize {
        let header = self.header();
        (0..Self::ENTRIES).filter(|slot| header.is_occupied(*slot)).count()
    }

    /// Fills an entry of a bucket that no other thread knows yet, where there is one without a key.
    pub(super) fn push(&mut self, key: &[u64; WORDS], value: u64) -> bool {
        let header = self.header.load(Ordering::Relaxed);
        let Some(slot) = self.free_slot(Header(header)) else { return false };
        self.header.store(header | occupied_bit(slot), Ordering::Relaxed);
        let entry = &self.words[slot * (WORDS + 1)..];
        key.iter().chain([&value]).zip(entry).for_each(|(word, place)| place.store(*word, Ordering::Relaxed));
        true
    }

    /// Fills the first entry of a bucket that no other thread can reach yet, although others know it.
    pub(super) fn begin(&self, key: &[u64; WORDS], value: u64) {
        self.fill(0, key, value);
        self.header.store(occupied_bit(0), Ordering::Release);
    }

    fn fill(&self, slot: usize, key: &[u64; WORDS], value: u64) {
        // Together with the reader's fence: see the file's header.
        fence(Ordering::Release);
        let entry = &self.words[slot * (WORDS + 1)..];
        key.iter().zip(entry).for_each(|(word, place)| place.store(*word, Ordering::Relaxed));
        entry[WORDS].store(value, Ordering::Relaxed);
    }

    /// Latches the chain of which this is the first bucket, or returns `None` where it is frozen.
    pub(super) fn latch(&self) -> Option<Latch<'_, WORDS>> {
        #[cfg(not(loom))]
        let backoff = Backoff::new();
        loop {
            let seen = self.header.load(Ordering::Relaxed);
            if seen & FROZEN != 0 {
                return None;
            }
            let latched = seen | LATCHED;
            if seen & LATCHED == 0
                && self.header.compare_exchange_weak(seen, latched, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return Some(Latch { first: self, header: latched });
            }
            #[cfg(loom)]
            loom::thread::yield_now();
            #[cfg(not(loom))]
            backoff.snooze();
        }
    }
}

/// The right to change a chain. Changes in its first bucket are shown when the latch is dropped.
pub(super) struct Latch<'a, const WORDS: usize> {
    first: &'a Bucket<WORDS>,
    header: u64,
}

impl<const WORDS: usize> Latch<'_, WORDS> {
    /// Fills an entry of `bucket`, which belongs to the chain.
    pub(super) fn occupy(&mut self, bucket: &Bucket<WORDS>, slot: usize, key: &[u64; WORDS], value: u64) {
        bucket.fill(slot, key, value);
        if std::ptr::eq(bucket, self.first) {
            self.header |= occupied_bit(slot);
        } else {
            bucket.header.fetch_or(occupied_bit(slot), Ordering::Release);
        }
    }

    /// Takes the key from an entry of `bucket`, which belongs to the chain.
    pub(super) fn vacate(&mut self, bucket: &Bucket<WORDS>, slot: usize) {
        self.header = self.header.wrapping_add(VERSION_ONE);
        if std::ptr::eq(bucket, self.first) {
            self.header &= !occupied_bit(slot);
        } else {
            bucket.header.fetch_and(!occupied_bit(slot), Ordering::Release);
        }
    }

    /// Keeps writers from latching the chain from now on, so that it stays as it is.
    pub(super) fn freeze(mut self) {
        self.header |= FROZEN;
    }
}

impl<const WORDS: usize> Drop for Latch<'_, WORDS> {
    fn drop(&mut self) {
        self.first.header.store(self.header & !LATCHED, Ordering::Release);
    }
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Bucket<1>>() == 64 && size_of::<Bucket<2>>() == 64);
const _: () = assert!(Bucket::<1>::ENTRIES == 3 && Bucket::<2>::ENTRIES == 2);
