//! PostgreSQL's semantics where DataFusion's differ: untyped literals, casts, integer overflow, subqueries, `USING`.
//!
//! | folder | subject |
//! |---|---|
//! | `operations` | operators, numbers of several types, constants |
//! | `aggregates` | aggregates and windows |
//! | `rules` | rules over plans |
//! | `subplan` | subqueries in expressions, and LATERAL |
//! | `spelling` | expressions of a statement's tree |
//! | `outer_aggregates` | aggregates of columns of an outer query |
//! | `adapting` | types that meet |
//! | `naming` | names in a statement's tree |
//!
//! Each folder imports only those above it. The whole imports functions, `access` and below; planning imports it.
pub(crate) mod adapting;
pub(crate) mod aggregates;
pub(crate) mod naming;
pub(crate) mod operations;
mod outer_aggregates;
pub(crate) mod rules;
pub(crate) mod spelling;
mod subplan;

use std::sync::Arc;

use datafusion::logical_expr::AggregateUDF;
use datafusion::sql::sqlparser::ast;

use crate::error::Result;
use crate::interrupt;
use crate::semantics::aggregates::{json, moments, of_doubles, ordered_sets, percentiles, sum};
use crate::semantics::naming::whole_rows;
use crate::semantics::spelling::{
    array_literals, escapes, filters, hypothetical, interval_literals, json_constructors, json_values, numbers,
    quantified, spellings,
};

pub(crate) use adapting::adapt::{AdaptLiterals, LiteralPlanner};
pub(crate) use adapting::collated::CollatedColumns;
pub(crate) use adapting::described::DescribeColumns;
pub(crate) use adapting::folded::FoldedTexts;
pub(crate) use adapting::space_comparisons::SpaceComparisons;
pub(crate) use adapting::untyped_columns::UntypedColumns;
pub(crate) use aggregates::frames::Frames;
pub(crate) use aggregates::grouped_expressions::GroupedExpressions;
pub(crate) use aggregates::sorted_aggregates::SortedAggregates;
pub(crate) use operations::merged::functions as merged_columns;
pub(crate) use operations::operand_types::OperandTypes;
pub(crate) use outer_aggregates::{OuterAggregates, functions as outer_aggregates};
pub(crate) use rules::checked::CheckedIntegers;
pub(crate) use rules::derived_tables::DerivedTables;
pub(crate) use rules::lists::WorkedOutLists;
pub(crate) use rules::multisets::Multisets;
pub(crate) use rules::pushdown::{optimizer_rules, physical_rules};
pub(crate) use rules::recursion::RecursiveTypes;
pub(crate) use rules::unions::NamedUnions;
pub(crate) use rules::unnested::UnnestedRows;
pub(crate) use rules::using_types::UsingTypes;
pub(crate) use rules::value_tables::ValueTables;
pub(crate) use rules::zoned::ZonedTimes;
pub(crate) use subplan::{FailingConstants, SharedPlan, SharedQuery, Statement, Subplans, WithNames, is_steady};

/// The aggregate functions, those of the library with PostgreSQL's types.
pub(crate) fn aggregates(library: &[Arc<AggregateUDF>]) -> Vec<Arc<AggregateUDF>> {
    let own = |function: &Arc<AggregateUDF>| match function.name() {
        "sum" => Arc::new(sum::function(function.clone())),
        _ => {
            let own = moments::function(function).or_else(|| of_doubles::function(function));
            own.map_or_else(|| function.clone(), Arc::new)
        }
    };
    let of_library = library.iter().filter(|function| function.name() != "percentile_cont").map(own);
    let ordered = [Arc::new(ordered_sets::mode())].into_iter().chain(percentiles::functions());
    of_library.chain(ordered).chain(json::functions()).collect()
}

/// Brings expressions of a statement into words that the planner understands as PostgreSQL does.
pub(crate) fn spell_out(statement: &mut ast::Statement) -> Result<()> {
    array_literals::spell_out(statement)?;
    json_constructors::spell_out(statement)?;
    json_values::spell_out(statement);
    quantified::over_arrays(statement)?;
    interrupt::check()?;
    numbers::spell_out(statement)?;
    interval_literals::spell_out(statement)?;
    escapes::plain(statement);
    hypothetical::spell_out(statement)?;
    interrupt::check()?;
    spellings::translate(statement)?;
    interrupt::check()?;
    whole_rows::test_fields(statement);
    filters::guard_arguments(statement)?;
    Ok(())
}
