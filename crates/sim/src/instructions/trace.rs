//! The trace of a transaction: which blocks of code and data it touches, in order.
//!
//! ```text
//! file:    "LSIT" 1 | number of traces | trace | trace | ...
//! trace:   type | number of touches | touch | touch | ...
//! touch:   (distance to the block touched before of the same space, zigzag) * 4 + kind | instructions, if of code
//! kinds:   0 code, 1 data read, 2 data written        all numbers in groups of seven bits, the lowest first
//! ```
//!
//! Instructions that follow one another within a block of 64 bytes are one touch.

use crate::machine::LineNumber;

/// What is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// So many instructions of a block of code.
    Code(u32),
    /// A block of data is read.
    Read,
    /// A block of data is written.
    Write,
}

/// A touch of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// The block: an address over 64. Code and data are spaces of their own.
    pub block: LineNumber,
    /// How it is touched.
    pub access: Access,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The type of the transaction.
    pub kind: u8,
    /// Its touches.
    pub touches: Vec<Touch>,
}

impl Trace {
    /// How many instructions it has.
    pub fn instructions(&self) -> u64 {
        let count = |touch: &Touch| if let Access::Code(count) = touch.access { u64::from(count) } else { 0 };
        self.touches.iter().map(count).sum()
    }
}

/// Bytes that are no traces: what is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    /// The byte at which reading ended.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no trace of instructions: {} at byte {}; record it again", self.what, self.at)
    }
}

impl std::error::Error for TraceError {}

const MAGIC: &[u8] = b"LSIT\x01";

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Traces as bytes.
pub fn encode(traces: &[Trace]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    put(&mut bytes, traces.len() as u64);
    for trace in traces {
        bytes.push(trace.kind);
        put(&mut bytes, trace.touches.len() as u64);
        let mut before = [0i64; 2];
        for touch in &trace.touches {
            let (kind, instructions) = match touch.access {
                Access::Code(count) => (0, Some(count)),
                Access::Read => (1, None),
                Access::Write => (2, None),
            };
            let space = &mut before[usize::from(kind != 0)];
            let distance = i64::from(touch.block) - *space;
            *space = i64::from(touch.block);
            let zigzag = (distance << 1 ^ distance >> 63) as u64;
            put(&mut bytes, zigzag << 2 | kind);
            if let Some(count) = instructions {
                put(&mut bytes, u64::from(count));
            }
        }
    }
    bytes
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn fail<T>(&self, what: &'static str) -> Result<T, TraceError> {
        Err(TraceError { at: self.at, what })
    }

    fn byte(&mut self) -> Result<u8, TraceError> {
        let Some(&byte) = self.bytes.get(self.at) else { return self.fail("the end comes too early") };
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, TraceError> {
        let mut number = 0u64;
        for group in 0..9 {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * group);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        self.fail("a number is too long")
    }
}

/// Traces from bytes.
///
/// # Errors
/// If the bytes are no traces, or end too early.
pub fn decode(bytes: &[u8]) -> Result<Vec<Trace>, TraceError> {
    let mut reader = Reader { bytes, at: MAGIC.len() };
    if !bytes.starts_with(MAGIC) {
        return Err(TraceError { at: 0, what: "another kind of file" });
    }
    let count = reader.number()?;
    let mut traces = Vec::new();
    for _ in 0..count {
        let kind = reader.byte()?;
        let touches = reader.number()?;
        let mut trace = Trace { kind, touches: Vec::new() };
        let mut before = [0i64; 2];
        for _ in 0..touches {
            let word = reader.number()?;
            let space = &mut before[usize::from(word & 3 != 0)];
            let zigzag = word >> 2;
            let distance = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
            *space = space.wrapping_add(distance);
            let Ok(block) = LineNumber::try_from(*space) else { return reader.fail("a block lies nowhere") };
            let access = match word & 3 {
                0 => match u32::try_from(reader.number()?) {
                    Ok(count) => Access::Code(count),
                    Err(_) => return reader.fail("a block has too many instructions"),
                },
                1 => Access::Read,
                2 => Access::Write,
                _ => return reader.fail("an unknown kind of touch"),
            };
            trace.touches.push(Touch { block, access });
        }
        traces.push(trace);
    }
    Ok(traces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn touch() -> impl Strategy<Value = Touch> {
        let access = prop_oneof![(0u32..100).prop_map(Access::Code), Just(Access::Read), Just(Access::Write)];
        (any::<u32>(), access).prop_map(|(block, access)| Touch { block, access })
    }

    fn trace() -> impl Strategy<Value = Trace> {
        (any::<u8>(), prop::collection::vec(touch(), 0..40)).prop_map(|(kind, touches)| Trace { kind, touches })
    }

    proptest! {
        #[test]
        fn traces_come_back_from_their_bytes(traces in prop::collection::vec(trace(), 0..5)) {
            prop_assert_eq!(decode(&encode(&traces)), Ok(traces));
        }

        #[test]
        fn any_bytes_are_traces_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..60), has_magic in any::<bool>()) {
            if has_magic {
                bytes.splice(0..0, MAGIC.iter().copied());
            }
            if let Ok(traces) = decode(&bytes) {
                prop_assert!(traces.iter().map(|trace| trace.touches.len()).sum::<usize>() <= bytes.len());
            }
        }

        #[test]
        fn a_file_that_is_cut_off_is_an_error(traces in prop::collection::vec(trace(), 1..4), cut in 1usize..20) {
            let bytes = encode(&traces);
            let end = bytes.len().saturating_sub(cut);
            prop_assert!(decode(&bytes[..end]).is_err());
        }
    }
}
