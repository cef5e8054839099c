//! Lists of blocks: where entries lie, what becomes of blocks when another list comes, and which ones leave.
use std::convert::Infallible;

use super::*;

type Blocks = Residence<u32, &'static str, u8>;

fn load(_: &&'static str) -> Result<bool, Infallible> {
    Ok(true)
}

/// Holds a block of the newest list for a moment; whether it had to be loaded.
fn touch(residence: &Blocks, block: usize) -> bool {
    let (guard, mut was_away) = (sync::pin(), false);
    let list = residence.blocks(&guard).unwrap();
    let held = list.hold(block, |_| {
        was_away = true;
        load(&"")
    });
    assert!(held.unwrap().is_some());
    was_away
}

/// Evicts once no thread has pinned the epoch since before the last exchange; other tests pin it as well.
fn evict(residence: &Blocks, wanted: u64) -> Vec<&'static str> {
    let started = std::time::Instant::now();
    while residence.leaving().is_none() && started.elapsed().as_secs() < 60 {
        std::thread::yield_now();
    }
    let mut left = Vec::new();
    residence.evict(wanted, |_, blob| {
        left.push(*blob);
        Some(1)
    });
    left
}

#[test]
fn an_entry_lies_in_the_block_that_begins_before_it() {
    let list = BlockList::new(vec![(10, "a"), (20, "b"), (30, "c")], 0_u8);
    let found = |entry, may_begin_there| list.of_entry(&entry, may_begin_there);
    assert_eq!([5, 10, 19, 20, 99].map(|entry| found(entry, true)), [0, 0, 0, 1, 2]);
    assert_eq!([5, 10, 20, 21, 30].map(|entry| found(entry, false)), [0, 0, 0, 1, 1]);
    assert_eq!(list.bounds(0), (Bound::Unbounded, Bound::Excluded(&20)));
    assert_eq!(list.bounds(2), (Bound::Included(&30), Bound::Unbounded));
    assert_eq!([list.of_low(Bound::Excluded(&20)), list.of_low(Bound::Unbounded)], [1, 0]);
    assert_eq!([list.of_high(Bound::Excluded(&20)), list.of_high(Bound::Included(&20))], [0, 1]);
}

#[test]
fn blocks_leave_that_were_not_used_lately_and_a_held_one_stays() {
    let residence = Blocks::whole();
    residence.begin(vec![(10, "a"), (20, "b"), (30, "c")], 0);
    assert!((0..3).all(|block| touch(&residence, block)));
    {
        let guard = sync::pin();
        let list = residence.blocks(&guard).unwrap();
        let (held, again) = (list.hold(1, load).unwrap(), list.hold(1, load).unwrap());
        assert_eq!(evict(&residence, u64::MAX), ["a", "c"]);
        drop((held, again));
    }
    assert!(touch(&residence, 0) && !touch(&residence, 1));
    // Both were used, and one is enough.
    assert_eq!(evict(&residence, 1).len(), 1);
    assert_eq!(evict(&residence, u64::MAX).len(), 1);
}

#[test]
fn a_new_list_knows_what_is_here() {
    let residence = Blocks::whole();
    assert!(!residence.is_partial() && residence.blocks(&sync::pin()).is_none());
    assert_eq!(residence.exchange(vec![(10, "a"), (20, "b"), (30, "c"), (40, "d")], 0), Some(4));
    assert_eq!(evict(&residence, u64::MAX), ["a", "b", "c", "d"]);
    assert!(touch(&residence, 2));
    let old = residence.shared_blocks().unwrap();
    // "b" is the same block, and stays where it is; "c" is here, and becomes two; "d" is away, with what came to it.
    let blocks = vec![(10, "a'"), (20, "b"), (30, "c1"), (35, "c2"), (40, "d1"), (45, "d2")];
    assert_eq!(residence.exchange(blocks, 0), Some(2));
    assert!(old.hold(0, load).unwrap().is_none() && old.hold(3, load).unwrap().is_none(), "they were replaced");
    assert!(old.hold(2, load).unwrap().is_some());
    assert_eq!([0, 2, 3, 4, 5].map(|block| touch(&residence, block)), [true, false, false, true, true]);
    assert!(old.hold(1, load).unwrap().is_some() && !touch(&residence, 1), "one lock for the block of both");
    drop(old);
    // Where other entries count, no block is the same.
    assert_eq!(evict(&residence, u64::MAX).len(), 6);
    let old = residence.shared_blocks().unwrap();
    assert_eq!(residence.exchange(vec![(20, "b")], 1), Some(0));
    assert!(old.hold(1, load).unwrap().is_none());
}

#[test]
fn nothing_leaves_while_a_thread_may_take_the_index_for_whole() {
    let residence = Blocks::whole();
    let guard = sync::pin();
    assert!(residence.blocks(&guard).is_none());
    residence.exchange(vec![(1, "a")], 0).unwrap();
    (0..100).for_each(|_| assert_eq!(residence.evict(u64::MAX, |_, _| Some(1)), 0));
    drop(guard);
    assert_eq!(evict(&residence, u64::MAX), ["a"]);
}

#[test]
fn an_index_is_whole_once_all_blocks_are_here() {
    let residence = Blocks::whole();
    residence.begin(vec![(1, "a"), (2, "b")], 0);
    assert!(touch(&residence, 0) && !residence.note_here());
    assert!(touch(&residence, 1) && residence.note_here());
    assert!(!residence.is_partial() && residence.evict(u64::MAX, |_, _| Some(1)) == 0);
    assert_eq!(residence.exchange(vec![(1, "a"), (2, "b")], 0), Some(2), "all is here");
    let kept = residence.keep();
    assert_eq!((residence.evict(u64::MAX, |_, _| Some(1)), residence.exchange(vec![(1, "a")], 0)), (0, None));
    drop(kept);
    assert_eq!(evict(&residence, u64::MAX), ["a", "b"]);
}
