//! What compares ranges, shapes or addresses without an operator: `IN`, `BETWEEN`, `CASE`, `IS DISTINCT FROM`, `USING`, frames of windows.
//!
//! The planner's library has all of them compare bytes. Shapes are equal by their areas, so each becomes the operators that
//! PostgreSQL looks up for it. Of ranges, whose bytes are in their order, only `CASE` does, which the library can't do for such bytes;
//! and a frame `RANGE` without an offset is the same frame of `GROUPS`, which the library has for values of any type.
//!
//! ```text
//! b IN (x, y)                     b = x OR b = y                    b NOT IN (x, y)    b <> x AND b <> y
//! b BETWEEN x AND y               b >= x AND b <= y
//! CASE b WHEN x THEN 1 END        CASE WHEN b = x THEN 1 END
//! a IS DISTINCT FROM b            CASE WHEN a IS NULL OR b IS NULL THEN NOT (a IS NULL AND b IS NULL) ELSE NOT a = b END
//! a JOIN b USING (x)              a JOIN b ON a.x = b.x
//! ```
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, JoinConstraint, NullEquality};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Between, Case, InList, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator, WindowFrameBound, WindowFrameUnits, when,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::spaces;
use super::untyped::adapt;
use crate::error::SqlError;
use crate::semantics::operations::operand_types;
use crate::semantics::operations::spaces::{is_shape, need_operators};
use crate::semantics::operations::visible::visible;
use crate::syntax::walk::{WalkPlan, WalkTree};
use crate::values::types::is_space;

/// See the module.
#[derive(Debug)]
pub(crate) struct SpaceComparisons;

impl AnalyzerRule for SpaceComparisons {
    fn name(&self) -> &str {
        "space_comparisons"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut compares = false;
        plan.look_with_subqueries(|node| {
            compares |= may_compare(node)?;
            Ok(if compares { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        match compares {
            true => plan.change_up_with_subqueries(change_node).map(|changed| changed.data),
            false => Ok(plan),
        }
    }
}

/// Whether a node has what compares without an operator, whatever that compares.
fn may_compare(node: &LogicalPlan) -> Result<bool> {
    let mut found = matches!(node, LogicalPlan::Join(join) if join.join_constraint == JoinConstraint::Using);
    node.look_at_expressions(|expr| {
        found = found || expr.has(|part| Ok(is_comparison(part)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_comparison(expr: &Expr) -> bool {
    match expr {
        Expr::InList(_) | Expr::Between(_) => true,
        Expr::Case(case) => case.expr.is_some(),
        Expr::BinaryExpr(binary) => matches!(binary.op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom),
        Expr::WindowFunction(call) => {
            call.params.window_frame.units == WindowFrameUnits::Range && !call.params.order_by.is_empty()
        }
        _ => false,
    }
}

fn change_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !may_compare(&node)? {
        return node.recompute_schema().map(Transformed::yes);
    }
    let node = match node {
        LogicalPlan::Join(join) => LogicalPlan::Join(on_shapes(join)?),
        other => other,
    };
    let schema = visible(&node)?;
    let names = NamePreserver::new(&node);
    node.change_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.change_up(|expr| with_operators(expr, &schema))?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })?
    .map_data(LogicalPlan::recompute_schema)
}

fn of_type(expr: &Expr, schema: &DFSchema, is_such: fn(&arrow_schema::DataType) -> bool) -> bool {
    expr.get_type(schema).is_ok_and(|found| is_such(&found))
}

/// The comparison that an operator is.
fn compared(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Expr> {
    if let Some(call) = spaces::plan(op, left, right, schema)? {
        return Ok(call);
    }
    operand_types::check(op, left, right, schema)?;
    let left = adapt(left.clone(), right, schema)?;
    let right = adapt(right.clone(), &left, schema)?;
    let op = match op {
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => Operator::Eq,
    };
    Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
}

fn with_operators(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let shapes = |parts: &[&Expr]| {
        let types: Vec<_> = parts.iter().filter_map(|part| part.get_type(schema).ok()).collect();
        need_operators(types.iter())
    };
    Ok(Transformed::yes(match expr {
        Expr::InList(InList { expr, list, negated }) if list.iter().any(|item| shapes(&[&expr, item])) => {
            let op = if negated { NotEq } else { Eq };
            let each = list.iter().map(|item| compared(&op, &expr, item, schema)).collect::<Result<Vec<_>>>()?;
            let joined = |left: Expr, right| if negated { left.and(right) } else { left.or(right) };
            match each.into_iter().reduce(joined) {
                Some(joined) => joined,
                None => Expr::InList(InList { expr, list, negated }),
            }
        }
        Expr::Between(Between { expr, negated, low, high }) if shapes(&[&expr, &low, &high]) => {
            let [first, second] = if negated { [Lt, Gt] } else { [GtEq, LtEq] };
            let (low, high) = (compared(&first, &expr, &low, schema)?, compared(&second, &expr, &high, schema)?);
            if negated { low.or(high) } else { low.and(high) }
        }
        Expr::Case(Case { expr: Some(of), when_then_expr, else_expr })
            if of_type(&of, schema, is_space)
                || when_then_expr.iter().any(|(value, _)| of_type(value, schema, is_space)) =>
        {
            let condition = |(value, then): (Box<Expr>, Box<Expr>)| -> Result<(Box<Expr>, Box<Expr>)> {
                Ok((Box::new(compared(&Eq, &of, &value, schema)?), then))
            };
            let when_then_expr = when_then_expr.into_iter().map(condition).collect::<Result<_>>()?;
            Expr::Case(Case { expr: None, when_then_expr, else_expr })
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::IsDistinctFrom | Operator::IsNotDistinctFrom),
            right,
        }) if shapes(&[&left, &right]) => {
            let (is_left_null, is_right_null) = (left.clone().is_null(), right.clone().is_null());
            let differs = when(
                is_left_null.clone().or(is_right_null.clone()),
                Expr::Not(Box::new(is_left_null.and(is_right_null))),
            )
            .otherwise(Expr::Not(Box::new(compared(&Eq, &left, &right, schema)?)))?;
            if op == Operator::IsDistinctFrom { differs } else { Expr::Not(Box::new(differs)) }
        }
        Expr::WindowFunction(call) => Expr::WindowFunction(Box::new(by_groups(*call, schema)?)),
        other => return Ok(Transformed::no(other)),
    }))
}

/// A window whose frame goes by values of ranges or of `jsonb`, as one that goes by groups of equal ones.
fn by_groups(mut call: WindowFunction, schema: &DFSchema) -> Result<WindowFunction> {
    let Some(key) = call.params.order_by.first().and_then(|key| key.expr.get_type(schema).ok()) else {
        return Ok(call);
    };
    let frame = &mut call.params.window_frame;
    let is_jsonb = key == arrow_schema::DataType::LargeBinary;
    if frame.units != WindowFrameUnits::Range || !(is_space(&key) || is_jsonb) || is_shape(&key) {
        return Ok(call);
    }
    let has_offset = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => !offset.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    if has_offset(&frame.start_bound) || has_offset(&frame.end_bound) {
        let message = "RANGE with offset PRECEDING/FOLLOWING is not supported for column type anyrange";
        return Err(DataFusionError::External(Box::new(SqlError::new("0A000", message))));
    }
    frame.units = WindowFrameUnits::Groups;
    Ok(call)
}

/// A join by columns of shapes as one on a condition. One that stands for EXCEPT or INTERSECT stays as it is.
fn on_shapes(mut join: Join) -> Result<Join> {
    let schema = visible(&LogicalPlan::Join(join.clone()))?;
    let (shapes, others): (Vec<_>, Vec<_>) = join
        .on
        .drain(..)
        .partition(|(left, right)| of_type(left, &schema, is_shape) || of_type(right, &schema, is_shape));
    join.on = others;
    if join.null_equality == NullEquality::NullEqualsNull {
        join.on.extend(shapes);
        return Ok(join);
    }
    for (left, right) in shapes {
        let condition = compared(&BinaryOperator::Eq, &left, &right, &schema)?;
        join.filter = Some(match join.filter.take() {
            Some(filter) => filter.and(condition),
            None => condition,
        });
        // What stays in USING is joined by columns of one name, this by a condition.
        join.join_constraint = JoinConstraint::On;
    }
    Ok(join)
}
