//! Functions of numbers.
//!
//! Imports no other folder of functions.
pub(crate) mod bits;
pub(crate) mod degrees;
pub(crate) mod floats;
pub(crate) mod nulls;
pub(crate) mod numerics;
pub(crate) mod rounding;
pub(crate) mod unlimited;
pub(crate) mod zeros;
