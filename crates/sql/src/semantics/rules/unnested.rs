//! Rows that a list is spread over repeat their keys: what was unique below is not above.
//!
//! DataFusion keeps the keys of the rows below as those of the spread rows, and then drops the rest of an ORDER BY or a
//! GROUP BY behind such a key. So columns go through a function of which it does not know that it changes nothing.
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, Projection, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Unnest, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::syntax::walk::WalkPlan;

/// See the module.
#[derive(Debug)]
pub(crate) struct UnnestedRows;

impl AnalyzerRule for UnnestedRows {
    fn name(&self) -> &str {
        "unnested_rows_repeat_keys"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !spreads(&plan)? {
            return Ok(plan);
        }
        let same = Arc::new(ScalarUDF::from(Same(Signature::any(1, Volatility::Immutable))));
        let forget = |node: LogicalPlan| match node {
            LogicalPlan::Unnest(unnest) => forget_keys(unnest, &same).map(Transformed::yes),
            other if spreads(&other)? => other.recompute_schema().map(Transformed::yes),
            other => Ok(Transformed::no(other)),
        };
        plan.change_up_with_subqueries(forget).map(|done| done.data)
    }
}

/// Whether any part of a plan, subqueries included, spreads lists.
fn spreads(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.look_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Unnest(_));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn forget_keys(unnest: Unnest, same: &Arc<ScalarUDF>) -> Result<LogicalPlan> {
    let input = match unnest.input.as_ref() {
        LogicalPlan::Projection(below) => {
            let hidden = |expr: &Expr| match expr {
                Expr::Column(column) => {
                    same.call(vec![expr.clone()]).alias_qualified(column.relation.clone(), &column.name)
                }
                other => other.clone(),
            };
            let exprs = below.expr.iter().map(hidden).collect();
            Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, below.input.clone())?))
        }
        _ => unnest.input.clone(),
    };
    Unnest::try_new(input, unnest.exec_columns, unnest.options).map(LogicalPlan::Unnest)
}

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Same(Signature);

impl ScalarUDFImpl for Same {
    fn name(&self) -> &str {
        "\0same"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| DataFusionError::Internal("a column without a type".to_owned()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        args.arg_fields.first().cloned().ok_or_else(|| DataFusionError::Internal("a column without a type".to_owned()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut args = args.args.into_iter();
        args.next().ok_or_else(|| DataFusionError::Internal("a column without values".to_owned()))
    }
}
