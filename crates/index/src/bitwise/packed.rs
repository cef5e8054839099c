//! Numbers of equal width, bit after bit.

/// What a read past the last number may touch.
const PADDING: usize = 16;

/// Numbers of `width` bits, from the lowest bit of the first byte upward.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    width: u32,
}

impl Packed {
    /// So many zeros of a width up to 64.
    pub(super) fn zeros(count: usize, width: u32) -> Self {
        debug_assert!(width <= 64);
        let bits = count as u64 * u64::from(width);
        Packed { bytes: vec![0; bits.div_ceil(8) as usize + PADDING], width }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// All bytes, with those behind the last number.
    pub(super) fn all(&self) -> &[u8] {
        &self.bytes
    }

    #[inline]
    fn place(&self, index: usize) -> (usize, u32) {
        let bit = index as u64 * u64::from(self.width);
        ((bit / 8) as usize, (bit % 8) as u32)
    }

    /// The number at `index`.
    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        let (byte, shift) = self.place(index);
        let nine: [u8; 9] = self.bytes[byte..byte + 9].try_into().expect("nine bytes");
        let low = u64::from_le_bytes(*nine.first_chunk().expect("eight of nine"));
        let word = if shift == 0 { low } else { low >> shift | u64::from(nine[8]) << (64 - shift) };
        word & lowest(self.width)
    }

    /// Sets a number that is 0.
    #[inline]
    pub(super) fn set(&mut self, index: usize, number: u64) {
        debug_assert!(number <= lowest(self.width));
        let (byte, shift) = self.place(index);
        let place = &mut self.bytes[byte..byte + 16];
        let word = u128::from_le_bytes((&*place).try_into().expect("sixteen bytes"));
        place.copy_from_slice(&(word | u128::from(number) << shift).to_le_bytes());
    }

    /// Reads the numbers from `start` on, of a width up to 32, into `numbers`.
    #[inline]
    pub(super) fn read(&self, start: usize, numbers: &mut [u32]) {
        let (mask, width) = (lowest(self.width), u64::from(self.width));
        let mut bit = start as u64 * width;
        for number in numbers {
            let byte = (bit / 8) as usize;
            let word = u64::from_le_bytes(self.bytes[byte..byte + 8].try_into().expect("eight bytes"));
            *number = (word >> (bit % 8) & mask) as u32;
            bit += width;
        }
    }
}

/// The lowest `count` bits.
#[inline]
pub(super) fn lowest(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
