//! Columns of a plan as a device takes them: integers of 64 bits, places of NULLs, and rows' groups as numbers from 0 on.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Date32Type, Decimal128Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::DataType;

use crate::coprocessor::JoinKeys;

/// So many groups at the most come of the ranges of keys, for each row of a portion and in any case.
const GROUPS_PER_ROW: u64 = 8;
const GROUPS_ANYHOW: u64 = 1 << 10;
const GROUPS_MAX: u64 = 1 << 22;

/// Whether values of a type are whole numbers of at most 64 bits.
pub(super) fn is_integer(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
}

/// The values of a column so far; of a NULL, 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    pub(super) values: Vec<i64>,
    /// The rows with NULL, in order.
    pub(super) nulls: Vec<u32>,
}

impl Numbers {
    /// Appends a column of integers or decimals.
    ///
    /// # Errors
    /// A decimal needs more than 64 bits; what was appended before is to be given up.
    pub(super) fn append(&mut self, column: &ArrayRef) -> Result<(), String> {
        let first = self.values.len();
        match column.data_type() {
            DataType::Int16 => self.extend(column.as_primitive::<Int16Type>()),
            DataType::Int32 => self.extend(column.as_primitive::<Int32Type>()),
            DataType::Int64 => self.extend(column.as_primitive::<Int64Type>()),
            DataType::Date32 => self.extend(column.as_primitive::<Date32Type>()),
            DataType::Decimal128(..) => {
                for (at, value) in column.as_primitive::<Decimal128Type>().values().iter().enumerate() {
                    match i64::try_from(*value) {
                        Ok(value) => self.values.push(value),
                        Err(_) if column.is_null(at) => self.values.push(0),
                        Err(_) => return Err("a decimal of more than 64 bits".to_owned()),
                    }
                }
            }
            other => return Err(format!("a column of {other}")),
        }
        if column.null_count() > 0 {
            for at in (0..column.len()).filter(|at| column.is_null(*at)) {
                self.values[first + at] = 0;
                self.nulls.push((first + at) as u32);
            }
        }
        Ok(())
    }

    fn extend<T: ArrowPrimitiveType>(&mut self, column: &PrimitiveArray<T>)
    where
        T::Native: Into<i64>,
    {
        self.values.extend(column.values().iter().map(|value| (*value).into()));
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.nulls.clear();
    }
}

/// The keys of one side of a join so far, in as many bits as the device takes; of a NULL, any.
#[derive(Debug, Default)]
pub(super) struct SideKeys {
    narrow: Vec<u32>,
    wide: Vec<u64>,
    /// The rows with NULL, in order.
    nulls: Vec<usize>,
    /// Bits of validity, lowest first, once all keys are there and some row has NULL.
    validity: Option<Vec<u8>>,
}

impl SideKeys {
    /// Appends a column of integers.
    ///
    /// # Errors
    /// It has another type.
    pub(super) fn append(&mut self, column: &ArrayRef) -> Result<(), String> {
        let first = self.rows();
        match column.data_type() {
            // With its sign, on both sides.
            DataType::Int16 => {
                self.narrow.extend(column.as_primitive::<Int16Type>().values().iter().map(|key| *key as u32));
            }
            DataType::Int32 => {
                self.narrow.extend(column.as_primitive::<Int32Type>().values().iter().map(|key| key.cast_unsigned()));
            }
            DataType::Date32 => {
                self.narrow.extend(column.as_primitive::<Date32Type>().values().iter().map(|key| key.cast_unsigned()));
            }
            DataType::Int64 => {
                self.wide.extend(column.as_primitive::<Int64Type>().values().iter().map(|key| key.cast_unsigned()));
            }
            other => return Err(format!("a column of {other}")),
        }
        if column.null_count() > 0 {
            self.nulls.extend((0..column.len()).filter(|at| column.is_null(*at)).map(|at| first + at));
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> usize {
        self.narrow.len() + self.wide.len()
    }

    /// All keys are there.
    pub(super) fn make_ready(&mut self) {
        if self.nulls.is_empty() {
            return;
        }
        let mut bits = vec![0xff; self.rows().div_ceil(8)];
        for row in &self.nulls {
            bits[row / 8] &= !(1 << (row % 8));
        }
        self.validity = Some(bits);
    }

    /// The keys as the device takes them.
    pub(super) fn keys(&self, is_wide: bool) -> JoinKeys<'_> {
        let validity = self.validity.as_deref();
        match is_wide {
            true => JoinKeys::Wide(&self.wide, validity),
            false => JoinKeys::Narrow(&self.narrow, validity),
        }
    }
}

/// The range of a key in a portion, with a place for NULL at its end if there is one.
#[derive(Clone, Copy, Debug)]
struct Span {
    min: i64,
    width: u64,
    has_null: bool,
}

impl Span {
    fn of(key: &Numbers) -> Option<Span> {
        let (mut min, mut max, mut nulls) = (i64::MAX, i64::MIN, key.nulls.iter().peekable());
        for (row, value) in key.values.iter().enumerate() {
            if nulls.next_if(|null| **null as usize == row).is_none() {
                (min, max) = (min.min(*value), max.max(*value));
            }
        }
        let values = if min <= max { max.abs_diff(min).checked_add(1)? } else { 0 };
        let has_null = !key.nulls.is_empty();
        Some(Span { min, width: values.checked_add(u64::from(has_null))?, has_null })
    }
}

/// Rows of a portion by group: the places of their keys in the keys' ranges, one behind the other.
#[derive(Debug)]
pub(super) struct Codes {
    pub(super) codes: Vec<u32>,
    pub(super) group_count: u32,
    spans: Vec<Span>,
}

impl Codes {
    /// The groups of rows with these keys.
    ///
    /// # Errors
    /// The keys are too far from each other.
    pub(super) fn of(keys: &[Numbers]) -> Result<Codes, String> {
        let rows = keys.first().map_or(0, |key| key.values.len());
        let mut of = Codes::in_spans(keys.iter().map(Span::of).collect(), rows)?;
        of.codes = vec![0u32; rows];
        let codes = &mut of.codes;
        for (key, span) in keys.iter().zip(&of.spans) {
            let width = span.width as u32;
            for (code, value) in codes.iter_mut().zip(&key.values) {
                // Of a NULL it is any number, and put right below.
                *code = (*code).wrapping_mul(width).wrapping_add(value.wrapping_sub(span.min) as u32);
            }
            for row in &key.nulls {
                let row = *row as usize;
                let other = key.values[row].wrapping_sub(span.min) as u32;
                codes[row] = codes[row].wrapping_sub(other).wrapping_add(width - 1);
            }
        }
        debug_assert!(of.codes.iter().all(|code| *code < of.group_count), "a place beyond the ranges");
        Ok(of)
    }

    /// The groups of so many rows whose keys lie between these values, and have no NULL. Somebody else knows the rows' codes.
    ///
    /// # Errors
    /// The keys are too far from each other.
    pub(super) fn between(ends: &[(i64, i64)], rows: usize) -> Result<Codes, String> {
        let span = |(min, max): &(i64, i64)| {
            let width = if min <= max { max.abs_diff(*min).checked_add(1)? } else { 1 };
            Some(Span { min: *min, width, has_null: false })
        };
        Codes::in_spans(ends.iter().map(span).collect(), rows)
    }

    fn in_spans(spans: Option<Vec<Span>>, rows: usize) -> Result<Codes, String> {
        let far = || "keys that are too far from each other".to_owned();
        let spans = spans.ok_or_else(far)?;
        let most = (rows as u64).saturating_mul(GROUPS_PER_ROW).clamp(GROUPS_ANYHOW, GROUPS_MAX);
        let all = spans.iter().try_fold(1u64, |all, span| all.checked_mul(span.width)).filter(|all| *all <= most);
        let group_count = all.and_then(|all| u32::try_from(all).ok()).ok_or_else(far)?;
        Ok(Codes { codes: Vec::new(), group_count, spans })
    }

    /// The first place of each key's range, and how many it has.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (i64, u32)> {
        self.spans.iter().map(|span| (span.min, span.width as u32))
    }

    /// The codes with all rows that have NULL in a column in one more group, behind the others.
    pub(super) fn without(&self, nulls: &[u32]) -> Vec<u32> {
        let mut codes = self.codes.clone();
        nulls.iter().for_each(|row| codes[*row as usize] = self.group_count);
        codes
    }

    /// The values of the key at this place in each of these groups.
    pub(super) fn keys(&self, key: usize, groups: &[u32]) -> Vec<Option<i64>> {
        let below: u64 = self.spans[key + 1..].iter().map(|span| span.width).product();
        let span = &self.spans[key];
        let value = |group: &u32| {
            let place = u64::from(*group) / below % span.width;
            let is_null = span.has_null && place == span.width - 1;
            (!is_null).then(|| span.min.wrapping_add(place.cast_signed()))
        };
        groups.iter().map(value).collect()
    }
}

/// An array of integers of a type.
pub(super) fn array_of(values: &[Option<i64>], data_type: &DataType) -> ArrayRef {
    let each = || values.iter().copied();
    match data_type {
        DataType::Int16 => Arc::new(each().map(|value| Some(value? as i16)).collect::<PrimitiveArray<Int16Type>>()),
        DataType::Int32 => Arc::new(each().map(|value| Some(value? as i32)).collect::<PrimitiveArray<Int32Type>>()),
        DataType::Date32 => Arc::new(each().map(|value| Some(value? as i32)).collect::<PrimitiveArray<Date32Type>>()),
        DataType::Decimal128(..) => {
            let wide: PrimitiveArray<Decimal128Type> = each().map(|value| value.map(i128::from)).collect();
            Arc::new(wide.with_data_type(data_type.clone()))
        }
        _ => Arc::new(each().collect::<PrimitiveArray<Int64Type>>()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn rows_have_one_code_where_their_keys_are_equal_and_the_code_tells_the_keys() {
        for seed in 0..50 {
            let mut random = StdRng::seed_from_u64(seed);
            let (rows, count) = (random.random_range(1..600), random.random_range(1..=3));
            let keys: Vec<Vec<Option<i64>>> = (0..count)
                .map(|_| {
                    let from = random.random::<i64>() >> random.random_range(1..60);
                    let has_nulls = random.random_range(0..2) == 0;
                    let mut key = || from + random.random_range(0..7);
                    let keys: Vec<i64> = (0..rows).map(|_| key()).collect();
                    keys.into_iter().map(|key| (!has_nulls || key % 3 != 0).then_some(key)).collect()
                })
                .collect();
            let columns: Vec<Numbers> = keys
                .iter()
                .map(|key| {
                    let mut numbers = Numbers::default();
                    key.chunks(100).for_each(|key| numbers.append(&array_of(key, &DataType::Int64)).unwrap());
                    numbers
                })
                .collect();
            let codes = Codes::of(&columns).unwrap();
            let row = |at: usize| keys.iter().map(|key| key[at]).collect::<Vec<_>>();
            let mut known = HashMap::new();
            for (at, code) in codes.codes.iter().enumerate() {
                assert_eq!(known.entry(row(at)).or_insert(*code), code, "seed {seed}");
                let told: Vec<_> = (0..count).map(|key| codes.keys(key, &[*code])[0]).collect();
                assert_eq!(told, row(at), "seed {seed}");
            }
        }
    }

    #[test]
    fn keys_far_from_each_other_and_large_decimals_are_refused() {
        let mut ends = Numbers::default();
        ends.append(&array_of(&[Some(i64::MIN), Some(i64::MAX), None], &DataType::Int64)).unwrap();
        assert!(Codes::of(&[ends]).is_err());
        let mut far = Numbers::default();
        far.append(&array_of(&[Some(0), Some(1 << 20)], &DataType::Int32)).unwrap();
        assert!(Codes::of(&[far]).is_err());
        let large: PrimitiveArray<Decimal128Type> = [Some(1i128 << 64), None].into_iter().collect();
        assert!(Numbers::default().append(&(Arc::new(large) as ArrayRef)).is_err());
    }
}
