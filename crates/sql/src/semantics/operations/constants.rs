//! Constant expressions are worked out when a statement is planned, so that one that fails is an error although no row ever
//! comes to it: `SELECT sqrt(-1) FROM t` of an empty `t`, `WHERE a = 1/0`, `LIMIT 0`.
//!
//! What is not reached is no error, by PostgreSQL's rules: in `AND`, `OR`, `CASE` and `coalesce` the operands are looked at
//! from the left to the right, up to the constant that decides; a column of a query in FROM that nobody reads is not looked
//! at. A column that is a constant in a plain query in FROM is that constant outside of it.
//!
//! ```text
//! node by node, from the inputs up:   fold(expression)  ─▶  its value, if it is a constant
//!                                                       ─▶  the error of a part that is one
//! after an error                      once more over the plan without the columns that nobody reads
//! ```
//!
//! The values only decide what is looked at: the plan stays as it is. Each part is worked out once, from the values of its
//! parts, so that the time is linear in the size of the plan.
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType as ArrowType, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::expr::{Between, Case, Cast, Exists, InList, InSubquery, Like, ScalarFunction};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, Volatility, lit};
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::{Optimizer, OptimizerContext};
use datafusion::physical_expr::create_physical_expr;

use crate::error::SqlError;
use crate::interrupt;
use crate::syntax::walk::WalkPlan;

/// Functions that are not worked out beforehand: what they give depends on settings in PostgreSQL, or they give rows.
const NOT_BEFOREHAND: [&str; 15] = [
    "\0series",
    "array_to_string",
    "concat",
    "concat_ws",
    "format",
    "generate_series",
    "make_timestamptz",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
    "to_char",
    "to_date",
    "to_number",
    "to_timestamp",
    "unnest",
];

/// The longest list that is searched for a value beforehand.
const ITEMS_MAX: usize = 100;

/// The error of a function that stands for a plan of its own, if it has one.
pub(crate) type Nested<'a> = dyn Fn(&ScalarFunction) -> Result<()> + 'a;

/// An error if a constant of a plan fails.
pub(crate) fn check(plan: &LogicalPlan, nested: &Nested<'_>) -> Result<()> {
    let walk = Walk { nested };
    let Err(failure) = walk.plan(plan) else { return Ok(()) };
    let pruning = Optimizer::with_rules(vec![Arc::new(OptimizeProjections::new())]);
    match pruning.optimize(plan.clone(), &OptimizerContext::new(), |_, _| {}) {
        Ok(pruned) => walk.plan(&pruned).map(drop),
        Err(_) => Err(failure),
    }
}

/// The value of a constant without columns, if it has one.
pub(crate) fn value(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Alias(alias) => value(&alias.expr),
        Expr::Cast(cast) if matches!(*cast.expr, Expr::Literal(..)) => evaluate(expr).ok().flatten(),
        _ => None,
    }
}

/// Whether a plan is one of plain rows, up to the next query in FROM: nothing is collected or repeated.
fn is_plain(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_plain(&projection.input),
        LogicalPlan::Filter(filter) => is_plain(&filter.input),
        LogicalPlan::Join(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::TableScan(_)
        | LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Values(values) => values.values.len() == 1,
        _ => false,
    }
}

/// The constant that an expression is, if it is one.
type Known = Option<ScalarValue>;

struct Walk<'a> {
    nested: &'a Nested<'a>,
}

/// The constants among the columns of the inputs of a node.
struct Inputs<'a> {
    of: Vec<(&'a DFSchema, Vec<Known>)>,
}

impl Inputs<'_> {
    fn value(&self, column: &Column) -> Known {
        let known = |(schema, values): &(&DFSchema, Vec<Known>)| {
            let at = schema.maybe_index_of_column(column).filter(|_| !values.is_empty())?;
            values.get(at).cloned().flatten()
        };
        self.of.iter().find_map(known)
    }
}

impl Walk<'_> {
    /// The constants among the columns of a plan; none at all if there is none.
    fn plan(&self, plan: &LogicalPlan) -> Result<Vec<Known>> {
        interrupt::check_plan()?;
        let mut inputs = Inputs { of: Vec::new() };
        for input in plan.inputs() {
            inputs.of.push((input.schema().as_ref(), self.plan(input)?));
        }
        let fold = Fold { walk: self, inputs: &inputs };
        let mut values = Vec::new();
        plan.look_at_expressions(|expr| {
            values.push(fold.fold(expr)?);
            Ok(TreeNodeRecursion::Continue)
        })?;
        let known = match plan {
            LogicalPlan::Projection(projection) if is_plain(&projection.input) => values,
            LogicalPlan::Values(_) if is_plain(plan) => values,
            LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_) => inputs.of.swap_remove(0).1,
            LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
                let of_side = |(schema, mut values): (&DFSchema, Vec<Known>)| {
                    values.resize(schema.fields().len(), None);
                    values
                };
                inputs.of.into_iter().flat_map(of_side).collect()
            }
            LogicalPlan::Join(join) if join.join_type == JoinType::Left => inputs.of.swap_remove(0).1,
            _ => Vec::new(),
        };
        Ok(if known.iter().any(Option::is_some) { known } else { Vec::new() })
    }
}

struct Fold<'a> {
    walk: &'a Walk<'a>,
    inputs: &'a Inputs<'a>,
}

impl Fold<'_> {
    fn fold(&self, expr: &Expr) -> Result<Known> {
        match expr {
            Expr::Literal(value, _) => Ok(Some(value.clone())),
            Expr::Alias(alias) => self.fold(&alias.expr),
            Expr::Column(column) => Ok(self.inputs.value(column)),
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                self.logic(left, *op == Operator::Or, right)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (left, right) = (self.fold(left)?, self.fold(right)?);
                operator(left, *op, right)
            }
            Expr::Not(inner) => Ok(match self.fold(inner)? {
                Some(ScalarValue::Boolean(value)) => Some(ScalarValue::Boolean(value.map(|value| !value))),
                _ => None,
            }),
            Expr::Case(case) => self.case(case),
            Expr::ScalarFunction(function) if function.name() == "coalesce" => self.first_known(&function.args),
            Expr::ScalarFunction(function) => self.function(function),
            Expr::Cast(cast) => self.cast(cast),
            Expr::InList(InList { expr, list, negated }) => self.member(expr, list, *negated),
            Expr::Between(between) => self.between(between),
            Expr::Exists(Exists { subquery, .. }) | Expr::ScalarSubquery(subquery) => {
                self.walk.plan(&subquery.subquery).map(|_| None)
            }
            Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
                self.fold(expr)?;
                self.walk.plan(&subquery.subquery).map(|_| None)
            }
            // It gives rows, and its arguments alone are looked at.
            Expr::Unnest(unnest) => self.parts(&unnest.expr).map(|_| None),
            Expr::IsNull(inner) => Ok(self.fold(inner)?.map(|value| ScalarValue::Boolean(Some(value.is_null())))),
            Expr::IsNotNull(inner) => Ok(self.fold(inner)?.map(|value| ScalarValue::Boolean(Some(!value.is_null())))),
            Expr::Negative(inner) => {
                let negated = self.fold(inner)?.map(|value| Expr::Negative(Box::new(lit(value))));
                evaluate_if(negated)
            }
            Expr::Like(like) => self.pattern(like).map(|like| like.map(Expr::Like)).and_then(evaluate_if),
            Expr::SimilarTo(like) => self.pattern(like).map(|like| like.map(Expr::SimilarTo)).and_then(evaluate_if),
            other => self.parts(other).map(|_| None),
        }
    }

    /// Looks at the parts of an expression.
    fn parts(&self, expr: &Expr) -> Result<()> {
        expr.apply_children(|part| {
            self.fold(part)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// The comparison of constants with a pattern.
    fn pattern(&self, like: &Like) -> Result<Option<Like>> {
        let (expr, pattern) = (self.fold(&like.expr)?, self.fold(&like.pattern)?);
        let (Some(expr), Some(pattern)) = (expr, pattern) else { return Ok(None) };
        let (expr, pattern) = (Box::new(lit(expr)), Box::new(lit(pattern)));
        Ok(Some(Like { negated: like.negated, expr, pattern, ..*like }))
    }

    /// `left AND right`, or `OR`, which the value `decides` decides.
    fn logic(&self, left: &Expr, decides: bool, right: &Expr) -> Result<Known> {
        let decisive = ScalarValue::Boolean(Some(decides));
        let left = self.fold(left)?;
        if left.as_ref() == Some(&decisive) {
            return Ok(left);
        }
        let right = self.fold(right)?;
        if right.as_ref() == Some(&decisive) {
            return Ok(right);
        }
        let is_null = |side: &Known| side.as_ref().is_some_and(ScalarValue::is_null);
        Ok(match (&left, &right) {
            (Some(_), Some(_)) if is_null(&left) || is_null(&right) => Some(ScalarValue::Boolean(None)),
            (Some(_), Some(_)) => Some(ScalarValue::Boolean(Some(!decides))),
            _ => None,
        })
    }

    /// `coalesce` does not look behind the first constant that is not NULL.
    fn first_known(&self, args: &[Expr]) -> Result<Known> {
        let mut is_first = true;
        for arg in args {
            match self.fold(arg)? {
                Some(value) if value.is_null() => {}
                Some(value) => return Ok(Some(value).filter(|_| is_first)),
                None => is_first = false,
            }
        }
        Ok(None)
    }

    fn case(&self, case: &Case) -> Result<Known> {
        let operand = case.expr.as_ref().map(|expr| self.fold(expr)).transpose()?;
        let mut is_first = true;
        for (when, then) in &case.when_then_expr {
            let when = self.fold(when)?;
            let condition = match &operand {
                None => when,
                Some(operand) => operator(operand.clone(), Operator::Eq, when)?,
            };
            match condition {
                // Neither this nor a later branch is reached otherwise.
                Some(ScalarValue::Boolean(Some(true))) => {
                    return self.fold(then).map(|value| value.filter(|_| is_first));
                }
                Some(_) => {}
                None => {
                    is_first = false;
                    self.fold(then)?;
                }
            }
        }
        let last = case.else_expr.as_ref().map(|last| self.fold(last)).transpose()?.flatten();
        Ok(last.filter(|_| is_first))
    }

    fn function(&self, function: &ScalarFunction) -> Result<Known> {
        (self.walk.nested)(function)?;
        let mut values = Vec::with_capacity(function.args.len());
        for arg in &function.args {
            values.push(self.fold(arg)?);
        }
        let is_beforehand =
            function.func.signature().volatility == Volatility::Immutable && !NOT_BEFOREHAND.contains(&function.name());
        let Some(values) = values.into_iter().collect::<Option<Vec<_>>>().filter(|_| is_beforehand) else {
            return Ok(None);
        };
        if values.iter().any(|value| has_zone(&value.data_type())) {
            return Ok(None);
        }
        let args = values.into_iter().map(lit).collect();
        evaluate(&Expr::ScalarFunction(ScalarFunction::new_udf(function.func.clone(), args)))
    }

    fn cast(&self, cast: &Cast) -> Result<Known> {
        match self.fold(&cast.expr)? {
            Some(value) if is_plain_cast(&value.data_type(), cast.field.data_type()) => {
                evaluate(&Expr::Cast(Cast { expr: Box::new(lit(value)), field: cast.field.clone() }))
            }
            _ => Ok(None),
        }
    }

    fn member(&self, expr: &Expr, list: &[Expr], negated: bool) -> Result<Known> {
        let value = self.fold(expr)?;
        let mut items = Vec::new();
        for item in list {
            items.push(self.fold(item)?);
        }
        match (value, items.into_iter().collect::<Option<Vec<_>>>()) {
            (Some(value), Some(items)) if items.len() <= ITEMS_MAX => {
                let list = items.into_iter().map(lit).collect();
                evaluate(&Expr::InList(InList { expr: Box::new(lit(value)), list, negated }))
            }
            _ => Ok(None),
        }
    }

    /// `x BETWEEN low AND high` is `x >= low AND x <= high`.
    fn between(&self, between: &Between) -> Result<Known> {
        let (value, low) = (self.fold(&between.expr)?, self.fold(&between.low)?);
        let negated = |value: Known| match value {
            Some(ScalarValue::Boolean(value)) => {
                Some(ScalarValue::Boolean(value.map(|value| value != between.negated)))
            }
            _ => None,
        };
        let is_above = operator(value.clone(), Operator::GtEq, low)?;
        if is_above == Some(ScalarValue::Boolean(Some(false))) {
            return Ok(negated(is_above));
        }
        let is_below = operator(value, Operator::LtEq, self.fold(&between.high)?)?;
        Ok(match (is_above, is_below) {
            (Some(ScalarValue::Boolean(Some(true))), is_below) => negated(is_below),
            _ => None,
        })
    }
}

/// A binary operator other than `AND` and `OR`.
fn operator(left: Known, op: Operator, right: Known) -> Result<Known> {
    let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
    if has_zone(&left.data_type()) && !op.supports_propagation() {
        return Ok(None);
    }
    evaluate(&Expr::BinaryExpr(BinaryExpr { left: Box::new(lit(left)), op, right: Box::new(lit(right)) }))
}

/// What depends on the session's time zone in PostgreSQL is not worked out beforehand.
fn has_zone(of: &ArrowType) -> bool {
    matches!(of, ArrowType::Timestamp(_, Some(_)))
}

/// Whether a cast depends on nothing but its value: how a date is written and read depends on settings.
fn is_plain_cast(from: &ArrowType, to: &ArrowType) -> bool {
    let is_text = |of: &ArrowType| matches!(of, ArrowType::Utf8 | ArrowType::Utf8View);
    let is_set = |of: &ArrowType| of.is_temporal() || of.is_nested();
    let is_of_settings =
        has_zone(from) || has_zone(to) || (is_text(from) && is_set(to)) || (is_set(from) && is_text(to));
    !is_of_settings
}

fn evaluate_if(expr: Option<Expr>) -> Result<Known> {
    expr.map_or(Ok(None), |expr| evaluate(&expr))
}

/// The value of an expression whose parts are literals. Errors that are not about the values are those of running it.
fn evaluate(expr: &Expr) -> Result<Known> {
    let (columns, context) = (DFSchema::empty(), PhysicalPlanningContext::default());
    let Ok(physical) = create_physical_expr(expr, &columns, &ExecutionProps::new(), &context) else { return Ok(None) };
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
    match physical.evaluate(&row) {
        Ok(ColumnarValue::Scalar(value)) => Ok(Some(value)),
        Ok(ColumnarValue::Array(values)) => ScalarValue::try_from_array(&values, 0).map(Some),
        Err(error) if is_about_values(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

fn is_about_values(error: &DataFusionError) -> bool {
    match error {
        DataFusionError::ArrowError(error, _) => is_arrow_about_values(error),
        DataFusionError::External(error) => is_boxed_about_values(error.as_ref()),
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => is_about_values(error),
        DataFusionError::Shared(error) => is_about_values(error),
        DataFusionError::Execution(_) => true,
        _ => false,
    }
}

fn is_arrow_about_values(error: &ArrowError) -> bool {
    match error {
        ArrowError::ExternalError(error) => is_boxed_about_values(error.as_ref()),
        ArrowError::DivideByZero
        | ArrowError::ArithmeticOverflow(_)
        | ArrowError::CastError(_)
        | ArrowError::ParseError(_)
        | ArrowError::ComputeError(_) => true,
        _ => false,
    }
}

fn is_boxed_about_values(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<SqlError>() {
        return error.sqlstate.starts_with("22") || error.sqlstate == "54000";
    }
    let inner = error.downcast_ref::<DataFusionError>().map(is_about_values);
    inner.or_else(|| error.downcast_ref::<ArrowError>().map(is_arrow_about_values)).unwrap_or(false)
}
