//! Aggregates and windows with PostgreSQL's types, orders and frames.
//!
//! Imports `operations`.
pub(crate) mod argument_orders;
pub(crate) mod distinct_values;
pub(crate) mod extremes;
pub(crate) mod float_sums;
pub(crate) mod frames;
pub(crate) mod group_averages;
pub(crate) mod group_moments;
pub(crate) mod grouped_expressions;
pub(crate) mod inputs;
pub(crate) mod interval_averages;
pub(crate) mod json;
pub(crate) mod moments;
pub(crate) mod of_doubles;
pub(crate) mod one_moment;
pub(crate) mod ordered;
pub(crate) mod ordered_sets;
pub(crate) mod percentiles;
pub(crate) mod sorted_aggregates;
pub(crate) mod sum;
pub(crate) mod unlimited;
pub(crate) mod wide_averages;
