//! Seeded data for checks and benchmarks: the papers' distributions.

/// Random words that depend on the seed alone.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The words of one seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }

    /// Any word.
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 up to, but not, 1.
    pub fn fraction(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// `count` codes below `values`, of which code c has a weight of 1 / (c + 1)^theta.
pub fn zipf(count: usize, values: usize, theta: f64, seed: u64) -> Vec<u32> {
    let mut total = 0.0;
    let sums: Vec<f64> = (1..=values)
        .map(|rank| {
            total += (rank as f64).powf(-theta);
            total
        })
        .collect();
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| {
            let point = random.fraction() * total;
            sums.partition_point(|sum| *sum <= point).min(values - 1) as u32
        })
        .collect()
}

/// Rows of a benchmark's column that differ: the optimizer takes some microseconds for each 32 of them.
pub const DIFFERENT_ROWS_MAX: usize = 4 << 20;

/// The rows of a column which begins again and again until it has `count` rows.
pub fn repeated(rows: &[u32], count: usize) -> Vec<u32> {
    rows.iter().copied().cycle().take(count).collect()
}

/// The tables of gpu-join (section 3): a build table of different keys in random order, and a probe table of
/// which `match_percent` of the rows have a key of the build table. Keys that match nothing have the top bit.
pub fn join_tables(build_rows: usize, probe_rows: usize, match_percent: f64, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let mut random = Random::new(seed);
    // Odd multiples of a number below 2^31 are different keys below 2^31.
    let key_of = |at: u64| at.wrapping_mul(0x2545_f491) & 0x7fff_ffff;
    let build: Vec<u64> = (0..build_rows as u64).map(|row| key_of(row) | row << 32).collect();
    let probe = (0..probe_rows as u64)
        .map(|row| {
            let is_match = build_rows > 0 && random.fraction() * 100.0 < match_percent;
            let key = if is_match { key_of(random.below(build_rows as u64)) } else { random.below(1 << 31) | 1 << 31 };
            key | row << 32
        })
        .collect();
    (build, probe)
}
