//! Subqueries of which a join gives the right answer, in the plain form in which the library gets them.
//!
//! ```text
//! [projection]             EXISTS needs none, IN that of one column; of a scalar one its expressions over the aggregate
//!   [aggregate]            only of a scalar one, without groups
//!     filter               alone names columns of the outer query
//!       projection         every column under a name that occurs once
//!         the rest         names no column of the outer query
//! ```
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_schema::{DataType as ArrowType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Spans};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::utils::{
    conjunction, disjunction, split_binary, split_conjunction, split_conjunction_owned,
};
use datafusion::logical_expr::{
    Aggregate, ColumnarValue, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility,
};

use super::scope::{self, subquery_of};
use crate::syntax::walk::WalkTree;

/// A subquery for `EXISTS`, if a join gives its answer.
pub(super) fn exists(plan: &LogicalPlan, visible: &DFSchema) -> Result<Option<Subquery>> {
    let Some(parts) = Parts::of_set(plan, visible)? else { return Ok(None) };
    if parts.outer.is_empty() {
        // Whether there is a row at all is asked once.
        return Ok(None);
    }
    let (filtered, _) = parts.filtered()?;
    Ok(Some(subquery(filtered)))
}

/// A subquery for `IN`, if a join gives its answer.
pub(super) fn members(plan: &LogicalPlan, visible: &DFSchema) -> Result<Option<Subquery>> {
    let column = |plan: LogicalPlan| {
        let name = plan.schema().columns().swap_remove(0);
        let one = LogicalPlanBuilder::from(plan).project(vec![Expr::Column(name).alias(unique("member"))])?;
        Ok(Some(subquery(one.build()?)))
    };
    if !scope::is_open(plan)? {
        return column(plan.clone());
    }
    let Some(parts) = Parts::of_set(plan, visible)? else { return Ok(None) };
    let Some([value]) = parts.values.as_deref() else { return Ok(None) };
    if value.contains_outer() || has_subquery(value)? {
        return Ok(None);
    }
    let value = value.clone().unalias_nested().data;
    let (filtered, renamed) = parts.filtered()?;
    let value = renamed.apply(value)?.alias(unique("member"));
    Ok(Some(subquery(LogicalPlanBuilder::from(filtered).project(vec![value])?.build()?)))
}

/// A scalar subquery, if a join gives its answer: one of an aggregate without groups over rows that are equal to the outer
/// query's, or one without columns of the outer query, which the library runs once.
pub(super) fn scalar(plan: &LogicalPlan, visible: &DFSchema) -> Result<Option<Subquery>> {
    if !scope::is_open(plan)? {
        return nullable(plan.clone()).map(Some);
    }
    let LogicalPlan::Projection(projection) = plan else { return Ok(None) };
    let LogicalPlan::Aggregate(aggregate) = projection.input.as_ref() else { return Ok(None) };
    let [value] = &projection.expr[..] else { return Ok(None) };
    let inside = aggregate.aggr_expr.iter().chain([value]);
    for expr in inside {
        if expr.contains_outer() || has_subquery(expr)? {
            return Ok(None);
        }
    }
    if !aggregate.group_expr.is_empty() || aggregate.aggr_expr.is_empty() {
        return Ok(None);
    }
    let Some(parts) = Parts::of(&aggregate.input, visible)? else { return Ok(None) };
    if parts.values.is_some() || parts.outer.is_empty() || !parts.outer.iter().all(is_equality) {
        return Ok(None);
    }
    let (filtered, renamed) = parts.filtered()?;
    let calls: Result<Vec<Expr>> = aggregate.aggr_expr.iter().map(|call| renamed.apply(call.clone())).collect();
    let inner = Aggregate::try_new(Arc::new(filtered), Vec::new(), calls?)?;
    let columns = aggregate.schema.columns().into_iter().zip(inner.schema.columns());
    let renamed = RenamedColumns(columns.collect());
    let value = renamed.apply(value.clone().unalias_nested().data)?.alias(unique("value"));
    let plain = LogicalPlanBuilder::from(LogicalPlan::Aggregate(inner)).project(vec![value])?.build()?;
    Ok(Some(subquery(plain)))
}

fn subquery(plan: LogicalPlan) -> Subquery {
    Subquery { outer_ref_columns: plan.all_out_ref_exprs(), subquery: Arc::new(plan), spans: Spans::new() }
}

fn has_subquery(expr: &Expr) -> Result<bool> {
    expr.has(|expr| Ok(subquery_of(expr).is_some()))
}

/// Whether a condition sets an expression of the outer query equal to a column of the subquery: by others the library can't
/// group, and would look for the column where its name is another.
fn is_equality(condition: &Expr) -> bool {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let (outer, inner) = if left.contains_outer() { (left, right) } else { (right, left) };
            outer.column_refs().is_empty() && is_column(inner)
        }
        _ => false,
    }
}

/// Whether an expression is a column, or a cast of one.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => matches!(*cast.expr, Expr::Column(_)),
        _ => false,
    }
}

/// A condition as several, where each branch of its `OR` has them: `a AND b OR a AND c` is `a` and `b OR c`. A join asks for an
/// equality that stands by itself.
fn factored(condition: Expr) -> Vec<Expr> {
    if !condition.contains_outer() || condition.is_volatile() {
        return vec![condition];
    }
    let branches: Vec<Vec<&Expr>> = split_binary(&condition, Operator::Or).into_iter().map(split_conjunction).collect();
    let [first, others @ ..] = &branches[..] else { return vec![condition] };
    let in_all = |part: &&&Expr| others.iter().all(|branch| branch.contains(*part));
    let common: Vec<&Expr> = first.iter().filter(in_all).copied().collect();
    if common.is_empty() || others.is_empty() {
        return vec![condition];
    }
    let mut factored: Vec<Expr> = common.iter().map(|part| (*part).clone()).collect();
    let rest = |branch: &Vec<&Expr>| {
        conjunction(branch.iter().filter(|part| !common.contains(*part)).map(|part| (*part).clone()))
    };
    // A branch of nothing else makes the others needless.
    if let Some(rests) = branches.iter().map(rest).collect::<Option<Vec<Expr>>>() {
        factored.extend(disjunction(rests));
    }
    factored
}

/// A name that no other column of any plan has.
fn unique(what: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("\0{what} {}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A subquery taken to pieces.
struct Parts {
    /// The expressions of the projection, if there is one.
    values: Option<Vec<Expr>>,
    /// The conditions that name columns of the outer query.
    outer: Vec<Expr>,
    /// The others.
    inner: Vec<Expr>,
    rest: LogicalPlan,
}

/// Columns and what they have become.
struct RenamedColumns(Vec<(Column, Column)>);

impl RenamedColumns {
    fn apply(&self, expr: Expr) -> Result<Expr> {
        let renamed = expr.change_up(|expr| match expr {
            Expr::Column(column) => match self.0.iter().find(|(old, _)| *old == column) {
                Some((_, new)) => Ok(Transformed::yes(Expr::Column(new.clone()))),
                None => Err(DataFusionError::Internal(format!("no column {column} in a subquery"))),
            },
            other => Ok(Transformed::no(other)),
        })?;
        Ok(renamed.data)
    }
}

impl Parts {
    /// Takes a plan to pieces of which the order of rows does not matter, nor how often there is one.
    fn of_set(mut plan: &LogicalPlan, visible: &DFSchema) -> Result<Option<Parts>> {
        loop {
            plan = match plan {
                LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
                LogicalPlan::Distinct(Distinct::All(input)) => input,
                _ => return Parts::of(plan, visible),
            };
        }
    }

    /// Takes a plan to pieces, if it is of the form, and all columns of outer queries are visible where it stands.
    fn of(plan: &LogicalPlan, visible: &DFSchema) -> Result<Option<Parts>> {
        let (mut rest, mut values, mut conditions) = (plan, None, Vec::new());
        loop {
            rest = match rest {
                LogicalPlan::Projection(projection) if values.is_none() && conditions.is_empty() => {
                    values = Some(projection.expr.clone());
                    &projection.input
                }
                LogicalPlan::Filter(filter) => {
                    conditions.extend(split_conjunction_owned(filter.predicate.clone()).into_iter().flat_map(factored));
                    &filter.input
                }
                _ => break,
            };
        }
        if scope::is_open(rest)? {
            return Ok(None);
        }
        let (outer, inner): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(Expr::contains_outer);
        for condition in outer.iter().chain(&inner) {
            if has_subquery(condition)? || condition.is_volatile() {
                return Ok(None);
            }
        }
        let all_visible = scope::open_references(plan)?.iter().all(|(_, column)| visible.has_column(column));
        Ok(all_visible.then(|| Parts { values, outer, inner, rest: rest.clone() }))
    }

    /// The filtered rows, their columns renamed.
    fn filtered(self) -> Result<(LogicalPlan, RenamedColumns)> {
        let table = unique("subquery");
        let old = self.rest.schema().columns();
        let names = (0..old.len()).map(|at| format!("{at}"));
        let projected = old.iter().cloned().zip(names.clone()).map(|(column, name)| Expr::Column(column).alias(name));
        let rest = LogicalPlanBuilder::from(self.rest.clone()).project(projected)?.alias(table.as_str())?;
        let new = names.map(|name| Column::new(Some(table.as_str()), name));
        let renamed = RenamedColumns(old.into_iter().zip(new).collect());
        let conditions: Result<Vec<Expr>> =
            self.inner.into_iter().chain(self.outer).map(|condition| renamed.apply(condition)).collect();
        let filtered = match conjunction(conditions?) {
            Some(condition) => rest.filter(condition)?,
            None => rest,
        };
        Ok((filtered.build()?, renamed))
    }
}

/// A scalar subquery without columns of the outer query. The library takes it for NOT NULL when its column is, though
/// there may be no row.
fn nullable(plan: LogicalPlan) -> Result<Subquery> {
    let (qualifier, field) = plan.schema().qualified_field(0);
    if has_one_row(&plan) {
        return Ok(subquery(plan));
    }
    let name = field.name().clone();
    let column = Expr::from((qualifier, field));
    let function = Arc::new(ScalarUDF::from(Nullable { signature: Signature::any(1, Volatility::Volatile) }));
    let value = Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![column])).alias(name);
    Ok(subquery(LogicalPlanBuilder::from(plan).project(vec![value])?.build()?))
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

/// The name of the function that makes a value one that may be NULL.
pub(super) const NULLABLE: &str = "nullable";

/// Its argument, which for all anyone knows may be NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nullable {
    signature: Signature,
}

fn of_nothing() -> DataFusionError {
    DataFusionError::Internal("nullable() of nothing".to_owned())
}

impl ScalarUDFImpl for Nullable {
    fn name(&self) -> &str {
        NULLABLE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        types.first().cloned().ok_or_else(of_nothing)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = args.arg_fields.first().ok_or_else(of_nothing)?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.pop().ok_or_else(of_nothing)
    }
}
