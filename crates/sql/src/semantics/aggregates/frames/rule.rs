//! Puts the function over frames in the place of others, where the library's window functions don't do.
use std::sync::Arc;

use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType as ArrowType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    AggregateUDF, Expr, ExprSchemable, LogicalPlan, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
    WindowUDF, cast,
};
use datafusion::optimizer::AnalyzerRule;

use super::forward::forward;
use super::function::{FramedFunction, Inner};
use super::{Exclusion, MARK};
use crate::error::SqlError;
use crate::semantics::aggregates::inputs::inputs;
use crate::semantics::operations::visible::visible;
use crate::state::stop::StopFlag;
use crate::syntax::walk::{WalkPlan, WalkTree};
use crate::values::types::type_name;

/// The rule for one statement.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) flag: StopFlag,
}

impl AnalyzerRule for Frames {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut has_windows = false;
        plan.look_with_subqueries(|node| {
            has_windows |= matches!(node, LogicalPlan::Window(_));
            Ok(if has_windows { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        match has_windows {
            true => plan.change_up_with_subqueries(|node| self.convert(node)).map(|done| done.data),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "frames"
    }
}

impl Frames {
    fn convert(&self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        if !matches!(node, LogicalPlan::Window(_)) {
            return Ok(Transformed::yes(node.recompute_schema()?));
        }
        let schema = visible(&node)?;
        let names = NamePreserver::new(&node);
        node.change_expressions(|expr| {
            let name = names.save(&expr);
            let converted = expr.change_up(|expr| match expr {
                Expr::WindowFunction(call) => self.call(call, &schema),
                other => Ok(Transformed::no(other)),
            })?;
            Ok(converted.update_data(|expr| name.restore(expr)))
        })?
        .map_data(LogicalPlan::recompute_schema)
    }

    fn call(&self, mut call: Box<WindowFunction>, schema: &DFSchema) -> Result<Transformed<Expr>> {
        check_order(&mut call, schema)?;
        let exclusion = take_mark(&mut call);
        let inner = match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => {
                let is_known = exclusion == Exclusion::Nothing && moves(function, &call, schema)?;
                (!is_known).then(|| Inner::Aggregate(function.clone()))
            }
            // Of the others none looks at the frame.
            WindowFunctionDefinition::WindowUDF(function) => match function.name() {
                "nth_value" if !is_positive(call.params.args.get(1)) => Some(Inner::Nth),
                "lag" if varies(&call.params.args) => Some(Inner::Lag),
                "lead" if varies(&call.params.args) => Some(Inner::Lead),
                _ if exclusion == Exclusion::Nothing => None,
                "first_value" => Some(Inner::First),
                "last_value" => Some(Inner::Last),
                "nth_value" => Some(Inner::Nth),
                _ => None,
            },
        };
        if let Some(inner) = inner {
            let params = &mut call.params;
            let filter = params.filter.take();
            let framed = FramedFunction::new(inner, exclusion, params.distinct, filter.is_some(), self.flag.clone());
            params.args.extend(filter.map(|filter| *filter));
            call.fun = WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::from(framed)));
        } else if let WindowFunctionDefinition::AggregateUDF(function) = &call.fun
            && let Some(function) = forward(function)
        {
            call.fun = WindowFunctionDefinition::AggregateUDF(function);
        }
        Ok(Transformed::yes(Expr::WindowFunction(call)))
    }
}

/// What the mark among the parts of a window says, which is taken away.
fn take_mark(call: &mut WindowFunction) -> Exclusion {
    let mut exclusion = Exclusion::Nothing;
    call.params.partition_by.retain(|part| match words(part) {
        Some(words) => {
            exclusion = Exclusion::of(words);
            false
        }
        None => true,
    });
    exclusion
}

fn words(part: &Expr) -> Option<&str> {
    match part {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => text.strip_prefix(MARK),
        Expr::Cast(cast) => words(&cast.expr),
        _ => None,
    }
}

fn is_positive(argument: Option<&Expr>) -> bool {
    let zero = ScalarValue::Int64(Some(0));
    matches!(argument, Some(Expr::Literal(value, _)) if value.cast_to(&ArrowType::Int64).is_ok_and(|value| value > zero))
}

/// Whether an argument but the first is no constant.
fn varies(args: &[Expr]) -> bool {
    args.iter().skip(1).any(|arg| !matches!(arg, Expr::Literal(..)))
}

/// A range with an offset needs values that have distances, and room for those beyond the ends of an integer's type.
fn check_order(call: &mut WindowFunction, schema: &DFSchema) -> Result<()> {
    let params = &mut call.params;
    let frame = &mut params.window_frame;
    let has_offset = |bound: &WindowFrameBound| !bound.is_unbounded() && *bound != WindowFrameBound::CurrentRow;
    if frame.units != WindowFrameUnits::Range || !(has_offset(&frame.start_bound) || has_offset(&frame.end_bound)) {
        return Ok(());
    }
    let Some(key) = params.order_by.first_mut() else { return Ok(()) };
    let found = key.expr.get_type(schema)?;
    let wide = match found {
        ArrowType::Int16 | ArrowType::Int32 => ArrowType::Int64,
        ArrowType::Int64 => ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        _ if found.is_numeric() || found.is_temporal() => return Ok(()),
        _ => {
            let name = type_name(&found);
            let what = format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {name}");
            return Err(DataFusionError::External(Box::new(SqlError::new("0A000", what))));
        }
    };
    for bound in [&mut frame.start_bound, &mut frame.end_bound] {
        if let WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) = bound
            && !offset.is_null()
        {
            *offset = offset.cast_to(&wide)?;
        }
    }
    key.expr = cast(std::mem::take(&mut key.expr), wide);
    Ok(())
}

/// Whether the library works the aggregate out over the frame: because this only grows, or because a row can be taken out.
/// A float can't: what is left of the others would not be what it was.
fn moves(function: &Arc<AggregateUDF>, call: &WindowFunction, schema: &DFSchema) -> Result<bool> {
    if call.params.window_frame.is_ever_expanding() {
        return Ok(true);
    }
    let fields: Result<Vec<FieldRef>> = call.params.args.iter().map(|arg| Ok(arg.to_field(schema)?.1)).collect();
    let fields = fields?;
    let is_exact = |field: &FieldRef| !field.data_type().is_floating();
    if !fields.iter().all(is_exact) && !matches!(function.name(), "min" | "max" | "count") {
        return Ok(false);
    }
    let literal = |at: usize| match &call.params.args[at] {
        Expr::Literal(value, _) => Some(value.clone()),
        _ => None,
    };
    let (exprs, inputs) = inputs(&fields, &literal);
    let args = AccumulatorArgs {
        return_field: function.return_field(&fields)?,
        schema: &inputs,
        ignore_nulls: false,
        order_bys: &[],
        is_reversed: false,
        name: function.name(),
        is_distinct: call.params.distinct,
        exprs: &exprs,
        expr_fields: &fields,
    };
    // What can't be made at all is refused by the library, in its words.
    Ok(function.create_sliding_accumulator(args).is_ok_and(|accumulator| accumulator.supports_retract_batch()))
}
