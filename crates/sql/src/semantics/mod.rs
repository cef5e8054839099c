//! PostgreSQL's semantics where DataFusion's differ: untyped literals, casts from and to text, integer overflow.
mod adapt;
mod casts;
mod checked;
pub(crate) mod duplicates;
pub(crate) mod numbers;
mod sum;

pub(crate) use adapt::{AdaptLiterals, LiteralPlanner};
pub(crate) use checked::CheckedIntegers;
