//! One cache: sets of lines in the order of their last use.
//!
//! ```text
//! set:  | newest | ... | oldest |      a hit moves the line to the front, a new line drops the one at the end
//! ```

use super::config::CacheShape;

/// The number of a line of memory: its address over the line's size.
pub type LineNumber = u32;

const EMPTY: u32 = u32::MAX;

/// A set-associative cache that drops the line that was not used for the longest time.
pub struct Cache {
    ways: usize,
    mask: u32,
    tags: Box<[u32]>,
}

impl Cache {
    /// An empty cache.
    ///
    /// # Panics
    /// If the number of sets is no power of two.
    pub fn new(shape: CacheShape) -> Self {
        assert!(shape.sets.is_power_of_two(), "a set is found by the low bits of the line");
        Cache { ways: shape.ways as usize, mask: shape.sets - 1, tags: vec![EMPTY; shape.lines()].into() }
    }

    #[inline]
    fn set(&mut self, line: LineNumber) -> &mut [u32] {
        let first = (line & self.mask) as usize * self.ways;
        &mut self.tags[first..first + self.ways]
    }

    /// Whether the line is here; if so it is now the newest of its set.
    #[inline]
    pub fn touch(&mut self, line: LineNumber) -> bool {
        let set = self.set(line);
        if set[0] == line {
            return true;
        }
        let Some(at) = set.iter().position(|&tag| tag == line) else { return false };
        set.copy_within(0..at, 1);
        set[0] = line;
        true
    }

    /// Whether the line is here.
    #[inline]
    pub fn contains(&self, line: LineNumber) -> bool {
        let first = (line & self.mask) as usize * self.ways;
        self.tags[first..first + self.ways].contains(&line)
    }

    /// Brings a line in that is not here; the line that had to leave.
    #[inline]
    pub fn insert(&mut self, line: LineNumber) -> Option<LineNumber> {
        self.insert_over(line, self.ways - 1)
    }

    /// Brings a line in that is not here, in the place of the one at `rank` in the order of use, 0 being the newest. A free place is
    /// taken before.
    #[inline]
    pub fn insert_over(&mut self, line: LineNumber, rank: usize) -> Option<LineNumber> {
        let set = self.set(line);
        debug_assert!(!set.contains(&line), "a line is in a cache once");
        let last = set.len() - 1;
        let rank = if set[last] == EMPTY { last } else { rank };
        let dropped = set[rank];
        set.copy_within(0..rank, 1);
        set[0] = line;
        (dropped != EMPTY).then_some(dropped)
    }

    /// Lines of a set.
    pub fn ways(&self) -> usize {
        self.ways
    }

    /// Drops a line; whether it was here. Its place is the next that is filled.
    #[inline]
    pub fn remove(&mut self, line: LineNumber) -> bool {
        let set = self.set(line);
        let Some(at) = set.iter().position(|&tag| tag == line) else { return false };
        set.copy_within(at + 1.., at);
        set[set.len() - 1] = EMPTY;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cache_holds_of_each_set_the_lines_used_last(steps in prop::collection::vec((0u32..24, 0u8..4), 1..200)) {
            let mut cache = Cache::new(CacheShape { sets: 2, ways: 3 });
            let mut model: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
            for (line, step) in steps {
                let set = &mut model[(line & 1) as usize];
                if step == 0 {
                    let was_here = set.contains(&line);
                    set.retain(|&other| other != line);
                    prop_assert_eq!(cache.remove(line), was_here);
                    continue;
                }
                let was_here = set.contains(&line);
                prop_assert_eq!(cache.contains(line), was_here);
                prop_assert_eq!(cache.touch(line), was_here);
                set.retain(|&other| other != line);
                set.insert(0, line);
                if !was_here {
                    let dropped = if set.len() > 3 { set.pop() } else { None };
                    prop_assert_eq!(cache.insert(line), dropped);
                }
            }
        }
    }
}
