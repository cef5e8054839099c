//! Types that meet: untyped literals, casts, texts of a length, in plans.
//!
//! Imports subqueries and the folders below them.
pub(crate) mod adapt;
mod alike;
pub(crate) mod arithmetic;
pub(crate) mod casts;
pub(crate) mod chars;
pub(crate) mod collated;
pub(crate) mod described;
pub(crate) mod folded;
mod json_casts;
pub(crate) mod lengths;
pub(crate) mod outer_columns;
pub(crate) mod pairs;
pub(crate) mod space_comparisons;
mod spaces;
mod unlimited;
pub(crate) mod untyped;
pub(crate) mod untyped_columns;
