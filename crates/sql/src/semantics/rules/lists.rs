//! `IN` lists with items that are no constants.
//!
//! The library takes an item for a constant if it gives one value for a batch without rows, as `CASE WHEN a > 1 THEN 5 END`
//! does, and as a CASE of constants does whose branches are not those of a row. So such an item is wrapped in a function that
//! gives a value for each row, and for no row none: first before the plan is optimized, where lists of constants are worked out,
//! and then last of all, as other expressions become lists meanwhile.
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::syntax::walk::{WalkPlan, WalkTree};

/// Wraps items that are not written as constants.
#[derive(Debug)]
pub(crate) struct WorkedOutLists;

impl AnalyzerRule for WorkedOutLists {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let wrapped = plan.change_up_with_subqueries(|plan| wrap_in(plan, wrap_worked_out))?;
        Ok(wrapped.data)
    }

    fn name(&self) -> &str {
        "worked_out_lists"
    }
}

/// Wraps items that depend on the row.
#[derive(Debug)]
pub(crate) struct VaryingLists;

impl OptimizerRule for VaryingLists {
    fn name(&self) -> &str {
        "varying_lists"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        wrap_in(plan, wrap_varying)
    }
}

/// Wraps items in the lists of a node.
fn wrap_in(plan: LogicalPlan, wrap: fn(&mut [Expr]) -> bool) -> Result<Transformed<LogicalPlan>> {
    if !has_lists(&plan)? {
        return Ok(Transformed::no(plan));
    }
    let names = NamePreserver::new(&plan);
    plan.change_expressions(|expr| {
        let name = names.save(&expr);
        let wrapped = expr.change_up(|expr| match expr {
            Expr::InList(mut list) => {
                let changed = wrap(&mut list.list);
                Ok(Transformed::new_transformed(Expr::InList(list), changed))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(wrapped.update_data(|expr| name.restore(expr)))
    })
}

/// Whether there is a list among the expressions of a node. Most have none, and keeping names takes long.
fn has_lists(plan: &LogicalPlan) -> Result<bool> {
    let mut has_lists = false;
    plan.look_at_expressions(|expr| {
        has_lists = has_lists || expr.has(|expr| Ok(matches!(expr, Expr::InList(_))))?;
        Ok(if has_lists { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(has_lists)
}

/// Wraps all items that are not written as constants: some of them become constants before the list is looked at.
fn wrap_worked_out(items: &mut [Expr]) -> bool {
    let worked_out = items.iter_mut().filter(|item| is_worked_out(item));
    worked_out.map(wrap_item).count() > 0
}

/// Wraps an item that depends on the row. One is enough for the list to be none of constants.
fn wrap_varying(items: &mut [Expr]) -> bool {
    let is_known = items.iter().any(|item| matches!(item, Expr::Column(_)) || is_wrapped(item));
    let varying = items.iter_mut().find(|item| !is_known && !matches!(item, Expr::Literal(..)) && varies(item));
    varying.map(wrap_item).is_some()
}

fn wrap_item(item: &mut Expr) {
    let function = Arc::new(ScalarUDF::from(VaryingArgument { signature: Signature::any(1, Volatility::Immutable) }));
    let inner = std::mem::take(item);
    *item = Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![inner]));
}

/// Whether an item is more than a constant as it is written.
fn is_worked_out(item: &Expr) -> bool {
    match item {
        Expr::Cast(cast) => is_worked_out(&cast.expr),
        other => !matches!(other, Expr::Literal(..) | Expr::Placeholder(_)),
    }
}

/// Whether an item may have another value in another row.
fn varies(item: &Expr) -> bool {
    item.is_volatile() || item.any_column_refs()
}

fn is_wrapped(item: &Expr) -> bool {
    matches!(item, Expr::ScalarFunction(call) if call.func.inner().is::<VaryingArgument>())
}

/// Its argument, as a value for each row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct VaryingArgument {
    signature: Signature,
}

fn of_nothing() -> DataFusionError {
    DataFusionError::Internal("varying() of nothing".to_owned())
}

impl ScalarUDFImpl for VaryingArgument {
    fn name(&self) -> &str {
        "varying"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        types.first().cloned().ok_or_else(of_nothing)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        args.arg_fields.first().cloned().ok_or_else(of_nothing)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = args.args.pop().ok_or_else(of_nothing)?;
        Ok(ColumnarValue::Array(value.into_array(args.number_rows)?))
    }
}
