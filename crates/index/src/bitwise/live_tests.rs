//! The index with changes against a set of entries, and under threads.
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;
use types::Rid;

use super::*;
use crate::Bounds;
use crate::beside::SearchDevice;
use crate::beside::loops::Loops;

#[derive(Clone, Debug)]
enum Do {
    Insert([i64; 2], usize),
    Remove([i64; 2], usize),
    Keep([i64; 2], usize),
    Load(Vec<([i64; 2], usize)>),
    Build,
    Search([i64; 2], [i64; 2]),
}

fn at() -> impl Strategy<Value = [i64; 2]> {
    let value = || prop_oneof![8 => 0..6i64, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    [value(), value()]
}

fn step() -> impl Strategy<Value = Do> {
    let slot = || 0..4usize;
    prop_oneof![
        6 => (at(), slot()).prop_map(|(at, slot)| Do::Insert(at, slot)),
        4 => (at(), slot()).prop_map(|(at, slot)| Do::Remove(at, slot)),
        1 => (at(), slot()).prop_map(|(at, slot)| Do::Keep(at, slot)),
        1 => proptest::collection::vec((at(), slot()), 0..20).prop_map(Do::Load),
        2 => Just(Do::Build),
        4 => (at(), at()).prop_map(|(one, other)| Do::Search(one, other)),
    ]
}

fn slot_sum(set: &BTreeSet<(usize, [i64; 2])>) -> usize {
    set.iter().map(|(slot, _)| slot).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn an_index_finds_what_a_set_has(
        steps in proptest::collection::vec(step(), 1..60),
        (budget_bytes, exceeds) in (1..400usize, any::<bool>()),
    ) {
        let (index, mut set) = (BitwiseIndex::<2>::new(budget_bytes), BTreeSet::new());
        for step in steps {
            match step {
                Do::Insert(at, slot) => {
                    index.insert(at, Rid::base(0, slot));
                    set.insert((slot, at));
                }
                Do::Remove(at, slot) => {
                    index.remove_if(at, Rid::base(0, slot), || true);
                    set.remove(&(slot, at));
                }
                Do::Keep(at, slot) => index.remove_if(at, Rid::base(0, slot), || false),
                Do::Load(points) => {
                    set.extend(points.iter().map(|(at, slot)| (*slot, *at)));
                    index.load(points.into_iter().map(|(at, slot)| (at, Rid::base(0, slot))).collect());
                }
                Do::Build => {
                    let built = index.build(exceeds);
                    prop_assert!(built.is_ok() || !exceeds);
                    if built.is_ok() {
                        prop_assert_eq!(index.imaged(), set.len());
                    }
                }
                Do::Search(one, other) => {
                    let window = Bounds::from_corners(one, other).unwrap();
                    let is_in = |(_, at): &&(usize, [i64; 2])| (0..2).all(|d| window.low()[d] <= at[d] && at[d] <= window.high()[d]);
                    let expected: Vec<_> = set.iter().filter(is_in).map(|(slot, at)| (*at, Rid::base(0, *slot))).collect();
                    let found = index.search(&window);
                    prop_assert!(index.estimate(&window, usize::MAX) >= found.len());
                    prop_assert_eq!(index.estimate(&window, 0), 0);
                    let mut together = BTreeSet::new();
                    let device = Loops::default();
                    device.fails.store(slot_sum(&set).is_multiple_of(3), Ordering::Relaxed);
                    let offered = (set.len() % 4 > 0).then_some(&device as &dyn SearchDevice);
                    index.search_batch(&[window, Bounds::point(one).unwrap()], offered, |place, rid| {
                        if place == 0 {
                            together.insert(rid.word());
                        }
                    });
                    prop_assert_eq!(together, expected.iter().map(|(_, rid)| rid.word()).collect::<BTreeSet<_>>());
                    prop_assert_eq!(found, expected);
                }
            }
        }
        prop_assert_eq!(index.all().len(), set.len());
    }

    #[test]
    fn one_column_is_kept_as_a_set_too(values in proptest::collection::vec((at(), 0..9usize), 0..80), low in any::<i64>()) {
        let index = BitwiseIndex::<1>::new(1 << 12);
        let set: BTreeSet<_> = values.iter().map(|([at, _], slot)| (*slot, [*at])).collect();
        for (number, ([at, _], slot)) in values.iter().enumerate() {
            index.insert([*at], Rid::base(0, *slot));
            if number % 16 == 7 {
                index.build(true).unwrap();
            }
        }
        let expected: Vec<_> = set.into_iter().filter(|(_, [at])| *at >= low).map(|(slot, at)| (at, Rid::base(0, slot))).collect();
        prop_assert_eq!(index.search(&Bounds::new([low], [i64::MAX]).unwrap()), expected);
    }
}

/// Writers take entries out and put them back while images are built; readers look for those that stay, and writers for what
/// they have left.
#[test]
fn searches_find_all_that_stays_while_images_are_built() {
    const STAYING: usize = 400;
    let index = BitwiseIndex::<2>::new(1 << 14);
    let at = |number: usize| [number as i64 * 37 % 101, number as i64 * 53 % 97];
    index.load((0..STAYING).map(|number| (at(number), Rid::base(0, number))).collect());
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (index, is_done) = (&index, &is_done);
        let writer = |thread: usize| {
            move || {
                for number in (0..600).map(|step| step % 60) {
                    let (place, rid) = (at(number + thread), Rid::base(thread, number));
                    let window = Bounds::point(place).unwrap();
                    let count = || index.search(&window).into_iter().filter(|(_, found)| *found == rid).count();
                    index.insert(place, rid);
                    index.insert(place, rid);
                    assert_eq!(count(), 1);
                    if !number.is_multiple_of(10) {
                        index.remove_if(place, rid, || true);
                        assert_eq!(count(), 0);
                    }
                }
            }
        };
        let writers: Vec<_> = (1..4).map(|thread| scope.spawn(writer(thread))).collect();
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                index.build(true).unwrap();
                thread::yield_now();
            }
        });
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let found = index.search(&Bounds::new([0, 0], [101, 97]).unwrap());
                assert_eq!(found.iter().filter(|(_, rid)| rid.range() == 0).count(), STAYING);
                assert!(found.windows(2).all(|pair| pair[0] != pair[1]));
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_done.store(true, Ordering::Relaxed);
    });
    index.build(true).unwrap();
    assert_eq!((index.all().len(), index.imaged()), (STAYING + 3 * 6, STAYING + 3 * 6));
    assert!(!index.is_due() && index.bytes() > 0);
}
