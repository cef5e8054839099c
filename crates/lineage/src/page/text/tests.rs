//! When a dictionary is used, what it costs, and that what it has stays readable.
use std::sync::Arc;

use types::{Column, Schema};

use crate::memory::budget::MemoryBudget;
use crate::page::text::*;

fn texts_with(meter: &Arc<Meter>) -> Texts {
    let columns = vec![Column::new("n", DataType::BigInt), Column::new("t", DataType::TEXT)];
    let options = TextOptions::of_inserts(&Schema::new(columns, &[]).unwrap(), Some(simple::new));
    Texts::new(&options, meter)
}

fn texts() -> Texts {
    texts_with(&Meter::new(Arc::new(MemoryBudget::default())))
}

/// Encodes so many values; how many of them are in the dictionary, all readable?
fn encoded(texts: &Texts, count: u64, value: impl Fn(u64) -> String) -> usize {
    let ids: Vec<_> = (0..count).map(|number| (number, texts.encode(1, value(number).as_bytes()))).collect();
    let known = ids.into_iter().filter_map(|(number, id)| Some((number, id?)));
    known.inspect(|(number, id)| assert_eq!(texts.value(1, *id), value(*number).as_bytes())).count()
}

#[test]
fn the_less_values_repeat_the_sooner_their_dictionary_is_given_up() {
    // One in so many is the one before.
    let encoded_of = |texts: &Texts, part: u64| {
        encoded(texts, 20_000, |number| format!("value {}", number - u64::from(number % part == part - 1)))
    };
    for (part, expected) in [(u64::MAX, INSERT_TRIALS[0].0), (16, INSERT_TRIALS[1].0), (4, ASKED)] {
        assert_eq!(encoded_of(&texts(), part), expected as usize, "one in {part} repeats");
    }
    let schema = Schema::new(vec![Column::new("n", DataType::BigInt), Column::new("t", DataType::TEXT)], &[]).unwrap();
    let tails = TextOptions::of_tails(&schema, Some(simple::new), 2);
    let texts = Texts::new(&tails, &Meter::new(Arc::new(MemoryBudget::default())));
    assert_eq!(encoded_of(&texts, 4), TAIL_TRIALS[0].0 as usize, "tail pages have less patience");
}

#[test]
fn values_that_repeat_stay_in_the_dictionary_in_turns_or_by_chance() {
    let chance = |number: u64| {
        let mixed = (number ^ number >> 7).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 30
    };
    for distinct in [1, 10, 1_000] {
        assert_eq!(encoded(&texts(), 40_000, |number| format!("value {}", number % distinct)), 40_000);
        assert_eq!(encoded(&texts(), 40_000, |number| format!("value {}", chance(number) % (3 * distinct))), 40_000);
    }
}

#[test]
fn a_dictionary_is_given_up_once_its_values_repeat_no_longer_and_keeps_what_it_has() {
    let texts = texts();
    assert_eq!(encoded(&texts, 9_000, |number| format!("value {}", number % 7)), 9_000);
    let known = encoded(&texts, 30_000, |number| format!("later {number}"));
    assert!((ASKED as usize / 2..2 * ASKED as usize).contains(&known), "{known} of 30,000");
    assert_eq!(texts.encode(1, b"value 3"), None, "nothing is looked for any more");
    let dictionary = texts.dictionary(1).unwrap();
    let first = dictionary.encode(b"value 3").unwrap();
    assert!(!first.is_new && texts.value(1, first.id) == b"value 3");
}

#[test]
fn only_short_text_is_looked_for() {
    let texts = texts();
    assert!(texts.encode(0, b"no column of text").is_none() && texts.dictionary(0).is_none());
    assert!(texts.encode(1, &[b'x'; TEXT_BYTES_MAX + 1]).is_none() && texts.dictionary(1).is_none());
    assert!(texts.encode(1, &[b'x'; TEXT_BYTES_MAX]).is_some() && texts.encode(1, b"").is_some());
    let columns = vec![Column::new("b", DataType::Bytea), Column::new("u", DataType::Uuid)];
    let schema = Schema::new(columns, &[]).unwrap();
    let meter = Meter::new(Arc::new(MemoryBudget::default()));
    let texts = Texts::new(&TextOptions::of_inserts(&schema, Some(simple::new)), &meter);
    assert!(texts.encode(0, b"bytes").is_none() && texts.encode(1, b"uuid").is_some());
    let without = Texts::new(&TextOptions::of_inserts(&schema, None), &meter);
    assert!(without.encode(1, b"uuid").is_none() && without.columns.is_empty());
}

#[test]
fn the_memory_of_dictionaries_is_charged_whoever_enters_a_value_and_given_back_with_them() {
    let meter = Meter::new(Arc::new(MemoryBudget::default()));
    let texts = texts_with(&meter);
    assert_eq!(meter.used().insert_bytes, 0);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let texts = &texts;
            scope.spawn(move || encoded(texts, 2_000, |number| format!("value {}", number * (writer % 2 + 1) % 900)));
        }
    });
    let bytes = texts.dictionary(1).unwrap().bytes() as u64;
    assert_eq!((meter.used().insert_bytes, texts.bytes()), (bytes, bytes));
    drop(texts);
    assert_eq!(meter.used().insert_bytes, 0);
}
