//! One thread: every operation against the map of the standard library, for every kind of key and way of latching, and
//! the shape of the tree after each. Nodes are small here, so that some hundred keys make a tree of four levels.
use std::collections::BTreeMap;
use std::ops::Bound;

use latches::Elided;
use proptest::prelude::*;
use sync::{RwSpinLatch, SpinLatch};
use types::Rid;

use super::*;
use crate::{Holder, KeyBytes};

type Model<K> = BTreeMap<<K as Key>::Owned, u64>;

/// A node's keys are in order and within the bounds that its parent has for it, all leaves are on level 0, and no node
/// has more entries than room. Returns the nodes that are underfull, the root not counted.
fn check_shape<K: Key, V: Value, L: Latching>(tree: &BPlusTree<K, V, L>) -> usize {
    check_below(&tree.root, None, None, tree.root.shape().level)
}

fn check_below<K: Key, V: Value, L: Latching>(
    node: &Node<K, V, L>,
    low: Option<&K::Owned>,
    high: Option<&K::Owned>,
    level: usize,
) -> usize {
    let shape = node.shape();
    assert_eq!(shape.level, level);
    assert!(shape.count <= Node::<K, V, L>::capacity(level));
    // SAFETY: no other thread uses the tree.
    let keys: Vec<_> = (shape.first_key()..shape.count).map(|index| unsafe { node.own_key(level, index) }).collect();
    assert!(keys.is_sorted_by(|left, right| left < right), "{keys:?}");
    assert!(low.is_none_or(|low| keys.first().is_none_or(|first| low <= first)), "{low:?} {keys:?}");
    assert!(high.is_none_or(|high| keys.last().is_none_or(|last| last < high)), "{keys:?} {high:?}");
    if shape.is_leaf() {
        return 0;
    }
    assert!(shape.count > 0);
    let mut underfull = 0;
    for index in 0..shape.count {
        let low = index.checked_sub(1).map_or(low, |before| Some(&keys[before]));
        let high = keys.get(index).or(high);
        let address = node.payload_word(level, index) as usize;
        // SAFETY: no other thread uses the tree, and the word of an inner node is the address of its child.
        let child: &Node<K, V, L> = unsafe { &*std::ptr::with_exposed_provenance(address) };
        underfull += usize::from(Node::<K, V, L>::is_underfull(child.shape()));
        underfull += check_below(child, low, high, level - 1);
    }
    underfull
}

#[derive(Debug, Clone)]
enum Step<K> {
    Insert(K, u64),
    Upsert(K, u64),
    Remove(K),
    Get(K),
    /// From both ends: how many from the front before all others from the back.
    Range(Bound<K>, Bound<K>, usize),
}

fn step<K: Clone + std::fmt::Debug + 'static>(
    key: impl Strategy<Value = K> + Clone + 'static,
) -> impl Strategy<Value = Step<K>> {
    let bound = prop_oneof![
        2 => key.clone().prop_map(Bound::Included),
        2 => key.clone().prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded)
    ];
    prop_oneof![
        40 => (key.clone(), any::<u64>()).prop_map(|(key, value)| Step::Insert(key, value)),
        5 => (key.clone(), any::<u64>()).prop_map(|(key, value)| Step::Upsert(key, value)),
        30 => key.clone().prop_map(Step::Remove),
        10 => key.prop_map(Step::Get),
        3 => (bound.clone(), bound, 0..20usize).prop_map(|(low, high, front)| Step::Range(low, high, front)),
    ]
}

/// Whether the standard library's map accepts a range.
fn is_range<K: Ord>(low: &Bound<K>, high: &Bound<K>) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Included(low), Bound::Included(high)) => low <= high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low < high,
    }
}

fn apply<K: Key, L: Latching>(tree: &BPlusTree<K, u64, L>, model: &mut Model<K>, step: Step<K::Owned>) {
    match step {
        Step::Insert(key, value) => {
            assert_eq!(tree.insert(K::of(&key), value), model.get(&key).copied());
            model.entry(key).or_insert(value);
        }
        Step::Upsert(key, value) => assert_eq!(tree.upsert(K::of(&key), value), model.insert(key, value)),
        Step::Remove(key) => assert_eq!(tree.remove(K::of(&key)), model.remove(&key)),
        Step::Get(key) => assert_eq!(tree.get(K::of(&key)), model.get(&key).copied()),
        Step::Range(low, high, front) => {
            let mut range = tree.range((low.as_ref().map(K::of), high.as_ref().map(K::of)));
            let mut found: Vec<_> = range.by_ref().take(front).collect();
            let mut rest: Vec<_> = range.rev().collect();
            rest.reverse();
            found.extend(rest);
            let is_range = is_range(&low, &high);
            let expected = is_range.then(|| model.range((low, high)).map(|(key, value)| (key.clone(), *value)));
            assert_eq!(found, expected.into_iter().flatten().collect::<Vec<_>>());
        }
    }
}

fn check_steps<K: Key, L: Latching>(steps: Vec<Step<K::Owned>>) {
    let (tree, mut model) = (BPlusTree::<K, u64, L>::new(), Model::<K>::new());
    for step in steps {
        apply(&tree, &mut model, step);
        check_shape(&tree);
    }
    assert_eq!(tree.len(), model.len());
    let keys: Vec<K::Owned> = model.keys().cloned().collect();
    let mut found = vec![];
    tree.get_batch(&keys.iter().map(K::of).collect::<Vec<_>>(), &mut found);
    assert!(found.into_iter().eq(model.values().map(|value| Some(*value))));
    for key in keys {
        assert_eq!(tree.remove(K::of(&key)), model.remove(&key));
        check_shape(&tree);
    }
    assert!(tree.is_empty() && tree.bytes() == BPlusTree::<K, u64, L>::new().bytes());
}

/// Adds runs, of which some keys are there already and some do not ascend.
fn check_runs<K: Key, L: Latching>(runs: Vec<Vec<K::Owned>>) {
    let (tree, mut model, mut together) = (BPlusTree::<K, u64, L>::new(), Model::<K>::new(), 0);
    for (number, mut run) in (0..).zip(runs) {
        if number % 4 > 0 {
            run.sort();
        }
        if number % 4 == 3 {
            tree.insert_sorted(&run, number);
            run.iter().for_each(|key| {
                model.entry(key.clone()).or_insert(number);
            });
            check_shape(&tree);
            continue;
        }
        let mut done = 0;
        while done < run.len() {
            let added = tree.add_run(&sync::pin(), run.len() - done, |at| (&run[done + at], number + at as u64));
            assert_eq!(added == 0, model.contains_key(&run[done]), "what is there is to be added alone");
            for (at, key) in run[done..].iter().take(added).enumerate() {
                assert_eq!(model.insert(key.clone(), number + at as u64), None);
            }
            check_shape(&tree);
            together = together.max(added);
            done += added.max(1);
        }
    }
    assert!(tree.range(..).eq(model.clone()), "the same entries");
    assert!(model.iter().all(|(key, value)| tree.get(K::of(key)) == Some(*value)));
    assert!(model.len() < 100 || together > 1, "some go in together");
}

/// Few different letters make long common beginnings; zeros are what stands behind a short key's end.
fn byte_key() -> impl Strategy<Value = KeyBytes> + Clone {
    let letters = prop_oneof![Just(0u8), Just(b'a'), Just(255u8)];
    let tail = prop::collection::vec(letters.clone(), 0..20);
    let beginning = prop_oneof![Just(""), Just("prefix/of/many/keys/of/a/node/"), Just("prefix/of/some")];
    (beginning, tail).prop_map(|(beginning, tail)| [beginning.as_bytes(), &tail].concat().into())
}

const STEPS: std::ops::Range<usize> = 1..400;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn words_with_versions(steps in prop::collection::vec(step(0..400u64), STEPS)) {
        check_steps::<u64, NodeLatches>(steps);
    }

    #[test]
    fn words_under_a_spin_latch(steps in prop::collection::vec(step(0..400u64), STEPS)) {
        check_steps::<u64, TreeLatch<SpinLatch>>(steps);
    }

    #[test]
    fn words_under_an_elided_latch(steps in prop::collection::vec(step(0..400u64), STEPS)) {
        check_steps::<u64, TreeLatch<Elided<SpinLatch>>>(steps);
    }

    #[test]
    fn signed_words(steps in prop::collection::vec(step(-200..200i64), STEPS)) {
        check_steps::<i64, NodeLatches>(steps);
    }

    #[test]
    fn double_words(steps in prop::collection::vec(step((0..20u128, 0..20u128).prop_map(|(a, b)| a << 64 | b)), STEPS)) {
        check_steps::<u128, TreeLatch<RwSpinLatch>>(steps);
    }

    #[test]
    fn pairs(steps in prop::collection::vec(step((-10..10i64, 0..20u64)), STEPS)) {
        check_steps::<(i64, u64), NodeLatches>(steps);
    }

    #[test]
    fn byte_strings(steps in prop::collection::vec(step(byte_key()), STEPS)) {
        check_steps::<Bytes, NodeLatches>(steps);
    }

    #[test]
    fn byte_strings_under_a_latch(steps in prop::collection::vec(step(byte_key()), STEPS)) {
        check_steps::<Bytes, TreeLatch<RwSpinLatch>>(steps);
    }

    #[test]
    fn byte_strings_with_rids(
        steps in prop::collection::vec(step((byte_key(), (0..3usize).prop_map(|slot| Rid::base(0, slot)))), STEPS)
    ) {
        check_steps::<(Bytes, Rid), NodeLatches>(steps);
    }

    #[test]
    fn runs_of_words_go_in_as_their_keys_do(runs in prop::collection::vec(prop::collection::vec(0..900u64, 1..60), 1..30)) {
        check_runs::<u64, NodeLatches>(runs);
    }

    #[test]
    fn runs_of_byte_strings_go_in_as_their_keys_do(
        runs in prop::collection::vec(prop::collection::vec(byte_key(), 1..40), 1..20)
    ) {
        check_runs::<Bytes, TreeLatch<RwSpinLatch>>(runs);
    }

    #[test]
    fn a_loaded_tree_has_all_entries_and_no_underfull_node(
        keys in prop::collection::btree_set(byte_key(), 0..500),
        fill_percent in 0..120usize,
    ) {
        let entries: Vec<_> = keys.into_iter().zip(0u64..).collect();
        let tree = BPlusTree::<Bytes, u64>::from_sorted(entries.clone(), fill_percent).unwrap();
        prop_assert_eq!(check_shape(&tree), 0);
        prop_assert!(tree.range(..).eq(entries.iter().cloned()));
        prop_assert!(tree.range(..).rev().eq(entries.into_iter().rev()));
    }

    #[test]
    fn a_separator_is_above_the_left_and_not_above_the_right(a in byte_key(), b in byte_key()) {
        let (left, right) = (a.clone().min(b.clone()), a.max(b));
        prop_assume!(left < right);
        let separator = Bytes::separator(&left, &right);
        prop_assert!(left < separator && separator <= right && separator.len() <= right.len());
    }
}

#[test]
fn a_removal_leaves_no_underfull_leaf() {
    let tree: BPlusTree<u64, u64> = BPlusTree::new();
    let keys = || (0..4_000u64).map(|index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    keys().for_each(|key| assert_eq!(tree.insert(key, key), None));
    let (full_bytes, levels) = (tree.bytes(), tree.root.shape().level);
    assert!(levels >= 3, "{levels}");
    for (removed, key) in keys().enumerate() {
        assert_eq!(tree.remove(key), Some(key));
        let leaf = tree.leaf((), key, &sync::pin()).map(|leaf| leaf.shape()).unwrap();
        let is_root = tree.root.shape().is_leaf();
        assert!(is_root || !Node::<u64, u64, NodeLatches>::is_underfull(leaf), "{leaf:?}");
        if removed % 400 == 399 {
            check_shape(&tree);
        }
        if removed == 3_599 {
            assert!(tree.bytes() < full_bytes / 5, "{} of {full_bytes}", tree.bytes());
        }
    }
    assert_eq!((tree.len(), tree.root.shape().level), (0, 0));
}

#[test]
fn ascending_keys_fill_their_leaves() {
    let tree: BPlusTree<u64, u64> = BPlusTree::new();
    (0..10_000).for_each(|key| assert_eq!(tree.insert(key, key), None));
    let leaves = 10_000 / (Node::<u64, u64, NodeLatches>::LEAF_CAPACITY - 1);
    let bytes_per_node = size_of::<Node<u64, u64, NodeLatches>>();
    assert!(tree.bytes() <= leaves * bytes_per_node * 5 / 4, "{}", tree.bytes());
    check_shape(&tree);
}

#[test]
fn entries_out_of_order_are_named() {
    let load = |keys: [u64; 4]| BPlusTree::<u64, u64>::from_sorted(keys.map(|key| (key, 0)), 90).err();
    assert_eq!(load([1, 2, 3, 4]), None);
    assert_eq!(load([1, 3, 2, 4]), Some(LoadError { entry: 2 }));
    assert_eq!(load([1, 2, 3, 3]), Some(LoadError { entry: 3 }));
}

#[test]
fn a_change_sees_the_value_and_is_asked_once() {
    let tree: BPlusTree<u64, u64> = BPlusTree::new();
    let mut asked = 0;
    for key in 0..500 {
        let decide = |found: Option<u64>| {
            asked += 1;
            assert_eq!(found, None);
            if key % 2 == 0 { Change::Set(key) } else { Change::Keep }
        };
        assert_eq!(tree.change(key, decide), None);
    }
    assert_eq!((asked, tree.len()), (500, 250));
    assert_eq!(tree.change(4, |found| Change::Set(found.unwrap() + 1)), Some(4));
    assert_eq!(tree.change(4, |_| Change::Remove), Some(5));
    assert_eq!(tree.change(4, |_| Change::Remove), None);
    assert_eq!((tree.get(4), tree.get(6)), (None, Some(6)));
}

#[test]
fn long_keys_are_counted() {
    let tree: BPlusTree<Bytes, u64> = BPlusTree::new();
    let empty_bytes = tree.bytes();
    assert_eq!(tree.insert(b"short", 0), None);
    assert_eq!(tree.bytes(), empty_bytes);
    assert_eq!(tree.insert(&[7; 1_000], 0), None);
    assert_eq!(tree.bytes(), empty_bytes + 1_008);
    assert_eq!(tree.remove(&[7; 1_000]), Some(0));
    assert_eq!(tree.bytes(), empty_bytes);
}

fn rid(slot: usize) -> Rid {
    Rid::base(0, slot)
}

#[test]
fn duplicates_are_kept_apart_by_their_rids() {
    let index: BPlusTree<(Bytes, Rid), ()> = BPlusTree::new();
    for slot in 0..300 {
        for key in ["a", "b", "c"] {
            assert_eq!(index.insert((key.as_bytes(), rid(slot)), ()), None);
        }
    }
    assert_eq!(index.insert((b"b", rid(7)), ()), Some(()));
    assert!(index.rids(b"b").eq((0..300).map(rid)));
    assert!(index.rids(b"b").rev().eq((0..300).rev().map(rid)));
    assert_eq!(index.rids(b"bb").count(), 0);
    assert_eq!(index.find(b"a", |found| (found < rid(9)).then_some(found)), Some(rid(8)));
    let between = |low, high| index.entries((low, high)).count();
    let (a, c): (&[u8], &[u8]) = (b"a", b"c");
    assert_eq!(between(Bound::Included(a), Bound::Included(c)), 900);
    assert_eq!(between(Bound::Excluded(a), Bound::Excluded(c)), 300);
    assert_eq!(between(Bound::Unbounded, Bound::Excluded(c)), 600);
    assert_eq!(index.remove((b"b", rid(7))), Some(()));
    assert_eq!(index.rids(b"b").count(), 299);
    check_shape(&index);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 64 }))]

    /// Nodes are small here: the records of a key are in many leaves.
    #[test]
    fn a_list_of_a_key_is_the_first_of_its_records(
        pairs in prop::collection::btree_set((0..4_u64, 0..60_usize), 0..120),
        count in 0..80_usize,
    ) {
        let index: BPlusTree<(u64, Rid), ()> = BPlusTree::new();
        for (key, slot) in &pairs {
            prop_assert_eq!(index.insert((*key, rid(*slot)), ()), None);
        }
        for key in 0..5 {
            let all: Vec<Rid> = pairs.iter().filter(|pair| pair.0 == key).map(|pair| rid(pair.1)).collect();
            let mut listed = ListedRids::from_slice(&[rid(1000)]);
            index.list(key, &sync::pin(), count, &mut listed);
            prop_assert!(listed.len() > count.min(all.len()), "{count} of {}", all.len());
            prop_assert_eq!(&listed[1..], &all[..listed.len() - 1]);
        }
    }
}

#[test]
fn a_unique_index_asks_about_former_holders_newest_first() {
    let index: UniqueTree<Bytes> = UniqueTree::new();
    let empty_bytes = index.bytes();
    let all = |key: &[u8]| {
        let mut rids = vec![];
        index.find(&sync::pin(), key, |rid| {
            rids.push(rid);
            None::<()>
        });
        rids
    };
    index.insert(b"key", rid(1));
    assert_eq!(index.bytes(), empty_bytes);
    (2..=4).for_each(|slot| index.insert(b"key", rid(slot)));
    assert!(index.bytes() > empty_bytes, "a list");
    assert_eq!(index.insert_unique(b"key", rid(5), |_| Holder::Present), Err(rid(4)));
    let mut asked = vec![];
    let holder = |other| {
        asked.push(other);
        if other == rid(4) { Holder::Void } else { Holder::Former }
    };
    assert_eq!(index.insert_unique(b"key", rid(5), holder), Ok(()));
    assert_eq!(asked, [rid(4), rid(3)]);
    assert_eq!(all(b"key"), [5, 3, 2, 1].map(rid));
    index.insert(b"other", rid(9));
    let entries: Vec<_> = index.range(..).map(|(key, rids)| (key, rids.to_vec())).collect();
    assert_eq!(
        entries,
        [(b"key"[..].into(), vec![rid(5), rid(3), rid(2), rid(1)]), (b"other"[..].into(), vec![rid(9)])]
    );
    assert!(index.range(..).rev().map(|(key, _)| key).eq([b"other"[..].into(), b"key"[..].into()]));
    (1..=5).for_each(|slot| index.remove(b"key", rid(slot)));
    assert_eq!((all(b"key"), index.len()), (vec![], 1));
}
