//! Numbers by chance, from a seed: SplitMix64, so that a run can be repeated.

/// A generator.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator of a seed.
    pub const fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// A generator for one of several users of a seed.
    pub const fn of(seed: u64, user: u64) -> Self {
        Random::new(seed ^ user.wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    /// The next 64 bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `end`, which is not 0.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(end)) >> 64) as u64
    }

    /// Whether something happens that happens `ppm` times in a million.
    #[inline]
    pub fn chance_ppm(&mut self, ppm: u32) -> bool {
        self.below(1_000_000) < u64::from(ppm)
    }

    /// A time until something that happens every `mean` cycles, by chance.
    pub fn interval(&mut self, mean: u64) -> u64 {
        let uniform = (self.word() >> 11) as f64 / (1u64 << 53) as f64;
        (-(1.0 - uniform).ln() * mean as f64) as u64 + 1
    }

    /// Brings a list into an order by chance.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again_and_users_of_it_different_ones() {
        let numbers = |mut random: Random| (0..4).map(|_| random.word()).collect::<Vec<_>>();
        assert_eq!(numbers(Random::new(7)), numbers(Random::new(7)));
        assert_ne!(numbers(Random::of(7, 0)), numbers(Random::of(7, 1)));
    }

    #[test]
    fn intervals_have_their_mean() {
        let mut random = Random::new(1);
        let mean = (0..20_000).map(|_| random.interval(1_000)).sum::<u64>() / 20_000;
        assert!((950..1_050).contains(&mean), "{mean}");
    }
}
