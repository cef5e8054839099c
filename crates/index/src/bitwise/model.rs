//! How much memory a cut takes, and which cut is best in a budget (the paper, section 3.2 and figures 5 and 7).
//!
//! | symbol of figure 5 | here |
//! |---|---|
//! | p, s | [`BitSplit::prefix_bits`], [`BitSplit::suffix_bits`] |
//! | i in {X, Y} | a dimension |
//! | D_i, and D_m, the smallest of them | `coordinate_bits`, the same for all dimensions here |
//! | O | [`SpaceModel::POINTER_BITS`], the size of a pointer to a cluster |
//! | H_i, L_i | the highest and lowest value: `spans` has H_i - L_i, as coordinates are counted from L_i |
//! | MAX | `budget_bits` |
//! | N | `points` |
//! | P_i(p) | [`SpaceModel::prefixes`] |
//! | S(p, s) | [`SpaceModel::bits`] |
//!
//! With P_i(p) = floor(H_i / 2^(D - p)) - floor(L_i / 2^(D - p)) + 1, and as many terms as there are dimensions,
//!
//! ```text
//! S(p, s) = 2 (p + O) P_X(p) P_Y(p) + 2 N s
//! ```
//!
//! The directory here needs less than the model says, as its places stand for the prefixes.

/// Where coordinates are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitSplit {
    /// How many bits, from the highest, choose the cluster.
    pub prefix_bits: u32,
    /// How many bits after them are kept in the budget.
    pub suffix_bits: u32,
}

impl BitSplit {
    /// How many bits of a coordinate are in the budget.
    pub fn kept_bits(&self) -> u32 {
        self.prefix_bits + self.suffix_bits
    }
}

/// The memory that points take by how they are cut, for coordinates of one or two dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpaceModel {
    points: u64,
    spans: Vec<u64>,
    coordinate_bits: u32,
    budget_bits: u128,
}

/// With fewer points in a cluster, on average, the directory would be larger than what it leads to.
const POINTS_PER_CLUSTER: u128 = 8;

impl SpaceModel {
    /// O: how many bits a pointer to a cluster has.
    pub const POINTER_BITS: u32 = 32;

    /// The most bits of a suffix: what a lane of the tests holds.
    pub const SUFFIX_BITS_MAX: u32 = 32;

    /// The model for so many points whose coordinates span `spans` (the highest less the lowest of each dimension), in so many
    /// bytes.
    pub fn new(points: u64, spans: &[u64], budget_bytes: usize) -> Self {
        let highest = spans.iter().copied().max().unwrap_or(0);
        // A cut needs a bit on both sides.
        let coordinate_bits = (u64::BITS - highest.leading_zeros()).max(2);
        SpaceModel { points, spans: spans.to_vec(), coordinate_bits, budget_bits: budget_bytes as u128 * 8 }
    }

    /// D: how many bits a coordinate has, counted from the lowest.
    pub fn coordinate_bits(&self) -> u32 {
        self.coordinate_bits
    }

    /// P_i(p): how many prefixes of so many bits a dimension has.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn prefixes(&self, dimension: usize, prefix_bits: u32) -> u64 {
        let shift = self.coordinate_bits - prefix_bits.min(self.coordinate_bits);
        self.spans[dimension].checked_shr(shift).unwrap_or(0).saturating_add(1)
    }

    /// How many clusters there are with prefixes of so many bits.
    pub fn clusters(&self, prefix_bits: u32) -> u128 {
        (0..self.spans.len()).map(|dimension| u128::from(self.prefixes(dimension, prefix_bits))).product()
    }

    /// S(p, s): how many bits a cut takes.
    pub fn bits(&self, split: BitSplit) -> u128 {
        let entry = u128::from(split.prefix_bits + Self::POINTER_BITS);
        let directory = entry.saturating_mul(self.clusters(split.prefix_bits));
        let suffixes = u128::from(self.points) * u128::from(split.suffix_bits);
        directory.saturating_add(suffixes).saturating_mul(self.spans.len() as u128)
    }

    /// The search of figure 7: the cut that keeps most bits in the budget, of several the one with the shortest prefix. `None`
    /// if none fits.
    pub fn optimum(&self) -> Option<BitSplit> {
        let mut best: Option<BitSplit> = None;
        for prefix_bits in 1..=self.coordinate_bits {
            for suffix_bits in 1..=(self.coordinate_bits - prefix_bits).min(Self::SUFFIX_BITS_MAX) {
                let split = BitSplit { prefix_bits, suffix_bits };
                if self.bits(split) > self.budget_bits {
                    break;
                }
                if best.is_none_or(|best| split.kept_bits() > best.kept_bits()) {
                    best = Some(split);
                }
            }
        }
        best
    }

    /// The relaxation: for each prefix the suffix that fills the budget to the last bit, so that one loop is enough. `None` where the
    /// budget is wider than the data, which the relaxation assumes it is not, or holds no cut.
    pub fn relaxed(&self) -> Option<BitSplit> {
        let dimensions = self.spans.len() as u128;
        let suffix = |prefix_bits: u32| {
            let directory = u128::from(prefix_bits + Self::POINTER_BITS).checked_mul(self.clusters(prefix_bits))?;
            let left = (self.budget_bits / dimensions).checked_sub(directory)?;
            Some((left / u128::from(self.points.max(1))).min(u128::from(Self::SUFFIX_BITS_MAX)) as u32)
        };
        (1..=self.coordinate_bits)
            .filter_map(|prefix_bits| Some(BitSplit { prefix_bits, suffix_bits: suffix(prefix_bits)? }))
            .filter(|split| split.suffix_bits > 0 && split.kept_bits() <= self.coordinate_bits)
            .max_by_key(|split| (split.kept_bits(), std::cmp::Reverse(split.prefix_bits)))
    }

    /// The cut that columns take: of those that keep as many bits as the [optimum](SpaceModel::optimum) the one with the longest
    /// prefix that leaves clusters some points. The paper takes the shortest prefix, whose clusters a device scans whole; on a
    /// processor small clusters mean that less is scanned.
    pub fn choose(&self) -> Option<BitSplit> {
        let best = self.optimum()?;
        let kept_bits = best.kept_bits();
        let is_coarse =
            |split: &BitSplit| self.clusters(split.prefix_bits) * POINTS_PER_CLUSTER <= u128::from(self.points);
        (best.prefix_bits..kept_bits)
            .map(|prefix_bits| BitSplit { prefix_bits, suffix_bits: kept_bits - prefix_bits })
            .rfind(|split| self.bits(*split) <= self.budget_bits && is_coarse(split))
            .or(Some(best))
    }

    /// The smallest budget in which there is a cut.
    pub fn least_budget_bytes(&self) -> u128 {
        self.bits(BitSplit { prefix_bits: 1, suffix_bits: 1 }).div_ceil(8)
    }
}
