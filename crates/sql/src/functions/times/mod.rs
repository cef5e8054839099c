//! Functions of dates, times and intervals.
//!
//! Imports no other folder of functions.
pub(crate) mod calendar;
pub(crate) mod days;
pub(crate) mod in_zone;
pub(crate) mod intervals;
pub(crate) mod parts;
pub(crate) mod templates;
mod truncation;
pub(crate) mod zones;
