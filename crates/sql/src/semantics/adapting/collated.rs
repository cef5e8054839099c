//! The collations of columns that are of a language: where texts are ordered or compared, keys take the places of those that have one
//! by the columns which they are made of, as PostgreSQL derives it. What a statement says by `COLLATE` is spelled out before
//! (`spelling::collations`), and holds against that.
//!
//! ```text
//! ORDER BY name, lower(name) > x           ->  ORDER BY key(name, 'sv'), key(lower(name), 'sv') > key(x, 'sv')
//! min(name)                                ->  first_value(name ORDER BY key(name, 'sv'))
//! greatest(name, 'x')                      ->  text(greatest(key(name, 'sv'), key('x', 'sv'))), and so min and max over windows
//! ```
//!
//! Equal texts are those of the same bytes in any of them: `=`, `GROUP BY` and joins stay as they are, and with them their indexes.
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Alias, Between, ScalarFunction, Sort, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, Projection, Window};
use datafusion::optimizer::AnalyzerRule;
use engine::Collation;

use super::outer_columns;
use crate::error::SqlError;
use crate::functions::texts::collation::{COLLATION_KEY, key_function, text_function};
use crate::semantics::operations::visible::visible;
use crate::syntax::identifiers::{BY_BYTES, TEXT_OF_KEY};
use crate::syntax::walk::{WalkPlan, WalkTree};
use crate::values::collated::{collation_of, conflict_of, with_collation, with_conflict};

/// See the module.
#[derive(Debug)]
pub(crate) struct CollatedColumns;

impl AnalyzerRule for CollatedColumns {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        match is_of_use(&plan)? {
            true => outer_columns::change_up(plan, &mut analyze_node).map(|transformed| transformed.data),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "collated_columns"
    }
}

/// Whether a plan reads a column that has a collation, or says that something is ordered by its bytes.
fn is_of_use(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.look_with_subqueries(|node| {
        // What has inputs has its columns from these.
        let is_read = |field: &FieldRef| collation_of(field).is_some();
        found = found || node.inputs().is_empty() && node.schema().fields().iter().any(is_read);
        found = found || {
            let mut says = false;
            node.look_at_expressions(|expr| {
                says |= expr.has(|part| Ok(is_call(part, BY_BYTES)))?;
                Ok(if says { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
            says
        };
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// What is known of the collation of an expression.
#[derive(Clone, PartialEq, Debug)]
enum Derived {
    /// The default, or none at all.
    Default,
    /// That of a column.
    Implicit(Collation),
    /// Those of two columns, which are not one.
    Conflict(Collation, Collation),
    /// What the statement says.
    Explicit,
}

impl Derived {
    fn with(self, other: Derived) -> Derived {
        match (self, other) {
            (Derived::Explicit, _) | (_, Derived::Explicit) => Derived::Explicit,
            (conflict @ Derived::Conflict(..), _) | (_, conflict @ Derived::Conflict(..)) => conflict,
            (Derived::Default, other) | (other, Derived::Default) => other,
            (Derived::Implicit(one), Derived::Implicit(other)) if one == other => Derived::Implicit(one),
            (Derived::Implicit(one), Derived::Implicit(other)) => Derived::Conflict(one, other),
        }
    }

    /// The language that texts are ordered by.
    fn language(self) -> Result<Option<String>> {
        match self {
            Derived::Implicit(collation) => Ok(collation.locale),
            Derived::Conflict(..) => Err(undetermined()),
            Derived::Default | Derived::Explicit => Ok(None),
        }
    }
}

fn undetermined() -> DataFusionError {
    let error = SqlError::new("42P22", "could not determine which collation to use for string comparison");
    DataFusionError::External(Box::new(error.hint("Use the COLLATE clause to set the collation explicitly.")))
}

fn mismatched(one: &Collation, other: &Collation) -> DataFusionError {
    let (one, other) = (&one.name, &other.name);
    let error =
        SqlError::new("42P21", format!("collation mismatch between implicit collations \"{one}\" and \"{other}\""));
    let hint = "You can choose the collation by applying the COLLATE clause to one or both expressions.";
    DataFusionError::External(Box::new(error.hint(hint)))
}

fn refused(what: &str) -> DataFusionError {
    let error = SqlError::unsupported(format!("{what} of texts with a collation of a language"));
    DataFusionError::External(Box::new(error.hint("COLLATE \"C\" behind the text orders it by its bytes.")))
}

fn is_call(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.name() == name)
}

fn of_field(field: &Field) -> Derived {
    match conflict_of(field) {
        Some([one, other]) => Derived::Conflict(one, other),
        None => collation_of(field).map_or(Derived::Default, Derived::Implicit),
    }
}

/// The collation of an expression by PostgreSQL's rules.
fn derived(expr: &Expr, schema: &DFSchema) -> Derived {
    let all = |parts: &[&Expr]| parts.iter().fold(Derived::Default, |found, part| found.with(derived(part, schema)));
    match expr {
        Expr::Column(column) => {
            let field = schema.field_with_name(column.relation.as_ref(), &column.name);
            field.map_or(Derived::Default, |field| of_field(field))
        }
        Expr::OuterReferenceColumn(field, _) => of_field(field),
        Expr::Alias(alias) => derived(&alias.expr, schema),
        Expr::ScalarSubquery(subquery) => {
            subquery.subquery.schema().fields().first().map_or(Derived::Default, |field| of_field(field))
        }
        Expr::ScalarFunction(call) if [COLLATION_KEY, BY_BYTES, TEXT_OF_KEY].contains(&call.name()) => {
            Derived::Explicit
        }
        _ if !expr.get_type(schema).is_ok_and(|found| found.is_string()) => Derived::Default,
        Expr::Cast(cast) => derived(&cast.expr, schema),
        Expr::TryCast(cast) => derived(&cast.expr, schema),
        Expr::ScalarFunction(call) => all(&call.args.iter().collect::<Vec<_>>()),
        Expr::AggregateFunction(call) => all(&call.params.args.iter().collect::<Vec<_>>()),
        Expr::WindowFunction(call) => all(&call.params.args.iter().collect::<Vec<_>>()),
        Expr::BinaryExpr(binary) => all(&[&binary.left, &binary.right]),
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
            all(&results.map(AsRef::as_ref).collect::<Vec<_>>())
        }
        _ => Derived::Default,
    }
}

fn analyze_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = visible(&plan)?;
    let names = NamePreserver::new(&plan);
    let is_sort = matches!(plan, LogicalPlan::Sort(_));
    let gives_values = matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Projection(_));
    let plan = match plan {
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            on.on_expr = on.on_expr.into_iter().map(|expr| ordered(expr, &schema)).collect::<Result<_>>()?;
            if let Some(keys) = on.sort_expr.take() {
                on.sort_expr = Some(keys.into_iter().map(|key| sorted(key, &schema)).collect::<Result<_>>()?);
            }
            LogicalPlan::Distinct(Distinct::On(on))
        }
        other => other,
    };
    let changed = plan.change_expressions(|expr| {
        let name = names.save(&expr);
        let was = derived(&expr, &schema);
        let expr = if is_sort { ordered(expr, &schema)? } else { expr };
        // From the top down: what is compared is looked at before its marks are taken away.
        let adapted = expr.change_down(|expr| adapt(expr, &schema).map(Transformed::yes))?;
        let adapted = adapted.update_data(|expr| name.restore(expr));
        Ok(if gives_values { adapted.update_data(|expr| told(expr, &was, &schema)) } else { adapted })
    })?;
    let changed = changed.map_data(LogicalPlan::recompute_schema)?;
    match changed.data {
        LogicalPlan::Window(window) => Ok(Transformed::new(texts_of_keys(window)?, changed.transformed, changed.tnr)),
        _ => Ok(changed),
    }
}

/// The columns of a node of windows, texts in place of the keys that `min` and `max` give.
fn texts_of_keys(window: Window) -> Result<LogicalPlan> {
    let width = window.input.schema().fields().len();
    if !window.window_expr.iter().any(gives_key) {
        return Ok(LogicalPlan::Window(window));
    }
    let given = window.schema.columns().into_iter().enumerate().map(|(at, column)| {
        match at.checked_sub(width).is_some_and(|at| gives_key(&window.window_expr[at])) {
            true => text_of(Expr::Column(column.clone())).alias_qualified(column.relation, column.name),
            false => Expr::Column(column),
        }
    });
    let given = given.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(given, Arc::new(LogicalPlan::Window(window)))?))
}

/// Whether it is the least or the greatest of the keys of texts over a window.
fn gives_key(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => gives_key(&alias.expr),
        Expr::WindowFunction(call) => {
            matches!(call.fun.name(), "min" | "max") && call.params.args.iter().any(|arg| is_call(arg, COLLATION_KEY))
        }
        _ => false,
    }
}

/// A value of a node with the collation that those above it find.
fn told(expr: Expr, was: &Derived, schema: &DFSchema) -> Expr {
    let Ok((qualifier, field)) = expr.to_field(schema) else { return expr };
    let field = match (was, collation_of(&field)) {
        (Derived::Implicit(collation), None) => with_collation(field.as_ref().clone(), Some(collation)),
        (Derived::Conflict(one, other), _) if conflict_of(&field).is_none() => {
            with_conflict(field.as_ref().clone(), [one, other])
        }
        (Derived::Explicit, Some(_)) => with_collation(field.as_ref().clone(), Some(&by_bytes())),
        _ => return expr,
    };
    let metadata: BTreeMap<String, String> = field.metadata().clone().into_iter().collect();
    let inner = match expr {
        Expr::Alias(alias) => *alias.expr,
        other => other,
    };
    Expr::Alias(Alias::new(inner, qualifier, field.name()).with_metadata(Some(FieldMetadata::new(metadata))))
}

/// The collation of what is said to be ordered by its bytes.
fn by_bytes() -> Collation {
    Collation { name: "C".to_owned(), locale: None }
}

/// The key of a text by a language.
fn key(text: Expr, locale: &str) -> Expr {
    let locale = Expr::Literal(ScalarValue::Utf8(Some(locale.to_owned())), None);
    Expr::ScalarFunction(ScalarFunction::new_udf(key_function(), vec![text, locale]))
}

/// The text that such a key is of.
fn text_of(key: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(text_function(), vec![key]))
}

/// What rows are ordered by.
fn ordered(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let found = derived(&expr, schema);
    if let Derived::Conflict(one, other) = &found {
        return Err(mismatched(one, other));
    }
    Ok(match found.language()? {
        Some(locale) => key(expr, &locale),
        None => expr,
    })
}

fn sorted(sort: Sort, schema: &DFSchema) -> Result<Sort> {
    Ok(Sort { expr: ordered(sort.expr, schema)?, ..sort })
}

/// The texts of a comparison.
fn compared<const N: usize>(texts: [Box<Expr>; N], schema: &DFSchema) -> Result<[Box<Expr>; N]> {
    let all = texts.iter().fold(Derived::Default, |found, text| found.with(derived(text, schema)));
    let Some(locale) = all.language()? else { return Ok(texts) };
    Ok(texts.map(|text| Box::new(key(*text, &locale))))
}

fn adapt(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { ref left, op: Eq | NotEq, ref right }) => {
            // Which one it is makes no difference, but PostgreSQL wants to know.
            derived(left, schema).with(derived(right, schema)).language()?;
            expr
        }
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Lt | LtEq | Gt | GtEq), right }) => {
            let [left, right] = compared([left, right], schema)?;
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let [expr, low, high] = compared([expr, low, high], schema)?;
            Expr::Between(Between { expr, negated, low, high })
        }
        Expr::AggregateFunction(call) => Expr::AggregateFunction(aggregate(call, schema)?),
        Expr::WindowFunction(call) => window(call, schema)?,
        Expr::ScalarFunction(mut call) if matches!(call.name(), "greatest" | "least") => {
            match derived(&Expr::ScalarFunction(call.clone()), schema).language()? {
                Some(locale) => {
                    call.args = call.args.into_iter().map(|text| key(text, &locale)).collect();
                    text_of(Expr::ScalarFunction(call))
                }
                None => Expr::ScalarFunction(call),
            }
        }
        Expr::ScalarFunction(mut call) if call.name() == BY_BYTES && call.args.len() == 1 => {
            adapt(call.args.remove(0), schema)?
        }
        other => other,
    })
}

fn aggregate(mut call: AggregateFunction, schema: &DFSchema) -> Result<AggregateFunction> {
    let keys = std::mem::take(&mut call.params.order_by);
    let before = keys.clone();
    let keys = keys.into_iter().map(|key| sorted(key, schema)).collect::<Result<Vec<_>>>()?;
    // A key among distinct values may be one of them by its number.
    let mut are_ordered = keys != before;
    if call.params.distinct && !keys.is_empty() {
        for arg in &call.params.args {
            are_ordered |= derived(arg, schema).language()?.is_some();
        }
    }
    if are_ordered && (call.params.distinct || call.func.supports_within_group_clause()) {
        return Err(refused("an order among distinct values, or one that finds a value,"));
    }
    call.params.order_by = keys;
    let (is_min, is_max) = (call.func.name() == "min", call.func.name() == "max");
    if let [text] = &call.params.args[..]
        && (is_min || is_max)
        && let Some(locale) = derived(text, schema).language()?
    {
        let by = key(text.clone(), &locale);
        call.params.order_by = vec![Sort { expr: by, asc: is_min, nulls_first: false }];
        call.params.distinct = false;
        call.func = first_value_udaf();
    }
    Ok(call)
}

fn window(mut call: Box<WindowFunction>, schema: &DFSchema) -> Result<Expr> {
    let is_extreme = matches!(call.fun.name(), "min" | "max");
    if let [text] = &call.params.args[..]
        && is_extreme
        && let Some(locale) = derived(text, schema).language()?
    {
        call.params.args = vec![key(text.clone(), &locale)];
    }
    let keys = std::mem::take(&mut call.params.order_by);
    call.params.order_by = keys.into_iter().map(|key| sorted(key, schema)).collect::<Result<_>>()?;
    Ok(Expr::WindowFunction(call))
}
