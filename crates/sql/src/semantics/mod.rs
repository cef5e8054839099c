//! PostgreSQL's semantics where DataFusion's differ: untyped literals, casts, integer overflow, subqueries, `USING`.
mod adapt;
pub(crate) mod array_literals;
pub(crate) mod cast_names;
mod casts;
mod checked;
pub(crate) mod duplicates;
pub(crate) mod escapes;
pub(crate) mod numbers;
mod pushdown;
mod subqueries;
mod sum;
mod temporal;
pub(crate) mod using;

pub(crate) use adapt::{AdaptLiterals, LiteralPlanner};
pub(crate) use checked::CheckedIntegers;
pub(crate) use pushdown::{optimizer_rules, physical_rules};
pub(crate) use subqueries::Subqueries;
