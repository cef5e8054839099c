//! How many pages a number of updates touches: what a virtual snapshot has to copy.
//!
//! A sample of updates is counted as it comes: after 1, 2, 4, ... updates, how many different granules were touched. Between these points
//! the number is read off on logarithmic scales; beyond the last one it goes on growing at the last rate, up to all granules.

/// The touched granules of one size.
#[derive(Clone, Debug)]
struct Count {
    granule_bytes: usize,
    bits: Vec<u64>,
    granule_count: usize,
    touched: usize,
    /// The number of touched granules after 1, 2, 4, ... updates.
    points: Vec<usize>,
}

/// Measures the skew of updates.
#[derive(Clone, Debug)]
pub struct Skew {
    counts: Vec<Count>,
    updates: usize,
}

impl Skew {
    /// A measurement that has seen no update of an array of `size_bytes`, of which granules of these sizes are to be known.
    pub fn new(size_bytes: usize, granules_bytes: impl IntoIterator<Item = usize>) -> Skew {
        let count = |granule_bytes: usize| {
            let granule_count = size_bytes.div_ceil(granule_bytes).max(1);
            let bits = vec![0; granule_count.div_ceil(64)];
            Count { granule_bytes, bits, granule_count, touched: 0, points: Vec::new() }
        };
        Skew { counts: granules_bytes.into_iter().map(count).collect(), updates: 0 }
    }

    /// Counts an update at a place of the array, in bytes. Places beyond its end are counted as the last.
    pub fn note(&mut self, offset_bytes: usize) {
        self.updates += 1;
        for count in &mut self.counts {
            let granule = (offset_bytes / count.granule_bytes).min(count.granule_count - 1);
            let (word, bit) = (&mut count.bits[granule / 64], 1 << (granule % 64));
            count.touched += usize::from(*word & bit == 0);
            *word |= bit;
            if self.updates.is_power_of_two() {
                count.points.push(count.touched);
            }
        }
    }

    /// How many granules of `granule_bytes` so many updates touch. Without a sample, or for a size that was not to be known, each update
    /// touches one.
    pub fn touched(&self, granule_bytes: usize, updates: usize) -> f64 {
        let count = self.counts.iter().find(|count| count.granule_bytes == granule_bytes);
        let Some(count) = count.filter(|count| !count.points.is_empty()) else { return updates as f64 };
        if updates == 0 {
            return 0.0;
        }
        let at = (updates as f64).log2();
        let last = count.points.len() - 1;
        let low = (at as usize).min(last.saturating_sub(1));
        let (from, to) = (count.points[low] as f64, count.points[(low + 1).min(last)] as f64);
        let rate = (to / from).log2();
        (from * (rate * (at - low as f64)).exp2()).min(count.granule_count as f64)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::choosing::distribution::{Distribution, Updates};

    #[test]
    fn the_touched_pages_of_a_sample_tell_those_of_more_updates() {
        let (pages, items) = (4_096, 512);
        for distribution in Distribution::ALL {
            let mut skew = Skew::new(pages * 4_096, [4_096, 65_536]);
            Updates::new(distribution, pages, items, 1).take(1 << 14).for_each(|item| skew.note(item * 8));
            for updates in [1usize, 100, 5_000, 1 << 14, 1 << 16] {
                for granule in [4_096, 65_536] {
                    let mut seen = vec![false; pages];
                    let other = Updates::new(distribution, pages, items, 2);
                    other.take(updates).for_each(|item| seen[item * 8 / granule] = true);
                    let truth = seen.iter().filter(|seen| **seen).count() as f64;
                    let guess = skew.touched(granule, updates);
                    let ratio = guess / truth;
                    assert!((0.6..1.7).contains(&ratio), "{distribution:?}, {updates} updates: {guess} for {truth}");
                }
            }
        }
    }

    #[test]
    fn without_a_sample_every_update_touches_a_page() {
        let mut skew = Skew::new(1 << 20, [4_096]);
        assert_eq!((skew.touched(4_096, 0), skew.touched(4_096, 10)), (0.0, 10.0));
        skew.note(usize::MAX);
        assert_eq!((skew.touched(4_096, 0), skew.touched(4_096, 10), skew.touched(8_192, 3)), (0.0, 1.0, 3.0));
    }
}
