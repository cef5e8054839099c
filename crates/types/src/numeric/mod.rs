//! Numbers of any precision, as `numeric` without limits has them.
//!
//! A number is kept in bytes that compare as the numbers do, so that indexes and scans need not know what they are:
//!
//! ```text
//! how large it is: 1 byte, or 4   digits of base 100: 1 byte each   decimals shown beyond those needed: none, 1 or 3 bytes
//! \___________________________ the key ____________________________/
//! ```
//!
//! The first byte orders minus infinity, negative numbers, zero, positive numbers, infinity and NaN, in this order; of a number in
//! between it has the count of digits before the point, with three bytes behind it where that is very large or small. A digit `d` is
//! kept as `2 d + 1`, the last one as `2 d`, so that no key is the beginning of another one. All these bytes of a negative number are
//! turned over. There is no digit 0 at either end, so that a number has one key: `1.5` and `1.50` are equal, and differ in the bytes
//! behind their keys alone.
mod arithmetic;
mod exact;
mod kept;
mod text;

#[cfg(test)]
mod tests;

pub use arithmetic::{Number, NumericFault};
pub use exact::{DECIMALS_MAX, Exact, WHOLE_MAX, quotient, ten};
pub use kept::{Numeric, key_of, small};
pub use text::NumericTextFault;
