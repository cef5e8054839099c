//! Where coordinates are cut: the paper's model of the device's memory, and its search (section 3.2).

/// Bits of a coordinate.
const COORDINATE_BITS: u32 = 32;

/// How a coordinate is cut: upper bits, then the next; the rest is the residual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Bits that a cluster has in common.
    pub prefix_bits: u32,
    /// Bits that the device knows beyond.
    pub suffix_bits: u32,
}

impl Split {
    /// Bits that stay on the host.
    pub fn residual_bits(self) -> u32 {
        COORDINATE_BITS - self.prefix_bits - self.suffix_bits
    }

    pub(super) fn prefix(self, value: u32) -> u32 {
        (u64::from(value) >> (COORDINATE_BITS - self.prefix_bits)) as u32
    }

    pub(super) fn suffix(self, value: u32) -> u32 {
        (u64::from(value) >> self.residual_bits() & ((1 << self.suffix_bits) - 1)) as u32
    }

    pub(super) fn residual(self, value: u32) -> u32 {
        (u64::from(value) & ((1 << self.residual_bits()) - 1)) as u32
    }

    pub(super) fn join(self, prefix: u32, suffix: u32, residual: u32) -> u32 {
        let known = u64::from(prefix) << self.suffix_bits | u64::from(suffix);
        (known << self.residual_bits()) as u32 | residual
    }
}

/// The parameters of the memory that a split takes: Figure 5 of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// Points (N).
    pub points: u64,
    /// Lowest and highest value of each coordinate (L, H).
    pub ranges: [[u32; 2]; 2],
    /// Bits of a pointer to a cluster (O).
    pub pointer_bits: u64,
    /// Memory of the device, in bits (MAX).
    pub memory_bits: u64,
}

impl Model {
    /// P(p): prefixes that the values of a coordinate may have.
    fn prefixes(&self, side: usize, prefix_bits: u32) -> u64 {
        let shift = COORDINATE_BITS - prefix_bits;
        let [low, high] = self.ranges[side].map(|value| u64::from(value) >> shift);
        high - low + 1
    }

    /// S(p, s): bits that a split takes.
    pub fn size_bits(&self, split: Split) -> u64 {
        let clusters = self.prefixes(0, split.prefix_bits).saturating_mul(self.prefixes(1, split.prefix_bits));
        let directory = (2 * (u64::from(split.prefix_bits) + self.pointer_bits)).saturating_mul(clusters);
        directory.saturating_add(2 * self.points * u64::from(split.suffix_bits))
    }

    /// The paper's search (Figure 7), without its bound from below on either part: the split with most bits on
    /// the device that fits, of several the one with the shortest prefix. `None`: not even the points' clusters fit.
    pub fn best(&self) -> Option<Split> {
        let mut best: Option<Split> = None;
        for prefix_bits in 0..=COORDINATE_BITS {
            for suffix_bits in 0..=COORDINATE_BITS - prefix_bits {
                let split = Split { prefix_bits, suffix_bits };
                // More of either only takes more.
                if self.size_bits(split) > self.memory_bits {
                    break;
                }
                if best.is_none_or(|best| prefix_bits + suffix_bits > best.prefix_bits + best.suffix_bits) {
                    best = Some(split);
                }
            }
        }
        best
    }

    /// The longest suffix for a prefix (Figure 6), by the formula c1'; `None`: the clusters do not fit.
    pub fn best_suffix(&self, prefix_bits: u32) -> Option<u32> {
        let directory = self.size_bits(Split { prefix_bits, suffix_bits: 0 });
        let left = self.memory_bits.checked_sub(directory)?;
        let suffix_bits = (left / 2).checked_div(self.points).unwrap_or(u64::from(COORDINATE_BITS));
        Some(suffix_bits.min(u64::from(COORDINATE_BITS - prefix_bits)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's: some 240 million points of the north west of Europe, five decimals, a card of 1.5 GB.
    fn papers() -> Model {
        Model {
            points: 240_000_000,
            ranges: [[0, 2_000_000], [4_700_000, 6_000_000]],
            pointer_bits: 32,
            memory_bits: 3 << 32,
        }
    }

    #[test]
    fn a_coordinate_is_its_three_parts() {
        for prefix_bits in 0..=32 {
            for suffix_bits in 0..=32 - prefix_bits {
                let split = Split { prefix_bits, suffix_bits };
                for value in [0, 1, 0x8000_0000, 0x1234_5678, u32::MAX] {
                    let parts = (split.prefix(value), split.suffix(value), split.residual(value));
                    assert_eq!(split.join(parts.0, parts.1, parts.2), value, "{split:?}");
                }
            }
        }
    }

    #[test]
    fn the_search_finds_what_the_formula_allows() {
        let model = papers();
        let best = model.best().expect("the clusters fit");
        let by_formula = (0..=32).filter_map(|bits| model.best_suffix(bits).map(|suffix| bits + suffix)).max();
        assert_eq!(Some(best.prefix_bits + best.suffix_bits), by_formula);
        assert!(model.size_bits(best) <= model.memory_bits);
    }

    /// Figure 6: more prefix is better, and more than 25 bits of it do not fit.
    #[test]
    fn prefixes_beyond_25_bits_do_not_fit_the_papers_card() {
        let model = papers();
        let totals: Vec<Option<u32>> =
            (0..=32).map(|bits| model.best_suffix(bits).map(|suffix| bits + suffix)).collect();
        assert!(totals[26..].iter().all(Option::is_none), "{totals:?}");
        assert!(totals[..24].is_sorted(), "{totals:?}");
    }
}
