//! The dictionaries of text columns in insert and tail pages: the Delta Storage Index (`index::DeltaIndex`) as `lineage`
//! asks for it, with a table in front of the tree.
//!
//! ```text
//! value --hash--> | id 7 | id 2 |      the value of one of them is this one: done, without a latch or a search
//!                                      neither is: ask the tree, and put its answer in front
//! ```
//!
//! Most values of a page are there already, and in the tree each takes a dozen comparisons, some of which wait for
//! memory. The table holds hints that are checked before they are used; values that want the same places take them
//! from each other. It grows with the dictionary.
//!
//! The tree is under one latch. Values are read without. Each of several writers appends to a dictionary of its own
//! (tsx-index, section 5.2.1).
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use index::{DeltaForm, DeltaIndex, NodeSearch, SortedIds, ValueId};
use lineage::{EncodedText, NewTextDictionary, TableOptions, TextDictionary, TextOrder};
use sync::VersionLatch;
use sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use sync::blocking::OnceLock;

/// Places in the table. The next size is taken when more than a quarter as many values are there.
const PLACES: [usize; 6] = [1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16];
/// Places for values of one hash.
const WAYS: usize = 2;

const _: () = assert!(WAYS.is_power_of_two() && WAYS <= PLACES[0], "the places of a value lie in every table");

/// Its hash function.
const HASH: FixedState = FixedState::with_seed(0x7e87);

/// Ids by the hash of their values.
type Places = OnceLock<Box<[AtomicU32]>>;

/// The pages in which text that repeats is kept once, with a Delta Storage Index to find it again. Columns with
/// values that hardly repeat are kept without anyway. The choice changes nothing that can be read or that is on
/// disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TextDictionaries {
    /// In none.
    Nowhere,
    /// In insert pages: inserts take longer, merges take less, and the pages are smaller.
    #[default]
    InsertPages,
    /// In tail pages as well: these are smaller where there are some hundred values at most, and updates of text take longer.
    AllPages,
}

impl TextDictionaries {
    /// The storage's options with these dictionaries.
    pub(crate) fn options(self, options: TableOptions) -> TableOptions {
        let new: NewTextDictionary = new_dictionary;
        let text_dictionary = (self != TextDictionaries::Nowhere).then_some(new);
        let tail_text_dictionary = (self == TextDictionaries::AllPages).then_some(new);
        TableOptions { text_dictionary, tail_text_dictionary, ..options }
    }
}

struct DeltaTexts {
    index: DeltaIndex<[u8], VersionLatch>,
    /// values that were entered
    entered: AtomicUsize,
    /// which of the tables is in use; those before are not used any more
    size: AtomicUsize,
    tables: [Places; PLACES.len()],
}

/// A dictionary for about so many writers.
fn new_dictionary(writers: usize) -> Box<dyn TextDictionary> {
    let form = DeltaForm { search: NodeSearch::Binary, dictionary_count: writers };
    let (entered, size) = (AtomicUsize::new(0), AtomicUsize::new(0));
    Box::new(DeltaTexts { index: DeltaIndex::new(form), entered, size, tables: Default::default() })
}

/// The places of a value in a table.
#[inline]
fn places_in<'a>(table: &'a [AtomicU32], value: &[u8]) -> &'a [AtomicU32] {
    debug_assert!(table.len().is_power_of_two(), "a table of {} places", table.len());
    let first = (HASH.hash_one(value) >> 32) as usize & (table.len() - WAYS);
    &table[first..first + WAYS]
}

/// Puts an id in front of the one that came before.
#[inline]
fn remember(places: &[AtomicU32], id: u32) {
    places[1].store(places[0].load(Ordering::Acquire), Ordering::Release);
    places[0].store(id, Ordering::Release);
}

impl DeltaTexts {
    /// The places of a value in the table.
    #[inline]
    fn places(&self, value: &[u8]) -> &[AtomicU32] {
        let size = self.size.load(Ordering::Relaxed);
        places_in(self.tables[size].get_or_init(|| self.new_table(size)), value)
    }

    /// A table of this size with what the one before remembers.
    #[cold]
    fn new_table(&self, size: usize) -> Box<[AtomicU32]> {
        let table: Box<[AtomicU32]> = (0..PLACES[size]).map(|_| AtomicU32::new(ValueId::NONE_WORD)).collect();
        let before = size.checked_sub(1).and_then(|before| self.tables[before].get());
        for id in before.iter().flat_map(|before| before.iter()).map(|place| place.load(Ordering::Acquire)) {
            if let Some(value) = self.index.value(ValueId::from_word(id)) {
                remember(places_in(&table, value), id);
            }
        }
        table
    }

    /// Takes a larger table if this one is crowded.
    fn has_entered(&self) {
        let entered = self.entered.fetch_add(1, Ordering::Relaxed) + 1;
        let size = PLACES.iter().position(|places| entered <= places / 4).unwrap_or(PLACES.len() - 1);
        self.size.fetch_max(size, Ordering::Relaxed);
    }
}

impl TextDictionary for DeltaTexts {
    #[inline]
    fn encode(&self, value: &[u8]) -> Option<EncodedText> {
        let places = self.places(value);
        for place in places {
            // An id stored here came from the tree: its value is visible after this acquire, which pairs with the
            // release of the store.
            let id = place.load(Ordering::Acquire);
            if self.index.value(ValueId::from_word(id)) == Some(value) {
                return Some(EncodedText { id, is_new: false });
            }
        }
        let (id, is_new) = self.index.enter_unseen(value).ok()?;
        debug_assert_eq!(self.index.value(id), Some(value), "invariant 1: an id keeps the value that it was given for");
        remember(places, id.word());
        if is_new {
            self.has_entered();
        }
        Some(EncodedText { id: id.word(), is_new })
    }

    #[inline]
    fn value(&self, id: u32) -> &[u8] {
        self.index.value(ValueId::from_word(id)).expect("pages hold ids that their dictionary has given")
    }

    fn order(&self) -> Box<dyn TextOrder> {
        Box::new(DeltaOrder(self.index.sorted()))
    }

    fn bytes(&self) -> usize {
        // The table that the next value is looked for in, and those before.
        let places: usize = PLACES[..=self.size.load(Ordering::Relaxed)].iter().sum();
        self.index.bytes() + places * size_of::<AtomicU32>()
    }
}

struct DeltaOrder(SortedIds);

impl TextOrder for DeltaOrder {
    fn ids(&self) -> Vec<u32> {
        self.0.ids().iter().map(|id| id.word()).collect()
    }

    fn place(&self, id: u32) -> Option<u32> {
        self.0.position(ValueId::from_word(id))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn name(number: u32) -> Vec<u8> {
        format!("{}{}", number % 10, "name".repeat(number as usize % 9)).into_bytes().repeat(1 + number as usize % 2)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_dictionary_is_a_map_from_values_to_ids_with_an_order(
            values in prop::collection::vec(prop_oneof![0..40u32, any::<u32>()], 0..600),
            writers in 1..5usize,
        ) {
            let (texts, mut model) = (new_dictionary(writers), BTreeMap::new());
            for number in values {
                let mut value = name(number);
                value.extend(if number < 40 { vec![] } else { number.to_be_bytes().to_vec() });
                let before = texts.bytes();
                let encoded = texts.encode(&value).unwrap();
                prop_assert_eq!(encoded.is_new, !model.contains_key(&value));
                prop_assert!(texts.bytes() >= before, "memory is only taken");
                prop_assert_eq!(*model.entry(value).or_insert(encoded.id), encoded.id);
            }
            let order = texts.order();
            prop_assert_eq!(order.ids(), model.values().copied().collect::<Vec<_>>());
            for (place, (value, id)) in model.iter().enumerate() {
                prop_assert_eq!((texts.value(*id), order.place(*id)), (&value[..], Some(place as u32)));
            }
        }
    }

    #[test]
    fn writers_who_come_with_the_same_values_agree_on_their_ids_while_the_table_grows() {
        const VALUES: u32 = 3_000;
        let texts = new_dictionary(3);
        let value = |number: u32| format!("value {}", number.wrapping_mul(2_654_435_761) % VALUES).into_bytes();
        let known: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let writer = |from: u32| {
                let texts = &texts;
                scope.spawn(move || {
                    let mut ids = vec![0; 2 * VALUES as usize];
                    for number in (0..2 * VALUES).map(|number| (number + from) % (2 * VALUES)) {
                        let id = texts.encode(&value(number)).unwrap().id;
                        assert_eq!(texts.value(id), value(number), "an id always has its value");
                        ids[number as usize] = id;
                    }
                    ids
                })
            };
            let writers: Vec<_> = [0, VALUES / 3, VALUES].into_iter().map(writer).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        assert!(known.iter().all(|ids| *ids == known[0]));
        assert!(texts.order().ids().is_sorted_by(|left, right| texts.value(*left) < texts.value(*right)));
    }
}
