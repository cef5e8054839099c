//! Integer arithmetic that fails when its result does not fit, where DataFusion's wraps around.
use arrow_schema::DataType as ArrowType;
use datafusion::arrow::compute::kernels::numeric::{add, mul, sub};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

use super::adapt::visible;

/// Replaces `+`, `-` and `*` of integers. Runs once the types of both sides are the same.
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
        }) if is_integer(&left, &schema) && is_integer(&right, &schema) => {
            let function = std::sync::Arc::new(Checked::function(op));
            Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![*left, *right])))
        }
        other => Transformed::no(other),
    };
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let transformed = expr.transform_up(|expr| Ok(checked(expr)))?;
        Ok(transformed.update_data(|expr| name.restore(expr)))
    })
}

fn is_integer(expr: &Expr, schema: &datafusion::common::DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64))
}

/// One operator as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    op: Operator,
    signature: Signature,
}

impl Checked {
    fn function(op: Operator) -> ScalarUDF {
        ScalarUDF::from(Checked { op, signature: Signature::any(2, Volatility::Immutable) })
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

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        types.first().cloned().ok_or_else(|| DataFusionError::Internal("an operator without operands".to_owned()))
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
