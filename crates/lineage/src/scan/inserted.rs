//! Values of insert pages as arrays: those of a column that are words of one length and not NULL, without a look at each one's form.
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Decimal128Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use types::DataType;

use crate::page::insert::InsertPages;
use crate::scan::overlay::OfWord;
use crate::value::cell::{Storage, with_primitive};

/// The values of a column at some slots; `None` where one is NULL, or they are no such words. What has not been written is any value.
pub(crate) fn words_at(
    pages: &InsertPages,
    (column, data_type): (usize, DataType),
    slots: impl ExactSizeIterator<Item = usize> + Clone,
) -> Option<ArrayRef> {
    if pages.has_null(column, slots.clone()) {
        return None;
    }
    match Storage::of(data_type) {
        Storage::Decimal => {
            Some(array::<Decimal128Type>(data_type, pages.words(column, slots)?.map(|word| i128::from(word as i64))))
        }
        _ => with_primitive!(
            data_type,
            T => Some(array::<T>(data_type, pages.words(column, slots)?.map(OfWord::of_word))),
            _ => None
        ),
    }
}

fn array<T: ArrowPrimitiveType>(data_type: DataType, values: impl Iterator<Item = T::Native>) -> ArrayRef {
    let values: Vec<T::Native> = values.collect();
    Arc::new(PrimitiveArray::<T>::new(values.into(), None).with_data_type(data_type.to_stored_arrow()))
}
