//! Casts, sums and functions of moments by the clocks of the session's zone.
//!
//! The library knows one zone for each type, and that of ours is UTC. Where the session's zone is another one, what depends on it is
//! replaced once types are settled:
//!
//! ```text
//! moment::date, ::time, ::timestamp, and back     a cast by the zone's clocks
//! moment - time, time - moment                    the time as a moment first
//! moment + interval, moment - interval            months and days by the zone's calendar, the rest as time that passes
//! date_trunc(unit, moment)                        what the clocks show, truncated; from hours on the moment minus what was cut off,
//!                                                 so that an hour which comes twice stays the one it is
//! current_date                                    the date of now()
//! ```
//!
//! Texts need nothing here: what writes and reads them asks for the zone itself.
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions::datetime::now::NowFunc;
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;

use crate::functions::times::{in_zone, zones};
use crate::interrupt::session_zone;
use crate::interrupt::zone::Zone;
use crate::semantics::operations::visible::visible;
use crate::syntax::walk::{WalkPlan, WalkTree};
use crate::values::zoned::{depends_on_zone, is_moment};

/// The units up to an hour, as `date_trunc` knows them.
const SHORT_UNITS: [&str; 22] = [
    "hour",
    "hours",
    "h",
    "hr",
    "hrs",
    "minute",
    "minutes",
    "m",
    "min",
    "mins",
    "second",
    "seconds",
    "s",
    "sec",
    "secs",
    "millisecond",
    "milliseconds",
    "ms",
    "msec",
    "microsecond",
    "microseconds",
    "us",
];

/// Replaces what depends on the session's zone.
#[derive(Debug)]
pub(crate) struct ZonedTimes;

impl AnalyzerRule for ZonedTimes {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        match session_zone::current() {
            Zone::UTC => Ok(plan),
            zone => plan.change_up_with_subqueries(|node| in_node(node, zone, config)).map(|changed| changed.data),
        }
    }

    fn name(&self) -> &str {
        "zoned_times"
    }
}

fn in_node(plan: LogicalPlan, zone: Zone, config: &ConfigOptions) -> Result<Transformed<LogicalPlan>> {
    let schema = visible(&plan)?;
    let names = NamePreserver::new(&plan);
    plan.change_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.change_up(|expr| in_expression(expr, &schema, zone, config))?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })
}

fn in_expression(expr: Expr, schema: &DFSchema, zone: Zone, config: &ConfigOptions) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::Cast(cast) => {
            let is_zoned = cast.expr.get_type(schema).is_ok_and(|from| depends_on_zone(&from, cast.field.data_type()));
            match is_zoned {
                true => Transformed::yes(in_zone::as_type(zone, *cast.expr, cast.field.data_type().clone())),
                false => Transformed::no(Expr::Cast(cast)),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) => {
            let moves = |moment: &Expr, interval: &Expr| {
                let is_interval = matches!(interval.get_type(schema), Ok(ArrowType::Interval(_)));
                is_interval && is_of_moments(moment, schema)
            };
            let mixed = |moment: &Expr, other: &Expr| {
                let is_shown = matches!(other.get_type(schema), Ok(ArrowType::Timestamp(_, None) | ArrowType::Date32));
                op == Operator::Minus && is_shown && is_of_moments(moment, schema)
            };
            let as_moment = |shown: Expr| {
                in_zone::as_type(zone, shown, ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))
            };
            if mixed(&left, &right) || mixed(&right, &left) {
                let (left, right) = match is_of_moments(&left, schema) {
                    true => (left, Box::new(as_moment(*right))),
                    false => (Box::new(as_moment(*left)), right),
                };
                return Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            }
            match (moves(&left, &right), moves(&right, &left)) {
                (true, _) => Transformed::yes(in_zone::moved(zone, *left, *right, op == Operator::Minus)),
                (_, true) if op == Operator::Plus => Transformed::yes(in_zone::moved(zone, *right, *left, false)),
                _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::ScalarFunction(call) if call.name() == "current_date" => {
            let now = Arc::new(ScalarUDF::from(NowFunc::new_with_config(config)));
            let now = Expr::ScalarFunction(ScalarFunction::new_udf(now, Vec::new()));
            Transformed::yes(in_zone::as_type(zone, now, ArrowType::Date32))
        }
        Expr::ScalarFunction(call)
            if call.name() == zones::TRUNCATED && call.args.len() == 2 && is_of_moments(&call.args[1], schema) =>
        {
            Transformed::yes(truncated(call, zone))
        }
        other => Transformed::no(other),
    })
}

fn is_of_moments(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|found| is_moment(&found))
}

/// `date_trunc` of a moment by the clocks of a zone.
fn truncated(mut call: ScalarFunction, zone: Zone) -> Expr {
    let plain = ArrowType::Timestamp(TimeUnit::Microsecond, None);
    let moments = ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let moment = std::mem::take(&mut call.args[1]);
    let shown = in_zone::as_type(zone, moment.clone(), plain);
    let is_short = match &call.args[0] {
        Expr::Literal(unit, _) => unit
            .try_as_str()
            .flatten()
            .is_some_and(|unit| SHORT_UNITS.iter().any(|short| unit.eq_ignore_ascii_case(short))),
        _ => false,
    };
    call.args[1] = shown.clone();
    let cut = Expr::ScalarFunction(call);
    if !is_short {
        return in_zone::as_type(zone, cut, moments);
    }
    let minus = |left, right| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), Operator::Minus, Box::new(right)));
    let moment = Expr::Cast(Cast::new(Box::new(moment), moments));
    minus(moment, minus(shown, cut))
}
