//! Zones: what is known of each block of 1,024 rows without a look at its values.
//!
//! Extremes are kept as *zone keys*. Their meaning depends on the form of the column: keys of the values (see
//! [`super::keys`]), codes of a sorted dictionary, or, where bytes are kept raw, the slots that hold the extreme
//! values. All of them are exact.
use std::sync::Arc;

use arrow_buffer::NullBuffer;
use types::Value;

use super::integers::KeyTotals;
use super::mask::bits_of;
use super::raw::Raw;
use super::simd::{BLOCK, Simd};
use crate::value::cell::Cell;

/// The extremes and NULLs of some rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Zone {
    /// the smallest value, `None` if all are NULL
    pub min: Option<Value>,
    /// the greatest value
    pub max: Option<Value>,
    /// how many rows are NULL
    pub null_count: usize,
}

/// The extremes and NULLs of one block, in zone keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockZone {
    /// the smallest, `i64::MAX` if all are NULL
    pub min: i64,
    /// the greatest, `i64::MIN` if all are NULL
    pub max: i64,
    /// the sum of the keys, where these are numbers
    pub sum: i128,
    /// rows that are NULL
    pub nulls: u32,
}

impl BlockZone {
    /// Whether no row of the block has a value.
    pub(crate) fn is_of_nothing(&self) -> bool {
        self.min == i64::MAX && self.max == i64::MIN
    }
}

/// The zones of keys: `keys` has one for each row, and something within the block's extremes where it is NULL.
pub(super) fn of_keys(simd: Simd, keys: &[i64], nulls: Option<&NullBuffer>) -> Arc<[BlockZone]> {
    let blocks = keys.chunks(BLOCK).enumerate();
    let zones = blocks.map(|(block, keys)| match nulls {
        None => zone_of(KeyTotals::of_keys::<true>(simd, keys, None), keys.len()),
        Some(nulls) => {
            let valid = bits_of(nulls.inner(), block * BLOCK, keys.len());
            zone_of(KeyTotals::of_keys::<true>(simd, keys, Some(&valid)), keys.len())
        }
    });
    zones.collect()
}

fn zone_of(totals: KeyTotals, rows: usize) -> BlockZone {
    BlockZone { min: totals.min, max: totals.max, sum: totals.sum, nulls: (rows - totals.count) as u32 }
}

/// The zones of raw bytes: the slots of the extremes.
pub(super) fn of_raw_bytes(raw: &Raw, nulls: Option<&NullBuffer>, len: usize) -> Arc<[BlockZone]> {
    (0..len).step_by(BLOCK).map(|from| extreme_slots(raw, nulls, from, len.min(from + BLOCK))).collect()
}

fn extreme_slots(raw: &Raw, nulls: Option<&NullBuffer>, from: usize, to: usize) -> BlockZone {
    let mut extremes: Option<(usize, usize)> = None;
    let mut null_count = 0;
    for slot in from..to {
        if nulls.is_some_and(|nulls| nulls.is_null(slot)) {
            null_count += 1;
            continue;
        }
        let (min, max) = extremes.get_or_insert((slot, slot));
        if is_less(raw, slot, *min) {
            *min = slot;
        } else if is_less(raw, *max, slot) {
            *max = slot;
        }
    }
    let (min, max) = extremes.map_or((i64::MAX, i64::MIN), |(min, max)| (min as i64, max as i64));
    BlockZone { min, max, sum: 0, nulls: null_count }
}

/// Whether the value in one slot is less than that in the other; neither is NULL.
fn is_less(raw: &Raw, left: usize, right: usize) -> bool {
    match (raw, raw.cell(left), raw.cell(right)) {
        (Raw::WideDecimal(values), ..) => values[left] < values[right],
        (_, Cell::Bytes(left), Cell::Bytes(right)) => left < right,
        _ => unreachable!("only wide types are raw bytes"),
    }
}
