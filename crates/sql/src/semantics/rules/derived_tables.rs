//! Subqueries in FROM, as they are known while the statement around them is read.
//!
//! **Types.** What an operator does depends on the types of its operands: a quotient of integers, numerics or floats. The columns of
//! a `VALUES` or a `UNION` get the types that their numbers have in common at once, not only once the whole statement is read.
//!
//! **Names.** An alias may name the first columns only.
//!
//! **Dependencies.** Nothing is known to be determined.
//! `SELECT name FROM t GROUP BY id` is right where `id` is the primary key of `t`: what a table's key determines is added to
//! GROUP BY. PostgreSQL does so for tables, and not for what subqueries give. The library does it for both, and would take
//! columns into groups that nothing determines (see [`super::dependencies`]).
use std::cell::Cell;
use std::sync::Arc;

use arrow_schema::FieldRef;
use datafusion::common::FunctionalDependencies;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Distinct, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Ident, TableAlias, TableAliasColumnDef, TableFactor};

use super::dependencies::with_dependencies;
use crate::error::SqlError;
use crate::semantics::operations::mixed::unite;
use crate::syntax::walk::WalkTree;

thread_local! {
    /// Set while the library is asked for its plan of a table, which asks here first.
    static IS_ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Plans tables and subqueries as the library does, the latter without dependencies.
#[derive(Debug)]
pub(crate) struct DerivedTables;

impl RelationPlanner for DerivedTables {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let is_meant = matches!(relation, TableFactor::Derived { .. } | TableFactor::Table { args: None, .. });
        if IS_ASKED.take() || !is_meant {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let mut relation = relation;
        let alias = match &mut relation {
            TableFactor::Derived { alias, .. } | TableFactor::Table { alias, .. } => alias.take(),
            _ => None,
        };
        IS_ASKED.set(true);
        let planned = context.plan(relation);
        IS_ASKED.set(false);
        let plan = planned?;
        let plan = if is_table(&plan) { plan } else { without_dependencies(with_united_types(plan)?)? };
        let alias = alias.map(|alias| with_all_columns(alias, &plan)).transpose()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

/// An alias with names for all columns, of which the last may be left out and keep theirs.
fn with_all_columns(mut alias: TableAlias, plan: &LogicalPlan) -> Result<TableAlias> {
    let (named, fields) = (alias.columns.len(), plan.schema().fields());
    if named > fields.len() {
        let message = format!(
            "table \"{}\" has {} columns available but {named} columns specified",
            alias.name.value,
            fields.len()
        );
        return Err(DataFusionError::External(Box::new(SqlError::new("42P10", message))));
    }
    if named > 0 {
        let name =
            |field: &FieldRef| TableAliasColumnDef { name: Ident::with_quote('"', field.name()), data_type: None };
        alias.columns.extend(fields[named..].iter().map(name));
    }
    Ok(alias)
}

fn is_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_table(&alias.input),
        LogicalPlan::Projection(projection) => is_table(&projection.input),
        _ => false,
    }
}

fn with_united_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !plan.has(|node| Ok(matches!(node, LogicalPlan::Union(_))))? {
        return Ok(plan);
    }
    let united = plan.change_up(|node| match node {
        LogicalPlan::Union(union) => Ok(Transformed::yes(unite(union)?)),
        LogicalPlan::RecursiveQuery(_) => Ok(Transformed::no(node)),
        other => Ok(Transformed::yes(other.recompute_schema()?)),
    })?;
    Ok(united.data)
}

fn without_dependencies(plan: LogicalPlan) -> Result<LogicalPlan> {
    if plan.schema().functional_dependencies().is_empty() {
        return Ok(plan);
    }
    // These have the schema of their input.
    match plan {
        LogicalPlan::Sort(mut sort) => {
            sort.input = below(sort.input)?;
            Ok(LogicalPlan::Sort(sort))
        }
        LogicalPlan::Limit(mut limit) => {
            limit.input = below(limit.input)?;
            Ok(LogicalPlan::Limit(limit))
        }
        LogicalPlan::Filter(mut filter) => {
            filter.input = below(filter.input)?;
            Ok(LogicalPlan::Filter(filter))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => Ok(LogicalPlan::Distinct(Distinct::All(below(input)?))),
        other => with_dependencies(other, FunctionalDependencies::empty()),
    }
}

fn below(input: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    without_dependencies(Arc::unwrap_or_clone(input)).map(Arc::new)
}
