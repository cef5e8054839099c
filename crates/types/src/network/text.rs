//! Addresses as text, in and out, as PostgreSQL reads and writes them.
//!
//! An `inet` of version 4 has its four numbers, or fewer and a length that says how many bits of them count. A `cidr` may leave out the
//! numbers behind the network, and its length where the classes of addresses tell it. Version 6 is written with `::` for one run of
//! zeros, and may end in four numbers of version 4.
use std::fmt;
use std::fmt::Write;

use super::{ADDRESS, Family, Network, NetworkKind, mask};

/// The words of an address of version 6.
const WORDS: usize = 8;

/// What is wrong with the text of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkTextFault {
    /// It is none.
    Syntax,
    /// It is an address, and no network, as a `cidr` is to be.
    Host,
}

impl Network {
    /// The address that a text stands for.
    ///
    /// # Errors
    /// The fault of the text.
    pub fn parse(kind: NetworkKind, text: &str) -> Result<Network, NetworkTextFault> {
        let family = if text.contains(':') { Family::V6 } else { Family::V4 };
        let read = match (family, kind) {
            (Family::V6, _) => version_6(text),
            (Family::V4, NetworkKind::Inet) => version_4(text),
            (Family::V4, NetworkKind::Cidr) => network_4(text),
        };
        let (bytes, length) = read.ok_or(NetworkTextFault::Syntax)?;
        Network::new(kind, family, &bytes, length).ok_or(NetworkTextFault::Host)
    }

    /// The address without its length.
    pub fn host(&self) -> String {
        match self.family {
            Family::V4 => numbers(&self.address()),
            Family::V6 => words(self.address),
        }
    }

    /// The address with its length, also where that is all of its bits.
    pub fn with_mask(&self) -> String {
        format!("{}/{}", self.host(), self.length)
    }

    /// A `cidr` without the bytes behind its network, an `inet` as always.
    pub fn abbreviated(&self) -> String {
        match (self.kind, self.family) {
            (NetworkKind::Inet, _) => self.to_string(),
            (NetworkKind::Cidr, Family::V4) => {
                let kept = usize::from(self.length).div_ceil(8).max(1);
                format!("{}/{}", numbers(&self.address()[..kept]), self.length)
            }
            (NetworkKind::Cidr, Family::V6) => abbreviated_6(self.address, self.length),
        }
    }
}

/// As PostgreSQL writes addresses: `10.0.0.1`, `10.0.0.1/8`, and a `cidr` always with its length.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == NetworkKind::Inet && self.length == self.family.bits() {
            f.write_str(&self.host())
        } else {
            f.write_str(&self.with_mask())
        }
    }
}

fn numbers(bytes: &[u8]) -> String {
    bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(".")
}

fn words_of(address: u128) -> [u16; WORDS] {
    std::array::from_fn(|at| (address >> (112 - 16 * at)) as u16)
}

/// The first of the longest runs of zeros: where it begins, and its length.
fn longest_zeros(words: &[u16]) -> (usize, usize) {
    let mut longest = (0, 0);
    let mut at = 0;
    for run in words.chunk_by(|one, other| (*one == 0) == (*other == 0)) {
        if run[0] == 0 && run.len() > longest.1 {
            longest = (at, run.len());
        }
        at += run.len();
    }
    longest
}

fn words(address: u128) -> String {
    let words = words_of(address);
    let (start, length) = longest_zeros(&words);
    let (start, length) = if length >= 2 { (start, length) } else { (WORDS, 0) };
    let holds_v4 = start == 0 && (length == 6 || (length == 5 && words[5] == u16::MAX));
    let mut text = String::new();
    for (at, word) in words.into_iter().enumerate() {
        if (start..start + length).contains(&at) {
            if at == start {
                text.push(':');
            }
            continue;
        }
        if at > 0 {
            text.push(':');
        }
        if at == 6 && holds_v4 {
            text.push_str(&numbers(&address.to_be_bytes()[12..]));
            return text;
        }
        let _ = write!(text, "{word:x}");
    }
    if length > 0 && start + length == WORDS {
        text.push(':');
    }
    text
}

/// A network of version 6 as far as its bits go.
fn abbreviated_6(address: u128, length: u8) -> String {
    if length == 0 {
        return "::/0".to_owned();
    }
    let bytes = (address & mask(length)).to_be_bytes();
    let all = words_of(address & mask(length));
    let count = usize::from(length).div_ceil(16).max(2);
    let (start, zeros) = longest_zeros(&all[..count]);
    let holds_v4 = zeros != count
        && start == 0
        && (zeros == 6 || (zeros == 5 && all[5] == u16::MAX) || (zeros == 7 && bytes[14] != 0 && bytes[15] != 1));
    let mut text = String::new();
    for (at, word) in all[..count].iter().enumerate() {
        if zeros > 0 && (start..start + zeros).contains(&at) {
            if at == start {
                text.push(':');
            }
            if at + 1 == count {
                text.push(':');
            }
        } else if holds_v4 && at > 5 {
            text.push(if at == 6 { ':' } else { '.' });
            let _ = write!(text, "{}", bytes[2 * at]);
            if at != 7 || length > 120 {
                let _ = write!(text, ".{}", bytes[2 * at + 1]);
            }
        } else {
            if !text.is_empty() {
                text.push(':');
            }
            let _ = write!(text, "{word:x}");
        }
    }
    format!("{text}/{length}")
}

/// The decimal number that a text begins with, 255 at most for what fits into a byte, and what is behind it.
fn number(text: &str) -> Option<(u8, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let value = text[..end].bytes().try_fold(0u8, |value, digit| value.checked_mul(10)?.checked_add(digit - b'0'));
    if end == 0 { None } else { Some((value?, &text[end..])) }
}

/// The length behind the address, of so many bits at most; `None` if there is something else.
fn length_behind(text: &str, limit: u8) -> Option<Option<u8>> {
    match text.strip_prefix('/') {
        None if text.is_empty() => Some(None),
        None => None,
        Some(length) => {
            let (length, rest) = number(length)?;
            (rest.is_empty() && length <= limit).then_some(Some(length))
        }
    }
}

/// The address of an `inet` of version 4.
fn version_4(text: &str) -> Option<(Vec<u8>, u8)> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while rest.starts_with(|character: char| character.is_ascii_digit()) {
        let (byte, behind) = number(rest)?;
        if bytes.len() == Family::V4.bytes() {
            return None;
        }
        bytes.push(byte);
        rest = behind;
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    if bytes.is_empty() {
        return None;
    }
    let length = match length_behind(rest, Family::V4.bits())? {
        Some(length) => length,
        None if bytes.len() == Family::V4.bytes() => Family::V4.bits(),
        None => return None,
    };
    if usize::from(length / 8) > bytes.len() {
        return None;
    }
    bytes.resize(Family::V4.bytes(), 0);
    Some((bytes, length))
}

/// The bytes of hexadecimal digits, and what is behind them.
fn hexadecimal(text: &str) -> (Vec<u8>, &str) {
    let end = text.find(|character: char| !character.is_ascii_hexdigit()).unwrap_or(text.len());
    let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0);
    let byte = |pair: &[u8]| digit(&pair[0]) << 4 | pair.get(1).map_or(0, digit);
    (text.as_bytes()[..end].chunks(2).map(byte).collect(), &text[end..])
}

/// The numbers with which a network of version 4 begins, and what is behind them.
fn leading_bytes(text: &str) -> Option<(Vec<u8>, &str)> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
        && digits.starts_with(|character: char| character.is_ascii_hexdigit())
    {
        return Some(hexadecimal(digits));
    }
    let (mut bytes, mut rest) = (Vec::new(), text);
    loop {
        let (byte, behind) = number(rest)?;
        bytes.push(byte);
        match behind.strip_prefix('.') {
            Some(behind) => rest = behind,
            None => return Some((bytes, behind)),
        }
    }
}

/// The network of a `cidr` of version 4.
fn network_4(text: &str) -> Option<(Vec<u8>, u8)> {
    let (mut bytes, rest) = leading_bytes(text)?;
    if bytes.len() > Family::V4.bytes() {
        return None;
    }
    let written = u8::try_from(8 * bytes.len()).ok()?;
    let of_class = match bytes[0] {
        240.. => 32,
        224.. => 8,
        192.. => 24,
        128.. => 16,
        _ => 8,
    };
    let length = match length_behind(rest, Family::V4.bits())? {
        Some(length) => length,
        None if of_class.max(written) == 8 && bytes[0] == 224 => 4,
        None => of_class.max(written),
    };
    bytes.resize(Family::V4.bytes(), 0);
    Some((bytes, length))
}

/// A number of decimal digits without zeros in front.
fn strict_number(text: &str) -> Option<u8> {
    let has_zeros = text.len() > 1 && text.starts_with('0');
    let (value, rest) = number(text).filter(|_| !has_zeros)?;
    rest.is_empty().then_some(value)
}

/// The four numbers at the end of an address of version 6.
fn ending_numbers(text: &str) -> Option<Vec<u8>> {
    let bytes: Option<Vec<u8>> = text.split('.').map(strict_number).collect();
    bytes.filter(|bytes| bytes.len() <= Family::V4.bytes())
}

/// The bytes of the words of one side of `::`; those of version 4 may be at the end.
fn words_in(text: &str, may_end_in_v4: bool) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if text.is_empty() {
        return Some(bytes);
    }
    let parts: Vec<&str> = text.split(':').collect();
    for (at, part) in parts.iter().enumerate() {
        if part.contains('.') {
            let is_last = may_end_in_v4 && at + 1 == parts.len();
            let last = ending_numbers(part).filter(|_| is_last && bytes.len() + Family::V4.bytes() <= ADDRESS)?;
            bytes.extend(&last);
            bytes.resize(bytes.len() + Family::V4.bytes() - last.len(), 0);
        } else if (1..=4).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            bytes.extend(u16::from_str_radix(part, 16).ok()?.to_be_bytes());
        } else {
            return None;
        }
    }
    Some(bytes)
}

/// An address of version 6.
fn version_6(text: &str) -> Option<(Vec<u8>, u8)> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, strict_number(length).filter(|length| *length <= Family::V6.bits())?),
        None => (text, Family::V6.bits()),
    };
    let bytes = match address.split_once("::") {
        Some((before, behind)) => {
            let (mut bytes, behind) = (words_in(before, false)?, words_in(behind, true)?);
            if bytes.len() + behind.len() >= ADDRESS {
                return None;
            }
            bytes.resize(ADDRESS - behind.len(), 0);
            bytes.extend(behind);
            bytes
        }
        None => words_in(address, true)?,
    };
    (bytes.len() == ADDRESS).then_some((bytes, length))
}
