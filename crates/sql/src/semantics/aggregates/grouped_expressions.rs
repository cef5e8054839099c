//! `GROUP BY ROLLUP (a + 1)`: expressions in grouping sets are worked out below the aggregate, which then groups by columns.
//!
//! An expression changes while a plan is analyzed, and keeps its name by an alias; around all the sets of a GROUP BY an alias
//! has no meaning.
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

use crate::syntax::walk::{WalkPlan, WalkTree};

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
    let column = |expr: Expr| match computed.contains(&expr) {
        true => Expr::Column(Column::new_unqualified(expr.schema_name().to_string())),
        false => expr,
    };
    let columns = aggregate.input.schema().columns().into_iter().map(Expr::Column);
    let named = computed.iter().map(|expr| expr.clone().alias(expr.schema_name().to_string()));
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
    Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), keys, calls)?)))
}
