//! One column of a base page in encoded form: read-only, smaller than its values, and evaluated as it is.
//!
//! ```text
//!   EncodedColumn = NULL bitmap + zones (a block of 1,024 rows each) + form
//!
//!   form   raw         Arrow's buffers
//!          integers    bit-packed distances to each block's smallest key, or runs of equal keys
//!            as keys             integers, dates, times, decimals of a word, booleans, floats in their order
//!            as codes            of a sorted dictionary of keys, text, bytea, uuids, wide decimals
//!            as ALP integers     of floats, with exceptions
//! ```
//!
//! So there is one integer codec and a meaning on top, and since every meaning keeps the order, a predicate becomes
//! intervals of integers whatever the type. A block is first judged by its zone; only if that does not decide are
//! its values unpacked, 1,024 into a buffer on the stack, and compared many at a time.
//!
//! | module | subject |
//! |---|---|
//! | `column` | an encoded column: its values, what it takes |
//! | `form`, `meaning` | the list of forms; what integers stand for |
//! | `choose` | which encoding a column gets |
//! | `texts` | text whose order is known from the dictionaries of insert and tail pages |
//! | `patch` | a column with some values replaced |
//! | `select`, `aggregate` | predicates and aggregates on the encoded form |
//! | `outline` | what is known of a column that is evicted |
//! | `predicate`, `key_filter`, `aggregates`, `mask`, `zones` | what goes in and comes out of these |
//! | `raw`, `integers`, `packed`, `packing`, `dictionary`, `float`, `keys` | the forms |
//! | `simd`, `kernels`, `within` | loops for AVX-512, AVX2 and everything else |
//!
//! The ideas are those of FastLanes (VLDB 2023) and ALP (SIGMOD 2023); each module says what it does otherwise.
mod aggregate;
mod aggregates;
mod choose;
mod column;
pub(crate) mod dictionary;
pub(crate) mod float;
mod form;
pub(crate) mod integers;
mod kernels;
mod key_filter;
mod keys;
mod mask;
mod meaning;
mod outline;
pub(crate) mod packed;
mod packing;
mod patch;
mod predicate;
pub(crate) mod raw;
mod select;
pub(crate) mod simd;
#[cfg(test)]
mod tests;
mod texts;
mod within;
pub(crate) mod zones;

pub(crate) use aggregates::Adder;
pub use aggregates::{Aggregates, Sum};
pub(crate) use column::EncodedColumn;
pub use form::Encoding;
pub(crate) use form::{Form, Meaning};
#[cfg(test)]
pub(crate) use integers::BLOCKS_UNPACKED;
pub(crate) use kernels::{equal_words, extremes_of_words};
pub use key_filter::{KeyFilter, KeySet};
pub use mask::Mask;
pub(crate) use mask::ones;
pub(crate) use outline::ColumnOutline;
pub(crate) use packed::KeyRoom;
pub(crate) use predicate::CellTest;
pub use predicate::{Comparison, Test};
pub(crate) use simd::Simd;
pub(crate) use texts::NULL_NUMBER;
pub use zones::Zone;
