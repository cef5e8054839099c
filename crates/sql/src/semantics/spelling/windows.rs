//! Named windows: a window that is based on another has its parts, and PostgreSQL's rules say which it may add.
//!
//! Each `OVER` gets the whole of its window, so that the planner, which forgets the parts of the base, sees no names.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, NamedWindowDefinition, NamedWindowExpr, ObjectName, OrderBy, OrderByKind, Query, Select,
    SetExpr, Statement, Value, VisitMut, VisitorMut, WindowSpec, WindowType,
};

use crate::error::{Result, SqlError};
use crate::semantics::aggregates::frames;
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::source::Source;
use crate::syntax::visit::own;
use crate::syntax::walk::WalkMut;

/// Spells out the windows of every query within a statement.
pub(crate) fn spell_out(statement: &mut Statement, source: &Source) -> Result<()> {
    match statement.walk_mut(&mut Queries { source }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Queries<'a> {
    source: &'a Source<'a>,
}

impl VisitorMut for Queries<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        match of_query(query, self.source) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    /// Those that are no query's own body, as the parts of a UNION; of the others nothing is left to do.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        match of_select(select, None, self.source) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

fn of_query(query: &mut Query, source: &Source) -> Result<()> {
    match query.body.as_mut() {
        SetExpr::Select(select) => of_select(select, query.order_by.as_mut(), source),
        _ => Ok(()),
    }
}

fn of_select(select: &mut Select, order_by: Option<&mut OrderBy>, source: &Source) -> Result<()> {
    let mut known: Vec<(String, WindowSpec)> = Vec::new();
    for NamedWindowDefinition(name, window) in std::mem::take(&mut select.named_window) {
        let own = fold(&name);
        if known.iter().any(|(other, _)| *other == own) {
            let error = SqlError::new("42P20", format!("window \"{own}\" is already defined"));
            return Err(error.at(source.start(name.span)));
        }
        let window = match window {
            NamedWindowExpr::NamedWindow(base) => find(&known, &base, source)?.clone(),
            NamedWindowExpr::WindowSpec(window) => whole(window, &known, source)?,
        };
        known.push((own, window));
    }
    spell_out_calls(&mut select.projection, &known, source)?;
    match order_by.map(|order| &mut order.kind) {
        Some(OrderByKind::Expressions(by)) => spell_out_calls(by, &known, source),
        _ => Ok(()),
    }
}

/// Works on the expressions of one query, but not on the subqueries within them: the names are not theirs.
fn spell_out_calls(part: &mut impl VisitMut, known: &[(String, WindowSpec)], source: &Source) -> Result<()> {
    let visited = own(part, |expr| {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if let Err(error) = of_call(function, known, source) {
            return ControlFlow::Break(Box::new(error));
        }
        if let Some(other) = of_truths(function) {
            *expr = other;
        }
        ControlFlow::Continue(())
    });
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

fn of_call(function: &mut Function, known: &[(String, WindowSpec)], source: &Source) -> Result<()> {
    let is_ordered = matches!(&function.args, FunctionArguments::List(list)
        if list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_))));
    if is_ordered && function.over.is_some() {
        let error = SqlError::new("0A000", "aggregate ORDER BY is not implemented for window functions");
        return Err(error.at(source.find_word("over")));
    }
    let mut window = match function.over.take() {
        Some(WindowType::NamedWindow(name)) => find(known, &name, source)?.clone(),
        Some(WindowType::WindowSpec(window)) => whole(window, known, source)?,
        None => return Ok(()),
    };
    frames::spell_out(&mut window).map_err(|error| error.at(source.find_word("over")))?;
    function.over = Some(WindowType::WindowSpec(window));
    Ok(())
}

/// `bool_and(x) OVER (...)` as `min(x::int) OVER (...) = 1`: the planner knows how to take rows out of that one again when a
/// frame slides over them, as it may also do when it turns an order round.
fn of_truths(function: &mut Function) -> Option<Expr> {
    let name = last_part(&function.name)?;
    let other = match name.as_str() {
        "bool_and" | "every" => "min",
        "bool_or" => "max",
        _ => return None,
    };
    let slides = |window: &WindowSpec| window.window_frame.is_some() || !window.order_by.is_empty();
    if !matches!(&function.over, Some(WindowType::WindowSpec(window)) if slides(window)) {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(truth))] = &mut list.args[..] else { return None };
    let nested = |expr: Expr| Box::new(Expr::Nested(Box::new(expr)));
    let (expr, data_type) = (nested(truth.clone()), DataType::Int(None));
    *truth = Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None };
    function.name = ObjectName::from(vec![Ident::new(other)]);
    let right = Box::new(Expr::value(Value::Number("1".to_owned(), false)));
    let left = Box::new(Expr::Function(function.clone()));
    Some(Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Eq, right })))
}

fn find<'w>(known: &'w [(String, WindowSpec)], name: &Ident, source: &Source) -> Result<&'w WindowSpec> {
    let own = fold(name);
    let found = known.iter().find(|(other, _)| *other == own).map(|(_, window)| window);
    found.ok_or_else(|| SqlError::new("42704", format!("window \"{own}\" does not exist")).at(source.start(name.span)))
}

/// A window with the parts of the one that it is based on.
fn whole(mut window: WindowSpec, known: &[(String, WindowSpec)], source: &Source) -> Result<WindowSpec> {
    let Some(name) = window.window_name.take() else { return Ok(window) };
    let base = find(known, &name, source)?;
    let refuse = |message: String| Err(SqlError::new("42P20", message).at(source.start(name.span)));
    let own = fold(&name);
    if !window.partition_by.is_empty() {
        return refuse(format!("cannot override PARTITION BY clause of window \"{own}\""));
    }
    if !window.order_by.is_empty() && !base.order_by.is_empty() {
        return refuse(format!("cannot override ORDER BY clause of window \"{own}\""));
    }
    if base.window_frame.is_some() {
        let refused = refuse(format!("cannot copy window \"{own}\" because it has a frame clause"));
        let is_bare = window.order_by.is_empty() && window.window_frame.is_none();
        let hint = "Omit the parentheses in this OVER clause.";
        return if is_bare { refused.map_err(|error: SqlError| error.hint(hint)) } else { refused };
    }
    window.partition_by = base.partition_by.clone();
    if window.order_by.is_empty() {
        window.order_by = base.order_by.clone();
    }
    Ok(window)
}
