//! Rules over plans: before the optimizer, in it and behind it.
//!
//! Imports `aggregates` and `operations`.
pub(crate) mod careful;
pub(crate) mod checked;
pub(crate) mod cross_joins;
pub(crate) mod dependencies;
pub(crate) mod derived_tables;
pub(crate) mod distinct_keys;
pub(crate) mod distinct_windows;
mod filters_first;
pub(crate) mod lists;
pub(crate) mod multisets;
pub(crate) mod offsets;
pub(crate) mod origins;
pub(crate) mod outer_joins;
pub(crate) mod plain_inputs;
pub(crate) mod pushdown;
pub(crate) mod recursion;
pub(crate) mod unions;
pub(crate) mod unnested;
pub(crate) mod using_types;
pub(crate) mod value_tables;
pub(crate) mod whole_filters;
pub(crate) mod whole_orders;
pub(crate) mod zoned;
