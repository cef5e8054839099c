//! Pairs of numbers of so many bits each, one after the other.

/// Pairs that are packed without gaps, lowest bits first.
#[derive(Debug)]
pub(super) struct Packed {
    bits: u32,
    count: usize,
    words: Vec<u32>,
}

impl Packed {
    /// None yet; numbers have at most 32 bits.
    pub(super) fn new(bits: u32) -> Self {
        // A reader takes two words at a time.
        Self { bits, count: 0, words: vec![0; 2] }
    }

    pub(super) fn push(&mut self, pair: [u32; 2]) {
        for (side, value) in pair.into_iter().enumerate() {
            let at = (self.count * 2 + side) * self.bits as usize;
            self.words.resize((at + self.bits as usize) / 32 + 2, 0);
            let shifted = u64::from(value) << (at % 32);
            self.words[at / 32] |= shifted as u32;
            self.words[at / 32 + 1] |= (shifted >> 32) as u32;
        }
        self.count += 1;
    }

    pub(super) fn get(&self, index: usize) -> [u32; 2] {
        std::array::from_fn(|side| {
            let at = (index * 2 + side) * self.bits as usize;
            let pair = u64::from(self.words[at / 32]) | u64::from(self.words[at / 32 + 1]) << 32;
            (pair >> (at % 32) & ((1 << self.bits) - 1)) as u32
        })
    }

    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_any_width_come_back() {
        for bits in 0..=32u32 {
            let value = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << bits) - 1)) as u32;
            let mut packed = Packed::new(bits);
            for at in 0..100 {
                packed.push([value(2 * at), value(2 * at + 1)]);
            }
            for at in 0..100 {
                assert_eq!(packed.get(at as usize), [value(2 * at), value(2 * at + 1)], "{bits} bits");
            }
        }
    }
}
