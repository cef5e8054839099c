//! Writing numbers and arrays one after the other, and reading them again without trust in a single one.
use std::fmt;

use arrow_buffer::Buffer;

/// The damage in bytes that were read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Damage(pub(crate) String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A number of fixed width.
pub(crate) trait Plain: Copy {
    const BYTES: usize;
    /// Puts the bytes of `values` in the place of `bytes`, which are as many.
    fn put(values: &[Self], bytes: &mut [u8]);
    /// The numbers that these bytes are.
    fn get(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! plain {
    ($($t:ty),*) => {
        $(impl Plain for $t {
            const BYTES: usize = size_of::<$t>();
            fn put(values: &[Self], bytes: &mut [u8]) {
                let (places, _) = bytes.as_chunks_mut::<{ size_of::<$t>() }>();
                places.iter_mut().zip(values).for_each(|(place, value)| *place = value.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> Vec<Self> {
                let (places, _) = bytes.as_chunks::<{ size_of::<$t>() }>();
                places.iter().map(|place| <$t>::from_le_bytes(*place)).collect()
            }
        })*
    };
}
plain!(u8, i16, u32, i64, u64, i128);

/// Collects the bytes of a blob.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// A number: of slots, bytes, a time.
    pub(crate) fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Bytes as they are; the reader knows how many.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Numbers one after the other; the reader knows how many.
    pub(crate) fn array<T: Plain>(&mut self, values: &[T]) {
        let from = self.bytes.len();
        self.bytes.resize(from + values.len() * T::BYTES, 0);
        T::put(values, &mut self.bytes[from..]);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Takes bytes from the front of what is left of a blob.
pub(crate) struct Reader<'a> {
    left: &'a [u8],
    subject: &'static str,
}

impl<'a> Reader<'a> {
    /// Reads a blob that messages call so.
    pub(crate) fn new(bytes: &'a [u8], subject: &'static str) -> Reader<'a> {
        Reader { left: bytes, subject }
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.left.len()
    }

    /// Reports damage unless `is_right`.
    #[inline]
    pub(crate) fn check(&self, is_right: bool, what: impl FnOnce() -> String) -> Result<(), Damage> {
        if is_right { Ok(()) } else { Err(self.damage(&what())) }
    }

    /// Describes damage to these bytes.
    pub(crate) fn damage(&self, what: &str) -> Damage {
        Damage(format!("{} {what}", self.subject))
    }

    /// The next bytes, which are `what`.
    pub(crate) fn bytes(&mut self, len: usize, what: &str) -> Result<&'a [u8], Damage> {
        let left = self.left.len();
        let Some((bytes, rest)) = self.left.split_at_checked(len) else {
            return Err(self.damage(&format!("ends early: {what} take {len} bytes, and {left} are left")));
        };
        self.left = rest;
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self, what: &str) -> Result<u8, Damage> {
        Ok(self.bytes(1, what)?[0])
    }

    /// A byte that says yes or no.
    pub(crate) fn flag(&mut self, what: &str) -> Result<bool, Damage> {
        let byte = self.byte(what)?;
        self.check(byte <= 1, || format!("has {byte} where {what} is 0 or 1"))?;
        Ok(byte == 1)
    }

    pub(crate) fn number(&mut self, what: &str) -> Result<u64, Damage> {
        Ok(u64::get(self.bytes(8, what)?)[0])
    }

    /// A number that is not greater than `max`.
    pub(crate) fn at_most(&mut self, max: u64, what: &str) -> Result<u64, Damage> {
        let number = self.number(what)?;
        self.check(number <= max, || format!("has {number} for {what}, and {max} is the most"))?;
        Ok(number)
    }

    /// How many there are of something, at most `max`.
    pub(crate) fn count(&mut self, max: usize, what: &str) -> Result<usize, Damage> {
        Ok(self.at_most(max as u64, what)? as usize)
    }

    /// So many numbers.
    pub(crate) fn array<T: Plain>(&mut self, len: usize, what: &str) -> Result<Vec<T>, Damage> {
        Ok(T::get(self.bytes(self.bytes_of::<T>(len, what)?, what)?))
    }

    /// So many numbers, as a buffer aligned for vectors.
    pub(crate) fn buffer<T: Plain>(&mut self, len: usize, what: &str) -> Result<Buffer, Damage> {
        Ok(Buffer::from(self.bytes(self.bytes_of::<T>(len, what)?, what)?))
    }

    fn bytes_of<T: Plain>(&self, len: usize, what: &str) -> Result<usize, Damage> {
        len.checked_mul(T::BYTES).ok_or_else(|| self.damage(&format!("has too many {what}")))
    }

    /// The blob has been read: nothing may be left.
    pub(crate) fn check_end(&self) -> Result<(), Damage> {
        let left = self.left.len();
        self.check(left == 0, || format!("has {left} bytes behind its end"))
    }
}
