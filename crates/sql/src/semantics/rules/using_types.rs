//! `JOIN ... USING` and `NATURAL JOIN` of columns that have no type in common are refused, as in PostgreSQL; and a merged
//! column becomes the one that it is, with the type of both.
use arrow_schema::DataType;
use datafusion::common::JoinConstraint;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::semantics::operations::merged;
use crate::semantics::operations::visible::visible;
use crate::syntax::walk::{WalkPlan, WalkTree};

/// See the module.
#[derive(Debug)]
pub(crate) struct UsingTypes;

impl AnalyzerRule for UsingTypes {
    fn name(&self) -> &str {
        "using_types"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_merged = false;
        plan.look_with_subqueries(|node| {
            if let LogicalPlan::Join(join) = node
                && join.join_constraint == JoinConstraint::Using
            {
                for (left, right) in &join.on {
                    merged::check(&left.get_type(join.left.schema())?, &right.get_type(join.right.schema())?)?;
                }
            }
            is_merged |= has_merged(node)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        match is_merged {
            true => plan.change_up_with_subqueries(with_columns).map(|done| done.data),
            false => Ok(plan),
        }
    }
}

/// Whether a node names merged columns.
fn has_merged(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.look_at_expressions(|expr| {
        found |= expr.has(|part| match part {
            Expr::ScalarFunction(call) => Ok(merged::is_merged(&call.func)),
            _ => Ok(false),
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn with_columns(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !has_merged(&node)? {
        return node.recompute_schema().map(Transformed::yes);
    }
    let schema = visible(&node)?;
    let names = NamePreserver::new(&node);
    node.change_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.change_up(|expr| {
            let Expr::ScalarFunction(call) = &expr else { return Ok(Transformed::no(expr)) };
            let types = call.args.iter().map(|arg| arg.get_type(&schema)).collect::<Result<Vec<DataType>>>()?;
            Ok(match merged::meant(&call.func, &call.args, &types)? {
                Some(column) => Transformed::yes(column),
                None => Transformed::no(expr),
            })
        })?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })?
    .map_data(LogicalPlan::recompute_schema)
}
