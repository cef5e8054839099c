//! Streams of numbers in few bits, sets of places, and sets of columns: what most other forms are made of.
//!
//! ```text
//! packed      | numbers | bases (64 each) | slopes (16 each) | widths (8 each) | differences (64 each) |
//! positions   | 0 | end                 |      every place below the end
//!             | 1 | packed              |      the places, ascending
//!             | 2 | words | bits ...    |      a bit for each place
//! ```
use super::{Damage, Reader, Writer};
use crate::history::packed::Packed;
use crate::history::positions::{Bitmap, Positions};

impl Writer {
    /// Numbers in few bits.
    pub(crate) fn packed(&mut self, packed: &Packed) {
        self.number(packed.len() as u64);
        let (bases, slopes, widths) = parts(packed);
        self.array(&bases);
        self.array(&slopes);
        self.array(&widths);
        self.array(packed.bits());
    }

    /// Packs numbers and writes them in few bits.
    pub(crate) fn numbers(&mut self, numbers: &[u64]) {
        self.packed(&Packed::of(numbers));
    }

    pub(crate) fn positions(&mut self, positions: &Positions) {
        match positions {
            Positions::All(end) => {
                self.byte(0);
                self.number(*end as u64);
            }
            Positions::List(list) => {
                self.byte(1);
                self.packed(list);
            }
            Positions::Bitmap(bitmap) => {
                self.byte(2);
                self.number(bitmap.words().len() as u64);
                self.array(bitmap.words());
            }
        }
    }
}

fn parts(packed: &Packed) -> (Vec<u64>, Vec<i16>, Vec<u8>) {
    let (mut bases, mut slopes, mut widths) = (vec![], vec![], vec![]);
    for (base, slope, width) in packed.blocks() {
        bases.push(base);
        slopes.push(slope);
        widths.push(width);
    }
    (bases, slopes, widths)
}

impl Reader<'_> {
    /// At most `max` numbers.
    pub(crate) fn packed(&mut self, max: usize, what: &str) -> Result<Packed, Damage> {
        let len = self.count(max, what)?;
        let blocks = Packed::block_count(len);
        let bases = self.array::<u64>(blocks, what)?;
        let slopes = self.array::<i16>(blocks, what)?;
        let widths = self.array::<u8>(blocks, what)?;
        let words = Packed::bits_len(len, &widths);
        let words = words.ok_or_else(|| self.damage(&format!("has {what} of more than 64 bits")))?;
        let bits = self.array::<u64>(words, what)?;
        let blocks = bases.into_iter().zip(slopes).zip(widths).map(|((base, slope), width)| (base, slope, width));
        Ok(Packed::of_parts(len, blocks, bits.into()))
    }

    /// Exactly `len` numbers.
    pub(crate) fn packed_of(&mut self, len: usize, what: &str) -> Result<Packed, Damage> {
        let packed = self.packed(len, what)?;
        self.check(packed.len() == len, || format!("has {} {what} instead of {len}", packed.len()))?;
        Ok(packed)
    }

    /// Reads exactly `len` numbers and unpacks them.
    pub(crate) fn numbers_of(&mut self, len: usize, what: &str) -> Result<Vec<u64>, Damage> {
        Ok(self.packed_of(len, what)?.iter().collect())
    }

    /// A set of places below `end`.
    pub(crate) fn positions(&mut self, end: usize, what: &str) -> Result<Positions, Damage> {
        match self.byte(what)? {
            0 => Ok(Positions::All(self.count(end, what)?)),
            1 => {
                let list = self.packed(end, what)?;
                let (mut least, mut wrong) = (0, None);
                list.each_within(0..list.len(), |place| {
                    if place < least || place >= end as u64 {
                        wrong.get_or_insert(place);
                    }
                    least = place.saturating_add(1);
                });
                self.check(wrong.is_none(), || {
                    format!("has {} among {what}, which ascend to {end}", wrong.unwrap_or_default())
                })?;
                Ok(Positions::List(list))
            }
            2 => {
                let words = self.count(end.div_ceil(64), what)?;
                let words = self.array::<u64>(words, what)?;
                let beyond = words.get(end / 64).is_some_and(|word| word >> (end % 64) != 0);
                self.check(!beyond, || format!("has {what} beyond {end}"))?;
                Ok(Positions::Bitmap(Bitmap::of(words.into())))
            }
            form => Err(self.damage(&format!("has {what} in form {form}"))),
        }
    }
}
