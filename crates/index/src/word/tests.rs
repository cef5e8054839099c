//! The promises of a word index: it answers as a map from keys to lists, whatever the keys are and while others
//! change it.
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;

/// Interpreters are slow.
const SCALE: u64 = if cfg!(miri) { 100 } else { 1 };

fn rid(slot: usize) -> Rid {
    Rid::base(0, slot)
}

fn key<const WORDS: usize>(number: u64) -> [u64; WORDS] {
    std::array::from_fn(|word| if word + 1 == WORDS { number } else { number % 3 })
}

/// An index that hashes one small word to itself: all keys have one bucket and one segment.
fn without_hash<const WORDS: usize>() -> WordIndex<WORDS> {
    WordIndex::with_hash(0, 1)
}

fn all<const WORDS: usize>(index: &WordIndex<WORDS>, key: &[u64; WORDS]) -> Vec<Rid> {
    let mut found = Vec::new();
    index.find(&sync::pin(), key, |rid| {
        found.push(rid);
        None::<()>
    });
    found
}

fn newest<const WORDS: usize>(index: &WordIndex<WORDS>, number: u64) -> Option<Rid> {
    index.find(&sync::pin(), &key(number), Some)
}

fn check_holders<const WORDS: usize>(index: &WordIndex<WORDS>) {
    let seven = key(7);
    index.insert(&seven, rid(1));
    assert_eq!(index.insert_unique(&seven, rid(2), |_| Holder::Present), Err(rid(1)));
    assert_eq!(index.insert_unique(&seven, rid(2), |_| Holder::Past), Ok(()));
    assert_eq!(all(index, &seven), [rid(2), rid(1)]);
    let only_first_is_void = |other| if other == rid(1) { Holder::Void } else { Holder::Past };
    assert_eq!(index.insert_unique(&seven, rid(3), only_first_is_void), Ok(()));
    assert_eq!(all(index, &seven), [rid(3), rid(2)]);
    index.insert(&seven, rid(2));
    assert_eq!(all(index, &seven), [rid(2), rid(3)]);
    index.remove(&seven, rid(2));
    index.remove(&seven, rid(9));
    assert_eq!(all(index, &seven), [rid(3)]);
    index.remove(&seven, rid(3));
    assert!(index.is_empty() && all(index, &seven).is_empty());
    index.remove(&seven, rid(3));
}

#[test]
fn past_holders_stay_and_void_ones_go() {
    check_holders::<1>(&WordIndex::new());
    check_holders::<2>(&WordIndex::new());
}

fn check_former<const WORDS: usize>(index: &WordIndex<WORDS>) {
    (1..=4).for_each(|slot| index.insert(&key(7), rid(slot)));
    let mut asked = Vec::new();
    let holder = |other| {
        asked.push(other);
        if other == rid(3) { Holder::Former } else { Holder::Past }
    };
    assert_eq!(index.insert_unique(&key(7), rid(5), holder), Ok(()));
    assert_eq!(asked, [rid(4), rid(3)]);
    assert_eq!(all(index, &key(7)), [5, 4, 3, 2, 1].map(rid));
}

#[test]
fn nobody_is_asked_who_was_entered_before_a_former_holder() {
    check_former::<1>(&WordIndex::new());
    check_former::<2>(&WordIndex::new());
}

fn check_wins<const WORDS: usize>(index: &WordIndex<WORDS>) {
    let (wins, keys) = (AtomicUsize::new(0), 10_000 / SCALE);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (index, wins) = (&index, &wins);
            scope.spawn(move || {
                for number in 0..keys {
                    if index.insert_unique(&key(number), rid(thread), |_| Holder::Present).is_ok() {
                        wins.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!((wins.into_inner() as u64, index.len() as u64), (keys, keys));
}

#[test]
fn one_of_many_wins_each_key() {
    check_wins::<1>(&WordIndex::new());
    check_wins::<2>(&WordIndex::new());
}

fn check_list_changes<const WORDS: usize>(index: &WordIndex<WORDS>) {
    (0..64).for_each(|number| index.insert(&key(number), rid(0)));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..6_000 / SCALE {
                index.insert(&key(round % 64), rid(round as usize));
                index.insert(&key(1_000_000 + round), rid(round as usize));
                if round % 3 > 0 {
                    index.remove(&key(round % 64), rid(round as usize));
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            for number in 0..64 {
                let found = index.find(&sync::pin(), &key(number), |found| (found == rid(0)).then_some(found));
                assert_eq!(found, Some(rid(0)), "key {number}");
            }
        }
    });
}

#[test]
fn a_reader_never_misses_an_entry_while_its_list_changes() {
    check_list_changes::<1>(&WordIndex::new());
    check_list_changes::<2>(&WordIndex::new());
}

/// Two threads read keys that are there while a third adds others, which splits segments, and removes some again,
/// which gives their places to still others.
fn check_readers<const WORDS: usize>(index: &WordIndex<WORDS>, keys: u64) {
    let spread = |number: u64| number * 7;
    (0..keys).for_each(|number| index.insert(&key(spread(number)), rid(number as usize)));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for number in 0..keys {
                        assert_eq!(newest(index, spread(number)), Some(rid(number as usize)), "key {number}");
                        assert_eq!(newest(index, spread(number) + 6), None, "nobody adds key {number}");
                    }
                }
            });
        }
        for number in 0..keys * 20 {
            index.insert(&key(spread(number) + 1), rid(1));
            index.insert(&key(spread(number) + 2), rid(2));
            index.remove(&key(spread(number) + 1), rid(1));
            if number % 4 > 0 {
                index.remove(&key(spread(number) + 2), rid(2));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(index.len() as u64, keys + keys * 20 / 4);
}

#[test]
fn readers_never_miss_a_key_while_segments_split_and_neighbours_come_and_go() {
    check_readers::<1>(&WordIndex::new(), 1_500 / SCALE);
    check_readers::<2>(&WordIndex::new(), 1_500 / SCALE);
}

#[test]
fn readers_never_miss_a_key_of_a_chain_that_neighbours_come_to_and_go_from() {
    check_readers::<1>(&without_hash(), 24);
    check_readers::<2>(&without_hash(), 24);
}

/// A writer of each key announces what it is about to do, does it, and announces that it is done. A reader that
/// sees one announcement before and after must find what was announced.
fn check_announcements<const WORDS: usize>(index: &WordIndex<WORDS>) {
    let announced: Vec<AtomicU64> = (0..16).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicBool::new(false);
    let read = |number: u64| {
        let before = announced[number as usize].load(Ordering::SeqCst);
        let found = newest(index, number);
        let after = announced[number as usize].load(Ordering::SeqCst);
        // Even: at rest, with nothing under the key (0 mod 4) or with the Rid of that announcement (2 mod 4).
        if before == after && before.is_multiple_of(2) {
            assert_eq!(found, (before % 4 == 2).then(|| rid(before as usize)), "key {number}");
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                (0..16).for_each(read);
            }
        });
        scope.spawn(|| (0..30_000 / SCALE).for_each(|number| index.insert(&key(100 + number), rid(1))));
        for round in 0..2_000 / SCALE {
            for (number, announcement) in announced.iter().enumerate() {
                let (number, rid) = (key(number as u64), rid(round as usize * 4 + 2));
                announcement.store(round * 4 + 1, Ordering::SeqCst);
                index.insert(&number, rid);
                announcement.store(round * 4 + 2, Ordering::SeqCst);
                assert_eq!(index.find(&sync::pin(), &number, Some), Some(rid));
                announcement.store(round * 4 + 3, Ordering::SeqCst);
                index.remove(&number, rid);
                announcement.store(round * 4 + 4, Ordering::SeqCst);
                assert_eq!(index.find(&sync::pin(), &number, Some), None);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_find_sees_every_insert_and_remove_that_ended_before_it_began() {
    check_announcements::<1>(&WordIndex::new());
    check_announcements::<2>(&WordIndex::new());
}

fn check_keys<const WORDS: usize>(index: &WordIndex<WORDS>, keys: &[[u64; WORDS]]) {
    for (slot, key) in keys.iter().enumerate() {
        assert_eq!(index.insert_unique(key, rid(slot), |_| Holder::Present), Ok(()), "{key:x?}");
    }
    assert_eq!(index.len(), keys.len());
    for (slot, key) in keys.iter().enumerate() {
        index.prefetch(&sync::pin(), key);
        assert_eq!(all(index, key), [rid(slot)], "{key:x?}");
    }
    for (slot, key) in keys.iter().enumerate().step_by(2) {
        index.remove(key, rid(slot));
    }
    for (slot, key) in keys.iter().enumerate() {
        assert_eq!(all(index, key).is_empty(), slot % 2 == 0, "{key:x?}");
    }
}

#[test]
fn every_key_is_found_whatever_its_neighbours_have_in_common_with_it() {
    let count = 3_000 / SCALE;
    let kinds: [fn(u64) -> u64; 6] = [
        |number| number,
        |number| u64::MAX - number,
        |number| number << 32,
        |number| number << 51,
        |number| number * 4096,
        |number| number << 40 | 0xff_ffff_ffff,
    ];
    for kind in kinds {
        let keys: Vec<u64> = (0..count).map(kind).collect();
        check_keys(&WordIndex::new(), &keys.iter().map(|key| [*key]).collect::<Vec<_>>());
        check_keys(&WordIndex::new(), &keys.iter().map(|key| [*key, 0]).collect::<Vec<_>>());
        check_keys(&WordIndex::new(), &keys.iter().map(|key| [u64::MAX, *key]).collect::<Vec<_>>());
    }
}

#[test]
fn keys_that_no_split_tells_apart_share_one_chain() {
    let count = 3_000 / SCALE;
    let index = without_hash();
    check_keys(&index, &(0..count).map(|number| [number]).collect::<Vec<_>>());
    assert!(index.root.load(&sync::pin()).depth < 8, "for splits that help nobody the directory need not grow");
    check_keys(&without_hash(), &(0..count).map(|number| [number, number]).collect::<Vec<_>>());
}

#[test]
fn emptied_chains_are_used_again() {
    let index = without_hash::<1>();
    index.insert(&[u64::MAX], rid(1));
    let bytes_before = index.bytes();
    for bucket in 0..500 / SCALE {
        let keys = (0..40).map(|number| bucket << 55 | number);
        keys.clone().for_each(|key| index.insert(&[key], rid(1)));
        keys.for_each(|key| index.remove(&[key], rid(1)));
    }
    assert_eq!((index.bytes(), index.len()), (bytes_before, 1));
}

#[test]
fn a_key_that_is_used_again_and_again_has_a_list_that_grows_in_place_or_not_at_all() {
    let (index, times) = (WordIndex::<1>::new(), 10_000 / SCALE as usize);
    index.insert(&[7], rid(0));
    let bytes_before = index.bytes();
    for round in 1..times {
        assert_eq!(index.insert_unique(&[7], rid(round), |_| Holder::Void), Ok(()));
    }
    assert_eq!((index.bytes(), all(&index, &[7])), (bytes_before, vec![rid(times - 1)]));
    let mut asked_count = 0;
    for round in times..2 * times {
        let former = |_| {
            asked_count += 1;
            Holder::Former
        };
        assert_eq!(index.insert_unique(&[7], rid(round), former), Ok(()));
    }
    assert_eq!((asked_count, all(&index, &[7]).len()), (times, times + 1));
    let bytes_full = index.bytes();
    assert!(bytes_full - bytes_before <= 2 * 8 * (times + 8), "half of a list is used at least");
    for round in 2 * times..3 * times {
        assert_eq!(index.insert_unique(&[7], rid(round), |_| Holder::Former), Ok(()));
        index.remove(&[7], rid(round));
    }
    assert_eq!((index.bytes(), all(&index, &[7]).len()), (bytes_full, times + 1));
    (times - 1..2 * times).rev().for_each(|round| index.remove(&[7], rid(round)));
    assert_eq!((index.bytes(), index.is_empty()), (bytes_before, true));
}

#[test]
fn a_holder_that_panics_leaves_the_key_usable() {
    let index = WordIndex::<2>::new();
    index.insert(&[1, 2], rid(1));
    let asked = catch_unwind(AssertUnwindSafe(|| index.insert_unique(&[1, 2], rid(2), |_| panic!("on purpose"))));
    assert!(asked.is_err());
    assert_eq!(all(&index, &[1, 2]), [rid(1)]);
    assert_eq!(index.insert_unique(&[1, 2], rid(2), |_| Holder::Past), Ok(()));
    assert_eq!(all(&index, &[1, 2]), [rid(2), rid(1)]);
}

#[derive(Clone, Debug)]
enum Step {
    /// with what each of the others, by its slot, is doing
    Insert(u64, usize, [u8; 6]),
    Remove(u64, usize),
}

fn step() -> impl Strategy<Value = Step> {
    // The few keys' lists grow and shrink; the many fill buckets.
    let number = prop_oneof![0..4u64, 0..600u64];
    prop_oneof![
        3 => (number.clone(), 0..6usize, any::<[u8; 6]>()).prop_map(|(key, slot, of)| Step::Insert(key, slot, of)),
        1 => (number, 0..6usize).prop_map(|(key, slot)| Step::Remove(key, slot)),
    ]
}

fn holder_of(kinds: &[u8; 6], other: Rid) -> Holder {
    [Holder::Past, Holder::Past, Holder::Void, Holder::Former, Holder::Past, Holder::Present]
        [kinds[other.slot()] as usize % 6]
}

/// The Rids of a key, oldest first, each once; the same protocol, without haste.
fn insert_into_model(rids: &mut Vec<Rid>, rid: Rid, kinds: &[u8; 6]) -> Result<(), Rid> {
    let others: Vec<Rid> = rids.iter().rev().copied().filter(|other| *other != rid).collect();
    let mut left = Vec::new();
    let mut is_settled = false;
    for other in others {
        match if is_settled { Holder::Past } else { holder_of(kinds, other) } {
            Holder::Void => continue,
            Holder::Past => {}
            Holder::Former => is_settled = true,
            Holder::Present => return Err(other),
        }
        left.push(other);
    }
    left.reverse();
    left.push(rid);
    *rids = left;
    Ok(())
}

fn check_against_model<const WORDS: usize>(index: &WordIndex<WORDS>, steps: &[Step]) {
    let mut model: BTreeMap<u64, Vec<Rid>> = BTreeMap::new();
    for step in steps {
        let number = match *step {
            Step::Insert(number, slot, kinds) => {
                let rids = model.entry(number).or_default();
                let expected = insert_into_model(rids, rid(slot), &kinds);
                let holder = |other| holder_of(&kinds, other);
                assert_eq!(index.insert_unique(&key(number), rid(slot), holder), expected, "{step:?}");
                number
            }
            Step::Remove(number, slot) => {
                model.entry(number).or_default().retain(|other| *other != rid(slot));
                index.remove(&key(number), rid(slot));
                number
            }
        };
        // A Rid that was entered again may stand at its old place too.
        let mut found: Vec<Rid> = Vec::new();
        all(index, &key(number)).into_iter().for_each(|rid| {
            if !found.contains(&rid) {
                found.push(rid);
            }
        });
        found.reverse();
        assert_eq!(found, model[&number], "{step:?}");
    }
    assert_eq!(index.len(), model.values().filter(|rids| !rids.is_empty()).count());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 32 }, failure_persistence: None, ..Default::default() })]

    #[test]
    fn an_index_is_a_map_from_keys_to_lists(steps in prop::collection::vec(step(), 0..(1_500 / SCALE as usize))) {
        check_against_model::<1>(&WordIndex::new(), &steps);
        check_against_model::<2>(&WordIndex::new(), &steps);
        check_against_model::<1>(&without_hash(), &steps);
    }
}
