//! Putting a few values over a block of an Arrow array: how a scan brings a block of a base page to its snapshot.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_select::interleave::interleave;
use types::DataType;

use crate::value::cell::{Cell, Storage, with_primitive};
use crate::value::column_builder::ColumnBuilder;

/// `block` with each cell in the place that it names.
pub(crate) fn overlay(block: ArrayRef, data_type: DataType, cells: &[(u32, Cell<'_>)]) -> ArrayRef {
    match Storage::of(data_type) {
        _ if cells.is_empty() => block,
        Storage::Decimal => words::<Decimal128Type>(block, cells, |word| i128::from(word as i64)),
        _ => with_primitive!(
            data_type,
            T => words::<T>(block, cells, OfWord::of_word),
            _ => interleaved(&block, data_type, cells)
        ),
    }
}

/// Numbers that words stand for.
pub(super) trait OfWord {
    /// The number that a word stands for.
    fn of_word(word: u64) -> Self;
}

macro_rules! of_word {
    ($($native:ty: $word:ident => $number:expr),*) => {
        $(impl OfWord for $native {
            #[inline]
            fn of_word($word: u64) -> $native {
                $number
            }
        })*
    };
}
of_word!(i16: word => word as i16, i32: word => word as i32, i64: word => word as i64,
         f32: word => f32::from_bits(word as u32), f64: word => f64::from_bits(word));

/// In place where nobody else has the block.
fn words<T: ArrowPrimitiveType>(
    block: ArrayRef,
    cells: &[(u32, Cell<'_>)],
    native: impl Fn(u64) -> T::Native,
) -> ArrayRef {
    let (data_type, values, nulls) = block.as_primitive::<T>().clone().into_parts();
    drop(block);
    let mut values = values.into_inner().into_vec::<T::Native>().unwrap_or_else(|values| values.typed_data().to_vec());
    let mut valid: Option<BooleanBufferBuilder> = nulls.map(|nulls| {
        let mut builder = BooleanBufferBuilder::new(nulls.len());
        builder.append_buffer(nulls.inner());
        builder
    });
    for (at, cell) in cells {
        let at = *at as usize;
        if let Cell::Word(word) = cell {
            values[at] = native(*word);
        }
        let is_valid = *cell != Cell::Null;
        if valid.is_none() && !is_valid {
            let mut all = BooleanBufferBuilder::new(values.len());
            all.append_n(values.len(), true);
            valid = Some(all);
        }
        if let Some(valid) = &mut valid {
            valid.set_bit(at, is_valid);
        }
    }
    let nulls = valid.map(|mut valid| NullBuffer::new(valid.finish()));
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls).with_data_type(data_type))
}

fn interleaved(block: &ArrayRef, data_type: DataType, cells: &[(u32, Cell<'_>)]) -> ArrayRef {
    let mut builder = ColumnBuilder::new(data_type, cells.len());
    let mut places: Vec<(usize, usize)> = (0..block.len()).map(|at| (0, at)).collect();
    for (i, (at, cell)) in cells.iter().enumerate() {
        builder.push(*cell);
        places[*at as usize] = (1, i);
    }
    let patches = builder.finish();
    interleave(&[block.as_ref(), patches.as_ref()], &places).expect("both arrays have the column's type")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::cell::{ArrayCells, Scratch, cell_of_value, value_of_cell};
    use types::Value;

    fn array(data_type: DataType, values: &[Value]) -> ArrayRef {
        let mut builder = ColumnBuilder::new(data_type, values.len());
        values.iter().for_each(|value| builder.push(cell_of_value(value, data_type, &mut Scratch::default())));
        builder.finish()
    }

    #[test]
    fn cells_take_their_places_and_nothing_else_changes() {
        let samples: [(DataType, [Value; 2]); 5] = [
            (DataType::BigInt, [Value::BigInt(-5), Value::BigInt(7)]),
            (DataType::Boolean, [Value::Boolean(true), Value::Boolean(false)]),
            (DataType::Double, [Value::Double(-0.0), Value::Double(1.5)]),
            (DataType::TEXT, [Value::from("short"), Value::from("a text of more than twelve bytes")]),
            (DataType::Decimal { precision: 12, scale: 2 }, [Value::decimal(-1, 2), Value::decimal(250, 2)]),
        ];
        for (data_type, [a, b]) in samples {
            for nulls in [false, true] {
                let c = if nulls { Value::Null } else { a.clone() };
                let block = array(data_type, &[a.clone(), b.clone(), c.clone(), b.clone()]);
                let mut scratch = Scratch::default();
                let cells = [(0, Cell::Null), (2, cell_of_value(&b, data_type, &mut scratch))];
                let laid = overlay(block.clone(), data_type, &cells);
                assert_eq!(laid.data_type(), block.data_type());
                let laid = ArrayCells::new(&laid, data_type);
                let found: Vec<Value> = (0..4).map(|at| value_of_cell(laid.get(at), data_type)).collect();
                assert_eq!(found, [Value::Null, b.clone(), b.clone(), b.clone()], "{data_type}");
            }
        }
    }
}
