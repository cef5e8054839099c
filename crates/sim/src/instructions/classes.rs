//! Misses by their three causes (Hill and Smith; the paper, section 4.1): compulsory, the first use of a block; capacity, what a
//! fully associative cache of the size misses beyond that; conflict, what sets of few ways add.

use std::collections::{HashMap, HashSet};

use super::policies::{Policy, PolicyCache};
use super::trace::{Access, Trace};
use crate::machine::{CacheShape, LineNumber};

/// Misses for each thousand instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MissClasses {
    /// First uses.
    pub compulsory: f64,
    /// What does not fit.
    pub capacity: f64,
    /// What the sets add. May be below 0 for a loop that sets keep in part.
    pub conflict: f64,
}

impl MissClasses {
    /// All misses of the cache with sets.
    pub fn sum(&self) -> f64 {
        self.compulsory + self.capacity + self.conflict
    }
}

/// A fully associative cache that drops the block that was not used for the longest time.
struct FullyAssociative {
    blocks: usize,
    /// When each block was used last.
    used: HashMap<LineNumber, u64>,
    /// The uses in order; one that is no longer a block's last is passed over.
    order: std::collections::VecDeque<(LineNumber, u64)>,
    now: u64,
}

impl FullyAssociative {
    fn new(blocks: usize) -> Self {
        FullyAssociative { blocks, used: HashMap::new(), order: std::collections::VecDeque::new(), now: 0 }
    }

    fn touch(&mut self, block: LineNumber) -> bool {
        self.now += 1;
        self.order.push_back((block, self.now));
        let was_here = self.used.insert(block, self.now).is_some();
        while self.used.len() > self.blocks {
            let Some((oldest, at)) = self.order.pop_front() else { break };
            if self.used.get(&oldest) == Some(&at) {
                self.used.remove(&oldest);
            }
        }
        was_here
    }
}

/// The misses of one core that runs transactions one after the other, with a cache of so many KiB and ways: those of
/// instructions, or of data.
pub fn classify(traces: &[Trace], kib: u32, ways: u32, is_data: bool) -> MissClasses {
    let shape = CacheShape::kib(kib, ways);
    let mut cache = PolicyCache::new(shape, Policy::Lru, 1);
    let mut full = FullyAssociative::new(shape.lines());
    let mut seen = HashSet::new();
    let (mut compulsory, mut beyond, mut misses) = (0u64, 0u64, 0u64);
    for touch in traces.iter().flat_map(|trace| &trace.touches) {
        if matches!(touch.access, Access::Code(_)) == is_data {
            continue;
        }
        compulsory += u64::from(seen.insert(touch.block));
        beyond += u64::from(!full.touch(touch.block));
        misses += u64::from(!cache.touch(touch.block));
    }
    let instructions: u64 = traces.iter().map(Trace::instructions).sum();
    let per_thousand = |count: f64| count * 1_000.0 / instructions.max(1) as f64;
    MissClasses {
        compulsory: per_thousand(compulsory as f64),
        capacity: per_thousand((beyond - compulsory) as f64),
        conflict: per_thousand(misses as f64 - beyond as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::trace::Touch;

    fn looping(blocks: &[LineNumber], rounds: usize) -> Vec<Trace> {
        let touch = |&block: &LineNumber| Touch { block, access: Access::Code(10) };
        let touches = (0..rounds).flat_map(|_| blocks.iter().map(touch)).collect();
        vec![Trace { kind: 0, touches }]
    }

    #[test]
    fn misses_go_to_the_class_that_they_are_of() {
        // 16 KiB are 256 blocks; 8 ways make 32 sets.
        let fits: Vec<u32> = (0..200).collect();
        let classes = classify(&looping(&fits, 10), 16, 8, false);
        assert_eq!((classes.compulsory, classes.capacity, classes.conflict), (10.0, 0.0, 0.0));
        let too_large: Vec<u32> = (0..512).collect();
        let classes = classify(&looping(&too_large, 10), 16, 8, false);
        assert_eq!((classes.compulsory, classes.capacity, classes.conflict), (10.0, 90.0, 0.0));
        let one_set: Vec<u32> = (0..10).map(|block| block * 32).collect();
        let classes = classify(&looping(&one_set, 10), 16, 8, false);
        assert_eq!((classes.compulsory, classes.capacity, classes.conflict), (10.0, 0.0, 90.0));
    }
}
