//! The tree under several threads: histories of single keys, ownership, reuse of memory, iteration, growth.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::*;

/// Keys of one node, of one page and of the trie alone, so that threads meet at every level.
fn shared_keys() -> Vec<u64> {
    (0..4).map(|index| index * 5).chain((0..4).map(|index| 70 + index * 640)).chain([1 << 40, (1 << 40) + 64]).collect()
}

/// Fills the page of the shared keys with others one by one, so that it grows while the rest goes on.
fn fill_page<S: Slot>(tree: &KissTree<u64, S>) {
    (0..1_024u64).rev().for_each(|node| assert!(tree.insert(node * 64 + 63, 0).unwrap().is_none()));
}

/// A write of a unique value: when it began and ended, and what it replaced.
#[derive(Clone, Copy)]
struct Write {
    key: u64,
    value: u64,
    before: Option<u64>,
    span: (u64, u64),
}

/// Each write names the value that it replaced, so the writes of a key form a chain, the order in which they took
/// effect. It must be one chain, agree with the clock, and every read must return a value that was there meanwhile.
fn check_history(writes: &[Write], reads: &[(u64, Option<u64>, (u64, u64))]) {
    for key in shared_keys() {
        let mut chain: Vec<Write> = Vec::new();
        let of_key: Vec<&Write> = writes.iter().filter(|write| write.key == key).collect();
        let successors: std::collections::HashMap<_, _> = of_key.iter().map(|write| (write.before, **write)).collect();
        assert_eq!(successors.len(), of_key.len(), "two writes replaced one value of {key}");
        while let Some(next) = successors.get(&chain.last().map(|write| write.value)) {
            assert!(chain.iter().rev().take(20).all(|earlier| earlier.span.0 < next.span.1), "order of key {key}");
            chain.push(*next);
        }
        assert_eq!(chain.len(), of_key.len(), "a write of {key} was lost");
        let places: std::collections::HashMap<_, _> =
            chain.iter().enumerate().map(|(at, write)| (write.value, at)).collect();
        for (_, value, span) in reads.iter().filter(|read| read.0 == key) {
            let next = value.map_or(0, |value| places[&value] + 1);
            assert!(next == 0 || chain[next - 1].span.0 < span.1, "key {key} was read before it was written");
            assert!(chain.get(next).is_none_or(|next| span.0 < next.span.1), "key {key}: an old value came back");
        }
    }
}

fn race_histories<S: Slot>(rounds: u64) {
    let tree = KissTree::<u64, S>::with_options(KissOptions::default()).unwrap();
    let (clock, keys) = (AtomicU64::new(0), shared_keys());
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3u64)
            .map(|thread| {
                let (tree, keys, now) = (&tree, &keys, &now);
                scope.spawn(move || {
                    let (mut writes, mut reads) = (Vec::new(), Vec::new());
                    for round in 0..rounds {
                        if thread == 0 && round == rounds / 4 {
                            fill_page(tree);
                        }
                        let key = keys[(round * 7 + thread * 3 + round / 11) as usize % keys.len()];
                        let (start, value) = (now(), (round << 8 | thread) + 1);
                        if (round + thread) % 3 == 0 {
                            let found = tree.get(key);
                            reads.push((key, found, (start, now())));
                        } else {
                            let before = tree.upsert(key, value).unwrap();
                            writes.push(Write { key, value, before, span: (start, now()) });
                        }
                    }
                    (writes, reads)
                })
            })
            .collect();
        for (some_writes, some_reads) in workers.into_iter().map(|worker| worker.join().unwrap()) {
            writes.extend(some_writes);
            reads.extend(some_reads);
        }
    });
    assert!(tree.memory().page_bytes > 0, "the page grew meanwhile");
    check_history(&writes, &reads);
}

#[test]
fn reads_and_writes_of_a_key_have_one_order_that_agrees_with_the_clock() {
    for _ in 0..3 {
        race_histories::<Compact>(6_000);
        race_histories::<Versioned>(6_000);
    }
}

#[test]
fn every_value_is_inserted_once_and_removed_once() {
    fn race<S: Slot>() {
        let tree = KissTree::<u64, S>::with_options(KissOptions::default()).unwrap();
        let (keys, balance) = (shared_keys(), AtomicU64::new(0));
        thread::scope(|scope| {
            for thread in 0..3u64 {
                let (tree, keys, balance) = (&tree, &keys, &balance);
                scope.spawn(move || {
                    for round in 0..8_000u64 {
                        if thread == 0 && round == 2_000 {
                            fill_page(tree);
                        }
                        let key = keys[(round * 3 + thread) as usize % keys.len()];
                        let value = (key << 20 | round) * 4 + thread;
                        match (round / 8 + thread) % 2 {
                            0 if tree.insert(key, value).unwrap().is_none() => {
                                balance.fetch_add(value, Ordering::Relaxed);
                            }
                            1 => {
                                let removed = tree.remove(key).unwrap().unwrap_or(0);
                                balance.fetch_sub(removed, Ordering::Relaxed);
                            }
                            _ => {}
                        }
                    }
                });
            }
        });
        let left = keys.iter().filter_map(|key| tree.get(*key)).fold(0u64, u64::wrapping_add);
        assert_eq!(balance.into_inner(), left);
    }
    race::<Compact>();
    race::<Versioned>();
}

/// Writers change the sizes of nodes all the time, so blocks are reused. A reader that held one too long, or a
/// block used twice, would show a value under a foreign key.
#[test]
fn nobody_reads_memory_that_serves_another_key() {
    fn race<S: Slot>() {
        let tree = KissTree::<u64, S>::with_options(KissOptions::default()).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..60u64 {
                    for key in (0..6_000u64).filter(|key| (key ^ round) % 3 != 0) {
                        tree.upsert(key, key << 32 | round).unwrap();
                        tree.remove((key / 2) ^ 1).unwrap();
                    }
                }
                done.store(true, Ordering::Relaxed);
            });
            let keys: Vec<u64> = (0..6_000).collect();
            while !done.load(Ordering::Relaxed) {
                let mut found = Vec::new();
                tree.get_batch(&keys, &mut found);
                assert!(keys.iter().zip(&found).all(|(key, found)| found.is_none_or(|value| value >> 32 == *key)));
                assert!(tree.range(100..5_000).all(|(key, value)| value >> 32 == key));
                assert!(keys.iter().all(|key| tree.get(*key).is_none_or(|value| value >> 32 == *key)));
            }
        });
    }
    race::<Compact>();
    race::<Versioned>();
}

#[test]
fn an_iterator_sees_all_that_stays_while_pages_grow_under_it() {
    let stays = |key: u64| key.is_multiple_of(3);
    for _ in 0..4 {
        let tree = KissTree::<u64>::new().unwrap();
        let kept: Vec<u64> = (0..60_000).map(|index| index * 7).filter(|key| stays(*key)).collect();
        kept.iter()
            .step_by(40)
            .for_each(|key| assert!(tree.insert(*key, *key).unwrap().is_none_or(|found| found == *key)));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                kept.iter().for_each(|key| assert!(tree.insert(*key, *key).unwrap().is_none_or(|found| found == *key)));
                (0..60_000)
                    .filter(|key| !stays(*key))
                    .for_each(|key| assert!(tree.insert(key * 7, 1).unwrap().is_none()));
                (0..60_000)
                    .filter(|key| !stays(*key))
                    .for_each(|key| assert_eq!(tree.remove(key * 7).unwrap(), Some(1)));
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                let upward: Vec<u64> = tree.range(..).map(|entry| entry.0).collect();
                let mut downward: Vec<u64> = tree.range(..).rev().map(|entry| entry.0).collect();
                downward.reverse();
                for seen in [upward, downward] {
                    assert!(seen.is_sorted_by(|one, other| one < other));
                    assert!(kept.iter().step_by(40).all(|key| seen.binary_search(key).is_ok()));
                }
            }
        });
        assert!(tree.range(..).map(|entry| entry.0).eq(kept));
    }
}

#[test]
fn threads_that_insert_into_the_trie_together_lose_nothing() {
    let tree = KissTree::<u64>::new().unwrap();
    let key_of = |index: u64| index.wrapping_mul(0x9E37_79B9_7F4A_7C15) & 0xFFF0_0000_00FF_FFFF;
    thread::scope(|scope| {
        for thread in 0..3u64 {
            let tree = &tree;
            scope.spawn(move || {
                for index in 0..20_000u64 {
                    assert_eq!(tree.insert(key_of(index * 3 + thread), index).unwrap(), None);
                    if index % 2 == 1 {
                        assert_eq!(tree.remove(key_of((index - 1) * 3 + thread)).unwrap(), Some(index - 1));
                    }
                }
            });
        }
    });
    let mut expected: Vec<u64> =
        (0..20_000).skip(1).step_by(2).flat_map(|index| [0, 1, 2].map(|thread| key_of(index * 3 + thread))).collect();
    expected.sort_unstable();
    assert!(tree.range(..).map(|entry| entry.0).eq(expected));
}

/// Interleaves two changes on purpose: the second runs while the first has looked and not yet written.
#[test]
fn a_change_made_while_another_decides_is_not_lost() {
    fn interleave<S: Slot>(key: u64, start: &[u64], meanwhile: impl Fn(&KissTree<u64, S>)) {
        for outer in [Change::Set(1), Change::Remove] {
            let make = || {
                let tree = KissTree::<u64, S>::with_options(KissOptions::default()).unwrap();
                tree.load(start.iter().map(|key| (*key, 0))).unwrap();
                tree
            };
            let (tree, before, after) = (make(), make(), make());
            let mut is_first = true;
            let decide = |_| {
                if std::mem::take(&mut is_first) {
                    meanwhile(&tree);
                }
                outer
            };
            tree.change(key, decide).unwrap();
            before.change(key, |_| outer).unwrap();
            meanwhile(&before);
            meanwhile(&after);
            after.change(key, |_| outer).unwrap();
            let is_one_order = tree.range(..).eq(before.range(..)) || tree.range(..).eq(after.range(..));
            assert!(is_one_order, "{outer:?} of {key}");
        }
    }
    fn interleave_all<S: Slot>() {
        let page: Vec<u64> = (0..4_000).collect();
        for start in [&[][..], &[6], &[5, 6], &[5, 6, 70, 640, 1 << 40], &page, &page[..1_900]] {
            for key in [5, 7, 5_000] {
                interleave::<S>(key, start, |tree| assert!(tree.upsert(6, 9).is_ok()));
                interleave::<S>(key, start, |tree| assert!(tree.upsert(key, 9).is_ok()));
                interleave::<S>(key, start, |tree| assert!(tree.remove(6).is_ok()));
                interleave::<S>(key, start, |tree| assert!(tree.remove(key).is_ok()));
                interleave::<S>(key, start, |tree| assert!(tree.insert(key + 64, 9).is_ok()));
                interleave::<S>(key, start, |tree| tree.load((100..3_000).map(|key| (key, 9))).unwrap());
                interleave::<S>(key, start, |tree| tree.load((0..1_024).map(|node| (node * 64 + 1, 9))).unwrap());
            }
        }
    }
    interleave_all::<Compact>();
    interleave_all::<Versioned>();
}
