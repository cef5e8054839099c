//! Texts of `citext`, whose letters are compared whatever their case: what is compared, ordered, grouped, joined or made distinct by them
//! goes by the folded texts, and the texts that are given are those that were put in.
//!
//! ```text
//! a = 'X', a IN ('x', 'y')       ->  folded(a) = folded('X'), folded(a) IN (folded('x'), folded('y'))
//! a LIKE 'x%'                    ->  a ILIKE 'x%'
//! SELECT a, count(*) GROUP BY a  ->  SELECT first a, count(*) GROUP BY folded(a)
//! ```
//!
//! Beside a `text` both are texts, as in PostgreSQL; a literal without a type is a `citext`.
use std::sync::Arc;

use arrow_schema::FieldRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinConstraint};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, Case, InList, InSubquery, ScalarFunction, Sort, WindowFunction,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, Projection,
};
use datafusion::optimizer::AnalyzerRule;
use engine::{ArrayItem, DataType};

use super::untyped::untyped;
use super::{chars, outer_columns};
use crate::error::SqlError;
use crate::functions::texts::folded;
use crate::semantics::operations::spans::keys_once;
use crate::semantics::operations::visible::visible;
use crate::syntax::walk::{WalkPlan, WalkTree};
use crate::values::types::type_of_field;

/// See the module.
#[derive(Debug)]
pub(crate) struct FoldedTexts;

impl AnalyzerRule for FoldedTexts {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        match is_of_use(&plan)? {
            true => outer_columns::change_up(plan, &mut analyze_node).map(|transformed| transformed.data),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "folded_texts"
    }
}

/// Whether a plan has such a column, or one of lists of them.
fn is_of_use(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.look_with_subqueries(|node| {
        // What has inputs has its columns from these, or makes them of casts.
        let is_such = |field: &FieldRef| {
            let found = type_of_field(field);
            [DataType::CITEXT, DataType::Array(CITEXT_ITEM)].iter().any(|of| found == Some(*of))
        };
        found = found || node.inputs().is_empty() && node.schema().fields().iter().any(is_such);
        node.look_at_expressions(|expr| {
            found = found
                || expr.has(|part| {
                    let may_say = matches!(part, Expr::Cast(_) | Expr::Literal(_, Some(_)) | Expr::ScalarFunction(_));
                    Ok(may_say && is_citext(part, node.schema()))
                })?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The places of such columns.
fn columns(schema: &DFSchema) -> impl Iterator<Item = usize> {
    let is_one = |(_, field): &(usize, &FieldRef)| type_of_field(field) == Some(DataType::CITEXT);
    schema.fields().iter().enumerate().filter(is_one).map(|(at, _)| at)
}

pub(super) fn is_citext(expr: &Expr, schema: &DFSchema) -> bool {
    chars::mark(expr, schema) == Some(DataType::CITEXT)
}

/// Whether it is one, or becomes one beside one.
fn may_be(expr: &Expr, schema: &DFSchema) -> bool {
    let is_null = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if value.is_null());
    is_citext(expr, schema) || untyped(expr).is_some() || is_null(expr)
}

/// Whether it is a list of them, or a literal that becomes one beside such a text.
fn may_be_list(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr, Expr::Literal(..)) || is_list(expr, schema)
}

fn is_list(expr: &Expr, schema: &DFSchema) -> bool {
    let is_of_citext = |of: DataType| of == DataType::Array(CITEXT_ITEM);
    expr.to_field(schema).is_ok_and(|(_, field)| type_of_field(&field).is_some_and(is_of_citext))
}

const CITEXT_ITEM: ArrayItem = ArrayItem::Text { max_chars: Some(u32::MAX - 1) };

fn fold(text: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(folded::function(), vec![text]))
}

/// The text by which rows are ordered or put together.
fn keyed(expr: Expr, schema: &DFSchema) -> Expr {
    if is_citext(&expr, schema) { fold(expr) } else { expr }
}

fn sorted(sort: Sort, schema: &DFSchema) -> Sort {
    Sort { expr: keyed(sort.expr, schema), ..sort }
}

fn refused(what: &str) -> DataFusionError {
    let error = SqlError::unsupported(format!("{what} of citext"));
    DataFusionError::External(Box::new(error.hint("Cast it to text, or say lower(...) of it.")))
}

fn analyze_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Distinct(Distinct::All(input)) if columns(input.schema()).next().is_some() => {
            let all = input.schema().columns().into_iter().map(Expr::Column).collect();
            LogicalPlan::Aggregate(Aggregate::try_new(input, all, Vec::new())?)
        }
        other => other,
    };
    let schema = visible(&plan)?;
    let names = NamePreserver::new(&plan);
    let is_sort = matches!(plan, LogicalPlan::Sort(_));
    let plan = match plan {
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            on.on_expr = on.on_expr.into_iter().map(|expr| keyed(expr, &schema)).collect();
            let keys = on.sort_expr.take();
            on.sort_expr = keys.map(|keys| keys.into_iter().map(|key| sorted(key, &schema)).collect());
            LogicalPlan::Distinct(Distinct::On(on))
        }
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                if is_citext(left, join.left.schema()) && is_citext(right, join.right.schema()) {
                    (*left, *right) = (fold(std::mem::take(left)), fold(std::mem::take(right)));
                    join.join_constraint = JoinConstraint::On;
                }
            }
            LogicalPlan::Join(join)
        }
        other => other,
    };
    let changed = plan.change_expressions(|expr| {
        let name = names.save(&expr);
        let expr = if is_sort { keyed(expr, &schema) } else { expr };
        let adapted = expr.change_up(|expr| adapt(expr, &schema).map(Transformed::yes))?;
        Ok(adapted.update_data(|expr| name.restore(expr)))
    })?;
    let changed = changed.map_data(LogicalPlan::recompute_schema)?;
    changed.map_data(|plan| match plan {
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
        other => Ok(other),
    })
}

/// Rows put together by folded texts, each group with the first of its texts.
fn grouped(aggregate: Aggregate) -> Result<LogicalPlan> {
    let before = aggregate.schema.clone();
    let input = aggregate.input.schema().clone();
    let has_one = |expr: &Expr| expr.has(|part| Ok(is_citext(part, &input)));
    if let [Expr::GroupingSet(_)] = &aggregate.group_expr[..]
        && has_one(&aggregate.group_expr[0])?
    {
        return Err(refused("grouping sets"));
    }
    if !aggregate.group_expr.iter().any(|expr| is_citext(expr, &input)) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let grouped_by = keys_once(&aggregate);
    let (mut keys, mut given, mut calls) = (Vec::new(), Vec::new(), aggregate.aggr_expr);
    let (width, called) = (grouped_by.len(), calls.len());
    let of = |(at, expr): (usize, Expr)| {
        let (qualifier, field) = before.qualified_field(at);
        let (qualifier, name) = (qualifier.cloned(), field.name().clone());
        if !is_citext(&expr, &input) {
            keys.push(expr);
            given.push(Expr::Column(Column::new(qualifier, name)));
            return;
        }
        let first = format!("\0first {at}");
        keys.push(fold(expr.clone().unalias()).alias(format!("\0folded {at}")));
        calls.push(first_value_udaf().call(vec![expr.unalias()]).alias(&first));
        given.push(Expr::Column(Column::new_unqualified(first)).alias_qualified(qualifier, name));
    };
    grouped_by.into_iter().enumerate().for_each(of);
    given.extend((width..width + called).map(|at| Expr::Column(Column::from(before.qualified_field(at)))));
    let grouped = Aggregate::try_new(aggregate.input, keys, calls)?;
    Ok(LogicalPlan::Projection(Projection::try_new(given, Arc::new(LogicalPlan::Aggregate(grouped)))?))
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Whether texts are compared as such: one of them is known to be one, and the others may be.
fn are_compared(texts: &[&Expr], schema: &DFSchema) -> bool {
    texts.iter().any(|text| is_citext(text, schema)) && texts.iter().all(|text| may_be(text, schema))
}

fn boxed(text: Expr) -> Box<Expr> {
    Box::new(fold(text))
}

fn adapt(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op) && are_compared(&[&left, &right], schema) =>
        {
            Expr::BinaryExpr(BinaryExpr { left: boxed(*left), op, right: boxed(*right) })
        }
        Expr::Between(Between { expr, negated, low, high }) if are_compared(&[&expr, &low, &high], schema) => {
            Expr::Between(Between { expr: boxed(*expr), negated, low: boxed(*low), high: boxed(*high) })
        }
        Expr::InList(InList { expr, list, negated })
            if is_citext(&expr, schema) && list.iter().all(|item| may_be(item, schema)) =>
        {
            Expr::InList(InList { expr: boxed(*expr), list: list.into_iter().map(fold).collect(), negated })
        }
        Expr::InSubquery(InSubquery { expr, mut subquery, negated })
            if is_citext(&expr, schema) && columns(subquery.subquery.schema()).next() == Some(0) =>
        {
            let plan = Arc::unwrap_or_clone(subquery.subquery);
            let (qualifier, field) = plan.schema().qualified_field(0);
            let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            let folded = fold(column).alias_qualified(qualifier.cloned(), field.name());
            subquery.subquery = Arc::new(LogicalPlan::Projection(Projection::try_new(vec![folded], Arc::new(plan))?));
            Expr::InSubquery(InSubquery { expr: boxed(*expr), subquery, negated })
        }
        Expr::Like(mut like) if is_citext(&like.expr, schema) => {
            like.case_insensitive = true;
            Expr::Like(like)
        }
        Expr::Case(case) => Expr::Case(chosen(case, schema)),
        Expr::ScalarFunction(call) => called(call, schema)?,
        Expr::AggregateFunction(call) => Expr::AggregateFunction(aggregated(call, schema)?),
        Expr::WindowFunction(call) => windowed(call, schema)?,
        other => other,
    })
}

/// `CASE a WHEN ...`.
fn chosen(mut case: Case, schema: &DFSchema) -> Case {
    let of = case
        .expr
        .take_if(|of| is_citext(of, schema) && case.when_then_expr.iter().all(|(when, _)| may_be(when, schema)));
    if let Some(of) = of {
        case.expr = Some(boxed(*of));
        case.when_then_expr = case.when_then_expr.into_iter().map(|(when, then)| (boxed(*when), then)).collect();
    }
    case
}

fn called(mut call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let is_quantified = call.name().starts_with("\0any ") || call.name().starts_with("\0all ");
    match &mut call.args[..] {
        [text, list]
            if is_quantified
                && (is_citext(text, schema) && may_be_list(list, schema)
                    || may_be(text, schema) && is_list(list, schema)) =>
        {
            (*text, *list) = (fold(std::mem::take(text)), fold(std::mem::take(list)));
        }
        [one, other]
            if matches!(call.func.name(), "array_contains_all" | "array_overlaps")
                && [&*one, &*other].into_iter().any(|list| is_list(list, schema)) =>
        {
            (*one, *other) = (fold(std::mem::take(one)), fold(std::mem::take(other)));
        }
        [text, other] if call.func.name() == "nullif" && are_compared(&[text, other], schema) => {
            let (text, other) = (std::mem::take(text), std::mem::take(other));
            let are_equal = fold(text.clone()).eq(fold(other));
            return datafusion::logical_expr::when(
                are_equal,
                datafusion::logical_expr::lit(datafusion::common::ScalarValue::Utf8View(None)),
            )
            .otherwise(text);
        }
        args if matches!(call.func.name(), "greatest" | "least") && args.iter().any(|arg| is_citext(arg, schema)) => {
            return Err(refused("the greatest or the least"));
        }
        _ => {}
    }
    Ok(Expr::ScalarFunction(call))
}

fn aggregated(mut call: AggregateFunction, schema: &DFSchema) -> Result<AggregateFunction> {
    let is_of_texts = call.params.args.iter().any(|arg| is_citext(arg, schema));
    let (is_min, is_max) = (call.func.name() == "min", call.func.name() == "max");
    if call.func.supports_within_group_clause() && call.params.order_by.iter().any(|key| is_citext(&key.expr, schema)) {
        return Err(refused("an aggregate that finds a value"));
    }
    let keys = std::mem::take(&mut call.params.order_by);
    // What is put together as a text is ordered as one, too, if it orders itself.
    let is_text = |key: &Expr| call.func.name() == "string_agg" && call.params.args.contains(key);
    let keys = keys.into_iter().map(|key| if is_text(&key.expr) { key } else { sorted(key, schema) });
    call.params.order_by = keys.collect();
    match &mut call.params.args[..] {
        [text] if is_of_texts && (is_min || is_max) => {
            call.params.order_by = vec![Sort { expr: fold(text.clone()), asc: is_min, nulls_first: false }];
            call.params.distinct = false;
            call.func = first_value_udaf();
        }
        [text] if is_of_texts && call.params.distinct && call.func == count_udaf() => {
            *text = fold(std::mem::take(text));
        }
        // What joins texts takes them as such.
        _ if is_of_texts && call.params.distinct && call.func.name() != "string_agg" => {
            return Err(refused("an aggregate of distinct values"));
        }
        _ => {}
    }
    Ok(call)
}

fn windowed(mut call: Box<WindowFunction>, schema: &DFSchema) -> Result<Expr> {
    if matches!(call.fun.name(), "min" | "max") && call.params.args.iter().any(|arg| is_citext(arg, schema)) {
        return Err(refused("the least or greatest over a window"));
    }
    let params = &mut call.params;
    params.partition_by = std::mem::take(&mut params.partition_by).into_iter().map(|key| keyed(key, schema)).collect();
    params.order_by = std::mem::take(&mut params.order_by).into_iter().map(|key| sorted(key, schema)).collect();
    Ok(Expr::WindowFunction(call))
}
