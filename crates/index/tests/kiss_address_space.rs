//! A system that limits address space refuses a tree with a clear error, and lets go on the one that is there.
//!
//! The limit is for a process, so the test starts its own program again, with a variable that tells the child its part.
use std::process::Command;

use index::{InsertError, KissIndex, KissTree};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use types::Rid;

const ROLE: &str = "KISS_TREE_ADDRESS_SPACE";

fn limit_address_space(bytes: u64) {
    let maximum = getrlimit(Resource::As).maximum;
    setrlimit(Resource::As, Rlimit { current: Some(bytes), maximum }).unwrap();
}

fn run_alone(test: &str) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(ROLE, test)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{text}");
}

fn is_child() -> bool {
    std::env::var_os(ROLE).is_some()
}

#[test]
fn a_refused_reservation_is_an_error_with_advice() {
    if !is_child() {
        return run_alone("a_refused_reservation_is_an_error_with_advice");
    }
    limit_address_space(200 << 20);
    let text = KissTree::<u64>::new().err().unwrap().to_string();
    assert!(text.contains("address space") && text.contains("ulimit -v"), "{text}");
}

#[test]
fn a_tree_whose_blocks_are_refused_stays_right() {
    if !is_child() {
        return run_alone("a_tree_whose_blocks_are_refused_stays_right");
    }
    let tree = KissTree::<u64>::new().unwrap();
    tree.load((0..2_048).map(|key| (key, key))).unwrap();
    assert_eq!(tree.memory().page_bytes, 4096);
    limit_address_space(1 << 20);
    // The page of these keys cannot grow, so they stay in the trie.
    tree.load((0..2_048).map(|index| (65_536 + index * 32, index))).unwrap();
    assert_eq!(tree.memory().page_bytes, 4096);
    // A node of one key needs a block of a size that is not there.
    let refused = tree.insert(65_000, 1).err().unwrap().to_string();
    assert!(refused.contains("address space"), "{refused}");
    assert_eq!((tree.get(65_000), tree.get(2_047)), (None, Some(2_047)));
    assert_eq!(tree.remove(2_047 - 63).err().map(|error| error.to_string().is_empty()), Some(false));
    let (getting, expected) = (tree.range(..), (0..2_048).map(|key| (key, key)));
    assert!(getting.eq(expected.chain((0..2_048).map(|index| (65_536 + index * 32, index)))));
    limit_address_space(8 << 30);
    assert_eq!(tree.insert(65_000, 1).unwrap(), None);
    for key in 0..2_048 {
        tree.upsert(65_536 + key * 32, 7).unwrap();
        tree.upsert(65_536 + key * 32 + 1, 8).unwrap();
    }
    assert!((0..2_048).all(|key| tree.get(65_536 + key * 32) == Some(7)));
}

#[test]
fn an_index_that_gets_no_address_space_says_so_and_loses_nothing() {
    if !is_child() {
        return run_alone("an_index_that_gets_no_address_space_says_so_and_loses_nothing");
    }
    let (index, rid) = (KissIndex::new(0).unwrap(), |key: u64| Rid::base(0, key as usize));
    // Nineteen leaves of 30 keys are in the trie; the key of the twentieth moves them to blocks of their size.
    let keys: Vec<u64> = (0..19 * 64).filter(|key| key % 64 < 30).chain([19 * 64]).collect();
    for key in &keys {
        index.insert(*key, rid(*key)).unwrap();
    }
    let entries = || index.range(..).map(|(key, rids)| (key, rids.to_vec())).collect::<Vec<_>>();
    let (before, bytes) = (entries(), index.bytes());
    assert!(before.iter().map(|(key, _)| key).eq(&keys));
    limit_address_space(1 << 20);
    // A node of 31 keys and one of 29 need blocks of sizes that are not there.
    for _ in 0..3 {
        let refused = index.insert(40, rid(40)).unwrap_err().to_string();
        assert!(refused.contains("address space") && refused.contains("ulimit -v"), "{refused}");
        let refused = index.insert_unique(40, rid(40), |_| panic!("no record has the key")).unwrap_err();
        assert!(matches!(refused, InsertError::NoRoom(_)), "{refused:?}");
        assert!(index.remove(7, rid(7)).is_err());
    }
    assert_eq!((entries(), index.bytes()), (before.clone(), bytes), "what was refused left nothing behind");
    // A node of 30 keys with another Rid, and a node of one key.
    index.insert(7, rid(8)).unwrap();
    index.remove(7, rid(8)).unwrap();
    index.insert(21 * 64, rid(1)).unwrap();
    index.remove(21 * 64, rid(1)).unwrap();
    assert_eq!(entries(), before);
    limit_address_space(8 << 30);
    index.insert(40, rid(40)).unwrap();
    index.remove(40, rid(40)).unwrap();
    index.remove(7, rid(7)).unwrap();
    assert!(entries().iter().map(|(key, _)| *key).eq(keys.into_iter().filter(|key| *key != 7)));
}
