//! Cuts the bytes of a client into messages.
//!
//! The buffer grows with the bytes that have come, in steps of [`STEP_BYTES`], never by a declared length, and gives room
//! back after a long message. What it has grown by is zeroed once; later bytes are read over what was handed out.
use std::io::Read;

use smallvec::SmallVec;

use super::WireError;

/// How much is read at a time.
const STEP_BYTES: usize = 1 << 14;
/// The bytes that a buffer may keep between messages.
const KEPT_BYTES: usize = 1 << 18;
/// The longest startup packet, as in PostgreSQL.
const STARTUP_BYTES_MAX: usize = 10_000;
/// The longest message of a kind that carries no text or data.
const SHORT_BYTES_MAX: usize = 10_000;

/// The bytes of a message. Short ones, as most are, take no memory of their own.
pub(crate) type Bytes = SmallVec<[u8; 64]>;

/// A message with its type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: u8,
    pub(crate) body: Bytes,
}

/// The kind of message that a client has sent behind the one being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Behind {
    /// Nothing that asks for anything.
    Nothing,
    /// A terminate message: the answer will not be read.
    Farewell,
    /// More to do.
    Work,
}

impl Behind {
    /// Reads messages up to the first that counts. One that has not come as a whole is taken for work.
    pub(crate) fn of(mut bytes: &[u8]) -> Behind {
        for _ in 0..PASSED_MAX {
            match bytes {
                [] => return Behind::Nothing,
                [b'X', 0, 0, 0, 4, ..] => return Behind::Farewell,
                // They end what is being answered, or ask about it.
                [b'S' | b'H' | b'C' | b'D', rest @ ..] if rest.len() >= 4 => {
                    let length = usize::try_from(number(rest)).unwrap_or(usize::MAX);
                    match rest.get(length..) {
                        Some(next) if length >= 4 => bytes = next,
                        _ => return Behind::Work,
                    }
                }
                _ => return Behind::Work,
            }
        }
        Behind::Work
    }
}

/// How many messages without work are looked at; a client sends one or two.
const PASSED_MAX: usize = 8;

/// Reads messages.
pub(crate) struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    /// Up to where the buffer has been handed out.
    at: usize,
    /// Up to where bytes have come.
    end: usize,
    /// The longest message that carries text or data.
    bytes_max: usize,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(source: R, bytes_max: usize) -> Input<R> {
        Input { source, buffer: Vec::new(), at: 0, end: 0, bytes_max }
    }

    /// The bytes that have come and were not handed out.
    fn rest(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    /// Waits until so many bytes are there.
    #[inline]
    fn fill(&mut self, count: usize) -> Result<(), WireError> {
        if self.end - self.at < count { self.wait(count) } else { Ok(()) }
    }

    /// Reads until so many bytes are there, which are not yet.
    fn wait(&mut self, count: usize) -> Result<(), WireError> {
        if self.at > 0 {
            self.buffer.copy_within(self.at..self.end, 0);
            (self.at, self.end) = (0, self.end - self.at);
            if self.buffer.len() > KEPT_BYTES {
                self.buffer.truncate(KEPT_BYTES.max(self.end));
                self.buffer.shrink_to_fit();
            }
        }
        while self.rest().len() < count {
            if self.buffer.len() < self.end + STEP_BYTES {
                self.buffer.resize(self.end + STEP_BYTES, 0);
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(WireError::Closed),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn take(&mut self, count: usize) -> Bytes {
        let taken = Bytes::from_slice(&self.buffer[self.at..self.at + count]);
        self.at += count;
        taken
    }

    /// Whether bytes have come that no message was made of yet.
    pub(crate) fn has_bytes(&self) -> bool {
        !self.rest().is_empty()
    }

    /// The kind of message that has been read already behind the one handed out last.
    pub(crate) fn behind(&self) -> Behind {
        Behind::of(self.rest())
    }

    /// The packet that a connection begins with: its code and its body.
    pub(crate) fn startup(&mut self) -> Result<(u32, Bytes), WireError> {
        self.fill(4)?;
        let length = usize::try_from(number(self.rest())).unwrap_or(usize::MAX);
        if !(8..=STARTUP_BYTES_MAX).contains(&length) {
            return Err(WireError::Fatal("invalid length of startup packet".to_owned()));
        }
        self.fill(length)?;
        self.at += 4;
        let code = number(self.rest());
        self.at += 4;
        Ok((code, self.take(length - 8)))
    }

    /// The next message. Blocks until it is there as a whole.
    pub(crate) fn message(&mut self) -> Result<Message, WireError> {
        self.fill(1)?;
        let kind = self.buffer[self.at];
        let bytes_max = match kind {
            b'Q' | b'P' | b'B' | b'd' | b'F' => self.bytes_max,
            b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' => SHORT_BYTES_MAX,
            other => return Err(WireError::Fatal(format!("invalid frontend message type {other}"))),
        };
        self.fill(5)?;
        let length = usize::try_from(number(&self.rest()[1..])).unwrap_or(usize::MAX);
        if length < 4 {
            return Err(WireError::Fatal("invalid message length".to_owned()));
        }
        if length - 4 > bytes_max {
            let message = format!("invalid message length: {} bytes, at most {bytes_max} are taken", length - 4);
            return Err(WireError::Fatal(message));
        }
        self.fill(length + 1)?;
        self.at += 5;
        Ok(Message { kind, body: self.take(length - 4) })
    }

    /// The types of the next two messages, as far as they have come.
    pub(crate) fn next_kinds(&self) -> [Option<u8>; 2] {
        let rest = self.rest();
        let length = rest.get(1..5).and_then(|length| usize::try_from(number(length)).ok());
        let second = length.and_then(|length| length.checked_add(1)).and_then(|end| rest.get(end));
        [rest.first().copied(), second.copied()]
    }

    /// Where the bytes come from.
    pub(crate) fn source(&self) -> &R {
        &self.source
    }
}

/// Four bytes as a number; the caller has seen that they are there.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            out[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    #[test]
    fn messages_are_cut_wherever_the_bytes_break() {
        let bytes = b"\0\0\0\x0a\0\x03\0\0a\0Q\0\0\0\x05\0S\0\0\0\x04";
        let mut input = Input::new(Drip(bytes), 100);
        assert_eq!(input.startup().unwrap(), (196_608, Bytes::from_slice(b"a\0")));
        assert_eq!(input.message().unwrap(), Message { kind: b'Q', body: Bytes::from_slice(&[0]) });
        assert_eq!(input.message().unwrap(), Message { kind: b'S', body: Bytes::new() });
        assert!(matches!(input.message(), Err(WireError::Closed)));
    }

    /// Gives parts of all lengths.
    struct Parts<'a>(&'a [u8], usize);

    impl Read for Parts<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.1 = self.1 * 7 % 40_009;
            let len = (self.1 + 1).min(out.len()).min(self.0.len());
            let (now, rest) = self.0.split_at(len);
            out[..len].copy_from_slice(now);
            self.0 = rest;
            Ok(len)
        }
    }

    #[test]
    fn messages_are_whole_whatever_the_buffer_has_held() {
        let lengths = [0, 3, 5, 90_000, 1, 16_379, 700_000, 2, 2, 40, 300_000, 8];
        let bodies: Vec<Vec<u8>> =
            lengths.iter().cycle().take(60).enumerate().map(|(at, len)| vec![at as u8 + 1; *len]).collect();
        let mut bytes = Vec::new();
        for body in &bodies {
            bytes.extend([b'd']);
            bytes.extend((body.len() as u32 + 4).to_be_bytes());
            bytes.extend(body);
        }
        let mut input = Input::new(Parts(&bytes, 3), 1 << 20);
        for body in bodies {
            assert_eq!(input.message().unwrap(), Message { kind: b'd', body: Bytes::from_vec(body) });
        }
        assert!(!input.has_bytes() && matches!(input.message(), Err(WireError::Closed)));
        assert!(input.buffer.capacity() <= KEPT_BYTES + STEP_BYTES, "{} bytes are kept", input.buffer.capacity());
    }

    #[test]
    fn what_stands_behind_a_message_is_work_or_not() {
        let farewell = b"X\0\0\0\x04";
        for (bytes, behind) in [
            (&b""[..], Behind::Nothing),
            (b"S\0\0\0\x04", Behind::Nothing),
            (b"D\0\0\0\x06P\0C\0\0\0\x06Sa\0S\0\0\0\x04", Behind::Work),
            (b"D\0\0\0\x06P\0C\0\0\0\x07Sa\0S\0\0\0\x04H\0\0\0\x04", Behind::Nothing),
            (farewell, Behind::Farewell),
            (b"S\0\0\0\x04X\0\0\0\x04Q", Behind::Farewell),
            (b"X\0\0\0", Behind::Work),
            (b"S\0\0\0\x03", Behind::Work),
            (b"S\xff\xff\xff\xff", Behind::Work),
            (b"E\0\0\0\x09\0\0\0\0\0X\0\0\0\x04", Behind::Work),
            (b"Q\0\0\0\x05\0X\0\0\0\x04", Behind::Work),
        ] {
            assert_eq!(Behind::of(bytes), behind, "{bytes:?}");
        }
        let many = b"S\0\0\0\x04".repeat(1_000);
        assert_eq!(Behind::of(&many), Behind::Work);
    }

    #[test]
    fn a_declared_length_allocates_nothing() {
        let mut input = Input::new(&b"Q\x7f\xff\xff\xffabc"[..], usize::MAX);
        assert!(matches!(input.message(), Err(WireError::Closed)));
        assert!(input.buffer.capacity() < 4 * STEP_BYTES);
        let lengths =
            [b"Q\xff\xff\xff\xff", b"Q\0\0\0\x03", b"S\0\x01\0\0", b"Q\0\0\0\xff", b"\0\0\0\0\x04", b"z\0\0\0\x04"];
        for bytes in lengths {
            assert!(matches!(Input::new(&bytes[..], 100).message(), Err(WireError::Fatal(_))), "{bytes:?}");
        }
        for bytes in [b"\0\0\0\x07\0\x03\0\0", b"\x7f\xff\xff\xff\0\x03\0\0", b"\xff\xff\xff\xff\0\x03\0\0"] {
            assert!(matches!(Input::new(&bytes[..], 100).startup(), Err(WireError::Fatal(_))), "{bytes:?}");
        }
    }
}
