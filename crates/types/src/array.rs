//! Arrays of one dimension, as the bytes in which they are kept; [`array_items`](crate::array_items) has their form.
use crate::ArrayItem;

/// An array of one dimension, as it is kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ArrayValue {
    item: ArrayItem,
    bytes: Box<[u8]>,
}

impl ArrayValue {
    /// The array that is kept as these bytes.
    pub fn from_bytes(item: ArrayItem, bytes: &[u8]) -> ArrayValue {
        ArrayValue { item, bytes: bytes.into() }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The type of its items.
    pub fn item(&self) -> ArrayItem {
        self.item
    }
}
