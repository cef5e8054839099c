//! Untyped literals take the type of what they are compared with, as in PostgreSQL: `id = '5'` compares numbers.
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, JoinConstraint};
use datafusion::error::Result;
use datafusion::functions_nested::string::array_to_string_udf;
use datafusion::logical_expr::expr::{Between, Cast, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, GetFieldAccess, LogicalPlan, Operator, ScalarUDF, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::DataType;

use super::casts::{CastItems, ReadText, WriteText};
use super::untyped::{adapt, adapt_to_field, is_text, read, untyped};
use super::{alike, arithmetic, chars, folded, json_casts, lengths, outer_columns, pairs, spaces, unlimited};
use crate::functions::arrays::{fills, lists};
use crate::functions::json::{access as json_access, subscripts};
use crate::functions::numbers::unlimited::converted;
use crate::functions::numbers::{bits, floats, numerics, rounding};
use crate::functions::overloads::of_library;
use crate::functions::texts::{octets, regexp, similarity};
use crate::functions::times::{days, intervals, parts};
use crate::functions::typed;
use crate::interrupt;
use crate::semantics::operations::visible::visible;
use crate::semantics::operations::{
    concatenation, json, library, mixed, operand_types, set_operations, spaces::cast as space_cast, spans, temporal,
};
use crate::semantics::spelling::row_values::{DISTINCT, NOT_DISTINCT};
use crate::syntax::walk::{WalkPlan, WalkTree};
use crate::values::numerics::is_numeric;
use crate::values::types::{
    cast_to, digits_of_seconds, fields_of_interval, is_enum, is_space, is_vector, type_name, type_of_field,
};

/// Adapts the literals of comparisons while the planner still sees which operand is untyped.
#[derive(Debug)]
pub(crate) struct LiteralPlanner;

impl ExprPlanner for LiteralPlanner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        interrupt::check_plan()?;
        let RawBinaryExpr { op, left, right } = expr;
        if let Some(call) = of_space_or_texts(&op, &left, &right, schema)? {
            return Ok(PlannerResult::Planned(call));
        }
        operand_types::check(&op, &left, &right, schema)?;
        if let Some(call) = json::plan(&op, &left, &right, schema)? {
            return Ok(PlannerResult::Planned(call));
        }
        let (left, right) = match op {
            BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq => {
                let (left, right) = compared(left, right, schema)?;
                let (left, right) = unlimited::arrays_alike(*left, *right, schema);
                match lists::order(&op) {
                    Some(order) if is_array(&left, schema) && is_array(&right, schema) => {
                        return Ok(PlannerResult::Planned(order.call(vec![left, right])));
                    }
                    _ => (left, right),
                }
            }
            BinaryOperator::Custom(name) if name == DISTINCT || name == NOT_DISTINCT => {
                let op = if name == DISTINCT { Operator::IsDistinctFrom } else { Operator::IsNotDistinctFrom };
                let (left, right) = compared(left, right, schema)?;
                return Ok(PlannerResult::Planned(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            }
            BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo => return arithmetic::plan(op, left, right, schema),
            BinaryOperator::BitwiseAnd | BinaryOperator::BitwiseOr => arithmetic::operands(left, right, schema)?,
            op if let Some(function) = bits::operator(&op) => return of_bits(function, left, right, schema),
            BinaryOperator::StringConcat => {
                let (left, right) = beside_arrays(left, right, schema)?;
                return concatenation::plan(arithmetic::operand(left), arithmetic::operand(right), schema);
            }
            BinaryOperator::AtArrow if is_array(&left, schema) || is_array(&right, schema) => {
                let (left, right) = beside_arrays(left, right, schema)?;
                return Ok(PlannerResult::Planned(lists::contains().call(vec![left, right])));
            }
            BinaryOperator::ArrowAt if is_array(&left, schema) || is_array(&right, schema) => {
                let (left, right) = beside_arrays(left, right, schema)?;
                return Ok(PlannerResult::Planned(lists::contains().call(vec![right, left])));
            }
            BinaryOperator::PGOverlap if is_array(&left, schema) || is_array(&right, schema) => {
                let (left, right) = beside_arrays(left, right, schema)?;
                return Ok(PlannerResult::Planned(lists::overlaps().call(vec![left, right])));
            }
            BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch => {
                let ignores_case = matches!(op, BinaryOperator::PGRegexIMatch | BinaryOperator::PGRegexNotIMatch)
                    || folded::is_citext(&left, schema);
                let matches = regexp::operator(left, right, ignores_case);
                let is_negated = matches!(op, BinaryOperator::PGRegexNotMatch | BinaryOperator::PGRegexNotIMatch);
                let planned = if is_negated { Expr::Not(Box::new(matches)) } else { matches };
                return Ok(PlannerResult::Planned(planned));
            }
            BinaryOperator::Custom(_) => return Err(operand_types::refused(&op, &left, &right, schema)),
            _ => (left, right),
        };
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let is_jsonb = || access.expr.to_field(schema).is_ok_and(|(_, field)| subscripts::is_jsonb(&field));
        if let GetFieldAccess::NamedStructField { name } = &access.field_access
            && let Some(value) = pairs::value_of(&access.expr, &Expr::Literal(name.clone(), None), schema)
        {
            return Ok(PlannerResult::Planned(value));
        }
        match access.field_access {
            GetFieldAccess::NamedStructField { name } if is_jsonb() => {
                Ok(PlannerResult::Planned(json_access::subscripted(access.expr, Expr::Literal(name, None))))
            }
            GetFieldAccess::ListIndex { key } if is_jsonb() => {
                subscripts::check_subscript(&key.to_field(schema)?.1)?;
                Ok(PlannerResult::Planned(json_access::subscripted(access.expr, *key)))
            }
            GetFieldAccess::ListIndex { key } if is_array(&access.expr, schema) => {
                let key =
                    if access.expr.to_field(schema).is_ok_and(|(_, of)| is_vector(&of)) { behind(*key) } else { *key };
                Ok(PlannerResult::Planned(fills::item(access.expr, key)))
            }
            GetFieldAccess::ListIndex { key } if let Some(part) = spaces::part(&access.expr, &key, schema) => {
                Ok(PlannerResult::Planned(part))
            }
            field_access => Ok(PlannerResult::Original(RawFieldAccessExpr { field_access, expr: access.expr })),
        }
    }

    fn plan_array_literal(&self, mut items: Vec<Expr>, schema: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        alike::become_alike(items.iter_mut().collect(), schema)?;
        Ok(PlannerResult::Original(items))
    }

    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let call = ScalarFunction::new_udf(Arc::new(parts::extract()), args);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }

    fn plan_position(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let call = ScalarFunction::new_udf(Arc::new(typed::position()), args);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }

    fn plan_overlay(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(octets::over().call(args)))
    }

    /// `substring(text FROM pattern)`, where the second operand is a text, and `... FOR escape`.
    fn plan_substring(&self, mut args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let is_pattern = |arg: Option<&Expr>| match arg {
            Some(Expr::Literal(value, _)) => is_text(&value.data_type()),
            Some(Expr::Cast(cast)) => is_text(cast.field.data_type()),
            Some(Expr::ScalarFunction(call)) => matches!(call.name(), "concat" | "concat_ws"),
            Some(Expr::BinaryExpr(binary)) => binary.op == Operator::StringConcat,
            _ => false,
        };
        if args.len() == 3 && is_pattern(args.get(1)) && is_pattern(args.get(2)) {
            return Ok(PlannerResult::Planned(regexp::similar_part(args)));
        }
        if args.len() != 2 || !is_pattern(args.get(1)) {
            let call = ScalarFunction::new_udf(Arc::new(typed::substring()), args);
            return Ok(PlannerResult::Planned(Expr::ScalarFunction(call)));
        }
        let pattern = args.remove(1);
        Ok(PlannerResult::Planned(regexp::substring(args.remove(0), pattern)))
    }
}

/// An operator of the bits of whole numbers.
fn of_bits(function: ScalarUDF, left: Expr, right: Expr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
    let (left, right) = arithmetic::operands(left, right, schema)?;
    Ok(PlannerResult::Planned(function.call(vec![left, right])))
}

/// An operator of ranges, shapes and addresses, one of pairs of texts, or one that asks how similar texts are, of which one is said to be a
/// text.
fn of_space_or_texts(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let is_said = |expr: &Expr| untyped(expr).is_none() && expr.get_type(schema).is_ok_and(|found| is_text(&found));
    let may_be = |expr: &Expr| expr.get_type(schema).is_ok_and(|found| is_text(&found) || found.is_null());
    let are_texts = || [left, right].into_iter().all(may_be) && [left, right].into_iter().any(is_said);
    if let Some(call) = pairs::plan(op, left, right, schema)? {
        return Ok(Some(call));
    }
    match similarity::operator(op, left, right) {
        Some(similar) if are_texts() => Ok(Some(similar)),
        _ => spaces::plan(op, left, right, schema),
    }
}

/// Operands of which one is an array: a literal without a type beside it is an array, too.
fn beside_arrays(left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
    Ok(match (is_array(&left, schema), is_array(&right, schema)) {
        (true, false) => {
            let right = adapt(right, &left, schema)?;
            (left, right)
        }
        (false, true) => (adapt(left, &right, schema)?, right),
        _ => (left, right),
    })
}

/// The operands of a comparison: a literal without a type has that of the other one, numerics have one width.
fn compared(left: Expr, right: Expr, schema: &DFSchema) -> Result<(Box<Expr>, Box<Expr>)> {
    let left = adapt(left, &right, schema)?;
    let right = adapt(right, &left, schema)?;
    let (left, right) = mixed::beside_unlimited(left, right, schema);
    let (left, right) = mixed::of_one_width(Box::new(left), Box::new(right), schema);
    Ok(json::compared(*left, *right, schema))
}

/// Adapts the literals of `IN` and `BETWEEN`, and gives casts between text and other types PostgreSQL's syntax.
#[derive(Debug)]
pub(crate) struct AdaptLiterals;

impl AnalyzerRule for AdaptLiterals {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        outer_columns::change_up(plan, &mut analyze_node).map(|transformed| transformed.data)
    }

    fn name(&self) -> &str {
        "adapt_literals"
    }
}

fn analyze_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = visible(&plan)?;
    let plan = set_operations::adapt_node(chars::adapt_node(plan)?)?;
    let plan = mixed::adapt_node(plan)?;
    // What groups by intervals becomes two nodes, of which the lower one has the expressions: they are adapted before.
    let is_grouped = matches!(plan, LogicalPlan::Aggregate(_));
    let plan = if is_grouped { plan } else { spans::adapt_node(plan)? };
    let names = NamePreserver::new(&plan);
    let is_shown = matches!(plan, LogicalPlan::Projection(_));
    plan.change_expressions(|expr| {
        let name = names.save(&expr);
        // Before and after: the length that `CASE` and its kin give is known behind them.
        let told = |expr| if is_shown { chars::told_as_text(expr, &schema) } else { expr };
        let adapted = told(expr).change_up(|expr| adapt_expr(expr, &schema))?.update_data(told);
        Ok(adapted.update_data(|expr| name.restore(expr)))
    })?
    .map_data(|node| on_what_is_compared(node).recompute_schema())?
    .map_data(|node| if is_grouped { spans::adapt_node(node) } else { Ok(node) })
}

/// A join by columns of one name, of which one is now cast, is a join by what is compared: the planner looks for columns.
fn on_what_is_compared(mut node: LogicalPlan) -> LogicalPlan {
    if let LogicalPlan::Join(join) = &mut node {
        let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
        if !join.on.iter().all(|(left, right)| is_column(left) && is_column(right)) {
            join.join_constraint = JoinConstraint::On;
        }
    }
    node
}

fn adapt_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(adapt_parts(expr, schema)?.update_data(|expr| alike::marked(one_of_one(expr), schema)))
}

/// `x IN (y)` as `x = y`: below a join that stands for a subquery, the library takes it for true of a NULL.
fn one_of_one(expr: Expr) -> Expr {
    match expr {
        Expr::InList(InList { expr, mut list, negated }) if list.len() == 1 => {
            let op = if negated { Operator::NotEq } else { Operator::Eq };
            Expr::BinaryExpr(BinaryExpr { left: expr, op, right: Box::new(list.swap_remove(0)) })
        }
        other => other,
    }
}

fn adapt_parts(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(
        match spans::adapt(
            mixed::adapt(chars::adapt(alike::adapt(pairs::adapt(expr, schema), schema)?, schema)?, schema)?,
            schema,
        ) {
            Expr::InList(InList { expr, list, negated }) if list.iter().any(|item| untyped(item).is_some()) => {
                let list: Result<Vec<Expr>> = list.into_iter().map(|item| adapt(item, &expr, schema)).collect();
                Transformed::yes(json::adapt(Expr::InList(InList { expr, list: list?, negated }), schema))
            }
            Expr::Between(Between { expr, negated, low, high })
                if untyped(&low).is_some() || untyped(&high).is_some() =>
            {
                let low = Box::new(adapt(*low, &expr, schema)?);
                let high = Box::new(adapt(*high, &expr, schema)?);
                Transformed::yes(json::adapt(Expr::Between(Between { expr, negated, low, high }), schema))
            }
            inner @ (Expr::InList(_) | Expr::Between(_)) => temporal::adapt(json::adapt(inner, schema), schema)?,
            Expr::Cast(cast) => adapt_cast(cast, schema)?,
            Expr::Like(mut like) if lengths::char_length(&like.expr, schema).is_some() => {
                like.expr = Box::new(lengths::with_blanks(*like.expr, schema));
                Transformed::yes(Expr::Like(like))
            }
            Expr::ScalarFunction(mut call) => {
                if let Some(signed) = unlimited::signed(&call, schema) {
                    return Ok(Transformed::yes(signed));
                }
                if let Some(function) = settled(&call, schema) {
                    call.func = Arc::new(function);
                    return Ok(Transformed::yes(Expr::ScalarFunction(call)));
                }
                beside_own_items(&mut call, schema)?;
                unlimited::as_wanted(&mut call, schema);
                unlimited::beside_items(&mut call, schema);
                written_out(&mut call, schema);
                // Its operand is read as it is shown, as that of LIKE is.
                if regexp::reads_blanks(call.name())
                    && let Some(text) = call.args.first_mut()
                {
                    *text = lengths::with_blanks(std::mem::take(text), schema);
                }
                let adapted = library::adapt(call, schema)?;
                if adapted.transformed { adapted } else { temporal::adapt(adapted.data, schema)? }
            }
            inner @ (Expr::AggregateFunction(_) | Expr::WindowFunction(_)) => {
                Transformed::yes(unlimited::beside_doubles(inner, schema))
            }
            Expr::SetComparison(mut comparison) => {
                let column = comparison.subquery.subquery.schema().field(0);
                *comparison.expr = adapt_to_field(std::mem::take(&mut *comparison.expr), column)?;
                Transformed::yes(Expr::SetComparison(comparison))
            }
            other => temporal::adapt(other, schema)?,
        },
    )
}

/// A function whose type depends on the values of literals, with the type that it has now: what the planner works out
/// of its arguments later does not change it.
fn settled(call: &ScalarFunction, schema: &DFSchema) -> Option<ScalarUDF> {
    const NAMES: [&str; 11] =
        ["ceil", "floor", "trunc", "round", "ln", "log", "log10", "exp", "sqrt", "power", "trim_scale"];
    if !NAMES.contains(&call.name()) {
        return None;
    }
    let to = Expr::ScalarFunction(call.clone()).get_type(schema).ok().filter(|to| !is_numeric(to))?;
    let library = of_library(&call.func);
    rounding::settled(library, &to)
        .or_else(|| floats::settled(library, &to))
        .or_else(|| numerics::settled(library, &to))
}

fn behind(place: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(place), Operator::Plus, Box::new(lit(1_i64))))
}

fn is_array(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|found| found.is_list())
}

/// A cast to a type that says which digits or fields are kept: one to the type that says nothing of them, cut.
fn cut_cast(cast: &Cast, schema: &DFSchema) -> Result<Option<Expr>> {
    let (digits, fields) = (digits_of_seconds(&cast.field), fields_of_interval(&cast.field));
    if digits.is_none() && fields.is_none() {
        return Ok(None);
    }
    let to = cast.field.data_type().clone();
    let plain = Cast::new_from_field(cast.expr.clone(), Arc::new(Field::new("", to.clone(), true)));
    let whole = adapt_cast(plain, schema)?.data;
    Ok(Some(match (digits, fields) {
        (Some(digits), _) => intervals::with_digits(whole, &to, digits),
        (None, Some(form)) => intervals::cut(whole, form),
        (None, None) => whole,
    }))
}

/// The text of a vector of the catalog, which has blanks between its items.
fn vector_text(cast: &Cast, from: &Field) -> Option<Expr> {
    (is_vector(from) && is_text(cast.field.data_type())).then(|| {
        let args = vec![cast.expr.as_ref().clone(), lit(" ")];
        Expr::ScalarFunction(ScalarFunction::new_udf(array_to_string_udf(), args))
    })
}

fn adapt_cast(cast: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Ok((_, from)) = cast.expr.to_field(schema) else { return Ok(Transformed::no(Expr::Cast(cast))) };
    if let Some(special) = cut_cast(&cast, schema)?.or_else(|| vector_text(&cast, &from)) {
        return Ok(Transformed::yes(special));
    }
    let exact = cast_to(&cast.field, from.data_type());
    if exact != *cast.field.data_type() {
        let is_same = exact == *from.data_type();
        let whole = Cast::new_from_field(cast.expr, Arc::new(Field::new("", exact, true)));
        return Ok(Transformed::yes(if is_same { *whole.expr } else { Expr::Cast(whole) }));
    }
    const TIMESTAMP: ArrowType = ArrowType::Timestamp(TimeUnit::Microsecond, None);
    match (from.data_type(), cast.field.data_type()) {
        (ArrowType::Date32, &TIMESTAMP) => return Ok(Transformed::yes(days::midnight(*cast.expr))),
        (&TIMESTAMP, ArrowType::Date32) => return Ok(Transformed::yes(days::day(*cast.expr))),
        _ => {}
    }
    let target = type_of_field(&cast.field);
    if let Some(adapted) = own_cast(&cast, from.data_type(), target)? {
        return Ok(adapted);
    }
    let call = |function: ScalarUDF, expr: Expr| {
        Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr])))
    };
    match target {
        Some(to @ (DataType::Text { max_chars: Some(_) } | DataType::Char { .. })) => {
            let text = if is_text(from.data_type()) || from.data_type().is_null() {
                *cast.expr
            } else {
                call(WriteText::function(), *cast.expr).data
            };
            Ok(Transformed::yes(lengths::cut(text, to)))
        }
        // The text of a char(n) has no blanks at its end.
        Some(to @ DataType::Text { .. }) if matches!(type_of_field(&from), Some(DataType::Char { .. })) => {
            Ok(Transformed::yes(lengths::cut(*cast.expr, to)))
        }
        Some(DataType::Text { .. }) if is_text(cast.field.data_type()) => {
            let is_left = is_text(from.data_type()) || from.data_type().is_null() || from.data_type().is_integer();
            Ok(if is_left { Transformed::no(Expr::Cast(cast)) } else { call(WriteText::function(), *cast.expr) })
        }
        Some(data_type) if is_text(from.data_type()) && type_of_field(&from) != Some(data_type) => {
            match untyped(&cast.expr) {
                Some(text) => Ok(Transformed::yes(unlimited::literal(text, data_type)?)),
                None => Ok(call(ReadText::function(data_type), *cast.expr)),
            }
        }
        Some(to @ (DataType::SmallInt | DataType::Integer | DataType::BigInt))
            if from.data_type().is_floating() || from.data_type().is_decimal() =>
        {
            Ok(Transformed::yes(converted(*cast.expr, to.to_arrow())))
        }
        // The optimizer would compare what is cast instead, and not notice what does not fit.
        Some(to @ (DataType::SmallInt | DataType::Integer | DataType::Decimal { .. }))
            if is_wider(from.data_type(), &to.to_arrow()) =>
        {
            Ok(Transformed::yes(converted(*cast.expr, to.to_arrow())))
        }
        // The library divides by a power of ten what it has rounded before.
        Some(to @ (DataType::Real | DataType::Double)) if has_more_digits(from.data_type()) => {
            Ok(Transformed::yes(converted(*cast.expr, to.to_arrow())))
        }
        Some(to @ (DataType::Real | DataType::Decimal { .. })) if loses_digits(from.data_type(), to) => {
            Ok(Transformed::yes(converted(*cast.expr, to.to_arrow())))
        }
        _ => Ok(Transformed::no(Expr::Cast(cast))),
    }
}

/// The literals without a type among the arguments of functions of arrays as items of these, where the items are labels of an enum,
/// ranges, shapes and the like; such values among the arguments of functions of texts as their texts.
fn beside_own_items(call: &mut ScalarFunction, schema: &DFSchema) -> Result<()> {
    const OF_ITEMS: [&str; 6] =
        ["array_append", "array_prepend", "array_remove", "array_position", "array_positions", "array_replace"];
    const OF_TEXTS: [&str; 5] = ["concat", "concat_ws", "format", "quote_literal", "quote_nullable"];
    let types: Vec<_> = call.args.iter().filter_map(|arg| arg.get_type(schema).ok()).collect();
    if OF_TEXTS.contains(&call.name()) && types.len() == call.args.len() {
        for (arg, _) in call.args.iter_mut().zip(&types).filter(|(_, found)| is_enum(found) || is_space(found)) {
            let text = Arc::new(WriteText::function());
            *arg = Expr::ScalarFunction(ScalarFunction::new_udf(text, vec![std::mem::take(arg)]));
        }
    }
    let is_of_items =
        OF_ITEMS.contains(&call.name()) || call.name().starts_with("\0any ") || call.name().starts_with("\0all ");
    let Some(list) = types.iter().find(|found| has_own_items(found)).filter(|_| is_of_items) else { return Ok(()) };
    if let Some(of) = DataType::from_arrow(item_of(list)) {
        for arg in &mut call.args {
            if let Some(text) = untyped(arg) {
                *arg = read(text, of)?;
            }
        }
    }
    Ok(())
}

/// The values that `concat` puts together as their texts: the library's are others.
fn written_out(call: &mut ScalarFunction, schema: &DFSchema) {
    if !matches!(call.name(), "concat" | "concat_ws") {
        return;
    }
    for arg in &mut call.args {
        let is_row = |of: &arrow_schema::DataType| matches!(of, arrow_schema::DataType::Struct(_));
        let is_written =
            |of: &arrow_schema::DataType| of.is_temporal() || of.is_floating() || is_numeric(of) || is_row(of);
        if arg.get_type(schema).is_ok_and(|found| is_written(&found)) {
            let text = Arc::new(WriteText::function());
            *arg = Expr::ScalarFunction(ScalarFunction::new_udf(text, vec![std::mem::take(arg)]));
        }
    }
}

/// The type of the items of arrays; any other as it is.
fn item_of(found: &arrow_schema::DataType) -> &arrow_schema::DataType {
    match found {
        arrow_schema::DataType::List(item) => item.data_type(),
        other => other,
    }
}

/// Whether it is a type of arrays of which the library knows no casts: of an enum, of ranges, shapes, addresses, times with their zone,
/// of JSON or of numerics without limits.
fn has_own_items(found: &arrow_schema::DataType) -> bool {
    let is_own = |item: &ArrowType| is_enum(item) || is_space(item) || json::is_json(item) || is_numeric(item);
    found.is_list() && is_own(item_of(found))
}

/// A cast of JSON, of ranges and shapes, or of arrays of which the items are, or become, such or labels of an enum.
fn own_cast(cast: &Cast, from: &arrow_schema::DataType, target: Option<DataType>) -> Result<Option<Transformed<Expr>>> {
    if let Some(adapted) = json_casts::adapt(cast, from)? {
        return Ok(Some(adapted));
    }
    let to = cast.field.data_type();
    if matches!((from, to), (ArrowType::Time64(_), ArrowType::Interval(_))) {
        return Ok(Some(Transformed::yes(intervals::of_time(cast.expr.as_ref().clone()))));
    }
    if let Some(call) = space_cast(&cast.expr, from, to)? {
        return Ok(Some(Transformed::yes(call)));
    }
    check_enum_cast(from, to)?;
    if let Some(number) = unlimited::cast(&cast.expr, from, to)? {
        return Ok(Some(Transformed::yes(number)));
    }
    match target {
        Some(target @ DataType::Array(_)) if from.is_list() && from != to && are_cast_here(from, to) => {
            let (from, to) = (item_of(from), item_of(to));
            check_enum_cast(from, to)?;
            let differs = is_space(from) != is_space(to) || json::is_json(from) != json::is_json(to);
            if differs && !is_text(from) && !is_text(to) && !from.is_null() {
                return Err(json::no_cast(&type_name(from), &type_name(to)));
            }
            let function = Arc::new(CastItems::function(target));
            let call = ScalarFunction::new_udf(function, vec![cast.expr.as_ref().clone()]);
            Ok(Some(Transformed::yes(Expr::ScalarFunction(call))))
        }
        _ => Ok(None),
    }
}

/// Whether the library would not cast the items of arrays, or cut off what is rounded.
fn are_cast_here(from: &ArrowType, to: &ArrowType) -> bool {
    let (own, other) = (item_of(from), item_of(to));
    has_own_items(from) || has_own_items(to) || (own.is_decimal() || own.is_floating()) && other.is_integer()
}

/// Refuses a cast between an enum and anything but texts.
fn check_enum_cast(from: &arrow_schema::DataType, to: &arrow_schema::DataType) -> Result<()> {
    let is_fine = from == to || from.is_null() || !(is_enum(from) || is_enum(to)) || is_text(from) || is_text(to);
    if is_fine { Ok(()) } else { Err(json::no_cast(&type_name(from), &type_name(to))) }
}

/// Whether a type is one of numerics that may have more digits than a float holds for sure.
fn has_more_digits(from: &arrow_schema::DataType) -> bool {
    from.is_decimal() && digits(from).is_some_and(|(whole, scale)| whole + i16::from(scale) > 15)
}

/// Whether a float becomes one of fewer digits, or a numeric, which has as many as the float holds for sure.
fn loses_digits(from: &arrow_schema::DataType, to: DataType) -> bool {
    from.is_floating() && (to != DataType::Real || *from == arrow_schema::DataType::Float64)
}

/// Whether one type of exact numbers has values that the other has not.
fn is_wider(from: &arrow_schema::DataType, to: &arrow_schema::DataType) -> bool {
    if from.is_integer() && to.is_integer() {
        return from.primitive_width() > to.primitive_width();
    }
    let (Some((from_whole, from_scale)), Some((whole, scale))) = (digits(from), digits(to)) else { return false };
    from_whole > whole || from_scale > scale
}

/// The digits before the point and behind it that a type of exact numbers may have.
fn digits(of: &arrow_schema::DataType) -> Option<(i16, i8)> {
    use arrow_schema::DataType::{Decimal128, Decimal256, Int16, Int32, Int64};
    Some(match of {
        Int16 => (5, 0),
        Int32 => (10, 0),
        Int64 => (19, 0),
        Decimal128(precision, scale) | Decimal256(precision, scale) => {
            (i16::from(*precision) - i16::from(*scale), *scale)
        }
        _ => return None,
    })
}
