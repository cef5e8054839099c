//! Rows that a list is spread over repeat their keys: what was unique below is not above.
//!
//! DataFusion keeps the keys of the rows below as those of the spread rows, and then drops the rest of an ORDER BY or a
//! GROUP BY behind such a key. So columns go through a function of which it does not know that it changes nothing. So do the items of a
//! list of uuids or of texts of a length, which are known as such from there on.
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnUnnestList, ColumnarValue, Expr, LogicalPlan, Projection, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Unnest, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use engine::DataType as ItemType;

use crate::syntax::walk::WalkPlan;
use crate::values::types::{field_of_items, is_marked, marked, type_of_field};

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
        let forget = |node: LogicalPlan| match node {
            LogicalPlan::Unnest(unnest) => forget_keys(unnest).and_then(mark_items).map(Transformed::yes),
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

fn forget_keys(unnest: Unnest) -> Result<Unnest> {
    let same = Same::function(None);
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
    Unnest::try_new(input, unnest.exec_columns, unnest.options)
}

/// The rows with items known as what their lists are of, where Arrow's type does not say it.
fn mark_items(unnest: Unnest) -> Result<LogicalPlan> {
    let input = unnest.input.schema().clone();
    let item = |(at, list): &(usize, ColumnUnnestList)| {
        let of = type_of_field(&field_of_items(input.field(*at)))?;
        is_marked(of).then(|| (list.output_column.clone(), of))
    };
    let marked: Vec<(Column, ItemType)> = unnest.list_type_columns.iter().filter_map(item).collect();
    if marked.is_empty() {
        return Ok(LogicalPlan::Unnest(unnest));
    }
    let known = |column: Column| match marked.iter().find(|(item, _)| *item == column) {
        Some((_, of)) => {
            let (relation, name) = (column.relation.clone(), column.name.clone());
            Same::function(Some(*of)).call(vec![Expr::Column(column)]).alias_qualified(relation, name)
        }
        None => Expr::Column(column),
    };
    let exprs = unnest.schema.columns().into_iter().map(known).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(LogicalPlan::Unnest(unnest)))?))
}

/// The function, and the type that its argument is known as.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Same {
    known: Option<ItemType>,
    signature: Signature,
}

impl Same {
    fn function(known: Option<ItemType>) -> ScalarUDF {
        ScalarUDF::from(Same { known, signature: Signature::any(1, Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for Same {
    fn name(&self) -> &str {
        "\0same"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| DataFusionError::Internal("a column without a type".to_owned()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = args.arg_fields.first().cloned();
        let field = field.ok_or_else(|| DataFusionError::Internal("a column without a type".to_owned()))?;
        Ok(match self.known {
            Some(of) => Arc::new(marked(field.as_ref().clone(), of)),
            None => field,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut args = args.args.into_iter();
        args.next().ok_or_else(|| DataFusionError::Internal("a column without values".to_owned()))
    }
}
