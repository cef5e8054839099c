//! Keys that become known while a query runs: those of the side of a join that is in memory already, by which scans of the other
//! side leave out rows without a partner.
//!
//! ```text
//! keys of the side in memory ─▶ KeySet ─ published ─▶ KeyFilter ◀─ asked by scans, block by block
//!
//! exact    one bit for each number between the least key and the greatest one
//! hashed   a word for some keys, three bits of it for each: a Bloom filter in blocks (Putze, Sanders, Singler, WEA 2007);
//!          lets some numbers pass that are no keys
//! ```
//!
//! A filter lets every row pass until its keys are published, and again once it has turned out to keep nearly all rows, or
//! has been taken back. So it never decides what a query answers: the join looks at each row that passes.
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::simd::{BlockBits, Simd};
use crate::value::cell::Cell;

/// Numbers between the least and the greatest key up to which a bit is kept for each.
const EXACT_SPAN: u64 = 1 << 26;
/// Bits for each key of a hashed set.
const HASHED_BITS: usize = 16;
/// After so many rows it is seen whether a filter is of use.
const TRIAL_ROWS: u64 = 1 << 16;

/// A set of keys, the hashed ones with some more in them.
#[derive(Debug)]
pub struct KeySet {
    min: i64,
    /// the greatest key less the least
    span: u64,
    words: Box<[u64]>,
    /// of a hashed set: how far a hash is shifted to be the number of a word
    shift: Option<u32>,
    is_empty: bool,
}

impl KeySet {
    /// The set of the keys of all parts.
    pub fn of(parts: &[Vec<i64>]) -> KeySet {
        let keys = || parts.iter().flatten().copied();
        let (Some(min), Some(max)) = (keys().min(), keys().max()) else {
            return KeySet { min: 0, span: 0, words: Box::new([0]), shift: None, is_empty: true };
        };
        let span = max.wrapping_sub(min) as u64;
        let mut set = if span < EXACT_SPAN {
            let words = vec![0; (span / 64 + 1) as usize].into_boxed_slice();
            KeySet { min, span, words, shift: None, is_empty: false }
        } else {
            let count: usize = parts.iter().map(Vec::len).sum();
            let words = (count * HASHED_BITS / 64).next_power_of_two().max(2);
            let shift = Some(u64::BITS - words.trailing_zeros());
            KeySet { min, span, words: vec![0; words].into_boxed_slice(), shift, is_empty: false }
        };
        for key in keys() {
            let (word, bits) = set.place(key);
            set.words[word] |= bits;
        }
        set
    }

    /// The word and the bits of a key between the least and the greatest one.
    #[inline]
    fn place(&self, key: i64) -> (usize, u64) {
        match self.shift {
            None => {
                let at = (key.wrapping_sub(self.min) as u64).min(self.span);
                ((at / 64) as usize, 1 << (at % 64))
            }
            Some(shift) => {
                let key = key as u64;
                let hash = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let bit = |from: u32| 1u64 << (hash >> from & 63);
                ((hash >> shift) as usize, bit(0) | bit(6) | bit(12))
            }
        }
    }

    /// Whether the number may be a key; certain where it says no.
    #[inline]
    pub fn may_have(&self, key: i64) -> bool {
        let (word, bits) = self.place(key);
        // A number below the least key is beyond the greatest one by this.
        key.wrapping_sub(self.min) as u64 <= self.span && self.words[word] & bits == bits
    }

    /// Whether a number from `low` to `high`, both included, may be a key; certain where it says no.
    pub(crate) fn may_have_any(&self, low: i64, high: i64) -> bool {
        /// So many words are looked through.
        const WORDS_MAX: usize = 256;
        let max = self.min.wrapping_add(self.span as i64);
        let (low, high) = (low.max(self.min), high.min(max));
        if self.is_empty || low > high {
            return false;
        }
        if self.shift.is_some() {
            return true;
        }
        let (from, to) = (low.wrapping_sub(self.min) as u64, high.wrapping_sub(self.min) as u64);
        let (first, last) = ((from / 64) as usize, (to / 64) as usize);
        if last - first > WORDS_MAX {
            return true;
        }
        let low_part = |word: usize| if word == first { u64::MAX << (from % 64) } else { u64::MAX };
        let high_part = |word: usize| if word == last { u64::MAX >> (63 - to % 64) } else { u64::MAX };
        (first..=last).any(|word| self.words[word] & low_part(word) & high_part(word) != 0)
    }

    /// Sets the bits of those of at most a block of numbers that have their bit in `asked` and may be keys.
    pub(super) fn find_among(&self, numbers: &[i64], asked: &BlockBits, bits: &mut BlockBits) {
        for (numbers, (asked, found)) in numbers.chunks(64).zip(asked.iter().zip(bits)) {
            let mut left = *asked;
            while left != 0 {
                let at = left.trailing_zeros();
                *found |= u64::from(self.may_have(numbers[at as usize])) << at;
                left &= left - 1;
            }
        }
    }

    /// Sets the bits of those of at most a block of numbers that may be keys.
    pub(super) fn find(&self, simd: Simd, numbers: &[i64], bits: &mut BlockBits) {
        if self.shift.is_none() && !self.is_empty {
            return find_exact(simd, numbers, (self.min, self.span), &self.words, bits);
        }
        for (numbers, word) in numbers.chunks(64).zip(bits) {
            for (at, number) in numbers.iter().enumerate() {
                *word |= u64::from(self.may_have(*number)) << at;
            }
        }
    }
}

/// Sets the bits of the numbers of at most a block whose bit, by their distance from the least key, is set among `words`.
fn find_exact(simd: Simd, numbers: &[i64], (min, span): (i64, u64), words: &[u64], bits: &mut BlockBits) {
    assert!((span / 64) < words.len() as u64, "a bit for each number up to the greatest");
    let (whole, rest) = numbers.as_chunks::<64>();
    match simd {
        // SAFETY: the token proves that the processor has AVX-512, and there is a word for each distance up to `span`.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx512(_) => unsafe { find_exact_avx512(whole, (min, span), words, bits) },
        _ => whole.iter().zip(&mut *bits).for_each(|(of_word, word)| *word |= found_exact(of_word, (min, span), words)),
    }
    if !rest.is_empty() {
        bits[whole.len()] |= found_exact(rest, (min, span), words);
    }
}

#[inline]
fn found_exact(numbers: &[i64], (min, span): (i64, u64), words: &[u64]) -> u64 {
    let has = |number: i64| {
        let distance = number.wrapping_sub(min) as u64;
        let near = distance.min(span);
        words[(near / 64) as usize] >> (near % 64) & u64::from(distance <= span)
    };
    // Eight at a time, so that their places in the word are known.
    let (eights, rest) = numbers.as_chunks::<8>();
    let of_eight = |eight: &[i64; 8]| (0..8).fold(0, |found, at| found | has(eight[at]) << at);
    let found = eights.iter().enumerate().fold(0, |found, (i, eight)| found | of_eight(eight) << (i * 8));
    rest.iter().enumerate().fold(found, |found, (at, number)| found | has(*number) << (eights.len() * 8 + at))
}

/// # Safety
/// There is a word for each distance up to `span`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn find_exact_avx512(chunks: &[[i64; 64]], (min, span): (i64, u64), words: &[u64], bits: &mut BlockBits) {
    let (least, greatest, one) = (_mm512_set1_epi64(min), _mm512_set1_epi64(span as i64), _mm512_set1_epi64(1));
    for (numbers, word) in chunks.iter().zip(bits) {
        for part in 0..8 {
            // SAFETY: 64 numbers are eight parts of eight.
            let numbers = unsafe { _mm512_loadu_si512(numbers.as_ptr().add(part * 8).cast()) };
            let distance = _mm512_sub_epi64(numbers, least);
            let is_near = _mm512_cmple_epu64_mask(distance, greatest);
            // SAFETY: only words of distances up to `span` are read, which the caller says are there.
            let found = unsafe {
                _mm512_mask_i64gather_epi64::<8>(
                    _mm512_setzero_si512(),
                    is_near,
                    _mm512_srli_epi64::<6>(distance),
                    words.as_ptr().cast(),
                )
            };
            let bit = _mm512_srlv_epi64(found, _mm512_and_si512(distance, _mm512_set1_epi64(63)));
            *word |= u64::from(_mm512_test_epi64_mask(bit, one)) << (part * 8);
        }
    }
}

/// A filter of a column of integers or dates by keys that may not be known yet.
#[derive(Debug, Default)]
pub struct KeyFilter {
    keys: OnceLock<KeySet>,
    is_off: AtomicBool,
    is_steady: AtomicBool,
    /// of a steady filter: whether it leaves out rows
    decided: OnceLock<bool>,
    rows_seen: AtomicU64,
    rows_kept: AtomicU64,
}

impl PartialEq for KeyFilter {
    /// A filter is equal to itself alone.
    fn eq(&self, other: &KeyFilter) -> bool {
        std::ptr::eq(self, other)
    }
}

impl KeyFilter {
    /// Has scans leave out rows with none of these keys from now on. The first keys published stay.
    pub fn publish(&self, keys: KeySet) {
        let _ = self.keys.set(keys);
    }

    /// Lets all rows pass from now on.
    pub fn switch_off(&self) {
        self.is_off.store(true, Ordering::Release);
    }

    /// Has it treat all rows alike: it leaves rows out from the first row on that it is asked about, or never. To be called
    /// before any scan asks, where rows are grouped above it: a group then comes whole or not at all.
    pub fn be_steady(&self) {
        self.is_steady.store(true, Ordering::Release);
    }

    /// The keys, if rows are to be left out.
    pub(crate) fn keys(&self) -> Option<&KeySet> {
        let is_on = match self.is_steady.load(Ordering::Acquire) {
            true => *self.decided.get_or_init(|| self.is_on()),
            false => self.is_on(),
        };
        self.keys.get().filter(|_| is_on)
    }

    /// The keys, if stretches of rows are to be left out before any of their rows is asked about.
    pub(crate) fn keys_of_stretches(&self) -> Option<&KeySet> {
        let is_on = match self.is_steady.load(Ordering::Acquire) {
            true => self.decided.get() == Some(&true),
            false => self.is_on(),
        };
        self.keys.get().filter(|_| is_on)
    }

    fn is_on(&self) -> bool {
        !self.is_off.load(Ordering::Acquire) && self.keys.get().is_some()
    }

    /// Whether a value passes.
    pub(crate) fn passes(&self, cell: Cell<'_>) -> bool {
        match (self.keys(), cell) {
            (None, _) | (Some(_), Cell::Bytes(_)) => true,
            (Some(keys), Cell::Word(word)) => keys.may_have(word as i64),
            (Some(_), Cell::Null) => false,
        }
    }

    /// Notes how many rows of a scan were looked at, and how many of these passed. A filter that passes most is switched off.
    pub(crate) fn note(&self, seen: usize, kept: usize) {
        let all = self.rows_seen.fetch_add(seen as u64, Ordering::Relaxed) + seen as u64;
        let all_kept = self.rows_kept.fetch_add(kept as u64, Ordering::Relaxed) + kept as u64;
        if !self.is_steady.load(Ordering::Acquire) && all >= TRIAL_ROWS && all_kept * 5 > all * 4 {
            self.switch_off();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::{BLOCK, BLOCK_WORDS};
    use super::super::tests::Random;
    use super::*;

    /// A number from `low` on, of so many.
    fn number(random: &mut Random, low: i64, count: usize) -> i64 {
        low + random.below(count) as i64
    }

    /// Keys that are near each other, and keys from all over.
    fn samples() -> Vec<Vec<i64>> {
        let mut random = Random::new(7);
        let near = (0..500).map(|_| number(&mut random, -3_000, 6_000)).collect();
        let far = (0..500).map(|_| random.next() as i64).collect();
        vec![near, far, vec![i64::MIN, i64::MAX], vec![5], vec![-64, 0, 63, 64], Vec::new()]
    }

    #[test]
    fn a_set_has_all_of_its_keys_and_few_others() {
        let mut random = Random::new(8);
        for keys in samples() {
            let (one, other) = keys.split_at(keys.len() / 2);
            let set = KeySet::of(&[one.to_vec(), other.to_vec()]);
            assert!(keys.iter().all(|key| set.may_have(*key)));
            let is_exact = set.shift.is_none();
            let mut wrong = 0;
            for _ in 0..20_000 {
                let number = match is_exact {
                    true => number(&mut random, -4_000, 8_000),
                    false => random.next() as i64,
                };
                wrong += usize::from(set.may_have(number) && !keys.contains(&number));
            }
            assert!(wrong == 0 || !is_exact && wrong < 1_000, "{wrong} numbers that are no keys pass");
        }
    }

    #[test]
    fn numbers_together_are_found_as_one_by_one() {
        let mut random = Random::new(10);
        for keys in samples() {
            let set = KeySet::of(std::slice::from_ref(&keys));
            for len in [0, 1, 63, 64, 65, 700, BLOCK] {
                let some = |random: &mut Random| match (keys.get(random.below(keys.len().max(1))), random.below(4)) {
                    (Some(key), 0) => *key,
                    (_, 1) => [i64::MIN, i64::MAX, 0][random.below(3)],
                    _ => number(random, -4_000, 8_000),
                };
                let numbers: Vec<i64> = (0..len).map(|_| some(&mut random)).collect();
                for simd in Simd::available() {
                    let mut bits: BlockBits = [0; BLOCK_WORDS];
                    set.find(simd, &numbers, &mut bits);
                    let asked: BlockBits = std::array::from_fn(|_| random.next());
                    let mut among: BlockBits = [0; BLOCK_WORDS];
                    let is_there = |at: usize| super::super::simd::low_bits(len.saturating_sub(at * 64).min(64));
                    let asked_here: BlockBits = std::array::from_fn(|i| asked[i] & is_there(i));
                    set.find_among(&numbers, &asked_here, &mut among);
                    for at in 0..BLOCK {
                        let expected = numbers.get(at).is_some_and(|number| set.may_have(*number));
                        assert_eq!(bits[at / 64] >> (at % 64) & 1 != 0, expected, "{at} of {len} by {simd:?}");
                        let is_asked = asked[at / 64] >> (at % 64) & 1 != 0;
                        assert_eq!(among[at / 64] >> (at % 64) & 1 != 0, expected && is_asked, "{at} of {len}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_stretch_without_keys_is_known_where_bits_are_exact() {
        let mut random = Random::new(9);
        for keys in samples() {
            let set = KeySet::of(std::slice::from_ref(&keys));
            for _ in 0..2_000 {
                let low = number(&mut random, -4_000, 8_000);
                let high = number(&mut random, low, 200);
                let has = keys.iter().any(|key| (low..=high).contains(key));
                let may = set.may_have_any(low, high);
                assert!(may || !has, "{low}..={high} of {keys:?}");
                assert!(may == has || set.shift.is_some(), "{low}..={high} of {keys:?}");
            }
            assert_eq!(set.may_have_any(i64::MIN, i64::MAX), !keys.is_empty());
        }
    }

    #[test]
    fn a_filter_lets_all_pass_until_its_keys_are_known_and_once_it_is_of_no_use() {
        let filter = KeyFilter::default();
        let passes = |number: i64| filter.passes(Cell::Word(number as u64));
        assert!(passes(1) && filter.passes(Cell::Null));
        filter.publish(KeySet::of(&[vec![2, -3]]));
        assert!(!passes(1) && passes(2) && passes(-3) && !filter.passes(Cell::Null));
        filter.note(100_000, 10);
        assert!(!passes(1));
        filter.note(900_000, 899_000);
        assert!(passes(1) && filter.passes(Cell::Null));
    }
}
