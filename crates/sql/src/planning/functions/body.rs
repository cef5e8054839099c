//! The body of a function as a query: its last statement, in which each name of an argument is written by number.
//!
//! ```text
//! SELECT count(*) FROM orders WHERE user_id = owner   ─▶   SELECT count(*) FROM orders WHERE user_id = $1
//! ```
//!
//! A name is an argument's where no table of the query around it has a column of that name. A query in FROM sees nothing of the tables
//! beside it, and what orders a query sees what the query reads and gives.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableFactor, Value, VisitorMut,
};
use engine::{FunctionArgument, FunctionBody, FunctionDefinition, PUBLIC_SCHEMA};

use super::build::cast;
use crate::error::{Result, SqlError};
use crate::names::headings::heading;
use crate::names::schemas::schema_of;
use crate::names::tables::Tables;
use crate::parsing::parse::{Places, parse_query};
use crate::semantics::naming::columns::{Output, Scope, label};
use crate::syntax::identifiers::fold;
use crate::syntax::split::split;
use crate::syntax::walk::WalkMut;
use crate::syntax::with_scope::WithScope;

/// The statements of a body.
pub(crate) fn statements(definition: &FunctionDefinition) -> Vec<String> {
    match definition.form {
        FunctionBody::Text | FunctionBody::Atomic => {
            split(&definition.body).into_iter().map(|piece| piece.text.to_owned()).collect()
        }
        FunctionBody::Return => vec![format!("SELECT {}", definition.body)],
    }
}

/// The query that gives a function's result, with the numbers of its arguments in place of their names.
/// Without tables, it is one that reads none.
pub(super) fn query_of(name: &str, definition: &FunctionDefinition, tables: Option<&Tables>) -> Result<Box<Query>> {
    let statements = statements(definition);
    let Some(last) = statements.last() else {
        return Err(SqlError::new("42P13", "the body of the function is empty"));
    };
    let mut query = parse_query(last, Places::Unknown)?;
    if let Some(tables) = tables.filter(|tables| !tables.path().is_plain()) {
        let _ = query.walk_mut(&mut Placing { tables, scope: WithScope::default() });
    }
    let mut numbering = Numbering { name, definition, scope: tables.map(Scope::new), frames: Vec::new() };
    match query.walk_mut(&mut numbering) {
        ControlFlow::Continue(()) => Ok(query),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// That query with NULL for each argument, as it is planned when the function is made.
pub(crate) fn with_nulls(name: &str, definition: &FunctionDefinition, tables: &Tables) -> Result<Box<Query>> {
    let mut query = query_of(name, definition, Some(tables))?;
    let null = |argument: &FunctionArgument| cast(Expr::value(Value::Null), argument.data_type);
    let nulls: Vec<Expr> = definition.arguments.iter().map(null).collect();
    let _ = query.walk_mut(&mut Filling(&nulls));
    Ok(query)
}

/// Says the schema of each name in FROM that says none, by the session's search path.
struct Placing<'a> {
    tables: &'a Tables,
    scope: WithScope,
}

impl VisitorMut for Placing<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scope.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scope.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = factor
            && !self.scope.has(name)
            && let [ObjectNamePart::Identifier(own)] = &name.0[..]
        {
            let found = self.tables.resolved(fold(own));
            let schema = schema_of(&found);
            if schema != PUBLIC_SCHEMA {
                name.0.insert(0, ObjectNamePart::Identifier(Ident::with_quote('"', schema)));
            }
        }
        ControlFlow::Continue(())
    }
}

/// What is seen at a place.
enum Frame {
    /// The columns and the labels of a SELECT's tables.
    Select { columns: Vec<String>, labels: Vec<String> },
    /// What a query's ORDER BY sees, where that is asked.
    Order { columns: Vec<String>, labels: Vec<String> },
    /// A query in FROM, which does not see the SELECT around it.
    Derived,
}

struct Numbering<'a> {
    name: &'a str,
    definition: &'a FunctionDefinition,
    scope: Option<Scope<'a>>,
    frames: Vec<Frame>,
}

impl Numbering<'_> {
    fn seen(&mut self, select: &Select) -> (Vec<String>, Vec<String>) {
        let outputs: Vec<Output> =
            select.from.iter().filter_map(|table| self.scope.as_mut()?.joined(table)).flatten().collect();
        let factors = select
            .from
            .iter()
            .flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
        let labels = factors.filter_map(label).map(|label| fold(&label)).collect();
        (outputs.into_iter().map(|output| output.name).collect(), labels)
    }

    /// Whether the tables around have such a thing.
    fn is_seen(&self, is_it: impl Fn(&[String], &[String]) -> bool) -> bool {
        let mut hidden = 0;
        for (depth, frame) in self.frames.iter().rev().enumerate() {
            match frame {
                Frame::Derived => hidden += 1,
                Frame::Select { .. } if hidden > 0 => hidden -= 1,
                Frame::Select { columns, labels } if is_it(columns, labels) => return true,
                Frame::Order { columns, labels } if depth == 0 && is_it(columns, labels) => return true,
                Frame::Select { .. } | Frame::Order { .. } => {}
            }
        }
        false
    }

    /// The number of the argument that a name means, from 0.
    fn number(&self, expr: &Expr) -> Option<usize> {
        let argument = |name: &Ident| {
            let name = fold(name);
            self.definition.arguments.iter().position(|argument| !name.is_empty() && argument.name == name)
        };
        match expr {
            Expr::Identifier(name) => {
                let column = fold(name);
                argument(name).filter(|_| !self.is_seen(|columns, _| columns.contains(&column)))
            }
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [function, name] if fold(function) == self.name => {
                    argument(name).filter(|_| !self.is_seen(|_, labels| labels.iter().any(|label| label == self.name)))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl VisitorMut for Numbering<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.iter_mut().for_each(|scope| scope.enter(query));
        let (mut columns, mut labels) = (Vec::new(), Vec::new());
        let mut body = query.body.as_ref();
        while let SetExpr::SetOperation { left, .. } = body {
            body = left;
        }
        if let SetExpr::Select(select) = body {
            if std::ptr::eq(body, query.body.as_ref()) {
                (columns, labels) = self.seen(select);
            }
            columns.extend(select.projection.iter().filter_map(|item| match item {
                SelectItem::UnnamedExpr(expr) => heading(expr),
                SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
                _ => None,
            }));
        }
        self.frames.push(Frame::Order { columns, labels });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.frames.pop();
        self.scope.iter_mut().for_each(Scope::leave);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        let (columns, labels) = self.seen(select);
        self.frames.push(Frame::Select { columns, labels });
        for item in &mut select.projection {
            // A column goes on being called like the argument.
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some(name) = heading(expr).filter(|_| self.number(expr).is_some())
            {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Self::Break> {
        self.frames.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Derived { lateral: false, .. } = factor {
            self.frames.push(Frame::Derived);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Derived { lateral: false, .. } = factor {
            self.frames.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
        {
            let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
            let is_there = number.is_some_and(|number| (1..=self.definition.arguments.len()).contains(&number));
            if !is_there {
                let error = SqlError::new("42P02", format!("there is no parameter {name}"));
                return ControlFlow::Break(Box::new(error));
            }
        }
        if let Some(at) = self.number(expr) {
            *expr = parameter(at);
        }
        ControlFlow::Continue(())
    }
}

/// The argument of this number, from 0, as a body has it.
fn parameter(at: usize) -> Expr {
    Expr::value(Value::Placeholder(format!("${}", at + 1)))
}

/// The number of the argument that an expression is, from 0.
pub(super) fn number_of(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Placeholder(name) = &value.value else { return None };
    name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// Puts expressions in the place of arguments.
pub(super) struct Filling<'a>(pub(super) &'a [Expr]);

impl VisitorMut for Filling<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(value) = number_of(expr).and_then(|at| self.0.get(at)) {
            *expr = value.clone();
        }
        ControlFlow::Continue(())
    }
}
