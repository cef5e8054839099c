//! The body of a function as a query: its last statement, in which each name of an argument is written by number.
//!
//! ```text
//! SELECT count(*) FROM orders WHERE user_id = owner   ─▶   SELECT count(*) FROM orders WHERE user_id = $1
//! ```
//!
//! A name is an argument's where no table of the query around it has a column of that name, and an error where there is no such argument
//! either (`names`).
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FromTable, Function, FunctionArg, FunctionArguments, Ident, ObjectNamePart, Query, Select, SelectItem,
    Statement, TableFactor, TableObject, UpdateTableFromKind, Value, VisitorMut,
};
use engine::{FunctionArgument, FunctionBody, FunctionDefinition, PUBLIC_SCHEMA};

use super::build::cast;
use super::names::{Meaning, Names, OfTable};
use crate::error::{Result, SqlError};
use crate::interrupt::made_types::MadeFunction;
use crate::names::headings::heading;
use crate::names::schemas::schema_of;
use crate::names::tables::Tables;
use crate::parsing::ParsedStatement;
use crate::parsing::parse::{Places, parse, parse_query};
use crate::syntax::identifiers::fold;
use crate::syntax::parameter;
use crate::syntax::split::split;
use crate::syntax::walk::WalkMut;
use crate::syntax::with_scope::WithScope;
use crate::values::literals::is_default;

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
    let mut numbering = Numbering { name, definition, names: Names::new(tables) };
    match query.walk_mut(&mut numbering) {
        ControlFlow::Continue(()) => Ok(query),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// A statement of a function that is run, with the numbers of arguments in place of their names.
///
/// # Errors
/// 0A000 where it is neither a query nor a plain change of rows.
pub(crate) fn numbered(function: &MadeFunction, text: &str, tables: &Tables) -> Result<Statement> {
    let parsed = parse(text).map_err(|error| SqlError { position: None, ..error })?;
    let ParsedStatement::Statement(mut statement) = parsed else { return Err(not_a_query()) };
    let definition = &function.definition;
    let mut numbering = Numbering { name: &function.name, definition, names: Names::new(Some(tables)) };
    match numbering.statement(statement.as_mut()) {
        ControlFlow::Continue(()) => Ok(*statement),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// The error about a statement that functions can't have.
pub(crate) fn not_a_query() -> SqlError {
    let error = SqlError::unsupported("a statement other than SELECT, INSERT, UPDATE and DELETE in a function");
    error.hint("Nor can the queries of a WITH change rows there.")
}

/// Puts expressions in the place of the arguments of a statement.
pub(crate) fn fill(statement: &mut Statement, arguments: &[Expr]) {
    let _ = statement.walk_mut(&mut Filling(arguments));
}

/// That query with NULL for each argument, as it is planned when the function is made.
pub(crate) fn with_nulls(name: &str, definition: &FunctionDefinition, tables: &Tables) -> Result<Box<Query>> {
    let mut query = query_of(name, definition, Some(tables))?;
    let _ = query.walk_mut(&mut Filling(&nulls(definition)));
    Ok(query)
}

/// NULL for each argument.
pub(crate) fn nulls(definition: &FunctionDefinition) -> Vec<Expr> {
    let null = |argument: &FunctionArgument| cast(Expr::value(Value::Null), argument.data_type);
    definition.arguments.iter().map(null).collect()
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

struct Numbering<'a> {
    name: &'a str,
    definition: &'a FunctionDefinition,
    names: Names<'a>,
}

impl Numbering<'_> {
    /// The number of the argument of a name, from 0.
    fn argument(&self, name: &str) -> Option<usize> {
        self.definition.arguments.iter().position(|argument| !name.is_empty() && argument.name == name)
    }

    /// What stands in the place of a name; `None` where the name stays.
    ///
    /// # Errors
    /// 42703 and 42P01 where it is neither an argument's nor that of anything in the body.
    fn meant(&self, expr: &Expr) -> Result<Option<Expr>> {
        match expr {
            Expr::Identifier(name) => self.alone(name),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [.., table, name] if parts.len() <= 3 => self.behind(parts, table, name),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    fn alone(&self, name: &Ident) -> Result<Option<Expr>> {
        let folded = fold(name);
        let Meaning::Unknown(tables) = self.names.column(&folded) else { return Ok(None) };
        match (self.argument(&folded), &tables[..]) {
            (Some(at), _) => Ok(Some(parameter(at))),
            (None, []) => Err(SqlError::new("42703", format!("column \"{folded}\" does not exist"))),
            (None, [Some(table)]) => {
                Ok(Some(Expr::CompoundIdentifier(vec![Ident::with_quote('"', table), name.clone()])))
            }
            (None, _) => Ok(None),
        }
    }

    fn behind(&self, parts: &[Ident], table: &Ident, name: &Ident) -> Result<Option<Expr>> {
        let (of, folded) = (fold(table), fold(name));
        let found = self.names.column_of(&of, &folded);
        let argument = self.argument(&folded).filter(|_| parts.len() == 2 && of == self.name);
        match (found, argument) {
            (OfTable::Own, _) => Ok(None),
            (OfTable::NoColumn | OfTable::NoTable, Some(at)) => Ok(Some(parameter(at))),
            (OfTable::NoColumn, None) => Err(SqlError::new("42703", format!("column {of}.{folded} does not exist"))),
            (OfTable::NoTable, None) => {
                let message = format!("missing FROM-clause entry for table \"{of}\"");
                Err(SqlError::new("42P01", message))
            }
        }
    }
}

fn broken<T>(error: SqlError) -> ControlFlow<Box<SqlError>, T> {
    ControlFlow::Break(Box::new(error))
}

impl VisitorMut for Numbering<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.names.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.names.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        self.names.enter_select(select);
        for item in &mut select.projection {
            // A column goes on being called like the argument.
            if let SelectItem::UnnamedExpr(expr) = item
                && let Ok(Some(Expr::Value(_))) = self.meant(expr)
                && let Some(name) = heading(expr)
            {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Self::Break> {
        self.names.leave_select();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        self.names.enter_factor(factor);
        match factor {
            TableFactor::Table { args: Some(args), .. } => self.keep_parameters(&args.args),
            TableFactor::Function { args, .. } => self.keep_parameters(args),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        self.names.leave_factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Value(value) => {
                if let Value::Placeholder(name) = &value.value {
                    let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
                    let is_there = number.is_some_and(|number| (1..=self.definition.arguments.len()).contains(&number));
                    if !is_there {
                        return broken(SqlError::new("42P02", format!("there is no parameter {name}")));
                    }
                }
            }
            Expr::Function(Function { args: FunctionArguments::List(list), .. }) => self.keep_parameters(&list.args),
            _ if self.names.is_kept(expr) || is_default(expr) => {}
            _ => match self.meant(expr) {
                Ok(Some(instead)) => *expr = instead,
                Ok(None) => {}
                Err(error) => return broken(error),
            },
        }
        ControlFlow::Continue(())
    }
}

impl Numbering<'_> {
    /// Goes through a statement that may change rows: all of it sees the table, but for what an `INSERT` puts in.
    fn statement(&mut self, statement: &mut Statement) -> ControlFlow<Box<SqlError>> {
        match statement {
            Statement::Query(query) => query.walk_mut(self),
            Statement::Insert(insert) => {
                if let Some(source) = &mut insert.source {
                    source.walk_mut(self)?;
                }
                if let TableObject::TableName(table) = &insert.table {
                    self.names.enter_insert(table, insert.table_alias.as_ref().map(|alias| &alias.alias));
                    insert.on.walk_mut(self)?;
                    insert.returning.walk_mut(self)?;
                    self.names.leave_change();
                }
                ControlFlow::Continue(())
            }
            Statement::Update(update) => {
                let others = match &update.from {
                    Some(UpdateTableFromKind::BeforeSet(others) | UpdateTableFromKind::AfterSet(others)) => &others[..],
                    None => &[],
                };
                self.names.enter_change(&std::iter::once(&update.table).chain(others).collect::<Vec<_>>());
                update.walk_mut(self)?;
                self.names.leave_change();
                ControlFlow::Continue(())
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
                let others = delete.using.iter().flatten();
                self.names.enter_change(&tables.iter().chain(others).collect::<Vec<_>>());
                delete.walk_mut(self)?;
                self.names.leave_change();
                ControlFlow::Continue(())
            }
            _ => broken(not_a_query()),
        }
    }

    fn keep_parameters(&mut self, args: &[FunctionArg]) {
        for arg in args {
            if let FunctionArg::ExprNamed { name, .. } = arg {
                self.names.keep_parameter(name);
            }
        }
    }
}

/// The argument of this number, from 0, as a body has it.
fn parameter(at: usize) -> Expr {
    Expr::value(Value::Placeholder(format!("${}", at + 1)))
}

/// The number of the argument that an expression is, from 0.
pub(super) fn number_of(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    parameter::number_of(&value.value)
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
