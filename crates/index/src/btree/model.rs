//! A reader against a split and against a merge, in every order of two threads (up to a bound on preemptions) and with
//! every value that the memory model lets a load return: `RUSTFLAGS="--cfg loom" cargo test -p lstore-index --release --lib
//! model`. Nodes have four entries here.
use loom::sync::Arc;
use loom::thread;

use super::*;

type Tree = BPlusTree<u64, u64>;

fn check(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 50_000;
    builder.check(body);
}

/// Ascending keys fill their leaves but for one entry: 1, 3, 5 and 7, 9 and so on.
fn tree_of(keys: &[u64]) -> Arc<Tree> {
    let tree = Tree::new();
    keys.iter().for_each(|key| assert_eq!(tree.insert(*key, key * 10), None));
    Arc::new(tree)
}

/// Changes the tree in another thread, while this one reads. `node_count` is how many nodes there are then.
fn race(keys: &'static [u64], node_count: usize, change: fn(&Tree), read: fn(&Tree)) {
    check(3, move || {
        let tree = tree_of(keys);
        let writer = {
            let tree = tree.clone();
            thread::spawn(move || change(&tree))
        };
        read(&tree);
        writer.join().unwrap();
        read(&tree);
        assert_eq!((tree.bytes() - size_of::<Tree>()) / size_of::<Node<u64, u64, NodeLatches>>(), node_count);
    });
}

#[test]
fn a_reader_finds_its_key_while_the_root_is_split() {
    race(&[1, 3, 5, 7], 3, |tree| assert_eq!(tree.insert(4, 40), None), |tree| assert_eq!(tree.get(7), Some(70)));
}

#[test]
fn a_reader_finds_its_key_while_its_leaf_is_split() {
    let keys = &[1, 3, 5, 7, 9, 11, 13];
    race(keys, 4, |tree| assert_eq!(tree.insert(8, 80), None), |tree| assert_eq!(tree.get(13), Some(130)));
}

#[test]
fn a_reader_finds_its_key_while_it_moves_within_its_leaf() {
    let keys = &[1, 3, 5, 7, 9, 11];
    race(keys, 3, |tree| assert_eq!(tree.insert(8, 80), None), |tree| assert_eq!(tree.get(11), Some(110)));
}

#[test]
fn a_reader_finds_its_key_while_two_leaves_are_evened_out() {
    let keys = &[1, 3, 5, 7, 9];
    race(keys, 3, |tree| assert_eq!(tree.remove(9), Some(90)), |tree| assert_eq!(tree.get(5), Some(50)));
}

#[test]
fn a_reader_finds_its_key_while_its_leaf_is_merged_away() {
    let change = |tree: &Tree| {
        assert_eq!(tree.remove(3), Some(30));
        assert_eq!(tree.remove(9), Some(90));
    };
    race(&[1, 3, 5, 7, 9], 1, change, |tree| assert_eq!(tree.get(7), Some(70)));
}

#[test]
fn a_scan_sees_its_entries_once_while_a_leaf_is_split() {
    let read = |tree: &Tree| {
        let seen: Vec<u64> = tree.range(5..).map(|(key, _)| key).filter(|key| *key != 8).collect();
        assert_eq!(seen, [5, 7, 9, 11, 13]);
    };
    race(&[1, 3, 5, 7, 9, 11, 13], 4, |tree| assert_eq!(tree.insert(8, 80), None), read);
}

#[test]
fn a_run_and_a_writer_that_splits_its_leaf_lose_nothing() {
    check(2, || {
        let tree = tree_of(&[1, 3, 5, 20, 22]);
        let other = {
            let tree = tree.clone();
            thread::spawn(move || assert_eq!(tree.insert(4, 40), None))
        };
        let (run, mut done) = ([6_u64, 8, 21], 0);
        while done < run.len() {
            let added = tree.add_run(&sync::pin(), run.len() - done, |at| (&run[done + at], run[done + at] * 10));
            assert!(added > 0, "no key of the run is there");
            done += added;
        }
        other.join().unwrap();
        assert!([1, 3, 4, 5, 6, 8, 20, 21, 22].iter().all(|key| tree.get(*key) == Some(key * 10)));
        assert!(tree.range(..).map(|(key, _)| key).eq([1, 3, 4, 5, 6, 8, 20, 21, 22]));
    });
}

#[test]
fn two_writers_of_one_leaf_lose_nothing() {
    check(2, || {
        let tree = tree_of(&[1, 3, 5, 7]);
        let other = {
            let tree = tree.clone();
            thread::spawn(move || assert_eq!(tree.insert(4, 40), None))
        };
        assert_eq!(tree.insert(6, 60), None);
        other.join().unwrap();
        assert!([1, 3, 4, 5, 6, 7].iter().all(|key| tree.get(*key) == Some(key * 10)));
    });
}
