//! The PostgreSQL protocol, version 3, as bytes: what clients send ([`input`], [`frontend`]) and what they are sent
//! ([`output`]). Nothing here knows what a statement is.
//!
//! ```text
//! startup packet   length (4 bytes, itself included)  code (4)  body
//! any other        type (1)  length (4, itself included)  body
//! ```
//!
//! Numbers that a client declares are never trusted: a body is read as its bytes come, counts are checked against
//! the bytes that are there, and nothing is allocated for a number that the client has only named.
pub(crate) mod frontend;
pub(crate) mod input;
pub(crate) mod output;

use std::fmt;

/// Why the bytes of a client can't be gone on with.
#[derive(Debug)]
pub(crate) enum WireError {
    /// The client has gone.
    Closed,
    /// Reading or writing failed.
    Io(std::io::Error),
    /// The bytes make no messages: there is no way to go on.
    Fatal(String),
}

impl From<std::io::Error> for WireError {
    fn from(error: std::io::Error) -> WireError {
        WireError::Io(error)
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Closed => f.write_str("the connection was closed"),
            WireError::Io(error) => write!(f, "{error}"),
            WireError::Fatal(message) => f.write_str(message),
        }
    }
}

/// Bytes that look random and are the same for each seed (xorshift), for tests.
#[cfg(test)]
pub(crate) fn noise(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    })
}
