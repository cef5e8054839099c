//! One column of a base page.
use arrow_array::{Array, ArrayRef};
use types::DataType;

use crate::cell::{ArrayCells, Cell, ColumnBuilder};

/// One column of a base page.
pub struct EncodedColumn {
    array: ArrayRef,
    data_type: DataType,
}

impl EncodedColumn {
    pub fn encode(array: &ArrayRef, data_type: DataType) -> EncodedColumn {
        EncodedColumn { array: array.clone(), data_type }
    }
    pub fn len(&self) -> usize {
        self.array.len()
    }
    #[inline]
    pub fn cell(&self, slot: usize) -> Cell<'_> {
        ArrayCells::new(self.array.as_ref(), self.data_type).get(slot)
    }
    pub fn decode(&self, from: usize, to: usize) -> ArrayRef {
        self.array.slice(from, to - from)
    }
    pub fn patched(&self, patches: &[(usize, Cell<'_>)]) -> EncodedColumn {
        let mut builder = ColumnBuilder::new(self.data_type, self.len());
        let mut patches = patches.iter().peekable();
        for slot in 0..self.len() {
            match patches.next_if(|(at, _)| *at == slot) {
                Some((_, cell)) => builder.push(*cell),
                None => builder.push(self.cell(slot)),
            }
        }
        EncodedColumn { array: builder.finish(), data_type: self.data_type }
    }
    pub fn bytes(&self) -> usize {
        self.array.get_array_memory_size()
    }
}
