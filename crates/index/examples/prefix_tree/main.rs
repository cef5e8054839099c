//! KISS-Tree against PT-4: the paper's figures 5 (reads and updates of dense and uniform keys) and 6 (throughput by the
//! share of updates), at sizes of one's choice.
//!
//! `cargo run --release -p index --example prefix_tree -- 1000000 4000000`
//!
//! Reads are batched in both trees. Time is that on the processor, where the system tells it, so that others on the
//! machine disturb little; each figure is the best of a few rounds.
mod pt4;

use std::hint::black_box;
use std::time::Instant;

use index::{Compact, KissOptions, KissTree, Versioned};
use pt4::PrefixTree;

/// Operations between two looks at the clock.
const GROUP: usize = 512;

/// How keys lie (the paper's sequence, odd sequence and uniform).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Dense,
    Odd,
    Uniform,
}

impl Keys {
    fn key(self, index: u32) -> u32 {
        match self {
            Keys::Dense => index,
            Keys::Odd => 2 * index + 1,
            // Odd multipliers permute the 32-bit numbers, and the shifts spread what they leave in the upper bits.
            Keys::Uniform => {
                let key = (index ^ (index >> 16)).wrapping_mul(0x7FEB_352D);
                let key = (key ^ (key >> 15)).wrapping_mul(0x846C_A68B);
                key ^ (key >> 16)
            }
        }
    }
}

/// A tree as the measurement sees it.
trait Tree {
    fn upsert(&self, key: u32, value: u64);
    fn get(&self, key: u32) -> Option<u64>;
    /// The sum of the values of keys that are there, looked up in batches.
    fn sum(&self, keys: &[u32]) -> u64;
    fn bytes(&self) -> u64;
}

impl Tree for PrefixTree {
    fn upsert(&self, key: u32, value: u64) {
        PrefixTree::upsert(self, key, value);
    }

    fn get(&self, key: u32) -> Option<u64> {
        PrefixTree::get(self, key)
    }

    fn sum(&self, keys: &[u32]) -> u64 {
        let mut found = Vec::with_capacity(keys.len());
        self.get_batch(keys, &mut found);
        found.into_iter().fold(0, |sum, value| sum.wrapping_add(value.expect("the key was inserted")))
    }

    fn bytes(&self) -> u64 {
        PrefixTree::bytes(self) as u64
    }
}

macro_rules! kiss_is_a_tree {
    ($slot:ty) => {
        impl Tree for KissTree<u64, $slot> {
            fn upsert(&self, key: u32, value: u64) {
                KissTree::upsert(self, u64::from(key), value).expect("there is address space");
            }

            fn get(&self, key: u32) -> Option<u64> {
                KissTree::get(self, u64::from(key))
            }

            fn sum(&self, keys: &[u32]) -> u64 {
                let keys: Vec<u64> = keys.iter().map(|key| u64::from(*key)).collect();
                let mut found = Vec::with_capacity(keys.len());
                self.get_batch(&keys, &mut found);
                found.into_iter().fold(0, |sum, value| sum.wrapping_add(value.expect("the key was inserted")))
            }

            fn bytes(&self) -> u64 {
                let memory = self.memory();
                memory.page_bytes + memory.block_bytes + memory.trie_bytes
            }
        }
    };
}

kiss_is_a_tree!(Compact);
kiss_is_a_tree!(Versioned);

/// The time that this thread has been on the processor; where the system does not tell, the time that has passed.
fn processor_ns(start: Instant) -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let on_processor = told.and_then(|text| text.split(' ').next()?.parse().ok());
    on_processor.unwrap_or_else(|| start.elapsed().as_nanos() as u64)
}

/// Small pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// How often and how long is measured.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    groups: usize,
}

/// Million operations a second by `work` on keys that are there: the best of a few rounds.
fn throughput(keys: Keys, count: u32, effort: Effort, work: impl Fn(&[u32]) -> u64) -> f64 {
    let (start, mut random) = (Instant::now(), Random(0x9E37_79B9_7F4A_7C15));
    let mut best = 0.0f64;
    for _ in 0..effort.rounds {
        let mut spent_ns = 0;
        for _ in 0..effort.groups {
            let picked: Vec<u32> = (0..GROUP * 16).map(|_| keys.key(random.below(count))).collect();
            let before_ns = processor_ns(start);
            picked.chunks(GROUP).for_each(|group| _ = black_box(work(group)));
            spent_ns += processor_ns(start) - before_ns;
        }
        best = best.max((GROUP * 16 * effort.groups) as f64 * 1e3 / spent_ns.max(1) as f64);
    }
    best
}

/// A row of the table: the load, single reads, and batched reads with more and more updates among them.
fn measure(name: &str, tree: &impl Tree, keys: Keys, count: u32, effort: Effort) -> String {
    let start = Instant::now();
    let before_ns = processor_ns(start);
    (0..count).for_each(|index| tree.upsert(keys.key(index), u64::from(index)));
    let load = f64::from(count) * 1e3 / (processor_ns(start) - before_ns).max(1) as f64;
    let single = throughput(keys, count, effort, |group| {
        group.iter().fold(0, |sum, key| sum.wrapping_add(tree.get(*key).expect("the key was inserted")))
    });
    let mut row = format!("| {count} | {keys:?} | {name} | {load:.1} | {single:.1} |");
    for update_percent in [0, 20, 50, 80, 100] {
        let mixed = throughput(keys, count, effort, |group| {
            let (written, read) = group.split_at(GROUP * update_percent / 100);
            written.iter().for_each(|key| tree.upsert(*key, u64::from(*key)));
            tree.sum(read)
        });
        row += &format!(" {mixed:.1} |");
    }
    row + &format!(" {:.1} |", tree.bytes() as f64 / f64::from(count))
}

fn tables(sizes: &[u32], effort: Effort) -> Vec<String> {
    let mut rows = vec![
        "| keys | lie | tree | load | single reads | batched reads | 20 % updates | 50 % | 80 % | updates | bytes a key |".to_string(),
        "|---|---|---|---|---|---|---|---|---|---|---|".to_string(),
    ];
    for &count in sizes {
        for keys in [Keys::Dense, Keys::Odd, Keys::Uniform] {
            let compact = KissTree::<u64, Compact>::with_options(KissOptions::default()).expect("address space");
            rows.push(measure("KISS", &compact, keys, count, effort));
            drop(compact);
            let versioned = KissTree::<u64, Versioned>::with_options(KissOptions::default()).expect("address space");
            rows.push(measure("KISS, values in place", &versioned, keys, count, effort));
            drop(versioned);
            rows.push(measure("PT-4", &PrefixTree::new(count as usize), keys, count, effort));
        }
    }
    rows
}

fn main() {
    let sizes: Vec<u32> = std::env::args().skip(1).map(|size| size.parse().expect("a number of keys")).collect();
    let sizes = if sizes.is_empty() { vec![1_000_000] } else { sizes };
    println!("million operations a second on one thread\n");
    tables(&sizes, Effort { rounds: 5, groups: 12 }).iter().for_each(|row| println!("{row}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_a_row_for_each_tree_and_their_sums_are_right() {
        let rows = tables(&[2_000], Effort { rounds: 1, groups: 1 });
        assert_eq!(rows.len(), 2 + 9);
        let tree = PrefixTree::new(100);
        (0..100).for_each(|index| Tree::upsert(&tree, Keys::Odd.key(index), u64::from(index)));
        assert_eq!(tree.sum(&[1, 3, 199]), 1 + 99);
    }

    #[test]
    fn uniform_keys_are_different() {
        let mut keys: Vec<u32> = (0..200_000).map(|index| Keys::Uniform.key(index)).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 200_000);
    }
}
