//! PostgreSQL's semantics where DataFusion's differ: untyped literals, casts, integer overflow, subqueries, `USING`.
mod adapt;
pub(crate) mod argument_orders;
mod arithmetic;
pub(crate) mod array_literals;
mod careful;
pub(crate) mod cast_names;
mod casts;
mod chars;
mod checked;
mod columns;
mod concatenation;
mod constants;
mod cross_joins;
mod decimals;
mod dependencies;
mod derived_tables;
mod described;
mod distinct_values;
mod distinct_windows;
pub(crate) mod duplicates;
mod escapes;
mod extremes;
mod filters;
mod float_sums;
mod frames;
mod grouped_expressions;
mod grouping;
mod inputs;
mod interval_averages;
mod interval_literals;
mod keys;
mod lengths;
mod library;
pub(crate) mod limit_values;
mod lists;
mod long_sums;
mod merged;
mod mixed;
mod moments;
mod multisets;
mod numbers;
mod offsets;
mod operand_types;
mod operators;
mod ordered;
mod ordered_sets;
mod origins;
mod outer_aggregates;
mod outer_columns;
mod plain_inputs;
mod pushdown;
pub(crate) mod quantified;
pub(crate) mod recursion;
pub(crate) mod references;
pub(crate) mod row_values;
pub(crate) mod rows;
mod set_operations;
mod sorted_aggregates;
mod spans;
mod spellings;
mod subplan;
mod sum;
mod temporal;
mod unions;
mod unnested;
pub(crate) mod unused_with;
pub(crate) mod using;
mod using_types;
mod value_tables;
pub(crate) mod values_of_subqueries;
mod visible;
pub(crate) mod visit;
mod whole_filters;
mod whole_orders;
pub(crate) mod whole_rows;
pub(crate) mod windows;
pub(crate) mod with_names;

use std::sync::Arc;

use datafusion::logical_expr::AggregateUDF;
use datafusion::sql::sqlparser::ast;

use crate::error::Result;
use crate::interrupt;

pub(crate) use adapt::{AdaptLiterals, LiteralPlanner};
pub(crate) use checked::CheckedIntegers;
pub(crate) use derived_tables::DerivedTables;
pub(crate) use described::Described;
pub(crate) use frames::Frames;
pub(crate) use grouped_expressions::GroupedExpressions;
pub(crate) use lists::WorkedOutLists;
pub(crate) use merged::functions as merged_columns;
pub(crate) use multisets::Multisets;
pub(crate) use operand_types::OperandTypes;
pub(crate) use outer_aggregates::{OuterAggregates, functions as outer_aggregates};
pub(crate) use pushdown::{optimizer_rules, physical_rules};
pub(crate) use recursion::RecursiveTypes;
pub(crate) use sorted_aggregates::SortedAggregates;
pub(crate) use subplan::{FailingConstants, Statement, Subplans, WithNames};
pub(crate) use sum::NAME as SUM;
pub(crate) use unions::NamedUnions;
pub(crate) use unnested::Unnested;
pub(crate) use using_types::UsingTypes;
pub(crate) use value_tables::ValueTables;

/// The aggregate functions, those of the library with PostgreSQL's types.
pub(crate) fn aggregates(library: &[Arc<AggregateUDF>]) -> Vec<Arc<AggregateUDF>> {
    let own = |function: &Arc<AggregateUDF>| match function.name() {
        "sum" => Arc::new(sum::function(function.clone())),
        _ => moments::function(function).map_or_else(|| function.clone(), Arc::new),
    };
    library.iter().map(own).chain([Arc::new(ordered_sets::mode())]).collect()
}

/// Brings expressions of a statement into words that the planner understands as PostgreSQL does.
pub(crate) fn spell_out(statement: &mut ast::Statement) -> Result<()> {
    array_literals::spell_out(statement)?;
    quantified::over_arrays(statement)?;
    interrupt::check()?;
    numbers::spell_out(statement)?;
    interval_literals::spell_out(statement)?;
    escapes::plain(statement);
    interrupt::check()?;
    spellings::translate(statement);
    interrupt::check()?;
    whole_rows::test_fields(statement);
    filters::guard_arguments(statement)?;
    Ok(())
}
