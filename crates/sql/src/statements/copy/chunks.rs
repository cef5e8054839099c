//! Cuts an input into chunks of whole records, so that several threads may read them.
//!
//! ```text
//! input   1,a ⏎ 2,"b ⏎ c" ⏎ 3,d ⏎ 4,e ⏎ ...
//! chunks  |1,a ⏎ 2,"b ⏎ c" ⏎|3,d ⏎ 4,e ⏎|
//! ```
//!
//! A record ends at a line end, unless that is a part of a value: within quotes in CSV, behind a backslash in the text format.
//! So the bytes are looked at once for what these are, from one special byte to the next.
use std::io::Read;

use memchr::{memchr2, memchr3};

/// A chunk has at least so many bytes, but for the last.
const CHUNK_BYTES: usize = if cfg!(test) { 16 } else { 1 << 19 };

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The longest record.
const RECORD_BYTES_MAX: usize = 1 << 28;

/// How the input is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dialect {
    Csv { delimiter: u8, quote: u8, escape: u8 },
    Text { delimiter: u8 },
}

/// Some whole records.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// The line of its first byte, counted from 1.
    pub(crate) line: u64,
    pub(crate) is_first: bool,
}

/// Why there is no next chunk.
#[derive(Debug)]
pub(crate) enum ReadError {
    Io(std::io::Error),
    /// The record that begins in this line is longer than any may be.
    TooLong {
        line: u64,
    },
}

/// Reads an input chunk by chunk.
pub(crate) struct Chunks<R> {
    input: R,
    dialect: Dialect,
    /// what was read of the next chunk
    bytes: Vec<u8>,
    /// how far it was looked at
    looked: Place,
    /// where the last whole record ends that was seen
    end: Place,
    is_quoted: bool,
    /// the line of the chunk's first byte
    line: u64,
    is_first: bool,
    is_over: bool,
}

/// A place among the bytes, and the line ends before it.
#[derive(Clone, Copy, Default)]
struct Place {
    at: usize,
    lines: u64,
}

impl Place {
    /// The place behind a line end that takes so many bytes.
    fn behind_line_end(self, bytes: usize) -> Place {
        Place { at: self.at + bytes, lines: self.lines + 1 }
    }
}

impl<R: Read> Chunks<R> {
    pub(crate) fn new(input: R, dialect: Dialect) -> Chunks<R> {
        Chunks {
            input,
            dialect,
            bytes: Vec::new(),
            looked: Place::default(),
            end: Place::default(),
            is_quoted: false,
            line: 1,
            is_first: true,
            is_over: false,
        }
    }

    /// The next chunk; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Result<Chunk, ReadError>> {
        while !self.is_over && self.end.at < CHUNK_BYTES {
            if let Err(error) = self.read() {
                self.is_over = true;
                self.bytes.clear();
                return Some(Err(error));
            }
        }
        // What the input ends with is a record without a line end.
        let end = if self.is_over { Place { at: self.bytes.len(), ..self.end } } else { self.end };
        if end.at == 0 {
            return None;
        }
        let rest = self.bytes.split_off(end.at);
        let bytes = std::mem::replace(&mut self.bytes, rest);
        let chunk = Chunk { bytes, line: self.line, is_first: self.is_first };
        self.line += end.lines;
        self.looked.at = self.looked.at.saturating_sub(end.at);
        self.looked.lines = self.looked.lines.saturating_sub(end.lines);
        self.end = Place::default();
        self.is_first = false;
        Some(Ok(chunk))
    }

    /// Reads more, and looks at it.
    fn read(&mut self) -> Result<(), ReadError> {
        let filled = self.bytes.len();
        self.bytes.reserve(CHUNK_BYTES);
        let read = self.input.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.bytes);
        self.is_over = read.map_err(ReadError::Io)? < CHUNK_BYTES;
        if self.is_first && filled == 0 && self.bytes.starts_with(BYTE_ORDER_MARK) {
            self.bytes.drain(..BYTE_ORDER_MARK.len());
        }
        match self.dialect {
            Dialect::Csv { quote, escape, .. } => self.look_at_csv(quote, escape),
            Dialect::Text { .. } => self.look_at_text(),
        }
        match self.bytes.len() - self.end.at > RECORD_BYTES_MAX {
            true => Err(ReadError::TooLong { line: self.line + self.end.lines }),
            false => Ok(()),
        }
    }

    /// Looks for the ends of records among what was not looked at yet.
    fn look_at_csv(&mut self, quote: u8, escape: u8) {
        loop {
            let rest = &self.bytes[self.looked.at..];
            let special = match self.is_quoted {
                true => memchr3(quote, escape, b'\n', rest),
                false => memchr3(quote, b'\r', b'\n', rest),
            };
            let Some(special) = special else { break };
            let (byte, next) = (rest[special], rest.get(special + 1).copied());
            self.looked.at += special;
            // What such a byte means is said by the next one.
            let has_meaning = next.is_some() || self.is_over;
            match (self.is_quoted, byte) {
                (_, byte) if byte == quote => {
                    self.is_quoted = !self.is_quoted;
                    self.looked.at += 1;
                }
                (true, b'\n') => self.looked = self.looked.behind_line_end(1),
                (true, _) if !has_meaning => return,
                (true, _) => self.looked.at += 1 + usize::from(next == Some(quote) || next == Some(escape)),
                (false, b'\r') if !has_meaning => return,
                (false, b'\r') if next == Some(b'\n') => self.end_record(2),
                (false, _) => self.end_record(1),
            }
        }
        self.looked.at = self.bytes.len();
    }

    fn look_at_text(&mut self) {
        loop {
            let rest = &self.bytes[self.looked.at..];
            let Some(special) = memchr2(b'\\', b'\n', rest) else { break };
            let (byte, next) = (rest[special], rest.get(special + 1).copied());
            self.looked.at += special;
            match (byte, next) {
                (b'\n', _) => self.end_record(1),
                (_, None) => return,
                // A line end that a backslash stands before is a part of the value.
                (_, Some(b'\n')) => self.looked = self.looked.behind_line_end(2),
                (_, Some(_)) => self.looked.at += 2,
            }
        }
        self.looked.at = self.bytes.len();
    }

    /// A record ends with a line end of so many bytes, which were looked at.
    fn end_record(&mut self, bytes: usize) {
        self.looked = self.looked.behind_line_end(bytes);
        self.end = self.looked;
    }
}
