//! PostgreSQL's semantics where DataFusion's differ: untyped literals, casts, integer overflow, subqueries, `USING`.
mod adapt;
pub(crate) mod array_literals;
pub(crate) mod cast_names;
mod casts;
mod checked;
pub(crate) mod duplicates;
pub(crate) mod escapes;
mod lists;
mod multisets;
pub(crate) mod numbers;
mod pushdown;
pub(crate) mod recursion;
pub(crate) mod rows;
mod subplan;
mod sum;
mod temporal;
mod unnested;
pub(crate) mod using;
pub(crate) mod windows;

pub(crate) use adapt::{AdaptLiterals, LiteralPlanner};
pub(crate) use checked::CheckedIntegers;
pub(crate) use multisets::Multisets;
pub(crate) use pushdown::{optimizer_rules, physical_rules};
pub(crate) use subplan::{Statement, Subplans, WithNames};
pub(crate) use unnested::Unnested;
