//! The structures that take part in a benchmark of indexes, behind one interface: our trees, the papers' baselines,
//! and other people's structures, each in one thin file that says how a key is written and read.
//!
//! `Map` is what such a file has to say. [`Contestant`] is made of it: loops over many keys that are compiled for each
//! map, so that a call through a pointer is paid once for thousands of lookups. Whatever has a guard pins it once for 512.
//! The rival of `Gist` has boxes in place of keys, and an interface of its own (`r_star_tree`).
mod array;
mod bplus;
mod btree_map;
mod concurrent_art;
mod delta;
mod hash;
mod kiss;
mod prefetched_hash;
mod prefix_tree;
pub(crate) mod r_star_tree;
mod radix;
mod skip_list;
mod tree_index;

use crate::LabError;
use crate::workload::{GROUP, Operation, Order, value_of};

/// The operations of a map that an adapter supplies.
trait Map: Sync {
    /// Protects some hundred lookups.
    type Pin;

    /// Whether several threads may write at once.
    const HAS_SHARED_WRITES: bool;

    /// Whether it looks many keys up together.
    const HAS_BATCHES: bool = false;

    /// Protects lookups and writes.
    fn pin(&self) -> Self::Pin;

    /// The value of a key.
    fn get(&self, key: u64, pin: &Self::Pin) -> Option<u64>;

    /// The values of many keys, appended to `found`.
    fn get_batch(&self, keys: &[u64], found: &mut Vec<Option<u64>>) {
        let pin = self.pin();
        found.extend(keys.iter().map(|key| self.get(*key, &pin)));
    }

    /// Gives a key a value while no other thread is at work.
    fn set_alone(&mut self, key: u64, value: u64);

    /// Gives a key a value.
    fn set(&self, _key: u64, _value: u64, _pin: &Self::Pin) {
        unreachable!("no shared writes")
    }

    /// Brings a load to its end.
    fn settle(&mut self) {}

    /// The memory in use, where the map can tell.
    fn bytes(&self) -> Option<u64> {
        None
    }
}

/// A structure that takes part in a benchmark. Every key has the value that follows from it.
pub trait Contestant: Sync {
    /// Writes keys while no other thread is at work.
    fn write_alone(&mut self, keys: &[u64]);

    /// Brings a load to its end.
    fn settle(&mut self);

    /// Whether several threads may write at once.
    fn has_shared_writes(&self) -> bool;

    /// Writes keys beside others. Only with shared writes.
    fn write(&self, keys: &[u64]);

    /// Looks keys up one by one; the sum of their values.
    fn read(&self, keys: &[u64]) -> u64;

    /// Whether it looks many keys up together.
    fn has_batches(&self) -> bool;

    /// Looks keys up, `batch` at a time.
    fn read_batched(&self, keys: &[u64], batch: usize) -> u64;

    /// Runs operations one by one; the sum of the values read.
    fn mix(&self, operations: &[Operation]) -> u64;

    /// Runs operations in groups, in each of which the writes come first; the reads of a group are a batch.
    fn mix_batched(&self, operations: &[Operation]) -> u64;

    /// The memory in use, where the structure can tell.
    fn bytes(&self) -> Option<u64>;
}

impl<M: Map> Contestant for M {
    fn write_alone(&mut self, keys: &[u64]) {
        keys.iter().for_each(|key| self.set_alone(*key, value_of(*key)));
    }

    fn settle(&mut self) {
        Map::settle(self);
    }

    fn has_shared_writes(&self) -> bool {
        M::HAS_SHARED_WRITES
    }

    fn write(&self, keys: &[u64]) {
        for group in keys.chunks(GROUP) {
            let pin = self.pin();
            group.iter().for_each(|key| self.set(*key, value_of(*key), &pin));
        }
    }

    fn read(&self, keys: &[u64]) -> u64 {
        let mut sum = 0u64;
        for group in keys.chunks(GROUP) {
            let pin = self.pin();
            for key in group {
                sum = sum.wrapping_add(self.get(*key, &pin).unwrap_or(0));
            }
        }
        sum
    }

    fn has_batches(&self) -> bool {
        M::HAS_BATCHES
    }

    fn read_batched(&self, keys: &[u64], batch: usize) -> u64 {
        let (mut sum, mut found) = (0, Vec::with_capacity(batch));
        for group in keys.chunks(batch) {
            sum = sum_of_batch(self, group, &mut found, sum);
        }
        sum
    }

    fn mix(&self, operations: &[Operation]) -> u64 {
        let mut sum = 0u64;
        for group in operations.chunks(GROUP) {
            let pin = self.pin();
            for operation in group {
                let key = operation.key();
                if operation.is_write() {
                    self.set(key, value_of(key), &pin);
                } else {
                    sum = sum.wrapping_add(self.get(key, &pin).unwrap_or(0));
                }
            }
        }
        sum
    }

    fn mix_batched(&self, operations: &[Operation]) -> u64 {
        let (mut sum, mut keys, mut found) = (0, Vec::with_capacity(GROUP), Vec::with_capacity(GROUP));
        for group in operations.chunks(GROUP) {
            let (written, read) = group.split_at(group.partition_point(|operation| operation.is_write()));
            let pin = self.pin();
            written.iter().for_each(|operation| self.set(operation.key(), value_of(operation.key()), &pin));
            keys.clear();
            keys.extend(read.iter().map(|operation| operation.key()));
            sum = sum_of_batch(self, &keys, &mut found, sum);
        }
        sum
    }

    fn bytes(&self) -> Option<u64> {
        Map::bytes(self)
    }
}

/// Adds the values of a batch to `sum`.
#[inline]
fn sum_of_batch<M: Map>(map: &M, keys: &[u64], found: &mut Vec<Option<u64>>, sum: u64) -> u64 {
    found.clear();
    map.get_batch(keys, found);
    found.iter().fold(sum, |sum, value| sum.wrapping_add(value.unwrap_or(0)))
}

/// A structure that takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Peer {
    /// The KISS-Tree as published: slots of 4 bytes
    Kiss,
    /// The KISS-Tree as published, on small pages of the machine only
    KissSmall,
    /// The KISS-Tree with versioned slots, which changes values in place
    KissInPlace,
    /// The B+tree with a version latch in each node
    BPlusTree,
    /// The generalised prefix tree with fragments of 4 bits
    Pt4,
    /// congee: adaptive radix tree with optimistic lock coupling
    Congee,
    /// rart: adaptive radix tree for one thread
    Rart,
    /// scc: B+tree with readers that take no latch
    TreeIndex,
    /// crossbeam-skiplist: skip list without latches
    SkipList,
    /// std: B-tree for one thread
    BTreeMap,
    /// std: B-tree under one reader-writer latch
    LatchedBTreeMap,
    /// hashbrown: hash table for one thread, without an order
    Hashbrown,
    /// A hash table of ours, without an order. Its batches ask for the memory of all keys first
    PrefetchedHash,
    /// An array: by position where keys are dense, else sorted and searched by halves
    Array,
}

impl Peer {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Peer::Kiss => "KISS-Tree",
            Peer::KissSmall => "KISS-Tree, small pages",
            Peer::KissInPlace => "KISS-Tree, values in place",
            Peer::BPlusTree => "B+tree",
            Peer::Pt4 => "PT-4",
            Peer::Congee => "congee",
            Peer::Rart => "rart",
            Peer::TreeIndex => "scc TreeIndex",
            Peer::SkipList => "crossbeam-skiplist",
            Peer::BTreeMap => "BTreeMap",
            Peer::LatchedBTreeMap => "latched BTreeMap",
            Peer::Hashbrown => "hashbrown",
            Peer::PrefetchedHash => "prefetched hash",
            Peer::Array => "bare array",
        }
    }

    /// An empty one for so many keys.
    ///
    /// # Errors
    /// [`LabError::Failed`] if a KISS-Tree gets no address space.
    pub fn make(self, order: Order, count: u32) -> Result<Box<dyn Contestant>, LabError> {
        Ok(match self {
            Peer::Kiss => kiss::as_published()?,
            Peer::KissSmall => kiss::on_small_pages()?,
            Peer::KissInPlace => kiss::in_place()?,
            Peer::BPlusTree => bplus::latched_by::<index::NodeLatches>(),
            Peer::Pt4 => Box::new(crate::baselines::PrefixTree::new(count as usize)),
            Peer::Congee => Box::new(concurrent_art::ConcurrentArt::new()),
            Peer::Rart => Box::new(radix::Radix::new()),
            Peer::TreeIndex => Box::new(scc::TreeIndex::<u64, u64>::new()),
            Peer::SkipList => Box::new(crossbeam_skiplist::SkipMap::<u64, u64>::new()),
            Peer::BTreeMap => Box::new(std::collections::BTreeMap::<u64, u64>::new()),
            Peer::LatchedBTreeMap => Box::new(btree_map::LatchedBTreeMap::default()),
            Peer::Hashbrown => Box::new(hash::Table::default()),
            Peer::PrefetchedHash => Box::new(prefetched_hash::PrefetchedHash::new(count)),
            Peer::Array => match order {
                Order::Dense => Box::new(array::ByPosition::new(count)),
                Order::Odd | Order::Uniform => Box::new(array::SortedArray::default()),
            },
        })
    }
}

pub(crate) use bplus::latched_by;
pub(crate) use delta::delta_of;

#[cfg(test)]
mod tests;
