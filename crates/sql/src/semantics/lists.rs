//! `IN` lists with items that are no constants.
//!
//! The library takes an item for a constant if it gives one value for a batch without rows, as `CASE WHEN a > 1 THEN 5 END`
//! does. So one that depends on the row is wrapped in a function that gives a value for each row, and for no row none. It
//! is done last of all, as other expressions become lists while a plan is optimized.
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::walk::{WalkPlan, WalkTree};

/// Wraps the items.
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
        let names = NamePreserver::new(&plan);
        plan.change_expressions(|expr| {
            let name = names.save(&expr);
            let wrapped = expr.change_up(|expr| Ok(wrap(expr)))?;
            Ok(wrapped.update_data(|expr| name.restore(expr)))
        })
    }
}

fn wrap(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::InList(InList { expr, mut list, negated }) => {
            // One item is enough for the list to be none of constants.
            let is_known = list.iter().any(|item| matches!(item, Expr::Column(_)) || is_wrapped(item));
            let varying = list.iter_mut().find(|item| !matches!(item, Expr::Literal(..)) && varies(item));
            let changed = match varying {
                Some(item) if !is_known => {
                    let function =
                        Arc::new(ScalarUDF::from(Varying { signature: Signature::any(1, Volatility::Immutable) }));
                    let inner = std::mem::take(item);
                    *item = Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![inner]));
                    true
                }
                _ => false,
            };
            let list = Expr::InList(InList { expr, list, negated });
            if changed { Transformed::yes(list) } else { Transformed::no(list) }
        }
        other => Transformed::no(other),
    }
}

/// Whether an item may have another value in another row.
fn varies(item: &Expr) -> bool {
    item.is_volatile() || item.any_column_refs()
}

fn is_wrapped(item: &Expr) -> bool {
    matches!(item, Expr::ScalarFunction(call) if call.func.inner().is::<Varying>())
}

/// Its argument, as a value for each row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Varying {
    signature: Signature,
}

fn of_nothing() -> DataFusionError {
    DataFusionError::Internal("varying() of nothing".to_owned())
}

impl ScalarUDFImpl for Varying {
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
