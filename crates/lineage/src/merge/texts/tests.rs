//! Base pages made from the order of dictionaries hold what the rows had, and nothing else; tables with and without
//! dictionaries can't be told apart by what they hold.
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use proptest::prelude::*;
use types::{Column, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId};

use crate::memory::budget::{MemoryBudget, Meter};
use crate::merge::texts::*;
use crate::page::base::Values;
use crate::page::text::{NewTextDictionary, TextOptions, simple};
use crate::record::view::{Outcome, Outcomes, View};
use crate::value::cell::Cell;
use crate::{Change, Encoding, Table, TableOptions};

/// Values of many lengths, in another order than their numbers; the last ones are too long for a dictionary.
fn name(number: u8) -> Vec<u8> {
    let mut name = vec![b'a' + number.wrapping_mul(7) % 26];
    name.extend(std::iter::repeat_n(b'.', usize::from(number) % 14 * usize::from(number > 3)));
    name.extend(if number > 28 { vec![b'y'; 130] } else { number.to_string().into_bytes() });
    name
}

/// The values that dictionaries have before their order is taken; others come when the first row has them.
const EARLY: u8 = 18;

/// The value that a row is given: NULL, a value of one of two dictionaries, or one in none.
#[derive(Clone, Copy, Debug)]
enum Given {
    Null,
    Known(usize, u8),
    Loose(u8),
}

impl Given {
    fn value(self) -> Option<Vec<u8>> {
        match self {
            Given::Null => None,
            Given::Known(_, number) | Given::Loose(number) => Some(name(number)),
        }
    }

    fn cell<'a>(self, dictionaries: &'a [Texts; 2], names: &'a [Vec<u8>]) -> TextCell<'a> {
        match self {
            Given::Null => TextCell::Null,
            Given::Known(which, number) => {
                let texts = &dictionaries[which];
                TextCell::Known(texts, texts.encode(0, &names[usize::from(number)]).unwrap())
            }
            Given::Loose(number) => TextCell::Loose(&names[usize::from(number)]),
        }
    }
}

fn given() -> impl Strategy<Value = Given> {
    prop_oneof![
        1 => Just(Given::Null),
        6 => (0..2usize, 0..20u8).prop_map(|(which, number)| Given::Known(which, number)),
        1 => (0..32u8).prop_map(Given::Loose),
    ]
}

fn dictionaries() -> [Texts; 2] {
    let schema = Schema::new(vec![Column::new("t", DataType::TEXT)], &[]).unwrap();
    let (options, meter) = (TextOptions::of_inserts(&schema, Some(simple::new)), Meter::new(Arc::default()));
    let texts = || {
        let texts = Texts::new(&options, &meter);
        (0..EARLY).for_each(|number| assert!(texts.encode(0, &name(number)).is_some()));
        texts
    };
    [texts(), texts()]
}

fn value_of(column: &EncodedColumn, slot: usize) -> Option<Vec<u8>> {
    match column.cell(slot) {
        Cell::Bytes(bytes) => Some(bytes.to_vec()),
        Cell::Null | Cell::Word(_) => None,
    }
}

/// Checks that a column holds these rows, and is a dictionary of nothing else.
fn check(column: &EncodedColumn, rows: &[Option<Vec<u8>>]) {
    assert_eq!(column.len(), rows.len());
    rows.iter().enumerate().for_each(|(slot, row)| assert_eq!(&value_of(column, slot), row, "slot {slot}"));
    let array: ArrayRef = column.decode(0, rows.len());
    let decoded = array.as_string_view().iter().map(|text| text.map(|text| text.as_bytes().to_vec()));
    assert!(decoded.eq(rows.iter().cloned()));
    let used: BTreeSet<&[u8]> = rows.iter().flatten().map(|value| &value[..]).collect();
    let (entries, _) = column.texts().expect("a dictionary");
    assert_eq!(entries, used.into_iter().collect::<Vec<_>>());
    let zone = column.zone(0, rows.len());
    assert_eq!(zone.null_count, rows.iter().filter(|row| row.is_none()).count());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_of_several_dictionaries_become_a_column_with_exactly_their_values(
        first in prop::collection::vec(given(), 300..1_000),
        later in prop::collection::vec((any::<prop::sample::Index>(), given()), 0..60),
    ) {
        let (dictionaries, names) = (dictionaries(), (0..32).map(name).collect::<Vec<_>>());
        let mut rows = TextRows::new(0, first.len());
        // Perhaps the order has those that come late, perhaps not.
        let may_be_loose = |cell: &&Given| matches!(cell, Given::Loose(_) | Given::Known(_, EARLY..));
        let is_covered = |cells: &[Given]| cells.iter().filter(may_be_loose).count() <= first.len() / LOOSE_PART;
        first.iter().enumerate().for_each(|(slot, given)| rows.set(slot, given.cell(&dictionaries, &names)));
        let mut model: Vec<_> = first.iter().map(|given| given.value()).collect();
        let column = rows.encode(DataType::TEXT);
        prop_assert!(column.is_some() || !is_covered(&first));
        let Some(column) = column else { return Ok(()) };
        check(&column, &model);

        let mut rows = TextRows::of_base(0, &column).unwrap();
        let later: std::collections::BTreeMap<usize, Given> =
            later.iter().map(|(at, given)| (at.index(first.len()), *given)).collect();
        for (slot, given) in &later {
            rows.set(*slot, given.cell(&dictionaries, &names));
            model[*slot] = given.value();
        }
        if is_covered(&later.values().copied().collect::<Vec<_>>()) {
            check(&rows.encode(DataType::TEXT).unwrap(), &model);
        }
    }
}

#[test]
fn what_is_better_kept_as_it_is_does_not_become_a_dictionary() {
    let (dictionaries, names) = (dictionaries(), (0..32).map(name).collect::<Vec<_>>());
    let rows_of = |cells: &[Given]| {
        let mut rows = TextRows::new(0, cells.len());
        cells.iter().enumerate().for_each(|(slot, given)| rows.set(slot, given.cell(&dictionaries, &names)));
        rows.encode(DataType::TEXT).is_some()
    };
    assert!(!rows_of(&[Given::Null; 50]), "nothing to have entries of");
    assert!(!rows_of(&[Given::Loose(1); 50]), "nothing known of their order");
    assert!(!rows_of(&(0..20).map(|number| Given::Known(0, number)).collect::<Vec<_>>()), "nothing repeats");
    assert!(rows_of(&(0..200).map(|number| Given::Known(0, number % 5)).collect::<Vec<_>>()));
}

/// All that is written is committed by its time.
struct Committed;

impl Outcomes for Committed {
    fn outcome(&self, _: TxnId) -> Outcome {
        Outcome::Aborted
    }

    fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
        unreachable!("nothing is prepared")
    }

    fn await_decision(&self, _: TxnId) {}
}

fn table(text_dictionary: Option<NewTextDictionary>, range_records: usize) -> Table {
    let columns = vec![Column::new("t", DataType::TEXT), Column::new("n", DataType::BigInt)];
    let options = TableOptions { workers: 1, ..TableOptions::with_range(range_records) };
    let options = TableOptions { text_dictionary, tail_text_dictionary: text_dictionary, ..options };
    Table::new(Schema::new(columns, &[]).unwrap(), options, Arc::new(MemoryBudget::default()))
}

fn view(at: u64) -> View<'static, Committed> {
    View { snapshot: Snapshot::at(Timestamp(at)), outcomes: &Committed }
}

/// A number of a value, NULL or a tombstone.
fn row() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![1 => Just(None), 8 => (0..12u8).prop_map(Some), 1 => (0..32u8).prop_map(Some)]
}

fn cell(name: &Option<Vec<u8>>) -> Cell<'_> {
    name.as_ref().map_or(Cell::Null, |name| Cell::Bytes(name))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn tables_hold_the_same_with_dictionaries_and_without(
        inserts in prop::collection::vec((row(), any::<bool>()), 60..256),
        rounds in prop::collection::vec(
            prop::collection::vec((any::<prop::sample::Index>(), row()), 0..40), 1..5),
    ) {
        let tables = [table(Some(simple::new), 256), table(None, 256)];
        let mut model = Vec::new();
        for (number, is_tombstone) in &inserts {
            let is_tombstone = *is_tombstone && number.is_some_and(|number| number % 5 == 0);
            let (value, start) = (number.map(name), if is_tombstone { StartTime::TOMBSTONE } else { 1 });
            tables.iter().for_each(|table| assert!(!table.insert(&[cell(&value), Cell::Null], start).is_tail()));
            model.push((!is_tombstone).then_some(value));
        }
        for (round, updates) in rounds.iter().enumerate() {
            let at = 10 + round as u64;
            for (slot, number) in updates {
                let (slot, value) = (slot.index(inserts.len()), number.map(name));
                let Some(row) = &mut model[slot] else { continue };
                for table in &tables {
                    let change = Change::Update(&[(0, cell(&value))]);
                    table.append(view(at), at, Rid::base(0, slot), change).unwrap();
                }
                *row = value;
            }
            for table in &tables {
                table.merge_range(0, &Committed, Timestamp::ZERO);
                prop_assert_eq!(table.check_range(0), Vec::<String>::new());
                for (slot, row) in model.iter().enumerate() {
                    let read = |cells: &[Cell<'_>]| row.as_ref().is_some_and(|value| cells == [cell(value)]);
                    let found = table.read(view(at), Rid::base(0, slot), &[0], read).unwrap();
                    prop_assert_eq!(found, row.as_ref().map(|_| true), "slot {}", slot);
                }
            }
        }
    }
}

/// The dictionaries of tail pages give way to others while records live that have their text repeated by later
/// versions.
#[test]
fn a_version_repeats_the_text_of_one_whose_dictionary_was_another() {
    let table = table(Some(simple::new), 256);
    for number in 0..200 {
        table.insert(&[Cell::Null, Cell::Word(number)], 1);
    }
    let update = |at: u64, slot: usize, change: (usize, Cell<'_>)| {
        table.append(view(at), at, Rid::base(0, slot), Change::Update(&[change])).unwrap().last
    };
    // Pages are of 16 records, and 32 pages share their dictionaries.
    let of_dictionary = |sequence: u64| (sequence - 1) / (16 * 32);
    let text = |slot: usize| name((slot % 12) as u8);
    (0..200).for_each(|slot| assert_eq!(of_dictionary(update(10, slot, (0, Cell::Bytes(&text(slot))))), 0));
    let last = (0..200).rev().map(|slot| update(11, slot, (1, Cell::Word(7)))).max();
    assert_eq!(last.map(of_dictionary), Some(1));
    for slot in 0..200 {
        let is_right = |cells: &[Cell<'_>]| cells == [Cell::Bytes(&text(slot)), Cell::Word(7)];
        assert_eq!(table.read(view(12), Rid::base(0, slot), &[0, 1], is_right), Ok(Some(true)), "slot {slot}");
    }
}

#[test]
fn a_merge_needs_no_sample_to_know_from_a_dictionary_that_a_thousand_values_repeat() {
    let (with, without) = (table(Some(simple::new), 1 << 13), table(None, 1 << 13));
    let value = |number: u64| format!("one of a thousand values, {}", number * number % 2_003);
    for number in 0..1 << 13 {
        for table in [&with, &without] {
            table.insert(&[Cell::Bytes(value(number).as_bytes()), Cell::Word(number)], 1);
        }
    }
    let before = with.memory().insert_bytes;
    assert!(before < without.memory().insert_bytes, "{before} bytes");
    for table in [&with, &without] {
        assert_eq!(table.merge_range(0, &Committed, Timestamp::ZERO).unwrap().inserted, 1 << 13);
        sync::pin().flush();
    }
    assert_eq!(
        (with.encodings(0), without.encodings(0)),
        (vec![Some(Encoding::Dictionary)], vec![Some(Encoding::Raw)])
    );
    let distinct = |table: &Table| table.statistics().columns[0].distinct;
    assert_eq!(distinct(&with), distinct(&without), "each value is counted, in whatever form");
}

fn check_first_column(table: &Table, rows: &[Option<Vec<u8>>]) {
    let guard = sync::pin();
    let pages = table.range(0).pages.load(&guard);
    let Values::Column(encoded) = &pages.columns[0].values else { panic!("it was merged") };
    check(&encoded.hold(&guard).unwrap(), rows);
}

#[test]
fn an_update_enters_new_values_into_a_dictionary_of_base_pages_and_takes_out_those_that_are_gone() {
    let table = table(Some(simple::new), 1 << 10);
    for number in 0..1_000u64 {
        table.insert(&[Cell::Bytes(&name((number % 9) as u8)), Cell::Word(number)], 1);
    }
    // A row that was rolled back has no value.
    table.insert(&[Cell::Bytes(&name(20)), Cell::Word(0)], StartTime::TOMBSTONE);
    table.merge_range(0, &Committed, Timestamp::ZERO).unwrap();
    check_first_column(&table, &(0..1_001).map(|n| (n < 1_000).then(|| name((n % 9) as u8))).collect::<Vec<_>>());
    for slot in (0..1_000).filter(|slot| slot % 9 == 4) {
        let value = name(10 + (slot % 2) as u8);
        let change = Change::Update(&[(0, Cell::Bytes(&value))]);
        table.append(view(5), 5, Rid::base(0, slot), change).unwrap();
    }
    table.merge_range(0, &Committed, Timestamp::ZERO).unwrap();
    let row = |slot: u64| name(if slot % 9 == 4 { 10 + (slot % 2) as u8 } else { (slot % 9) as u8 });
    check_first_column(&table, &(0..1_001).map(|slot| (slot < 1_000).then(|| row(slot))).collect::<Vec<_>>());
}
