//! Several threads: entries that stay are found by every search, whatever comes and goes around them; those of each thread are
//! as it left them.
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use types::Rid;

use super::*;

const STAYING: usize = 300;

fn at(number: usize) -> Bounds<i64, 2> {
    let number = number as i64;
    Bounds::point([number * 37 % 101, number * 53 % 97]).unwrap()
}

/// Writers insert and remove entries of their own among those that stay; readers search in all ways.
#[test]
fn searches_find_all_that_stays_while_nodes_are_split_and_merged() {
    let staying = (0..STAYING).map(|number| (at(number), Rid::base(0, number)));
    let tree = Gist::<RTree<i64, 2>>::load(staying, 6, 100, NonZero::<usize>::MIN);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = |thread: usize| {
            let tree = &tree;
            move || {
                for round in 0..12 {
                    let mine: Vec<usize> = (0..150).map(|n| 10_000 * (thread + 1) + round * 150 + n).collect();
                    mine.iter().for_each(|n| tree.insert(&at(*n), Rid::base(thread + 1, *n)));
                    let kept = |n: usize| n.is_multiple_of(50);
                    mine.iter()
                        .filter(|n| !kept(**n))
                        .for_each(|n| assert!(tree.remove(&at(*n), Rid::base(thread + 1, *n))));
                }
            }
        };
        let writers: Vec<_> = (0..3).map(|thread| scope.spawn(writer(thread))).collect();
        for reader in 0..2 {
            let (tree, is_done) = (&tree, &is_done);
            scope.spawn(move || {
                let mut number = reader;
                while !is_done.load(Ordering::Relaxed) {
                    number = (number + 7) % STAYING;
                    let (low, rid) = (at(number).low(), Rid::base(0, number));
                    let window = Bounds::new([low[0] - 3, low[1] - 3], [low[0] + 3, low[1] + 3]).unwrap();
                    let query = BoundsQuery::overlaps(window);
                    assert_eq!(tree.rids(&query).iter().filter(|found| **found == rid).count(), 1);
                    let batch = tree.search_batch(&[query, BoundsQuery::equals(at(number))], &Cpu::default());
                    assert!((0..2).all(|query| batch.of_query(query).contains(&rid)));
                    let nearest = tree.nearest(&low, 1, |found| found.range() == 0);
                    assert!(nearest.len() == 1 && nearest[0].0 == 0.0, "{nearest:?}");
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(tree.len(), STAYING + 3 * 12 * 3);
    let all = Bounds::new([0, 0], [200, 200]).unwrap();
    assert_eq!(tree.rids(&BoundsQuery::within(all)).len(), tree.len());
}

#[test]
fn threads_load_and_scan_what_one_does() {
    let entries = |count: usize| (0..count).map(|number| (at(number), Rid::base(0, number)));
    let two = NonZero::new(2).unwrap();
    let tree = Gist::<RTree<i64, 2>>::load(entries(40_000), 16, 75, two);
    assert_eq!(tree.len(), 40_000);
    let queries: Vec<_> = (0..6_000).map(|number| BoundsQuery::equals(at(number))).collect();
    let (alone, together) = (tree.search_batch(&queries, &Cpu::default()), tree.search_batch(&queries, &Cpu::new(two)));
    assert_eq!(alone, together);
    assert!((0..6_000).all(|number| alone.of_query(number).contains(&Rid::base(0, number))));
}
