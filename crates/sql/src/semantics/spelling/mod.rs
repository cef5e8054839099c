//! Expressions of a statement's tree in words that the planner understands as PostgreSQL does.
//!
//! Imports `aggregates` for the spelling of frames.
mod argument_names;
pub(crate) mod array_literals;
mod called_types;
pub(crate) mod collations;
pub(crate) mod escapes;
pub(crate) mod filters;
pub(crate) mod hypothetical;
pub(crate) mod interval_literals;
pub(crate) mod json_constructors;
pub(crate) mod json_values;
pub(crate) mod limit_values;
pub(crate) mod numbers;
mod periods;
pub(crate) mod quantified;
pub(crate) mod row_values;
pub(crate) mod rows;
pub(crate) mod spellings;
pub(crate) mod table_rows;
pub(crate) mod values_of_subqueries;
mod variadics;
pub(crate) mod windows;
