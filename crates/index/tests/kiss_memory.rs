//! The memory that a KISS-Tree takes and gives back. The tests of this file run one after the other: memory waits
//! for every reader of the process, and the bytes of the allocator are counted for the process.
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use index::{Compact, KissOptions, KissTree, Pages, Versioned};

/// The allocator of the system, with a count of the bytes in use.
struct Counting;

static BYTES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call goes to the system's allocator with the caller's promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn random(index: u64) -> u64 {
    index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

/// Lets grace periods pass.
fn settle() {
    (0..1_000).for_each(|_| sync::pin().flush());
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn a_small_tree_is_small_and_a_crowded_page_takes_four_kilobytes() {
    let _alone = alone();
    let before = resident_bytes();
    let tree = KissTree::<u64>::new().unwrap();
    (0..1_000).for_each(|index| assert!(tree.insert(random(index), index).unwrap().is_none()));
    let memory = tree.memory();
    assert_eq!((memory.page_bytes, memory.block_count), (0, 0));
    assert!(memory.trie_bytes < 60_000, "{memory:?}");
    let resident = resident_bytes().saturating_sub(before);
    assert!(resident < 1 << 20, "{resident} bytes of memory for 1,000 keys");
    let tree = KissTree::<u64>::new().unwrap();
    (0..131_072).for_each(|key| assert!(tree.insert(key, key).unwrap().is_none()));
    let memory = tree.memory();
    assert_eq!((memory.page_bytes, memory.block_count), (2 * 4096, 131_072 / 64));
    assert!(memory.block_bytes < 131_072 * 12, "{memory:?}");
}

/// The memory of this process that lies where it has asked for large pages; none where the system has no such.
fn bytes_where_large_pages_are_wanted() -> Option<usize> {
    std::fs::metadata("/sys/kernel/mm/transparent_hugepage").ok()?;
    let (mut sum, mut resident) = (0, 0);
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("Rss:") => resident = words.next().unwrap().parse::<usize>().unwrap() << 10,
            Some("VmFlags:") if words.any(|flag| flag == "hg") => sum += resident,
            _ => {}
        }
    }
    Some(sum)
}

#[test]
fn large_pages_are_for_large_trees_and_never_double_what_a_tree_takes() {
    let _alone = alone();
    let large = || bytes_where_large_pages_are_wanted().unwrap_or_default();
    for pages in [Pages::Small, Pages::Adaptive] {
        let (before, resident_before) = (large(), resident_bytes());
        let tree = KissTree::<u64>::with_options(KissOptions { pages, ..KissOptions::default() }).unwrap();
        let key = |index: u64| if index < 10_000 { index } else { random(index) % (1 << 25) };
        (0..10_000).for_each(|index| assert!(tree.upsert(key(index), index).unwrap().is_none()));
        assert_eq!(large(), before, "a small tree");
        tree.load((10_000..2_000_000).map(|index| (key(index), index))).unwrap();
        let has_large = large() > before;
        assert_eq!(has_large, pages == Pages::Adaptive && bytes_where_large_pages_are_wanted().is_some());
        let (memory, resident) = (tree.memory(), resident_bytes() - resident_before);
        let taken = (memory.block_bytes + memory.page_bytes + memory.trie_bytes) as usize;
        assert!(resident < 2 * taken, "{resident} bytes for {memory:?}");
        assert!((0..2_000_000).step_by(1_001).all(|index| tree.get(key(index)).is_some()));
    }
}

/// Runs a test with both kinds of slots.
macro_rules! with_both_slots {
    ($test:ident) => {
        $test!(Compact);
        $test!(Versioned);
    };
}

#[test]
fn changes_in_a_page_go_round_in_the_same_blocks() {
    let _alone = alone();
    macro_rules! churn {
        ($slot:ty) => {
            let tree = KissTree::<u64, $slot>::with_options(KissOptions::default()).unwrap();
            tree.load((0..8_192).map(|key| (key, key))).unwrap();
            let turn = |round: u64| {
                for key in (0..8_190).step_by(3) {
                    tree.remove(key).unwrap();
                    tree.upsert(key + 1, round).unwrap();
                    tree.insert(key, round).unwrap();
                }
            };
            (0..4).for_each(turn);
            let before = tree.memory();
            (4..40).for_each(turn);
            let after = tree.memory();
            assert_eq!((before.block_count, after.block_count), (128, 128));
            assert!(after.block_bytes < 2 * before.block_bytes, "{before:?} {after:?}");
            (0..8_192).for_each(|key| assert!(tree.remove(key).unwrap().is_some()));
            assert_eq!(tree.memory().block_count, 0);
        };
    }
    with_both_slots!(churn);
}

#[test]
fn a_tree_gives_back_what_it_took() {
    let _alone = alone();
    macro_rules! live_and_die {
        ($slot:ty) => {
            let turn = || {
                let tree = KissTree::<u64, $slot>::with_options(KissOptions::default()).unwrap();
                std::thread::scope(|scope| {
                    for thread in 0..2 {
                        let tree = &tree;
                        scope.spawn(move || {
                            for index in 0..20_000 {
                                let key =
                                    if index % 2 == 0 { random(index) << (index % 31) } else { index * 9 + thread };
                                tree.upsert(key, index).unwrap();
                                tree.remove(key - key % 3).unwrap();
                            }
                        });
                    }
                });
                assert!(tree.memory().page_bytes > 0 && tree.memory().trie_bytes > 0);
                drop(tree);
                settle();
            };
            (0..2).for_each(|_| turn());
            let before = (BYTES.load(Ordering::Relaxed), resident_bytes());
            (0..6).for_each(|_| turn());
            let after = (BYTES.load(Ordering::Relaxed), resident_bytes());
            assert!(after.0 - before.0 < 64 << 10, "{before:?} {after:?}");
            assert!(after.1.saturating_sub(before.1) < 4 << 20, "{before:?} {after:?}");
        };
    }
    with_both_slots!(live_and_die);
}
