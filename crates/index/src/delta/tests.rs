//! The index against sorted maps, in both forms, for numbers and strings; order, ids, limits, footprints.
use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use sync::{SpinLatch, VersionLatch};

use super::*;

const FORMS: [DeltaForm; 3] = [
    DeltaForm::ORIGINAL,
    DeltaForm { search: NodeSearch::Binary, dictionary_count: 4 },
    DeltaForm { search: NodeSearch::Linear, dictionary_count: 3 },
];

/// A value that a model can keep.
trait Owned: Ord + Clone + Debug {
    type Value: DictionaryValue + ?Sized;
    fn borrow(&self) -> <Self::Value as DictionaryValue>::Borrowed<'_>;
    fn own(value: <Self::Value as DictionaryValue>::Borrowed<'_>) -> Self;
}

impl Owned for u64 {
    type Value = u64;

    fn borrow(&self) -> u64 {
        *self
    }

    fn own(value: u64) -> u64 {
        value
    }
}

impl Owned for Vec<u8> {
    type Value = [u8];

    fn borrow(&self) -> &[u8] {
        self
    }

    fn own(value: &[u8]) -> Vec<u8> {
        value.to_vec()
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..300u64, any::<u64>(), u64::MAX - 50..=u64::MAX]
}

fn string() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => Just(b'a'), 1 => Just(0u8), 1 => any::<u8>()];
    prop::collection::vec(byte, 0..24)
}

/// The values of an index in order, with what `sorted` and `value` say of each.
fn values_in_order<O: Owned, L: Latch>(index: &DeltaIndex<O::Value, L>) -> Vec<O> {
    let sorted = index.sorted();
    let ids: Vec<ValueId> = index.ids().collect();
    assert_eq!(sorted.ids(), ids);
    for (place, id) in ids.iter().enumerate() {
        assert_eq!(sorted.position(*id), Some(place as u32));
    }
    ids.into_iter().map(|id| O::own(index.value(id).unwrap())).collect()
}

/// Enters `values`, each from a thread of its own choice, and compares with a map.
fn replay<O: Owned, L: Latch>(values: &[O], absent: &[O], form: DeltaForm) {
    let index = DeltaIndex::<O::Value, L>::new(form);
    let mut model = BTreeMap::new();
    for value in values {
        let is_new = model.len() % 2 == 0 && index.enter_unseen(value.borrow()).unwrap().1;
        assert!(!is_new || !model.contains_key(value), "a value is new once");
        let id = index.encode(value.borrow()).unwrap();
        assert_eq!(index.enter_unseen(value.borrow()), Ok((id, false)));
        assert_eq!(*model.entry(value.clone()).or_insert(id), id, "a value keeps its id");
    }
    assert_eq!(index.len(), model.len() as u64);
    assert_eq!(values_in_order::<O, L>(&index), model.keys().cloned().collect::<Vec<_>>());
    for value in values.iter().chain(absent) {
        let id = model.get(value).copied();
        assert_eq!((index.lookup(value.borrow()), index.footprint(value.borrow()).0), (id, id), "{value:?}");
    }
    for pair in values.windows(2) {
        let (low, high) = (pair[0].clone().min(pair[1].clone()), pair[0].clone().max(pair[1].clone()));
        let in_index =
            |start, end| -> Vec<O> { index.range((start, end)).map(|id| O::own(index.value(id).unwrap())).collect() };
        let in_model = |start, end| -> Vec<O> { model.range((start, end)).map(|entry| entry.0.clone()).collect() };
        let (from, to) = (low.borrow(), high.borrow());
        let included = in_index(Bound::Included(from), Bound::Included(to));
        assert_eq!(included, in_model(Bound::Included(low.clone()), Bound::Included(high.clone())));
        let excluded = in_index(Bound::Excluded(from), Bound::Excluded(to));
        let inner = included.iter().filter(|value| **value != low && **value != high).cloned().collect::<Vec<_>>();
        assert_eq!(excluded, inner);
        assert_eq!(in_index(Bound::Excluded(to), Bound::Included(from)), []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn numbers_are_found_and_ordered_like_those_of_a_map(
        values in prop::collection::vec(number(), 0..600),
        absent in prop::collection::vec(number(), 0..20),
    ) {
        FORMS.into_iter().for_each(|form| replay::<u64, RwSpinLatch>(&values, &absent, form));
        replay::<u64, VersionLatch>(&values, &absent, FORMS[1]);
    }

    #[test]
    fn strings_are_found_and_ordered_like_those_of_a_map(
        values in prop::collection::vec(string(), 0..300),
        absent in prop::collection::vec(string(), 0..20),
    ) {
        FORMS.into_iter().for_each(|form| replay::<Vec<u8>, SpinLatch>(&values, &absent, form));
    }
}

#[test]
fn large_indexes_stay_ordered_whatever_the_order_of_arrival() {
    const COUNT: u64 = 40_000;
    let orders: [fn(u64) -> u64; 3] = [|at| at, |at| COUNT - 1 - at, |at| at * 7_919 % COUNT];
    for order in orders {
        for form in FORMS {
            let index = DeltaIndex::<u64>::new(form);
            assert_eq!(index.height(), 1);
            for at in 0..COUNT {
                let id = index.encode(2 * order(at)).unwrap();
                assert_eq!(index.value(id), Some(2 * order(at)));
            }
            assert!(index.height() >= 4, "{}", index.height());
            assert!(values_in_order::<u64, _>(&index).into_iter().eq((0..COUNT).map(|at| 2 * at)));
            assert!(
                (0..COUNT).step_by(61).all(|at| index.lookup(2 * at).is_some() && index.lookup(2 * at + 1).is_none())
            );
        }
    }
}

#[test]
fn ids_of_the_original_form_are_numbered_in_the_order_of_arrival() {
    let index = DeltaIndex::<[u8]>::new(DeltaForm::ORIGINAL);
    for (word, city) in ["Fresno", "Oakland", "Palo Alto", "Albany", "San Francisco, California"].iter().enumerate() {
        assert_eq!(index.encode(city.as_bytes()).unwrap().word(), word as u32);
    }
    let words: Vec<u32> = index.ids().map(ValueId::word).collect();
    assert_eq!(words, [3, 0, 1, 2, 4]);
    assert_eq!(index.value(ValueId::from_word(4)), Some(&b"San Francisco, California"[..]));
    assert_eq!(index.value(ValueId::from_word(5)), None);
    assert_eq!(index.value(ValueId::from_word(ValueId::NONE_WORD)), None);
}

#[test]
fn the_threads_of_the_tuned_form_append_to_different_dictionaries() {
    let index = DeltaIndex::<u64>::new(DeltaForm { search: NodeSearch::Binary, dictionary_count: 64 });
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let index = &index;
            scope.spawn(move || (0..100).for_each(|at| assert!(index.encode(1_000 * thread + at).is_ok())));
        }
    });
    let mut numbers: Vec<usize> = index.ids().map(|id| index.layout.parts(id).0).collect();
    numbers.dedup();
    let used = index.parts.iter().filter(|part| part.dictionary.len() > 0);
    assert!(used.clone().all(|part| part.dictionary.len() % 100 == 0), "a thread stays with its dictionary");
    assert_eq!(numbers.len(), used.count(), "values of a thread are neighbours here");
}

#[test]
fn a_full_dictionary_sends_inserts_to_others_and_the_last_one_says_so() {
    let form = DeltaForm { search: NodeSearch::Binary, dictionary_count: 4 };
    let index = DeltaIndex::<u64, SpinLatch>::with_id_bits(form, SpinLatch::new(), 8);
    (0..4 * 63).for_each(|value| assert!(index.encode(value).is_ok(), "{value}"));
    let error = index.encode(1_000).unwrap_err();
    assert_eq!(error, DictionaryError::Full { value_count: 252 });
    assert!(error.to_string().contains("252 different values") && error.to_string().contains("merge"));
    assert!(index.encode(100).is_ok() && index.lookup(1_000).is_none() && index.len() == 252);
    assert!(values_in_order::<u64, _>(&index).into_iter().eq(0..252));
}

#[test]
fn what_comes_after_the_order_was_taken_has_no_place_in_it() {
    let index = DeltaIndex::<u64>::new(FORMS[1]);
    (0..100).for_each(|value| assert!(index.encode(value * 2).is_ok()));
    let sorted = index.sorted();
    let later = index.encode(51).unwrap();
    assert_eq!((sorted.ids().len(), sorted.position(later)), (100, None));
    assert_eq!(sorted.position(ValueId::from_word(ValueId::NONE_WORD)), None);
    assert_eq!(index.sorted().position(later), Some(26));
}

#[test]
fn a_column_gives_back_the_rows_that_it_was_given() {
    let column = DeltaColumn::<[u8]>::default();
    let city = |row: u32| format!("city {} of many with a long name", row * row % 37);
    for row in 0..1_000 {
        assert_eq!(column.id(row), None);
        assert_eq!(column.append(city(row).as_bytes()), Ok(Some(row)));
    }
    assert!((0..1_000).all(|row| column.value(row) == Some(city(row).as_bytes())));
    assert_eq!((column.row_count(), column.value(1_000)), (1_000, None));
    assert!(column.index().len() <= 37 && column.index().lookup(city(5).as_bytes()) == column.id(5));
}

#[test]
fn the_lines_of_one_leaf_are_those_that_its_search_reads() {
    for search in [NodeSearch::Linear, NodeSearch::Binary] {
        let index = DeltaIndex::<u64>::new(DeltaForm { search, dictionary_count: 1 });
        (0..30).for_each(|value| assert!(index.encode(value).is_ok()));
        let lines = |value| index.footprint(value).1;
        // The root pointer and both lines of ids; the table and the entries 0 to 29, eight in a line. The first value is
        // found at the first id by the one, by halves through 15, 7, 3, 1, 0 by the other.
        let (first, last) = match search {
            NodeSearch::Linear => ((2, 2), (3, 5)),
            NodeSearch::Binary => ((3, 3), (3, 4)),
        };
        assert_eq!((lines(0).node_lines, lines(0).dictionary_lines), first, "{search:?}");
        assert_eq!((lines(29).node_lines, lines(29).dictionary_lines), last, "{search:?}");
        assert_eq!(lines(29).lines(), last.0 + last.1);
    }
    let index = DeltaIndex::<[u8]>::new(DeltaForm::ORIGINAL);
    assert!(index.encode(&[b'x'; 100]).is_ok() && index.encode(b"short").is_ok());
    let lines = index.footprint(&[b'x'; 100]).1;
    assert!(lines.value_lines == 2 || lines.value_lines == 3, "{lines:?}");
    assert_eq!(index.footprint(b"y").1.value_lines, 0, "the first bytes decide");
}

#[test]
fn an_index_takes_little_memory_before_it_has_much() {
    let index = DeltaIndex::<[u8]>::new(DeltaForm { search: NodeSearch::Binary, dictionary_count: 64 });
    assert_eq!(index.bytes(), 2 << 10);
    (0..10u8).for_each(|value| assert!(index.encode(&[value; 20]).is_ok()));
    assert!(index.bytes() < 16 << 10, "{}", index.bytes());
    assert!(!index.is_empty());
}
