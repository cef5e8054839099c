//! Arithmetic that fails as PostgreSQL's does when its result does not fit, where DataFusion's wraps around or becomes
//! infinite, and quotients and products of decimals with PostgreSQL's digits.
use std::sync::Arc;

use arrow_schema::DataType as ArrowType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;

use crate::semantics::aggregates::float_sums;
use crate::semantics::operations::operators::CheckedOperator;
use crate::semantics::operations::visible::{has_expressions, visible};
use crate::syntax::walk::{WalkPlan, WalkTree};

/// Replaces the operators of arithmetic. Runs once the types of both sides are the same.
#[derive(Debug)]
pub(crate) struct CheckedIntegers;

impl AnalyzerRule for CheckedIntegers {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.change_up_with_subqueries(check_node).map(|transformed| transformed.data)
    }

    fn name(&self) -> &str {
        "checked_integers"
    }
}

fn check_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !has_expressions(&plan)? {
        return Ok(Transformed::no(plan));
    }
    let schema = visible(&plan)?;
    let names = NamePreserver::new(&plan);
    let checked = |expr: Expr| match expr {
        Expr::BinaryExpr(binary) if is_arithmetic(binary.op) => operator(binary, &schema),
        Expr::Negative(inner) => match number(&inner, &schema) {
            Some(of) => Transformed::yes(CheckedOperator::negated(*inner, of)),
            None => Transformed::no(Expr::Negative(inner)),
        },
        Expr::AggregateFunction(mut call) if is_of_floats(&call.params.args, &schema) => {
            match float_sums::watched(&call.func) {
                Some(function) if !call.params.distinct => {
                    call.func = function;
                    Transformed::yes(Expr::AggregateFunction(call))
                }
                _ => Transformed::no(Expr::AggregateFunction(call)),
            }
        }
        other => Transformed::no(other),
    };
    plan.change_expressions(|expr| {
        let name = names.save(&expr);
        let transformed = expr.change_up(|expr| Ok(checked(expr)))?;
        Ok(transformed.update_data(|expr| name.restore(expr)))
    })
}

fn is_of_floats(args: &[Expr], schema: &DFSchema) -> bool {
    args.len() == 1 && matches!(number(&args[0], schema), Some(ArrowType::Float64 | ArrowType::Float32))
}

fn is_arithmetic(op: Operator) -> bool {
    matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo)
}

/// An operator as a function that fails, where it is one of numbers.
fn operator(binary: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let BinaryExpr { left, op, right } = binary;
    let function = match (number(&left, schema), number(&right, schema)) {
        _ if op == Operator::Modulo && are_decimals(&left, &right, schema) => remainder(&left, &right, schema),
        (Some(left), Some(right)) if left == right && (op != Operator::Modulo || left.is_integer()) => {
            Some(CheckedOperator::function(op, left))
        }
        _ => None,
    };
    match function {
        Some(function) => {
            let call = ScalarFunction::new_udf(Arc::new(function), vec![*left, *right]);
            Transformed::yes(Expr::ScalarFunction(call))
        }
        None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}

fn are_decimals(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    [left, right].iter().all(|side| side.get_type(schema).is_ok_and(|found| found.is_decimal()))
}

/// The function for `%` of decimals, of which the library takes any number divided by one to leave nothing.
fn remainder(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<ScalarUDF> {
    let remainder = BinaryExpr::new(Box::new(left.clone()), Operator::Modulo, Box::new(right.clone()));
    let of = Expr::BinaryExpr(remainder).get_type(schema).ok()?;
    Some(CheckedOperator::function(Operator::Modulo, of))
}

/// The type of an expression that is an integer or a float. DataFusion finds a type by going through the whole tree
/// below; in a long chain of operators that would be done once for each of them.
fn number(expr: &Expr, schema: &DFSchema) -> Option<ArrowType> {
    let data_type = match expr {
        Expr::ScalarFunction(call) => match call.func.inner().downcast_ref::<CheckedOperator>() {
            Some(checked) => Some(checked.of().clone()),
            None => expr.get_type(schema).ok(),
        },
        // An operand that was not replaced is no such number.
        Expr::BinaryExpr(binary) if is_arithmetic(binary.op) => None,
        other => other.get_type(schema).ok(),
    };
    data_type.filter(|found| {
        matches!(
            found,
            ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64 | ArrowType::Float32 | ArrowType::Float64
        )
    })
}
