//! The values of a column as text, its type looked at once and not for each value.
//!
//! Whole numbers, decimals, dates, booleans and texts are written without a text of their own; of all else [`text_value`] gives the text.
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    Array, BooleanArray, Date32Array, Decimal128Array, Int16Array, Int32Array, Int64Array, StringViewArray,
};
use arrow_schema::DataType;
use types::civil;

use super::date_form;
use super::text::text_value;

/// A column of a batch, to be written as text.
pub struct TextColumn<'a> {
    array: &'a dyn Array,
    values: Values<'a>,
}

enum Values<'a> {
    Boolean(&'a BooleanArray),
    Int16(&'a Int16Array),
    Int32(&'a Int32Array),
    Int64(&'a Int64Array),
    /// With so many digits after the point.
    Decimal(&'a Decimal128Array, usize),
    Date(&'a Date32Array),
    Text(&'a StringViewArray),
    Other,
}

impl<'a> TextColumn<'a> {
    /// The values of an array.
    pub fn new(array: &'a dyn Array) -> TextColumn<'a> {
        let values = match array.data_type() {
            DataType::Boolean => Values::Boolean(array.as_boolean()),
            DataType::Int16 => Values::Int16(array.as_primitive::<Int16Type>()),
            DataType::Int32 => Values::Int32(array.as_primitive::<Int32Type>()),
            DataType::Int64 => Values::Int64(array.as_primitive::<Int64Type>()),
            DataType::Decimal128(_, scale) if *scale >= 0 => {
                Values::Decimal(array.as_primitive::<Decimal128Type>(), scale.unsigned_abs().into())
            }
            DataType::Date32 if !date_form::is_asked() => Values::Date(array.as_primitive::<Date32Type>()),
            DataType::Utf8View => Values::Text(array.as_string_view()),
            _ => Values::Other,
        };
        TextColumn { array, values }
    }

    /// Whether the texts are made of digits, `-`, `.`, `t` and `f` alone.
    pub fn is_plain(&self) -> bool {
        match &self.values {
            Values::Boolean(_) | Values::Int16(_) | Values::Int32(_) | Values::Int64(_) | Values::Decimal(..) => true,
            Values::Date(_) | Values::Text(_) | Values::Other => false,
        }
    }

    /// Appends the text form that PostgreSQL gives the value in a row; false for NULL, of which nothing is appended.
    pub fn append(&self, out: &mut Vec<u8>, row: usize) -> bool {
        if self.array.is_null(row) || self.array.data_type().is_null() {
            return false;
        }
        self.append_value(out, row)
    }

    /// As [`append`](Self::append), for a caller that knows that the value is not NULL.
    #[inline]
    pub(crate) fn append_value(&self, out: &mut Vec<u8>, row: usize) -> bool {
        let mut digits = itoa::Buffer::new();
        match &self.values {
            Values::Boolean(values) => out.push(if values.value(row) { b't' } else { b'f' }),
            Values::Int16(values) => out.extend_from_slice(digits.format(values.value(row)).as_bytes()),
            Values::Int32(values) => out.extend_from_slice(digits.format(values.value(row)).as_bytes()),
            Values::Int64(values) => out.extend_from_slice(digits.format(values.value(row)).as_bytes()),
            Values::Decimal(values, scale) => decimal(out, values.value(row), *scale),
            Values::Date(values) => date(out, values.value(row)),
            Values::Text(values) => out.extend_from_slice(values.value(row).as_bytes()),
            Values::Other => match text_value(self.array, row) {
                Some(text) => out.extend_from_slice(text.as_bytes()),
                None => return false,
            },
        }
        true
    }
}

fn decimal(out: &mut Vec<u8>, unscaled: i128, scale: usize) {
    let mut digits = itoa::Buffer::new();
    let magnitude = unscaled.unsigned_abs();
    // Almost all of them have 64 bits, of which the digits come faster.
    let text = match u64::try_from(magnitude) {
        Ok(short) => digits.format(short),
        Err(_) => digits.format(magnitude),
    };
    if unscaled < 0 {
        out.push(b'-');
    }
    let whole = text.len().saturating_sub(scale);
    match whole {
        0 => out.push(b'0'),
        whole => out.extend_from_slice(&text.as_bytes()[..whole]),
    }
    if scale > 0 {
        out.push(b'.');
        out.extend(std::iter::repeat_n(b'0', scale.saturating_sub(text.len())));
        out.extend_from_slice(&text.as_bytes()[whole..]);
    }
}

fn date(out: &mut Vec<u8>, days: i32) {
    let (year, month, day) = civil(days.into());
    match (1..10_000).contains(&year) {
        true => {
            let two = |number: i64| [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
            out.extend_from_slice(&two(year / 100));
            out.extend_from_slice(&two(year % 100));
            out.push(b'-');
            out.extend_from_slice(&two(month));
            out.push(b'-');
            out.extend_from_slice(&two(day));
        }
        false => out.extend_from_slice(super::datetime::format_date(days.into()).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BinaryViewArray, Float64Array, TimestampMicrosecondArray};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn same(array: &ArrayRef) {
        let column = TextColumn::new(array.as_ref());
        for row in 0..array.len() {
            let mut out = b"before".to_vec();
            let is_there = column.append(&mut out, row);
            let text = String::from_utf8(out.split_off(6)).unwrap();
            assert_eq!(is_there.then_some(text), text_value(array.as_ref(), row), "{:?} {row}", array.data_type());
        }
    }

    #[test]
    fn a_column_writes_the_text_of_each_value() {
        let random = &mut StdRng::seed_from_u64(1);
        for scale in 0i8..38 {
            let bits = random.random_range(0..64);
            let mut numbers = |is_there: f64| -> Vec<Option<i64>> {
                let number = |random: &mut StdRng| random.random_bool(is_there).then(|| random.random::<i64>() >> bits);
                (0..20).map(|_| number(random)).collect()
            };
            let (numbers, others) = (numbers(0.9), numbers(1.0));
            let of = |shift: u32| numbers.iter().map(move |number| number.map(|number| number >> shift));
            let wide = || numbers.iter().zip(&others).map(|(one, two)| Some(i128::from((*one)?) * i128::from((*two)?)));
            let decimal = |values: Decimal128Array| values.with_precision_and_scale(38, scale).unwrap();
            let arrays: [ArrayRef; 12] = [
                Arc::new(of(48).map(|n| n.map(|n| n as i16)).collect::<Int16Array>()),
                Arc::new(of(32).map(|n| n.map(|n| n as i32)).collect::<Int32Array>()),
                Arc::new(of(0).collect::<Int64Array>()),
                Arc::new(of(0).map(|n| n.map(|n| n > 0)).collect::<BooleanArray>()),
                Arc::new(decimal(wide().map(|n| n.map(|n| n % 10i128.pow(38))).collect())),
                Arc::new(decimal(of(0).map(|n| n.map(i128::from)).collect())),
                Arc::new(of(40).map(|n| n.map(|n| n as i32)).collect::<Date32Array>()),
                Arc::new(of(48).map(|n| n.map(|n| n as i32)).collect::<Date32Array>()),
                Arc::new(of(0).map(|n| n.map(|n| n.to_string())).collect::<StringViewArray>()),
                Arc::new(of(0).map(|n| n.map(|n| n as f64)).collect::<Float64Array>()),
                Arc::new(of(8).collect::<TimestampMicrosecondArray>()),
                Arc::new(of(0).map(|n| n.map(i64::to_be_bytes)).collect::<BinaryViewArray>()),
            ];
            arrays.iter().for_each(same);
        }
    }
}
