//! What a group determines: functional dependencies of aggregates as they are.
//!
//! A table's primary key determines the table's other columns. The library carries that through a plan, and leaves out what is
//! determined already: columns of GROUP BY and ORDER BY, a DISTINCT, a join. Above an aggregate it goes wrong. Where the
//! key `a.id` is one of the columns of a group, it takes `a.id` to determine all of them, be they of other tables:
//!
//! ```text
//! SELECT DISTINCT a.id, b.x FROM a, b      `a.id` determines `a.x`, not `b.x`: an id comes once for each `b.x`
//! ```
//!
//! Here an aggregate's dependencies are those of its input among the columns of its groups, and all columns of the groups
//! determine everything. They are put into the plan before each of the library's rules that goes by them. A rule that
//! makes aggregates anew on its way, and goes by what the library says of these, is left out where that would be too much.
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Dependency, FunctionalDependence, FunctionalDependencies};
use datafusion::error::Result;
use datafusion::logical_expr::utils::expand_wildcard;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan};
use datafusion::optimizer::eliminate_join::EliminateJoin;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::syntax::walk::{WalkPlan, WalkTree};

/// Puts the dependencies of aggregates right, and makes an aggregate of each DISTINCT.
#[derive(Debug)]
pub(crate) struct TrueDependencies;

impl OptimizerRule for TrueDependencies {
    fn name(&self) -> &str {
        "true_dependencies"
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !plan.has(|node| Ok(is_distinct(node) || is_mistaken(node)))? {
            return Ok(Transformed::no(plan));
        }
        let has_distinct = plan.has(|node| Ok(is_distinct(node)))?;
        let mended = plan.change_up_with_subqueries(|node| mended(node).map(Transformed::yes))?.data;
        // Dependencies alone are no reason to begin all rules again.
        Ok(if has_distinct { Transformed::yes(mended) } else { Transformed::no(mended) })
    }
}

/// Leaves out joins that give nothing but their other side's rows, as the library does, where it knows what is determined.
#[derive(Debug)]
pub(crate) struct CarefulJoins(pub(crate) EliminateJoin);

impl OptimizerRule for CarefulJoins {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan.has(|node| Ok(would_be_mistaken(node)))? {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}

fn is_distinct(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Distinct(Distinct::All(input)) if !input.schema().fields().is_empty())
}

fn is_mistaken(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Aggregate(aggregate) => *aggregate.schema.functional_dependencies() != of_groups(aggregate),
        _ => false,
    }
}

/// Whether the library says too much of an aggregate once it makes it anew.
fn would_be_mistaken(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Aggregate(aggregate) => !aggregate.input.schema().functional_dependencies().is_empty(),
        LogicalPlan::Distinct(Distinct::All(input)) => !input.schema().functional_dependencies().is_empty(),
        _ => false,
    }
}

/// The node with the dependencies that follow from those of its inputs.
fn mended(node: LogicalPlan) -> Result<LogicalPlan> {
    let node = match node {
        LogicalPlan::Distinct(Distinct::All(input)) if !input.schema().fields().is_empty() => grouped(input)?,
        other => other,
    };
    let dependencies = match &node {
        LogicalPlan::Aggregate(aggregate) => of_groups(aggregate),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Join(_) | LogicalPlan::Window(_) => {
            node.clone().recompute_schema()?.schema().functional_dependencies().clone()
        }
        _ => return Ok(node),
    };
    with_dependencies(node, dependencies)
}

/// A DISTINCT as groups of all its columns, or its input where no row comes twice.
fn grouped(input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let columns = expand_wildcard(input.schema(), &input, None)?;
    let is_unique = |dependency: &FunctionalDependence| {
        dependency.mode == Dependency::Single
            && !dependency.nullable
            && dependency.target_indices.len() >= columns.len()
    };
    if input.schema().functional_dependencies().iter().any(is_unique) {
        return Ok(Arc::unwrap_or_clone(input));
    }
    Ok(LogicalPlan::Aggregate(Aggregate::try_new(input, columns, Vec::new())?))
}

/// The node with these dependencies, if it has a schema of its own.
pub(crate) fn with_dependencies(mut node: LogicalPlan, dependencies: FunctionalDependencies) -> Result<LogicalPlan> {
    let schema = match &mut node {
        LogicalPlan::Aggregate(aggregate) => &mut aggregate.schema,
        LogicalPlan::Projection(projection) => &mut projection.schema,
        LogicalPlan::SubqueryAlias(alias) => &mut alias.schema,
        LogicalPlan::Join(join) => &mut join.schema,
        LogicalPlan::Window(window) => &mut window.schema,
        _ => return Ok(node),
    };
    if *schema.functional_dependencies() != dependencies {
        *schema = Arc::new(schema.as_ref().clone().with_functional_dependencies(dependencies)?);
    }
    Ok(node)
}

/// What the columns of an aggregate's groups determine.
fn of_groups(aggregate: &Aggregate) -> FunctionalDependencies {
    let groups = &aggregate.group_expr;
    // Of an expression that comes twice there is one column.
    let are_columns = aggregate.schema.fields().len() == groups.len() + aggregate.aggr_expr.len();
    if groups.is_empty() || !are_columns || groups.iter().any(|group| matches!(group, Expr::GroupingSet(_))) {
        return FunctionalDependencies::empty();
    }
    let (input, count) = (aggregate.input.schema(), groups.len());
    let all: Vec<usize> = (0..aggregate.schema.fields().len()).collect();
    let places: Vec<Option<usize>> =
        groups.iter().map(|group| group.try_as_col().and_then(|column| input.maybe_index_of_column(column))).collect();
    let mut found = Vec::new();
    for dependency in input.functional_dependencies().iter() {
        let group_of = |place: &usize| places.iter().position(|group| *group == Some(*place));
        let sources: Option<Vec<usize>> = dependency.source_indices.iter().map(group_of).collect();
        let Some(sources) = sources else { continue };
        let targets: Vec<usize> = (0..count)
            .filter(|group| {
                sources.contains(group)
                    || places[*group].is_some_and(|place| dependency.target_indices.contains(&place))
            })
            .collect();
        found.push(if targets.len() == count {
            FunctionalDependence::new(sources, all.clone(), dependency.nullable).with_mode(Dependency::Single)
        } else {
            FunctionalDependence::new(sources, targets, dependency.nullable).with_mode(Dependency::Multi)
        });
    }
    if !found.iter().any(|dependency| dependency.mode == Dependency::Single) {
        let nullable = (0..count).any(|group| aggregate.schema.field(group).is_nullable());
        let whole = FunctionalDependence::new((0..count).collect(), all, nullable).with_mode(Dependency::Single);
        found.push(whole);
    }
    FunctionalDependencies::new(found)
}
