//! Integer arithmetic that fails when its result does not fit, where DataFusion's wraps around, and quotients of
//! decimals with more than four digits.
use std::sync::Arc;

use arrow_schema::DataType as ArrowType;
use datafusion::arrow::compute::kernels::numeric::{add, mul, sub};
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    AggregateUDF, BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, WindowFunctionDefinition, cast,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

use super::adapt::visible;
use super::sum::IntegerSum;

/// The digits after the point that a dividend has at least; DataFusion gives the quotient four more.
const DIVIDEND_SCALE: i8 = 6;

/// Replaces `+`, `-`, `*` and `sum` of integers. Runs once the types of both sides are the same.
#[derive(Debug)]
pub(crate) struct CheckedIntegers;

impl AnalyzerRule for CheckedIntegers {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(check_node).map(|transformed| transformed.data)
    }

    fn name(&self) -> &str {
        "checked_integers"
    }
}

fn check_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = visible(&plan)?;
    let names = NamePreserver::new(&plan);
    let checked = |expr: Expr| match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::Plus | Operator::Minus | Operator::Multiply),
            right,
        }) if let Some(of) = integer(&left, &schema)
            && integer(&right, &schema).is_some() =>
        {
            let function = Arc::new(Checked::function(op, of));
            Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![*left, *right])))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right })
            if matches!(right.get_type(&schema), Ok(ArrowType::Decimal128(..)))
                && let Ok(ArrowType::Decimal128(precision, scale @ ..DIVIDEND_SCALE)) = left.get_type(&schema) =>
        {
            let precision = precision.saturating_add((DIVIDEND_SCALE - scale).unsigned_abs()).min(38);
            let left = Box::new(cast(*left, ArrowType::Decimal128(precision, DIVIDEND_SCALE)));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }))
        }
        Expr::AggregateFunction(mut call)
            if is_integer_sum(&call.func, call.params.distinct, &call.params.args, &schema) =>
        {
            call.func = IntegerSum::function();
            Transformed::yes(Expr::AggregateFunction(call))
        }
        Expr::WindowFunction(mut call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function)
                if is_integer_sum(function, call.params.distinct, &call.params.args, &schema) =>
            {
                call.fun = WindowFunctionDefinition::AggregateUDF(IntegerSum::function());
                Transformed::yes(Expr::WindowFunction(call))
            }
            _ => Transformed::no(Expr::WindowFunction(call)),
        },
        other => Transformed::no(other),
    };
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let transformed = expr.transform_up(|expr| Ok(checked(expr)))?;
        Ok(transformed.update_data(|expr| name.restore(expr)))
    })
}

/// Whether this is the library's `sum` of 64-bit integers.
fn is_integer_sum(function: &AggregateUDF, is_distinct: bool, args: &[Expr], schema: &DFSchema) -> bool {
    function.name() == "sum"
        && !function.inner().is::<IntegerSum>()
        && !is_distinct
        && args.first().and_then(|arg| integer(arg, schema)) == Some(ArrowType::Int64)
}

/// The type of an integer expression. DataFusion finds a type by going through the whole tree below; in a long chain of
/// operators that would be done once for each of them.
fn integer(expr: &Expr, schema: &DFSchema) -> Option<ArrowType> {
    let data_type = match expr {
        Expr::ScalarFunction(call) => match call.func.inner().downcast_ref::<Checked>() {
            Some(checked) => Some(checked.of.clone()),
            None => expr.get_type(schema).ok(),
        },
        Expr::BinaryExpr(binary) if !matches!(binary.op, Operator::Plus | Operator::Minus | Operator::Multiply) => {
            expr.get_type(schema).ok()
        }
        // What was not replaced is no integer.
        Expr::BinaryExpr(_) => None,
        other => other.get_type(schema).ok(),
    };
    data_type.filter(|found| matches!(found, ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64))
}

/// One operator as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    op: Operator,
    /// The type of the operands and the result.
    of: ArrowType,
    signature: Signature,
}

impl Checked {
    fn function(op: Operator, of: ArrowType) -> ScalarUDF {
        ScalarUDF::from(Checked { op, of, signature: Signature::any(2, Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.op {
            Operator::Plus => "checked_add",
            Operator::Minus => "checked_subtract",
            _ => "checked_multiply",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.of.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = &args.args[..] else {
            return Err(DataFusionError::Internal("an operator without two operands".to_owned()));
        };
        match self.op {
            Operator::Plus => apply(left, right, add),
            Operator::Minus => apply(left, right, sub),
            _ => apply(left, right, mul),
        }
    }
}
