//! A set of places among *n*, for instance the slots that have history or the versions that have a value for a column:
//! is a place in it, and how many come before?
//!
//! Three forms, of which about the smallest is taken, as a look at some of the places tells: all places; an ascending list, searched in
//! halves, where they are few; else a bitmap with the number of places before every fourth word, so that a rank looks at
//! five words at most.
use std::ops::Range;

use super::packed::Packed;

/// Words of a bitmap between two counts.
const STRIDE: usize = 4;
/// A list is no smaller than a bitmap where it has more than one place of so many, unless they are evenly spaced.
const LIST_SHARE: usize = 4;

/// A set of places that never changes.
#[derive(Debug)]
pub(crate) enum Positions {
    /// Every place below this.
    All(usize),
    List(Packed),
    Bitmap(Bitmap),
}

#[derive(Debug)]
pub(crate) struct Bitmap {
    words: Box<[u64]>,
    /// places before word 4 i
    before: Box<[u32]>,
    len: usize,
}

impl Positions {
    /// The set of these places, which ascend and are below `universe`.
    pub(crate) fn of(places: &[u64], universe: usize) -> Positions {
        debug_assert!(places.is_sorted_by(|a, b| a < b) && places.last().is_none_or(|last| *last < universe as u64));
        if places.len() == universe {
            return Positions::All(universe);
        }
        let words = places.last().map_or(0, |last| *last as usize / 64 + 1);
        if Packed::about_bytes_of(places) <= Bitmap::bytes_of(words) {
            return Positions::List(Packed::of(places));
        }
        let mut bitmap = vec![0_u64; words];
        for place in places {
            bitmap[*place as usize / 64] |= 1 << (place % 64);
        }
        Positions::Bitmap(Bitmap::of(bitmap.into_boxed_slice()))
    }

    /// How many places of the set are below `place`.
    #[inline]
    pub(crate) fn rank(&self, place: usize) -> usize {
        match self {
            Positions::All(universe) => place.min(*universe),
            Positions::List(list) => list.count_below(place as u64),
            Positions::Bitmap(bitmap) => bitmap.rank(place),
        }
    }

    /// Whether `place` is in the set.
    #[inline]
    pub(crate) fn contains(&self, place: usize) -> bool {
        match self {
            Positions::Bitmap(bitmap) => bitmap.contains(place),
            _ => self.find(place).is_some(),
        }
    }

    /// How many places of the set are below `place` if it is in the set.
    #[inline]
    pub(crate) fn find(&self, place: usize) -> Option<usize> {
        match self {
            Positions::All(universe) => (place < *universe).then_some(place),
            Positions::List(list) => {
                let below = list.count_below(place as u64);
                (below < list.len() && list.get(below) == place as u64).then_some(below)
            }
            Positions::Bitmap(bitmap) => bitmap.contains(place).then(|| bitmap.rank(place)),
        }
    }

    /// How many places are in the set.
    pub(crate) fn len(&self) -> usize {
        match self {
            Positions::All(universe) => *universe,
            Positions::List(list) => list.len(),
            Positions::Bitmap(bitmap) => bitmap.len,
        }
    }

    /// The places in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.within(0..usize::MAX)
    }

    /// The places of a range in ascending order, found without a look at those before.
    pub(crate) fn within(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let Range { start, end } = range;
        let (all, list, bitmap) = match self {
            Positions::All(universe) => (start.min(*universe)..end.min(*universe), None, None),
            Positions::List(list) => (0..0, Some(list), None),
            Positions::Bitmap(bitmap) => (0..0, None, Some(bitmap)),
        };
        let listed = list.into_iter().flat_map(move |list| {
            let numbers = list.count_below(start as u64)..list.count_below(end as u64);
            numbers.map(|number| list.get(number) as usize)
        });
        all.chain(listed).chain(bitmap.into_iter().flat_map(move |bitmap| bitmap.within(start, end)))
    }

    /// Passes the places of a range to `take`, in ascending order, which costs less than to iterate over them.
    #[inline]
    pub(crate) fn each_within(&self, range: Range<usize>, mut take: impl FnMut(usize)) {
        match self {
            Positions::All(universe) => (range.start.min(*universe)..range.end.min(*universe)).for_each(take),
            Positions::List(list) => {
                let numbers = list.count_below(range.start as u64)..list.count_below(range.end as u64);
                list.each_within(numbers, |place| take(place as usize));
            }
            Positions::Bitmap(bitmap) => {
                let last = range.end.div_ceil(64).min(bitmap.words.len());
                let first = (range.start / 64).min(last);
                for (at, word) in bitmap.words[first..last].iter().enumerate() {
                    let place = (first + at) * 64;
                    let mut left = *word;
                    if place < range.start {
                        left &= u64::MAX << (range.start - place);
                    }
                    if place + 64 > range.end {
                        left &= u64::MAX >> (place + 64 - range.end);
                    }
                    while left != 0 {
                        take(place + left.trailing_zeros() as usize);
                        left &= left - 1;
                    }
                }
            }
        }
    }

    /// Memory beyond the struct itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Positions::All(_) => 0,
            Positions::List(list) => list.heap_bytes(),
            Positions::Bitmap(bitmap) => bitmap.heap_bytes(),
        }
    }
}

/// A set of places that is being collected.
#[derive(Default)]
pub(crate) struct NewPositions {
    /// a bit for each place
    words: Vec<u64>,
}

impl NewPositions {
    /// Adds a place, which is above those before.
    pub(crate) fn push(&mut self, place: usize) {
        self.push_word(place / 64, 1 << (place % 64));
    }

    /// Adds places of the word `at`, a bit each, which are above those before.
    pub(crate) fn push_word(&mut self, at: usize, places: u64) {
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= places;
    }

    /// Whether there is no place yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The set, whose places are below `universe`.
    pub(crate) fn finish(self, universe: usize) -> Positions {
        let bitmap = Bitmap::of(self.words.into_boxed_slice());
        if bitmap.len == universe {
            return Positions::All(universe);
        }
        // A place of a list takes four bits or more where they lie anyhow.
        if bitmap.len * LIST_SHARE > universe {
            return Positions::Bitmap(bitmap);
        }
        let places: Vec<u64> = bitmap.within(0, universe).map(|place| place as u64).collect();
        match Packed::about_bytes_of(&places) <= bitmap.heap_bytes() {
            true => Positions::List(Packed::of(&places)),
            false => Positions::Bitmap(bitmap),
        }
    }
}

impl Bitmap {
    /// The set of the places that have their bits set.
    pub(crate) fn of(words: Box<[u64]>) -> Bitmap {
        let counts = words.chunks(STRIDE).scan(0, |count, chunk| {
            let before = *count;
            *count += ones(chunk) as u32;
            Some(before)
        });
        let before = counts.collect();
        Bitmap { len: ones(&words), before, words }
    }

    /// The memory that a bitmap of so many words takes.
    fn bytes_of(words: usize) -> usize {
        words * size_of::<u64>() + words.div_ceil(STRIDE) * size_of::<u32>()
    }

    fn heap_bytes(&self) -> usize {
        Bitmap::bytes_of(self.words.len())
    }

    /// A bit for each place.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    #[inline]
    fn contains(&self, place: usize) -> bool {
        self.words.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    #[inline]
    fn rank(&self, place: usize) -> usize {
        let at = place / 64;
        let Some(word) = self.words.get(at) else { return self.len };
        let stride = at / STRIDE;
        let whole = ones(&self.words[stride * STRIDE..at]);
        self.before[stride] as usize + whole + (word & ((1 << (place % 64)) - 1)).count_ones() as usize
    }

    fn within(&self, start: usize, end: usize) -> impl Iterator<Item = usize> {
        let last = end.div_ceil(64).min(self.words.len());
        let first = (start / 64).min(last);
        let places = self.words[first..last].iter().zip(first..).flat_map(|(word, at)| {
            std::iter::successors(Some(*word), |left| Some(left & left.wrapping_sub(1)))
                .take_while(|left| *left != 0)
                .map(move |left| at * 64 + left.trailing_zeros() as usize)
        });
        places.skip_while(move |place| *place < start).take_while(move |place| *place < end)
    }
}

fn ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agrees(places: &[u64], universe: usize) {
        let mut new = NewPositions::default();
        places.iter().for_each(|place| new.push(*place as usize));
        assert_eq!(new.is_empty(), places.is_empty());
        is_the_set(&Positions::of(places, universe), places, universe);
        is_the_set(&new.finish(universe), places, universe);
    }

    fn is_the_set(positions: &Positions, places: &[u64], universe: usize) {
        assert_eq!(positions.len(), places.len());
        assert!(positions.iter().eq(places.iter().map(|place| *place as usize)));
        for range in
            [0..0, 0..universe, 1..2, universe / 3..universe / 2, universe / 2..universe + 1, universe + 1..usize::MAX]
        {
            let inside = places.iter().map(|place| *place as usize).filter(|place| range.contains(place));
            assert!(positions.within(range.clone()).eq(inside.clone()), "{range:?}");
            let mut found = Vec::new();
            positions.each_within(range.clone(), |place| found.push(place));
            assert!(inside.eq(found), "{range:?}");
        }
        for place in 0..universe + 70 {
            let below = places.partition_point(|member| *member < place as u64);
            assert_eq!(positions.rank(place), below);
            assert_eq!(positions.contains(place), places.get(below) == Some(&(place as u64)));
            assert_eq!(positions.find(place), positions.contains(place).then_some(below));
        }
    }

    #[test]
    fn each_form_is_taken_where_it_is_the_smallest() {
        let every = |step: usize| (0..65_536).step_by(step).map(|place| place as u64 + place as u64 % 7);
        let set = |step| {
            let mut places = NewPositions::default();
            every(step).filter(|place| *place < 65_536).for_each(|place| places.push(place as usize));
            places.finish(65_536)
        };
        assert!(matches!(Positions::of(&(0..65_536).collect::<Vec<_>>(), 65_536), Positions::All(_)));
        assert!(matches!(set(7 * 64), Positions::List(_)));
        let odd: Vec<u64> = (0..65_536).filter(|place| place * place % 11 < 4).collect();
        let positions = Positions::of(&odd, 65_536);
        assert!(matches!(positions, Positions::Bitmap(_)));
        assert!(positions.heap_bytes() <= 8192 + 1024);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn members_and_ranks_are_those_of_the_list(
            bits in prop::collection::vec(any::<bool>(), 0..2000), sparse in 1_usize..40,
        ) {
            let places: Vec<u64> =
                (0..bits.len()).filter(|i| bits[*i] && i % sparse == 0).map(|i| i as u64).collect();
            agrees(&places, bits.len());
            agrees(&(0..bits.len() as u64).collect::<Vec<_>>(), bits.len());
        }
    }
}
