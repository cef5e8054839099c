//! Every index once with few keys and two threads: sizes that an interpreter gets through (`cargo xtask miri`). The KISS-Tree is
//! left out, as it reserves more address space than the interpreter has.
use std::num::NonZero;

use index::{
    BPlusTree, BitwiseColumns, Bounds, BoundsQuery, Bytes, Change, Cpu, DeltaForm, DeltaIndex, Gist, HashIndex, Holder,
    NodeSearch, PrefixQuery, Prefixes, RTree, UniqueTree, WordIndex,
};
use sync::VersionLatch;
use types::Rid;

/// Enough for some leaves of a tree; under the interpreter for two or three.
const KEYS: u64 = if cfg!(miri) { 120 } else { 400 };

/// The keys in an order that is neither up nor down.
fn keys() -> impl Iterator<Item = u64> {
    (0..KEYS).map(|i| i * 167 % KEYS)
}

fn rid(number: u64) -> Rid {
    Rid::base(0, number as usize)
}

#[test]
fn a_tree_of_words_keeps_what_two_threads_put_there() {
    let tree = BPlusTree::<u64, u64>::new();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let tree = &tree;
            scope.spawn(move || {
                keys().filter(|key| key % 2 == half).for_each(|key| assert_eq!(tree.insert(key, key + 1), None))
            });
        }
    });
    assert!(keys().all(|key| tree.get(key) == Some(key + 1)));
    assert_eq!(tree.range(10..20).map(|(key, _)| key).collect::<Vec<_>>(), (10..20).collect::<Vec<_>>());
    keys().filter(|key| key % 3 > 0).for_each(|key| assert_eq!(tree.remove(key), Some(key + 1)));
    assert_eq!(tree.change(3, |known| known.map_or(Change::Keep, |value| Change::Set(value + 1))), Some(4));
    assert_eq!((tree.len() as u64, tree.get(3)), (KEYS.div_ceil(3), Some(5)));
}

#[test]
fn a_tree_of_bytes_keeps_short_and_long_keys() {
    let tree = BPlusTree::<Bytes, u64>::new();
    let key = |number: u64| format!("{}{number}", "beginning ".repeat((number % 4) as usize)).into_bytes();
    keys().for_each(|number| assert_eq!(tree.insert(&key(number), number), None));
    assert!(keys().all(|number| tree.get(&key(number)) == Some(number)));
    assert!(tree.range(..).map(|(key, _)| key).is_sorted());
    keys().for_each(|number| assert_eq!(tree.remove(&key(number)), Some(number)));
    assert!(tree.is_empty());
}

#[test]
fn keys_have_lists_of_records() {
    let (tree, table, hash) = (UniqueTree::<u64>::new(), WordIndex::<1>::new(), HashIndex::<u64>::new());
    for key in keys() {
        for holder in [key, key + KEYS] {
            assert_eq!(tree.insert_unique(key / 2, rid(holder), |_| Holder::Past), Ok(()));
            assert_eq!(table.insert_unique(&[key / 2], rid(holder), |_| Holder::Past), Ok(()));
            assert_eq!(hash.insert_unique(key / 2, rid(holder), |_| Holder::Past), Ok(()));
        }
    }
    let guard = &sync::pin();
    for key in 0..KEYS / 2 {
        let mut counts = [0; 3];
        let _: Option<()> = tree.find(guard, key, |_| {
            counts[0] += 1;
            None
        });
        let _: Option<()> = table.find(guard, &[key], |_| {
            counts[1] += 1;
            None
        });
        let _: Option<()> = hash.find(&key, |_| {
            counts[2] += 1;
            None
        });
        assert!(counts.iter().all(|count| *count >= 4), "{counts:?}");
        tree.remove(key, rid(2 * key));
        table.remove(&[key], rid(2 * key));
        hash.remove(&key, rid(2 * key));
    }
}

#[test]
fn a_dictionary_gives_each_value_one_id() {
    let form = DeltaForm { search: NodeSearch::Binary, dictionary_count: 2 };
    let index = DeltaIndex::<[u8], VersionLatch>::new(form);
    let value = |number: u64| format!("value {}", number % 40).into_bytes();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(keys().all(|number| index.encode(&value(number)).is_ok()), "there is room"));
        }
    });
    assert_eq!(index.len(), 40);
    assert!(
        keys().all(|number| index.lookup(&value(number)).and_then(|id| index.value(id)) == Some(&value(number)[..]))
    );
}

#[test]
fn a_search_tree_keeps_boxes_and_prefixes_that_two_threads_put_there() {
    // A test of a node is some thousand steps of an interpreter.
    let keys = || keys().filter(|key| *key < if cfg!(miri) { 24 } else { KEYS });
    let boxes = Gist::<RTree<f64, 2>>::with_slots(4);
    let at = |key: u64| Bounds::point([(key % 17) as f64, key as f64]).unwrap();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let boxes = &boxes;
            scope.spawn(move || {
                keys().filter(|key| key % 2 == half).for_each(|key| boxes.insert(&at(key), rid(key)));
                keys().filter(|key| key % 6 == half).for_each(|key| assert!(boxes.remove(&at(key), rid(key))));
            });
        }
    });
    let stays = |key: &u64| key % 6 > 1;
    assert_eq!(boxes.len(), keys().filter(stays).count());
    let queries: Vec<_> = keys().map(|key| BoundsQuery::overlaps(at(key))).collect();
    let matches = boxes.search_batch(&queries, &Cpu::default());
    assert!(
        keys()
            .enumerate()
            .all(|(place, key)| matches.of_query(place) == if stays(&key) { vec![rid(key)] } else { vec![] })
    );
    let nearest = boxes.nearest(&[2.0, 2.0], 3, |_| true);
    assert_eq!(nearest[0], (0.0, rid(2)));
    let names = Gist::<Prefixes>::with_slots(4);
    let name = |key: u64| format!("{key:b}").into_bytes().into_boxed_slice();
    keys().for_each(|key| names.insert(&name(key), rid(key)));
    assert_eq!(names.rids(&PrefixQuery::Equals(name(5))), [rid(5)]);
}

#[test]
fn bitwise_columns_are_searched_by_two_threads() {
    let x: Vec<i64> = keys().map(|key| key as i64 * 3).collect();
    let rids: Vec<Rid> = keys().map(rid).collect();
    let columns = BitwiseColumns::new([&x, &x], &rids, 1 << 11).unwrap();
    let windows: Vec<_> = (0..20).map(|low| Bounds::new([low, 0], [low * 10, low * 9]).unwrap()).collect();
    let matches = columns.search_batch(&windows, &Cpu::new(NonZero::new(2).unwrap()));
    for (number, window) in windows.iter().enumerate() {
        let expected = x.iter().filter(|x| **x >= window.low()[0] && **x <= window.high()[1]).count();
        assert_eq!(matches.of_query(number).len(), expected);
    }
}
