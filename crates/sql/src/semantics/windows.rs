//! Named windows: a window that is based on another has its parts, and PostgreSQL's rules say which it may add.
//!
//! Each `OVER` gets the whole of its window, so that the planner, which forgets the parts of the base, sees no names.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, Ident, NamedWindowDefinition, NamedWindowExpr, OrderBy, OrderByKind, Query, Select, SetExpr,
    Statement, VisitMut, VisitorMut, WindowSpec, WindowType,
};

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::parse::Source;

/// Spells out the windows of every query within a statement.
pub(crate) fn spell_out(statement: &mut Statement, source: &Source) -> Result<()> {
    match statement.visit(&mut Queries { source }) {
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
    let mut windows = Windows { known, source, depth: 0 };
    let mut visited = select.projection.visit(&mut windows);
    if let (ControlFlow::Continue(()), Some(OrderBy { kind: OrderByKind::Expressions(by), .. })) = (&visited, order_by)
    {
        visited = by.visit(&mut windows);
    }
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
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

/// Works on the expressions of one query, but not on the subqueries within them: the names are not theirs.
struct Windows<'a> {
    known: Vec<(String, WindowSpec)>,
    source: &'a Source<'a>,
    depth: usize,
}

impl Windows<'_> {
    fn spell_out(&self, function: &mut Function) -> Result<()> {
        let window = match function.over.take() {
            Some(WindowType::NamedWindow(name)) => find(&self.known, &name, self.source)?.clone(),
            Some(WindowType::WindowSpec(window)) => whole(window, &self.known, self.source)?,
            None => return Ok(()),
        };
        function.over = Some(WindowType::WindowSpec(window));
        Ok(())
    }
}

impl VisitorMut for Windows<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Function(function) if self.depth == 0 => match self.spell_out(function) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(Box::new(error)),
            },
            _ => ControlFlow::Continue(()),
        }
    }
}
