//! The tree against a simple model, one thread.
use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};

use proptest::prelude::*;

use super::*;

/// One step of a history; keys are made of a region and an offset, so that histories meet in few pages.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64),
    Upsert(u64, u64),
    Remove(u64),
    /// Entries `stride` apart from a key on, by `load`.
    Load(u64, u64, u64),
    /// Removes what `Load` would insert.
    Clear(u64, u64, u64),
    Range(u64, u64),
    Prefix(u64, u32),
}

const HOME: u32 = 0x8000_0000;

fn key() -> impl Strategy<Value = u64> {
    let home = u64::from(HOME) << 32;
    let start =
        prop_oneof![Just(home), Just(home - 900), Just(home + u64::from(u32::MAX) - 70_000), Just(0), Just(9 << 52)];
    let start = prop_oneof![4 => start, 1 => Just(u64::MAX - 80_000)];
    prop_oneof![6 => (start, 0..80_000u64).prop_map(|(start, offset)| start + offset), 1 => any::<u64>()]
}

fn step() -> impl Strategy<Value = Step> {
    let run = || (key(), 1..200u64, 1..2_500u64);
    prop_oneof![
        3 => (key(), any::<u64>()).prop_map(|(key, value)| Step::Insert(key, value)),
        3 => (key(), any::<u64>()).prop_map(|(key, value)| Step::Upsert(key, value)),
        2 => key().prop_map(Step::Remove),
        3 => run().prop_map(|(key, stride, count)| Step::Load(key, stride, count)),
        2 => run().prop_map(|(key, stride, count)| Step::Clear(key, stride, count)),
        2 => (key(), key()).prop_map(|(one, other)| Step::Range(one.min(other), one.max(other))),
        1 => (key(), 0..=64u32).prop_map(|(key, bits)| Step::Prefix(key, bits)),
    ]
}

fn run_of(key: u64, stride: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map_while(move |index| key.checked_add(index * stride))
}

fn in_model(model: &BTreeMap<u64, u64>, range: RangeInclusive<u64>) -> Vec<(u64, u64)> {
    model.range(range).map(|(key, value)| (*key, *value)).collect()
}

fn apply<S: Slot>(tree: &KissTree<u64, S>, model: &mut BTreeMap<u64, u64>, step: &Step) {
    match *step {
        Step::Insert(key, value) => {
            assert_eq!(tree.insert(key, value).unwrap(), model.get(&key).copied());
            model.entry(key).or_insert(value);
        }
        Step::Upsert(key, value) => assert_eq!(tree.upsert(key, value).unwrap(), model.insert(key, value)),
        Step::Remove(key) => assert_eq!(tree.remove(key).unwrap(), model.remove(&key)),
        Step::Load(key, stride, count) => {
            tree.load(run_of(key, stride, count).map(|key| (key, !key))).unwrap();
            model.extend(run_of(key, stride, count).map(|key| (key, !key)));
        }
        Step::Clear(key, stride, count) => {
            for key in run_of(key, stride, count) {
                assert_eq!(tree.remove(key).unwrap(), model.remove(&key));
            }
        }
        Step::Range(low, high) => {
            let expected = in_model(model, low..=high);
            assert_eq!(tree.range(low..=high).collect::<Vec<_>>(), expected);
            assert!(tree.range(low..=high).rev().eq(expected.into_iter().rev()));
        }
        Step::Prefix(key, bits) => {
            let below = if bits == 0 { u64::MAX } else { (1u64 << (64 - bits)).wrapping_sub(1) };
            assert!(tree.prefix(key, bits).eq(in_model(model, key & !below..=key | below)));
        }
    }
}

fn compare<S: Slot>(tree: &KissTree<u64, S>, model: &BTreeMap<u64, u64>, others: &[u64]) {
    assert!(tree.range(..).eq(in_model(model, 0..=u64::MAX)));
    assert!(tree.range(..).rev().eq(in_model(model, 0..=u64::MAX).into_iter().rev()));
    let keys: Vec<u64> =
        model.keys().flat_map(|key| [*key, key.wrapping_add(1)]).chain(others.iter().copied()).collect();
    let mut found = Vec::new();
    tree.get_batch(&keys, &mut found);
    for (key, found) in keys.iter().zip(found) {
        let expected = model.get(key).copied();
        assert_eq!((tree.get(*key), found), (expected, expected), "key {key:#x}");
    }
    for key in keys.iter().step_by(7) {
        let high = ((key | (node::FANOUT as u64 - 1)) - key % 3).max(*key);
        let mut neighbours = Vec::new();
        tree.each_of_node((*key, high), &sync::pin(), |key, value| neighbours.push((key, value)));
        assert_eq!(neighbours, in_model(model, *key..=high), "from key {key:#x} on");
    }
}

fn replay<S: Slot>(steps: &[Step], home: u32) {
    let tree = KissTree::<u64, S>::with_options(KissOptions { home, pages: Pages::Adaptive }).unwrap();
    let mut model = BTreeMap::new();
    steps.iter().for_each(|step| apply(&tree, &mut model, step));
    compare(&tree, &model, &[0, 1, u64::MAX, u64::from(HOME) << 32]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_tree_answers_like_a_sorted_map(steps in prop::collection::vec(step(), 1..40)) {
        replay::<Compact>(&steps, HOME);
        replay::<Versioned>(&steps, HOME);
        replay::<Compact>(&steps, 0);
    }

    #[test]
    fn a_range_meets_itself_from_both_ends(
        keys in prop::collection::btree_set(key(), 0..300),
        stride in 1..90u64,
        turns in prop::collection::vec(any::<bool>(), 0..3_000),
    ) {
        let tree = KissTree::with_options(KissOptions { home: HOME, pages: Pages::Small }).unwrap();
        let dense = run_of(u64::from(HOME) << 32, stride, 2_500);
        let model: BTreeMap<u64, u64> = keys.into_iter().chain(dense).map(|key| (key, key)).collect();
        tree.load(in_model(&model, 0..=u64::MAX)).unwrap();
        let mut expected = in_model(&model, 0..=u64::MAX).into_iter();
        let mut range: Range<'_, u64, Compact> = tree.range(..);
        for is_front in turns.into_iter().chain([true, false, true]) {
            if is_front {
                prop_assert_eq!(range.next(), expected.next());
            } else {
                prop_assert_eq!(range.next_back(), expected.next_back());
            }
        }
        prop_assert!(range.eq(expected));
    }
}

#[test]
fn bounds_are_kept_at_the_ends_of_the_key_space() {
    let tree = KissTree::<u64>::new().unwrap();
    assert_eq!(tree.range(..).next(), None);
    [0, 1, u64::MAX - 1, u64::MAX].into_iter().for_each(|key| assert_eq!(tree.insert(key, key).unwrap(), None));
    let keys = |range: Range<'_, u64, Compact>| range.map(|entry| entry.0).collect::<Vec<_>>();
    assert_eq!(keys(tree.range(..)), [0, 1, u64::MAX - 1, u64::MAX]);
    assert_eq!(keys(tree.range(1..u64::MAX)), [1, u64::MAX - 1]);
    assert_eq!(keys(tree.range((Bound::Excluded(u64::MAX), Bound::Unbounded))), [0u64; 0]);
    assert_eq!(keys(tree.range(..0)), [0u64; 0]);
    assert_eq!(keys(tree.range(RangeInclusive::new(5, 2))), [0u64; 0]);
    assert_eq!(keys(tree.prefix(1, 64)), [1]);
    assert_eq!(keys(tree.prefix(u64::MAX, 1)), [u64::MAX - 1, u64::MAX]);
    assert_eq!(tree.range(..=1).rev().map(|entry| entry.0).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn what_a_page_left_in_the_trie_is_freed_after_a_while() {
    let tree = KissTree::<u64>::new().unwrap();
    tree.load((0..65_536).map(|key| (key, key))).unwrap();
    assert_eq!(tree.memory().page_bytes, 4096);
    while tree.memory().trie_bytes > 0 {
        sync::pin().flush();
        std::thread::yield_now();
    }
    assert!(tree.range(..).eq((0..65_536).map(|key| (key, key))));
}

#[test]
fn what_a_dense_page_has_left_in_the_trie_is_no_longer_seen() {
    let reader = sync::pin();
    let tree = KissTree::<u64>::new().unwrap();
    let mut model: BTreeMap<u64, u64> = (0..4_000).map(|key| (key, key)).collect();
    tree.load(in_model(&model, 0..=u64::MAX)).unwrap();
    assert!(tree.memory().page_bytes > 0 && tree.memory().trie_bytes > 0, "the reader keeps both");
    assert_eq!(tree.get_pinned(100, &reader), Some(100));
    for key in (0..64).chain(128..256).chain([300]) {
        assert_eq!(tree.remove(key).unwrap(), model.remove(&key));
    }
    compare(&tree, &model, &[0, 130, 300]);
    drop(reader);
    compare(&tree, &model, &[0, 130, 300]);
}

#[test]
fn a_decision_sees_the_value_that_it_replaces() {
    let tree = KissTree::<Rid>::new().unwrap();
    let (one, other) = (Rid::base(0, 1), Rid::base(3, 9));
    assert_eq!(tree.change(7, |found| found.map_or(Change::Set(one), |_| Change::Remove)).unwrap(), None);
    assert_eq!(tree.change(7, |_| Change::Keep).unwrap(), Some(one));
    assert_eq!(
        tree.change(7, |found| if found == Some(one) { Change::Set(other) } else { Change::Keep }).unwrap(),
        Some(one)
    );
    assert_eq!(tree.change(7, |found| found.map_or(Change::Set(one), |_| Change::Remove)).unwrap(), Some(other));
    assert_eq!((tree.get(7), tree.range(..).next()), (None, None));
}

#[test]
fn a_tree_with_small_pages_answers_the_same() {
    let options = KissOptions { home: 0, pages: Pages::Small };
    let tree = KissTree::<u64>::with_options(options).unwrap();
    let model: BTreeMap<u64, u64> = (0..20_000).map(|key| (key * 3, key)).collect();
    tree.load(in_model(&model, 0..=u64::MAX)).unwrap();
    compare(&tree, &model, &[5, 1 << 40]);
}
