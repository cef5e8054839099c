//! The tree under shuttle: the real code with nodes of four slots and two or three threads, in thousands of orders drawn by
//! chance and by priorities.
use std::num::NonZero;

use types::Rid;

use super::*;
use crate::explore::{explore, together};

type Tree = Gist<RTree<i64, 1>>;

fn at(number: i64) -> Bounds<i64, 1> {
    Bounds::point([number]).unwrap()
}

fn rid(number: i64) -> Rid {
    Rid::base(0, number as usize)
}

fn tree(numbers: impl IntoIterator<Item = i64>) -> Tree {
    let tree = Tree::with_slots(4);
    numbers.into_iter().for_each(|number| tree.insert(&at(number), rid(number)));
    tree
}

fn numbers(tree: &Tree) -> Vec<i64> {
    let all = BoundsQuery::within(Bounds::new([0], [1_000]).unwrap());
    let mut numbers: Vec<i64> = tree.rids(&all).into_iter().map(|rid| rid.slot() as i64).collect();
    numbers.sort_unstable();
    numbers
}

/// Every way of searching finds a number once.
fn find(tree: &Tree, number: i64) {
    let found = |rids: &[Rid]| rids.iter().filter(|found| **found == rid(number)).count();
    let query = BoundsQuery::contains(at(number));
    assert_eq!(found(&tree.rids(&query)), 1, "{number}");
    assert_eq!(found(tree.search_batch(&[query], &Cpu::default()).of_query(0)), 1, "{number}");
    assert_eq!(tree.nearest(&[number], 1, |_| true), [(0.0, rid(number))]);
}

#[test]
fn a_reader_finds_what_stays_while_leaf_and_root_are_split() {
    explore(1_000, || {
        let parts: [fn(&Tree); 3] = [
            |tree| [25, 5].iter().for_each(|number| tree.insert(&at(*number), rid(*number))),
            |tree| {
                tree.insert(&at(35), rid(35));
                find(tree, 35);
            },
            |tree| [10, 40].iter().for_each(|number| find(tree, *number)),
        ];
        let tree = together(tree([10, 20, 30, 40]), parts);
        assert_eq!(numbers(&tree), [5, 10, 20, 25, 30, 35, 40]);
        assert!(numbers(&tree).iter().all(|number| tree.remove(&at(*number), rid(*number))));
    });
}

#[test]
fn a_key_that_grows_is_not_lost_in_a_split() {
    explore(500, || {
        let parts: [fn(&Tree); 3] = [
            // Both make the key of one child larger; the others split that child meanwhile.
            |tree| {
                tree.insert(&at(600), rid(600));
                find(tree, 600);
            },
            |tree| {
                tree.insert(&at(700), rid(700));
                find(tree, 700);
            },
            |tree| [401, 402, 403].iter().for_each(|number| tree.insert(&at(*number), rid(*number))),
        ];
        let tree = together(tree((1..=10).map(|number| 40 * number)), parts);
        assert_eq!(numbers(&tree).len(), 15);
        numbers(&tree).iter().for_each(|number| find(&tree, *number));
    });
}

#[test]
fn a_reader_finds_what_stays_while_nodes_empty_and_merge() {
    explore(500, || {
        let parts: [fn(&Tree); 3] = [
            |tree| [10, 20, 30, 40].iter().for_each(|number| assert!(tree.remove(&at(*number), rid(*number)))),
            |tree| {
                assert!(tree.remove(&at(60), rid(60)));
                tree.insert(&at(15), rid(15));
                find(tree, 15);
            },
            |tree| [50, 120].iter().for_each(|number| find(tree, *number)),
        ];
        let tree = together(tree((1..=12).map(|number| 10 * number)), parts);
        assert_eq!(numbers(&tree), [15, 50, 70, 80, 90, 100, 110, 120]);
        numbers(&tree).iter().for_each(|number| find(&tree, *number));
    });
}

/// Two leaves, with some of the entries 10, 20, 30, 40 and 50, 60, 70, 80.
fn leaves(left: &[i64]) -> Tree {
    let entries = (1..=8).map(|number| (at(10 * number), rid(10 * number)));
    let tree = Tree::load(entries, 4, 100, NonZero::<usize>::MIN);
    let others = (1..=8).map(|number| 10 * number).filter(|number| !left.contains(number));
    others.for_each(|number| assert!(tree.remove(&at(number), rid(number))));
    assert_eq!(tree.height(), 2);
    tree
}

#[test]
fn nothing_is_lost_in_a_leaf_that_leaves_the_tree_or_becomes_its_root() {
    explore(1_000, || {
        let parts: [fn(&Tree); 3] = [
            |tree| assert!(tree.remove(&at(10), rid(10))),
            |tree| {
                tree.insert(&at(15), rid(15));
                find(tree, 15);
            },
            |tree| {
                tree.insert(&at(65), rid(65));
                [65, 50].iter().for_each(|number| find(tree, *number));
            },
        ];
        let tree = together(leaves(&[10, 50, 60, 70, 80]), parts);
        assert_eq!(numbers(&tree), [15, 50, 60, 65, 70, 80]);
    });
}

#[test]
fn nothing_is_lost_in_two_leaves_that_become_one() {
    explore(1_000, || {
        let parts: [fn(&Tree); 3] = [
            |tree| assert!(tree.remove(&at(10), rid(10))),
            |tree| {
                tree.insert(&at(55), rid(55));
                find(tree, 55);
            },
            |tree| {
                tree.insert(&at(25), rid(25));
                [25, 60].iter().for_each(|number| find(tree, *number));
            },
        ];
        let tree = together(leaves(&[10, 20, 50, 60]), parts);
        assert_eq!(numbers(&tree), [20, 25, 50, 55, 60]);
    });
}

#[test]
fn one_of_two_removes_an_entry() {
    explore(500, || {
        let tree = tree([10, 20, 30, 40]);
        let part = || -> Box<dyn FnOnce(&(Tree, sync::atomic::AtomicU64)) + Send> {
            Box::new(|(tree, removed)| {
                let is_removed = tree.remove(&at(20), rid(20));
                removed.fetch_add(is_removed.into(), sync::atomic::Ordering::Relaxed);
            })
        };
        let grow: Box<dyn FnOnce(&(Tree, sync::atomic::AtomicU64)) + Send> =
            Box::new(|(tree, _)| tree.insert(&at(25), rid(25)));
        let shared = together((tree, sync::atomic::AtomicU64::new(0)), [part(), part(), grow]);
        assert_eq!(shared.1.load(sync::atomic::Ordering::Relaxed), 1);
        assert_eq!(numbers(&shared.0), [10, 25, 30, 40]);
    });
}
