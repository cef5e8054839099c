//! Arrays of numbers in memory: updated in place by many threads, read as of one instant, and given out as Arrow arrays.
//!
//! They are no tables: nothing of them is on disk. A table `WITH (layout = array)` is one that is.
//!
//! ```
//! use lstore::arrays::{Mechanism, Options, SnapshotArray, to_arrow};
//!
//! let positions = SnapshotArray::<i64>::new(1_000, &Options::of(Mechanism::Rewire))?;
//! let mut writer = positions.writer();            // one for each thread
//! writer.set(7, 40)?;
//! let before = positions.snapshot()?;
//! writer.add(7, 2)?;                              // goes on meanwhile
//! assert_eq!((before.sum(..)?, positions.get(7)?), (40, 42));
//! assert_eq!(to_arrow(&before, 6..9)?.values(), &[0, 40, 0]);
//! # Ok::<(), lstore::arrays::SnapshotError>(())
//! ```
use std::ops::RangeBounds;

use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrowPrimitiveType, PrimitiveArray};

pub use snapshot::{Batch, Item, Mechanism, Options, Pages, Snapshot, SnapshotArray, SnapshotError, Stop, Writer};

/// A number that Arrow has arrays of.
pub trait ArrowItem: Item {
    /// The type of these arrays.
    type Arrow: ArrowPrimitiveType<Native = Self>;
}

macro_rules! arrow_item {
    ($($item:ty: $arrow:ty),*) => {
        $(impl ArrowItem for $item {
            type Arrow = $arrow;
        })*
    };
}

arrow_item!(
    i8: Int8Type, i16: Int16Type, i32: Int32Type, i64: Int64Type, u8: UInt8Type, u16: UInt16Type, u32: UInt32Type,
    u64: UInt64Type, f32: Float32Type, f64: Float64Type
);

/// The items of `range` as an Arrow array, which has its own copy.
///
/// # Errors
/// `OutOfRange`; `Lost` where a child process is gone.
pub fn to_arrow<T: ArrowItem>(
    snapshot: &Snapshot<T>,
    range: impl RangeBounds<usize>,
) -> Result<PrimitiveArray<T::Arrow>, SnapshotError> {
    Ok(PrimitiveArray::from_iter_values(snapshot.to_vec(range)?))
}
