//! The tree under shuttle: the real code with a few keys and two or three threads, in thousands of orders drawn by
//! chance and by priorities. A page is dense with three nodes here, a block waits for its own grace period, and
//! memory that is given back is overwritten, so that a read that comes too late shows.
use super::*;
use crate::KissIndex;
use crate::explore::{self, end_grace_periods, together};

/// Runs `body` in many orders.
fn explore(body: impl Fn() + Send + Sync + Copy + 'static) {
    explore::explore(1_000, body);
}

/// A tree with all its keys in a dense page, each with itself as value.
fn page<S: Slot>(keys: &[u64]) -> KissTree<u64, S> {
    let tree = sparse(keys);
    end_grace_periods();
    assert!(tree.shared.is_dense(0), "the page has grown");
    tree
}

/// A tree of keys that are their own values.
fn sparse<S: Slot>(keys: &[u64]) -> KissTree<u64, S> {
    let tree = KissTree::with_options(KissOptions::default()).unwrap();
    keys.iter().for_each(|key| assert_eq!(tree.insert(*key, *key).unwrap(), None));
    tree
}

fn contents<S: Slot>(tree: &KissTree<u64, S>) -> Vec<(u64, u64)> {
    tree.range(..).collect()
}

/// Keys that are their own values.
fn own(keys: &[u64]) -> Vec<(u64, u64)> {
    keys.iter().map(|key| (*key, *key)).collect()
}

/// Defines a test for each kind of slots.
macro_rules! with_both_slots {
    ($($name:ident => $model:ident;)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn compact() {
                explore(super::$model::<Compact>);
            }

            #[test]
            fn versioned() {
                explore(super::$model::<Versioned>);
            }
        })*
    };
}

with_both_slots! {
    writers_of_one_node_lose_nothing => two_writers_of_one_node;
    neighbours_come_together_or_not_at_all => many_new_keys_and_one_of_them;
    a_value_counts_every_change => two_counters_and_a_neighbour;
    nobody_reads_a_block_that_serves_another_key => blocks_that_go_round;
    a_page_grows_under_readers_and_writers => a_page_that_grows;
    a_page_grows_while_its_keys_go => a_page_that_grows_and_shrinks;
    the_trie_splits_and_shrinks_under_readers => a_trie_that_changes;
}

/// The swap: both copy the node, and one compare-and-swap fails.
fn two_writers_of_one_node<S: Slot>() {
    let parts: [fn(&KissTree<u64, S>); 3] = [
        |tree| assert_eq!(tree.insert(1, 1).unwrap(), None),
        |tree| {
            assert_eq!(tree.insert(2, 2).unwrap(), None);
            assert_eq!(tree.remove(0).unwrap(), Some(0));
        },
        |tree| {
            assert_eq!((tree.get(3), tree.get(64)), (Some(3), Some(64)));
            let seen = contents(tree);
            assert!([3, 64, 128].iter().all(|key| seen.contains(&(*key, *key))), "{seen:?}");
        },
    ];
    let tree = together(page::<S>(&[0, 3, 64, 128]), parts);
    assert_eq!(contents(&tree), own(&[1, 2, 3, 64, 128]));
    assert_eq!(tree.memory().block_count, 3);
}

/// Many keys that are entered if all are new, while another thread enters one of them.
fn many_new_keys_and_one_of_them<S: Slot>() {
    let parts: [fn(&KissTree<u64, S>); 3] = [
        |tree| drop(tree.insert_new(&[1, 2, 3], &[1, 2, 3]).unwrap()),
        |tree| match tree.insert(2, 20).unwrap() {
            None => assert_eq!(tree.get(2), Some(20), "what is there is not written over"),
            Some(old) => assert_eq!(old, 2),
        },
        |tree| assert!(tree.get(3).is_none() || tree.get(1) == Some(1), "the keys come together"),
    ];
    let tree = together(page::<S>(&[0, 64, 128]), parts);
    let seen = contents(&tree);
    let alone = [(0, 0), (2, 20), (64, 64), (128, 128)];
    assert!(seen == own(&[0, 1, 2, 3, 64, 128]) || seen == alone, "{seen:?}");
}

/// Values that are replaced, in place where slots have versions, while a neighbour has the node copied.
fn two_counters_and_a_neighbour<S: Slot>() {
    fn count<S: Slot>(tree: &KissTree<u64, S>) {
        for _ in 0..2 {
            tree.change(5, |value| Change::Set(value.unwrap() + 1)).unwrap();
        }
    }
    let parts: [fn(&KissTree<u64, S>); 4] = [
        count::<S>,
        count::<S>,
        |tree| {
            assert_eq!(tree.insert(6, 6).unwrap(), None);
            assert_eq!(tree.remove(6).unwrap(), Some(6));
        },
        |tree| {
            let (first, second) = (tree.get(5).unwrap(), tree.get(5).unwrap());
            assert!(5 <= first && first <= second && second <= 9, "{first}, then {second}");
        },
    ];
    let tree = together(page::<S>(&[5, 64, 128]), parts);
    assert_eq!(contents(&tree), [(5, 9), (64, 64), (128, 128)]);
}

/// Reclamation of nodes of one size: their blocks change owners as soon as their readers have gone. A thread uses
/// the blocks that it took out of use, so each writes two nodes.
fn blocks_that_go_round<S: Slot>() {
    fn replace<S: Slot>(tree: &KissTree<u64, S>, keys: [u64; 2]) {
        for key in [keys[0], keys[1], keys[0]] {
            // A neighbour comes and goes, as a value alone may be written in place.
            assert_eq!(tree.insert(key + 1, key + 1).unwrap(), None);
            assert_eq!(tree.remove(key + 1).unwrap(), Some(key + 1));
        }
    }
    let parts: [fn(&KissTree<u64, S>); 3] = [
        |tree| replace(tree, [0, 64]),
        |tree| replace(tree, [128, 192]),
        |tree| {
            for _ in 0..2 {
                assert_eq!([0, 64, 128].map(|key| tree.get(key)), [0, 64, 128].map(Some));
                let mut found = Vec::new();
                tree.get_batch(&[64, 0, 128], &mut found);
                assert_eq!(found, [64, 0, 128].map(Some));
                assert!(contents(tree).into_iter().all(|(key, value)| key == value));
            }
        },
    ];
    let tree = together(page::<S>(&[0, 64, 128, 192]), parts);
    assert_eq!(contents(&tree), own(&[0, 64, 128, 192]));
    assert_eq!(tree.memory().block_count, 4);
}

/// The third node of a page has it move out of the trie.
fn a_page_that_grows<S: Slot>() {
    let parts: [fn(&KissTree<u64, S>); 3] = [
        |tree| assert_eq!(tree.insert(128, 128).unwrap(), None),
        |tree| {
            assert_eq!(tree.insert(1, 1).unwrap(), None);
            assert_eq!(tree.insert(192, 192).unwrap(), None);
        },
        |tree| {
            for _ in 0..2 {
                assert_eq!((tree.get(0), tree.get(64), tree.get(1 << 40)), (Some(0), Some(64), Some(1 << 40)));
                let seen = contents(tree);
                assert!(seen.is_sorted_by(|one, other| one.0 < other.0), "{seen:?}");
                assert!([0, 64, 1 << 40].iter().all(|key| seen.contains(&(*key, *key))), "{seen:?}");
            }
        },
    ];
    let tree = together(sparse::<S>(&[0, 64, 1 << 40]), parts);
    assert!(tree.shared.is_dense(0));
    assert_eq!(contents(&tree), own(&[0, 1, 64, 128, 192, 1 << 40]));
    assert_eq!(tree.memory().block_count, 4);
}

/// Keys are removed while their page moves, from both ends of a scan.
fn a_page_that_grows_and_shrinks<S: Slot>() {
    let parts: [fn(&KissTree<u64, S>); 3] = [
        |tree| assert_eq!(tree.insert(128, 128).unwrap(), None),
        |tree| {
            assert_eq!(tree.remove(0).unwrap(), Some(0));
            assert_eq!(tree.upsert(64, 65).unwrap(), Some(64));
        },
        |tree| {
            let seen: Vec<(u64, u64)> = tree.range(..).rev().collect();
            assert!(seen.is_sorted_by(|one, other| one.0 > other.0), "{seen:?}");
            let of_64 = seen.iter().find(|entry| entry.0 == 64).map(|entry| entry.1);
            assert!(matches!(of_64, Some(64 | 65)), "{seen:?}");
            assert_ne!(tree.get(64), None);
        },
    ];
    let tree = together(sparse::<S>(&[0, 64]), parts);
    assert_eq!(contents(&tree), [(64, 65), (128, 128)]);
}

/// Nodes of the trie are frozen, copied, forked and pruned.
fn a_trie_that_changes<S: Slot>() {
    const FAR: u64 = 1 << 40;
    let parts: [fn(&KissTree<u64, S>); 3] = [
        |tree| {
            assert_eq!(tree.insert(2 * FAR, 2 * FAR).unwrap(), None);
            assert_eq!(tree.remove(FAR).unwrap(), Some(FAR));
        },
        |tree| {
            assert_eq!(tree.insert(FAR + 64, FAR + 64).unwrap(), None);
            assert_eq!(tree.remove(3 * FAR).unwrap(), Some(3 * FAR));
        },
        |tree| {
            assert_eq!((tree.get(4 * FAR), tree.get(5 * FAR)), (Some(4 * FAR), None));
            let seen = contents(tree);
            assert!(seen.is_sorted_by(|one, other| one.0 < other.0) && seen.contains(&(4 * FAR, 4 * FAR)), "{seen:?}");
        },
    ];
    let tree = together(sparse::<S>(&[FAR, 3 * FAR, 4 * FAR]), parts);
    assert_eq!(contents(&tree), own(&[FAR + 64, 2 * FAR, 4 * FAR]));
}

/// Rids of one key: a list is made, grows, loses Rids and goes, while it is read.
#[test]
fn the_rids_of_a_key_are_whole() {
    explore(|| {
        let index = KissIndex::new(0).unwrap();
        index.insert(7, rid(0)).unwrap();
        let parts: [fn(&KissIndex); 3] = [
            |index| (1..3).for_each(|slot| index.insert(7, rid(slot)).unwrap()),
            |index| {
                index.insert(7, rid(3)).unwrap();
                index.remove(7, rid(3)).unwrap();
            },
            |index| {
                for _ in 0..2 {
                    let (guard, mut seen) = (sync::pin(), Vec::new());
                    index.find(&guard, 7, |rid| {
                        seen.push(rid);
                        None::<()>
                    });
                    assert!(seen.contains(&rid(0)) && seen.iter().all(|seen| (0..4).any(|slot| *seen == rid(slot))));
                }
            },
        ];
        let index = together(index, parts);
        let mut left = Vec::new();
        index.find(&sync::pin(), 7, |rid| {
            left.push(rid);
            None::<()>
        });
        left.sort_unstable();
        left.dedup();
        assert_eq!(left, [0, 1, 2].map(rid));
        (0..3).for_each(|slot| index.remove(7, rid(slot)).unwrap());
        end_grace_periods();
        assert!(index.find(&sync::pin(), 7, Some).is_none());
    });
}

fn rid(slot: usize) -> Rid {
    Rid::base(0, slot)
}
