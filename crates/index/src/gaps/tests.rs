//! Gaps beside a plain list of which entries are of use.
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// What becomes of entries 0 to 39 of an index in which every entry is there.
#[derive(Clone, Debug)]
enum Step {
    /// A reader has met the entries of a range that are of no use.
    Meet(Bound<u32>, Bound<u32>),
    /// A key is entered.
    Enter(u32),
    /// An entry is of no use any more.
    Lose(u32),
}

fn bound() -> impl Strategy<Value = Bound<u32>> {
    prop_oneof![
        1 => Just(Bound::Unbounded),
        3 => (0u32..40).prop_map(Bound::Included),
        3 => (0u32..40).prop_map(Bound::Excluded),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (bound(), bound()).prop_map(|(low, high)| Step::Meet(low, high)),
        1 => (0u32..40).prop_map(Step::Enter),
        4 => (0u32..40).prop_map(Step::Lose),
    ]
}

/// The entries that a walk from `start` meets at a moment.
fn walk(gaps: &Gaps<u32>, start: Bound<u32>, at: Timestamp, is_up: bool) -> Vec<u32> {
    let (mut bound, mut met) = (start, Vec::new());
    loop {
        let over = if is_up { gaps.above(&bound, at) } else { gaps.below(&bound, at) };
        match over {
            Err(EndOfIndex) => return met,
            Ok(Some(next)) => bound = next,
            Ok(None) => {}
        }
        let range = if is_up { (bound, Bound::Unbounded) } else { (Bound::Unbounded, bound) };
        let mut entries = (0u32..40).filter(|entry| range.contains(entry));
        let Some(entry) = (if is_up { entries.next() } else { entries.next_back() }) else { return met };
        met.push(entry);
        bound = Bound::Excluded(entry);
    }
}

proptest! {
    #[test]
    fn a_walk_meets_every_entry_that_is_of_use(
        steps in prop::collection::vec(step(), 1..60), from in 1u64..9, start in bound(), at in 1u64..9,
    ) {
        let gaps = Gaps::default();
        let mut of_use: BTreeSet<u32> = (0..40).collect();
        for step in steps {
            match step {
                Step::Lose(entry) => drop(of_use.remove(&entry)),
                Step::Enter(entry) => {
                    of_use.insert(entry);
                    gaps.entered([entry].into_iter());
                }
                Step::Meet(low, high) if !is_empty(&(low, high)) => {
                    let Some(announcement) = gaps.announce((low, high)) else { continue };
                    match of_use.iter().any(|entry| (low, high).contains(entry)) {
                        true => gaps.withdraw(announcement),
                        false => prop_assert!(gaps.confirm(announcement, Timestamp(from))),
                    }
                }
                Step::Meet(..) => {}
            }
            for is_up in [true, false] {
                let met = walk(&gaps, start, Timestamp(at), is_up);
                let range = if is_up { (start, Bound::Unbounded) } else { (Bound::Unbounded, start) };
                let wanted: Vec<u32> = of_use.iter().copied().filter(|entry| range.contains(entry)).collect();
                prop_assert!(wanted.iter().all(|entry| met.contains(entry)), "{wanted:?} in {met:?}");
                if at < from {
                    prop_assert_eq!(met.len(), (0u32..40).filter(|entry| range.contains(entry)).count());
                }
            }
        }
    }
}

#[test]
fn gaps_that_touch_are_one_and_are_stepped_over_at_once() {
    let gaps = Gaps::default();
    let note = |low: Bound<u32>, high: Bound<u32>, from: u64| {
        let announcement = gaps.announce((low, high)).unwrap();
        assert!(gaps.confirm(announcement, Timestamp(from)));
    };
    note(Bound::Unbounded, Bound::Included(10), 5);
    note(Bound::Excluded(10), Bound::Included(20), 7);
    assert_eq!(gaps.above(&Bound::Unbounded, Timestamp(7)), Ok(Some(Bound::Excluded(20))));
    assert_eq!(gaps.above(&Bound::Unbounded, Timestamp(6)), Ok(None), "one of them is of later on");
    assert_eq!(gaps.below(&Bound::Included(15), Timestamp(9)), Err(EndOfIndex));
    gaps.entered([15].into_iter());
    assert_eq!(gaps.above(&Bound::Unbounded, Timestamp(9)), Ok(Some(Bound::Included(15))));
    assert_eq!(gaps.above(&Bound::Included(15), Timestamp(9)), Ok(None));
    assert_eq!(gaps.above(&Bound::Excluded(15), Timestamp(9)), Ok(Some(Bound::Excluded(20))));
}

#[test]
fn an_announcement_does_not_outlive_an_entry() {
    let gaps = Gaps::default();
    let announcement = gaps.announce((Bound::Included(1), Bound::Included(9))).unwrap();
    gaps.entered([4].into_iter());
    assert!(!gaps.confirm(announcement, Timestamp(1)));
    assert_eq!(gaps.above(&Bound::Included(1), Timestamp(9)), Ok(None));
}
