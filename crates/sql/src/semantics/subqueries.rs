//! Subqueries in expressions: NULL where there is no row, and `IN` only where its NULLs come out right.
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{BinaryExpr, InSubquery, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::adapt::visible;
use crate::error::SqlError;

/// Makes scalar subqueries nullable, and refuses what would be answered as if there were no NULLs.
#[derive(Debug)]
pub(crate) struct Subqueries;

impl AnalyzerRule for Subqueries {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(analyze_node).map(|transformed| transformed.data)
    }

    fn name(&self) -> &str {
        "subqueries"
    }
}

fn analyze_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Filter(Filter { predicate, .. }) = &plan {
        let schema = visible(&plan)?;
        split_conjunction(predicate).into_iter().try_for_each(|condition| check(condition, &schema))?;
    }
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|expr| match expr {
            Expr::ScalarSubquery(subquery) => with_null(subquery),
            other => Ok(Transformed::no(other)),
        })?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })?
    .map_data(LogicalPlan::recompute_schema)
}

/// DataFusion takes a subquery for NOT NULL when its column is, though there may be no row.
fn with_null(subquery: Subquery) -> Result<Transformed<Expr>> {
    let plan = &subquery.subquery;
    let (qualifier, field) = plan.schema().qualified_field(0);
    if field.is_nullable() || has_one_row(plan) || !subquery.outer_ref_columns.is_empty() {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let name = field.name().clone();
    let column = Expr::from((qualifier, field));
    let function = Arc::new(ScalarUDF::from(Nullable { signature: Signature::any(1, Volatility::Volatile) }));
    let nullable = Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![column])).alias(name);
    let plan = LogicalPlanBuilder::new(plan.as_ref().clone()).project(vec![nullable])?.build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery })))
}

/// Whether a plan gives a row in any case, as an aggregate without groups does.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_one_row(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        _ => false,
    }
}

/// `IN (SELECT ...)` is exact as a condition of its own, and so mostly is its negation. Anywhere else they become a mark
/// that is true or false and never NULL, which only makes no difference under `AND` and `OR`.
fn check(condition: &Expr, schema: &DFSchema) -> Result<()> {
    match condition {
        Expr::InSubquery(inner) if !inner.negated || negation_is_exact(inner) => Ok(()),
        Expr::Not(inner) => match inner.as_ref() {
            Expr::InSubquery(inner) if inner.negated || negation_is_exact(inner) => Ok(()),
            other => check_marks(other, schema, false),
        },
        other => check_marks(other, schema, true),
    }
}

/// With columns of the outer query in the subquery, NULL is compared with rows that those have excluded. And a value
/// without columns becomes a filter on the subquery's rows, which takes away its NULLs.
fn negation_is_exact(expr: &InSubquery) -> bool {
    expr.subquery.outer_ref_columns.is_empty() && !expr.expr.column_refs().is_empty()
}

/// `is_filter` says that NULL is as good as false here.
fn check_marks(expr: &Expr, schema: &DFSchema, is_filter: bool) -> Result<()> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            check_marks(left, schema, is_filter)?;
            check_marks(right, schema, is_filter)
        }
        Expr::InSubquery(InSubquery { negated: false, .. }) if is_filter => Ok(()),
        other => other
            .apply(|inner| match inner {
                Expr::InSubquery(inner) if may_be_null(inner, schema) => {
                    let error = SqlError::unsupported("IN (SELECT ...) in this place, where NULLs may come in,");
                    let hint = "Write it with EXISTS or NOT EXISTS, or as a join.";
                    Err(DataFusionError::External(Box::new(error.hint(hint))))
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })
            .map(|_| ()),
    }
}

fn may_be_null(expr: &InSubquery, schema: &DFSchema) -> bool {
    expr.expr.nullable(schema).unwrap_or(true) || expr.subquery.subquery.schema().field(0).is_nullable()
}

/// Its argument, which for all anyone knows may be NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nullable {
    signature: Signature,
}

impl ScalarUDFImpl for Nullable {
    fn name(&self) -> &str {
        "nullable"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        types.first().cloned().ok_or_else(|| DataFusionError::Internal("nullable() of nothing".to_owned()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = args.arg_fields.first();
        let field = field.ok_or_else(|| DataFusionError::Internal("nullable() of nothing".to_owned()))?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.pop().ok_or_else(|| DataFusionError::Internal("nullable() of nothing".to_owned()))
    }
}
