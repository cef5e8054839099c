//! The distributions of updates over pages of the paper (section 3.2), after Gray et al., "Quickly Generating Billion-Record Synthetic
//! Databases" (SIGMOD 1994), and Cieslewicz and Ross, "Adaptive Aggregation on Chip Multiprocessors" (VLDB 2007).
//!
//! A generator gives the page of each update; the item within the page is drawn by chance. *Sorted* and *moving cluster* go through
//! the array once in as many updates as it has items; the paper does not say how fast its generator goes.

/// How updates are spread over the pages of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Distribution {
    /// 1: every page alike.
    Uniform,
    /// 2: page after page, each as often as it has items before the next.
    Sorted,
    /// 3: every second update goes to one page, the others to all alike.
    HeavyHitter,
    /// 4: page after page, one update each, over and over.
    RepeatedRuns,
    /// 5: the page of rank *r* in proportion to 1 / √*r*.
    Zipf,
    /// 6: four of five updates go to the first fifth of the pages, and within it likewise.
    SelfSimilar,
    /// 7: any of 1,024 neighbouring pages, which move through the array.
    MovingCluster,
}

/// The pages of a moving cluster.
const CLUSTER_PAGES: usize = 1_024;

/// The exponent of `Zipf`, as Cieslewicz and Ross have it.
const ZIPF_EXPONENT: f64 = 0.5;

/// The share of updates beyond the first fifth of `SelfSimilar`, and the fifth.
const SELF_SIMILAR_SHARE: f64 = 0.2;

impl Distribution {
    /// All, in the paper's order: the first is number 1.
    pub const ALL: [Distribution; 7] = [
        Distribution::Uniform,
        Distribution::Sorted,
        Distribution::HeavyHitter,
        Distribution::RepeatedRuns,
        Distribution::Zipf,
        Distribution::SelfSimilar,
        Distribution::MovingCluster,
    ];

    /// The name as figures print it.
    pub fn name(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Sorted => "sorted",
            Distribution::HeavyHitter => "heavy hitter",
            Distribution::RepeatedRuns => "repeated runs",
            Distribution::Zipf => "zipf",
            Distribution::SelfSimilar => "self-similar",
            Distribution::MovingCluster => "moving cluster",
        }
    }
}

/// The items that a workload updates, one after another, without end.
#[derive(Clone, Debug)]
pub struct Updates {
    distribution: Distribution,
    page_count: usize,
    page_items: usize,
    done: usize,
    random: u64,
}

impl Updates {
    /// Updates of an array of `page_count` pages with `page_items` items each; `seed` gives the same ones again. An array has at least one
    /// page, and a page one item.
    pub fn new(distribution: Distribution, page_count: usize, page_items: usize, seed: u64) -> Updates {
        let (page_count, page_items) = (page_count.max(1), page_items.max(1));
        Updates { distribution, page_count, page_items, done: 0, random: seed }
    }

    /// Splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.draw()) * end as u128) >> 64) as usize
    }

    /// A number from 0 to below 1.
    fn fraction(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn page(&mut self) -> usize {
        let count = self.page_count;
        match self.distribution {
            Distribution::Uniform => self.below(count),
            Distribution::Sorted => self.done / self.page_items % count,
            Distribution::HeavyHitter if self.done.is_multiple_of(2) => count / 2,
            Distribution::HeavyHitter => self.below(count),
            Distribution::RepeatedRuns => self.done % count,
            // The inverse of the distribution as if ranks were continuous: a sum of 1 / r^e grows as r^(1 - e).
            Distribution::Zipf => {
                let rank = self.fraction().powf(1.0 / (1.0 - ZIPF_EXPONENT)) * count as f64;
                (rank as usize).min(count - 1)
            }
            Distribution::SelfSimilar => {
                let power = SELF_SIMILAR_SHARE.ln() / (1.0 - SELF_SIMILAR_SHARE).ln();
                ((self.fraction().powf(power) * count as f64) as usize).min(count - 1)
            }
            Distribution::MovingCluster => {
                let width = CLUSTER_PAGES.min(count);
                let first = self.done / self.page_items % (count - width + 1);
                first + self.below(width)
            }
        }
    }
}

impl Iterator for Updates {
    type Item = usize;

    /// The next item to update.
    fn next(&mut self) -> Option<usize> {
        let page = self.page();
        self.done += 1;
        Some(page * self.page_items + self.below(self.page_items))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const PAGES: usize = 4_096;

    /// How many of 100,000 updates go to each page.
    fn counts(distribution: Distribution) -> Vec<usize> {
        let mut counts = vec![0; PAGES];
        for item in Updates::new(distribution, PAGES, 512, 7).take(100_000) {
            counts[item / 512] += 1;
        }
        counts
    }

    fn share(counts: &[usize]) -> f64 {
        counts.iter().sum::<usize>() as f64 / 100_000.0
    }

    #[test]
    fn every_distribution_has_the_skew_that_it_is_named_for() {
        let touched = |distribution| counts(distribution).iter().filter(|count| **count > 0).count();
        assert_eq!(touched(Distribution::Uniform), PAGES);
        assert_eq!(touched(Distribution::Sorted), 100_000usize.div_ceil(512));
        assert_eq!(touched(Distribution::RepeatedRuns), PAGES);
        assert!((1_024..1_024 + 200).contains(&touched(Distribution::MovingCluster)));
        let hot = counts(Distribution::HeavyHitter);
        assert!((0.49..0.52).contains(&share(&hot[PAGES / 2..=PAGES / 2])));
        let zipf = counts(Distribution::Zipf);
        assert!((0.48..0.52).contains(&share(&zipf[..PAGES / 4])), "a quarter of the ranks has the root of a quarter");
        let similar = counts(Distribution::SelfSimilar);
        assert!((0.79..0.81).contains(&share(&similar[..PAGES / 5])));
        assert!((0.62..0.66).contains(&share(&similar[..PAGES / 25])));
    }

    #[test]
    fn a_seed_gives_the_same_updates_again_and_all_are_within_the_array() {
        for distribution in Distribution::ALL {
            for (pages, items) in [(1, 1), (3, 512), (2_000, 7)] {
                let updates = || Updates::new(distribution, pages, items, 3).take(10_000);
                assert!(updates().eq(updates()) && updates().all(|item| item < pages * items));
            }
        }
    }
}
