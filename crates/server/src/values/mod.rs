//! Values on the wire: PostgreSQL's type numbers, and the text and binary form of each type, out and in.
pub(crate) mod binary;
pub(crate) mod numeric;
pub(crate) mod oids;
pub(crate) mod parameters;
pub(crate) mod rows;
mod spaces;

/// Days from 1970-01-01 to 2000-01-01, from where PostgreSQL counts.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_MICROS: i64 = 10_957 * 86_400_000_000;
