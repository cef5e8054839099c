//! `GROUP BY ROLLUP (a + 1)`: expressions in grouping sets are worked out below the aggregate, which then groups by columns.
//!
//! An expression changes while a plan is analyzed, and keeps its name by an alias; around all the sets of a GROUP BY an alias
//! has no meaning. A cast is called as what it casts: where both would stand below the aggregate, the cast has a name of its own there,
//! and gets back that of before above it.
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

use crate::syntax::walk::{WalkPlan, WalkTree};

/// How the name of a cast begins below the aggregate, where what it casts has its name.
const CAST: &str = "\0cast ";

/// See the module.
#[derive(Debug)]
pub(crate) struct GroupedExpressions;

impl AnalyzerRule for GroupedExpressions {
    fn name(&self) -> &str {
        "grouped_expressions"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.change_up_with_subqueries(|node| match node {
            LogicalPlan::Aggregate(aggregate) => with_columns(aggregate),
            other => Ok(Transformed::no(other)),
        })
        .map(|done| done.data)
    }
}

fn with_columns(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let mut computed: Vec<Expr> = Vec::new();
    for key in &aggregate.group_expr {
        if let Expr::GroupingSet(set) = key {
            for expr in set.distinct_expr() {
                if !matches!(expr, Expr::Column(_)) && !computed.contains(expr) {
                    computed.push(expr.clone());
                }
            }
        }
    }
    if computed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let taken: HashSet<String> = aggregate.input.schema().columns().iter().map(Column::flat_name).collect();
    let name = |expr: &Expr| {
        let name = expr.schema_name().to_string();
        if taken.contains(&name) { format!("{CAST}{name}") } else { name }
    };
    let column = |expr: Expr| match computed.contains(&expr) {
        true => Expr::Column(Column::new_unqualified(name(&expr))),
        false => expr,
    };
    let columns = aggregate.input.schema().columns().into_iter().map(Expr::Column);
    let named = computed.iter().map(|expr| expr.clone().alias(name(expr)));
    let input = LogicalPlanBuilder::from(aggregate.input.as_ref().clone()).project(columns.chain(named))?.build()?;
    let all = |exprs: Vec<Expr>| exprs.into_iter().map(column).collect::<Vec<Expr>>();
    let keys = aggregate.group_expr.iter().cloned().map(|key| match key {
        Expr::GroupingSet(GroupingSet::Rollup(exprs)) => Expr::GroupingSet(GroupingSet::Rollup(all(exprs))),
        Expr::GroupingSet(GroupingSet::Cube(exprs)) => Expr::GroupingSet(GroupingSet::Cube(all(exprs))),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            Expr::GroupingSet(GroupingSet::GroupingSets(sets.into_iter().map(all).collect()))
        }
        other => column(other),
    });
    let keys = keys.collect();
    let names = NamePreserver::new(&LogicalPlan::Aggregate(aggregate.clone()));
    // What a call of `grouping` names are keys.
    let calls = aggregate.aggr_expr.iter().cloned().map(|expr| {
        let name = names.save(&expr);
        let changed = expr.change_down(|expr| match expr {
            Expr::AggregateFunction(mut call) if call.func.name() == "grouping" => {
                call.params.args = all(std::mem::take(&mut call.params.args));
                Ok(Transformed::yes(Expr::AggregateFunction(call)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(name.restore(changed.data))
    });
    let calls = calls.collect::<Result<Vec<Expr>>>()?;
    let grouped = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), keys, calls)?);
    let is_renamed = computed.iter().any(|expr| name(expr).starts_with(CAST));
    let done = if is_renamed { with_names_of(&aggregate, grouped)? } else { grouped };
    Ok(Transformed::yes(done))
}

/// The columns of an aggregate by the names that it had before, but for the number of the set, which nothing above asks for.
fn with_names_of(before: &Aggregate, grouped: LogicalPlan) -> Result<LogicalPlan> {
    let columns = before.schema.iter().zip(grouped.schema().columns());
    let shown = columns.filter(|(_, column)| column.name != Aggregate::INTERNAL_GROUPING_ID);
    let named = shown.map(|((qualifier, field), column)| match column.name == *field.name() {
        true => Expr::Column(column),
        false => Expr::Column(column).alias_qualified(qualifier.cloned(), field.name()),
    });
    let named: Vec<Expr> = named.collect();
    LogicalPlanBuilder::from(grouped).project(named)?.build()
}
