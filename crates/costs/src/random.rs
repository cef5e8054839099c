//! Numbers by chance from a seed: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), which is all that a search needs.

/// A generator. Its whole state is one number, so that a search can be stored and go on as if nothing had happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed, or the one that had this state.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The seed from which it goes on.
    pub fn state(&self) -> u64 {
        self.0
    }

    /// A number of 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but without, 1.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of the normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_as_their_distribution_says() {
        let mut random = Random::new(1);
        let count = 20_000;
        let normal: Vec<f64> = (0..count).map(|_| random.normal()).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(count);
        let variance = normal.iter().map(|of| of * of).sum::<f64>() / f64::from(count);
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        let uniform: Vec<f64> = (0..count).map(|_| random.uniform()).collect();
        assert!(uniform.iter().all(|of| (0.0..1.0).contains(of)));
        assert!((uniform.iter().sum::<f64>() / f64::from(count) - 0.5).abs() < 0.01);
        let mut again = Random::new(random.state());
        assert_eq!(again.next_u64(), random.next_u64());
    }
}
