//! A system that limits address space refuses a tree with a clear error, and lets go on the one that is there.
//!
//! The limit is for a process, so the test starts its own program again, with a variable that tells the child its part.
use std::process::Command;

use index::KissTree;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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
