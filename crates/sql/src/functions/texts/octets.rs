//! Parts of bytes: `get_byte` and its kin, `bit_count`, and the functions of texts that PostgreSQL has for bytes, too.
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::functions::core::overlay;
use datafusion::functions::string::{btrim, ltrim, rtrim};
use datafusion::logical_expr::ScalarUDF;

use crate::error::SqlError;
use crate::functions::overloads::overloaded;
use crate::functions::row_wise::{Cell, Kind, Variant, function, octets, whole};

type Row = [Option<Cell>];
type Answer = Result<Option<Cell>, SqlError>;

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    use Kind::{BigInt, Bytes, Count, Integer};
    const GET_BYTE: &[Variant] = &[Variant::strict(&[Bytes, Count], Integer, get_byte)];
    const SET_BYTE: &[Variant] = &[Variant::strict(&[Bytes, Count, Count], Bytes, set_byte)];
    const GET_BIT: &[Variant] = &[Variant::strict(&[Bytes, BigInt], Integer, get_bit)];
    const SET_BIT: &[Variant] = &[Variant::strict(&[Bytes, BigInt, Count], Bytes, set_bit)];
    const BIT_COUNT: &[Variant] = &[Variant::strict(&[Bytes], BigInt, |row| {
        let ones: u32 = octets(row.first()).iter().map(|byte| byte.count_ones()).sum();
        number(i64::from(ones))
    })];
    let named: [(&'static str, &'static [Variant]); 5] = [
        ("get_byte", GET_BYTE),
        ("set_byte", SET_BYTE),
        ("get_bit", GET_BIT),
        ("set_bit", SET_BIT),
        ("bit_count", BIT_COUNT),
    ];
    let plain = named.into_iter().map(|(name, variants)| function(name, variants));
    plain
        .chain([btrim(), ltrim(), rtrim()].into_iter().map(|library| with_bytes(library.as_ref().clone())))
        .chain([over()])
}

/// `overlay(a PLACING b FROM at FOR count)`.
pub(crate) fn over() -> ScalarUDF {
    with_bytes(overlay().as_ref().clone())
}

/// A function of texts, for bytes as well where PostgreSQL has it for them.
pub(crate) fn with_bytes(library: ScalarUDF) -> ScalarUDF {
    use Kind::{Bytes, Count, Integer};
    const SUBSTR: &[Variant] = &[
        Variant::strict(&[Bytes, Count], Bytes, |row| bytes(part(octets(row.first()), whole(row.get(1)), None)?)),
        Variant::strict(&[Bytes, Count, Count], Bytes, |row| {
            bytes(part(octets(row.first()), whole(row.get(1)), Some(whole(row.get(2))))?)
        }),
    ];
    const OVERLAY: &[Variant] = &[
        Variant::strict(&[Bytes, Bytes, Count], Bytes, |row| overlaid(row, None)),
        Variant::strict(&[Bytes, Bytes, Count, Count], Bytes, |row| overlaid(row, Some(whole(row.get(3))))),
    ];
    const STRPOS: &[Variant] =
        &[Variant::strict(&[Bytes, Bytes], Integer, |row| number(position(octets(row.first()), octets(row.get(1)))))];
    const LENGTH: &[Variant] = &[Variant::strict(&[Bytes], Integer, |row| number(length(octets(row.first()))))];
    const BITS: &[Variant] = &[Variant::strict(&[Bytes], Integer, |row| number(8 * length(octets(row.first()))))];
    const BOTH: &[Variant] = &[Variant::strict(&[Bytes, Bytes], Bytes, |row| trimmed(row, true, true))];
    const START: &[Variant] = &[Variant::strict(&[Bytes, Bytes], Bytes, |row| trimmed(row, true, false))];
    const END: &[Variant] = &[Variant::strict(&[Bytes, Bytes], Bytes, |row| trimmed(row, false, true))];
    let known: [(&'static str, &'static [Variant]); 9] = [
        ("substr", SUBSTR),
        ("overlay", OVERLAY),
        ("strpos", STRPOS),
        ("character_length", LENGTH),
        ("octet_length", LENGTH),
        ("bit_length", BITS),
        ("btrim", BOTH),
        ("ltrim", START),
        ("rtrim", END),
    ];
    match known.into_iter().find(|(name, _)| *name == library.name()) {
        Some((name, variants)) => overloaded(Arc::new(library), name, DataType::is_binary, variants),
        None => library,
    }
}

fn number(value: i64) -> Answer {
    Ok(Some(Cell::Integer(value)))
}

fn bytes(value: impl Into<Vec<u8>>) -> Answer {
    Ok(Some(Cell::Bytes(value.into())))
}

fn length(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).unwrap_or(i64::MAX)
}

/// The place of the byte or bit that is meant, of so many.
fn place(at: i64, count: i64) -> Result<usize, SqlError> {
    let found = usize::try_from(at).ok().filter(|_| at < count);
    found.ok_or_else(|| SqlError::new("2202E", format!("index {at} out of valid range, 0..{}", count - 1)))
}

fn get_byte(row: &Row) -> Answer {
    let octets = octets(row.first());
    number(octets[place(whole(row.get(1)), length(octets))?].into())
}

fn set_byte(row: &Row) -> Answer {
    let mut changed = octets(row.first()).to_vec();
    let at = place(whole(row.get(1)), length(&changed))?;
    changed[at] = whole(row.get(2)).to_le_bytes()[0];
    bytes(changed)
}

fn get_bit(row: &Row) -> Answer {
    let octets = octets(row.first());
    let at = place(whole(row.get(1)), 8 * length(octets))?;
    number((octets[at / 8] >> (at % 8) & 1).into())
}

fn set_bit(row: &Row) -> Answer {
    let mut changed = octets(row.first()).to_vec();
    let at = place(whole(row.get(1)), 8 * length(&changed))?;
    match whole(row.get(2)) {
        0 => changed[at / 8] &= !(1 << (at % 8)),
        1 => changed[at / 8] |= 1 << (at % 8),
        _ => return Err(SqlError::new("22023", "new bit must be 0 or 1")),
    }
    bytes(changed)
}

/// The bytes from a place, counted from 1, as many as are asked for; places before the first count.
fn part(octets: &[u8], start: i64, count: Option<i64>) -> Result<&[u8], SqlError> {
    if count.is_some_and(|count| count < 0) {
        return Err(SqlError::new("22011", "negative substring length not allowed"));
    }
    let length = length(octets);
    let end = count.map_or(length, |count| (start - 1 + count).clamp(0, length));
    let start = (start - 1).clamp(0, end);
    let place = |at: i64| usize::try_from(at).unwrap_or(0);
    Ok(&octets[place(start)..place(end)])
}

/// Bytes with others in place of so many, by default of as many as those are.
fn overlaid(row: &Row, count: Option<i64>) -> Answer {
    let (octets, other, start) = (octets(row.first()), octets(row.get(1)), whole(row.get(2)));
    if start <= 0 {
        return Err(SqlError::new("22011", "negative substring length not allowed"));
    }
    let count = count.unwrap_or_else(|| length(other));
    let before = part(octets, 1, Some(start - 1))?;
    bytes([before, other, part(octets, start + count, None)?].concat())
}

fn position(octets: &[u8], wanted: &[u8]) -> i64 {
    if wanted.is_empty() {
        return 1;
    }
    let found = octets.windows(wanted.len()).position(|part| part == wanted);
    found.and_then(|at| i64::try_from(at + 1).ok()).unwrap_or(0)
}

/// Bytes without those of a set at their ends.
fn trimmed(row: &Row, at_start: bool, at_end: bool) -> Answer {
    let (mut rest, set) = (octets(row.first()), octets(row.get(1)));
    while let [first, others @ ..] = rest
        && at_start
        && set.contains(first)
    {
        rest = others;
    }
    while let [others @ .., last] = rest
        && at_end
        && set.contains(last)
    {
        rest = others;
    }
    bytes(rest)
}
