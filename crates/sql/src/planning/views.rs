//! Views in FROM: each name of one gives way to the query that it stands for, with the names that the view gives to its columns; and
//! calls of functions in SQL, each of which gives way to its body (`functions`).
//!
//! ```text
//! FROM v AS x  ->  FROM (SELECT ... FROM public.t AS t ...) AS x (a, b)
//! ```
//!
//! What the view's query reads is looked up where the view was: now, or at the moment of the past of which the view itself is. Its
//! names get their schema, so that no query of WITH around is taken for them. Trees may be deeper afterwards than the
//! statement's text is long, so that a caller is told how much longer it would be if it were written out.
use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select, Statement, TableAlias,
    TableAliasColumnDef, TableFactor, VisitorMut,
};
use engine::{DataType, Table, name_in_schema};

use crate::error::{Result, SqlError};
use crate::interrupt::made_types::MadeFunction;
use crate::names::schemas::local;
use crate::names::tables::{CATALOG, SCHEMA};
use crate::names::{fold, position};
use crate::parsing::parse::{Places, parse_query};
use crate::planning::catalog::Names;
use crate::planning::functions::{self, Called, Calls, Columns, Library, Place};
use crate::planning::samples;
use crate::state::view::{PAST, View};
use crate::syntax::limits;
use crate::syntax::source::Source;
use crate::syntax::walk::WalkMut;
use crate::syntax::with_scope::WithScope;

/// How many views may be read by one another, one within the next.
const DEPTH_MAX: usize = 100;

/// How many times a statement may read views, those that its views read among them.
const READ_MAX: usize = 500;

/// Replaces the views that a statement reads; returns how many bytes of text stand in their places.
///
/// # Errors
/// PostgreSQL's, of views that read themselves and calls that mean no function; what a statement may not have so often.
pub(crate) fn expand(statement: &mut Statement, view: &View, source: &Source, library: Library<'_>) -> Result<usize> {
    let names = Names::new(view.clone());
    let calls = Calls::of(&view.tables, library).map(|calls| calls.with_targets(&view.targets));
    let mut counts = Counts::default();
    let outermost = Expand {
        names: &names,
        calls: calls.as_ref(),
        source: Some(source),
        around: None,
        schema: SCHEMA,
        counts: &mut counts,
    };
    outermost.through(statement)?;
    Ok(counts.bytes)
}

/// What was put in the place of views.
#[derive(Default)]
struct Counts {
    views: usize,
    bytes: usize,
    /// How many calls of functions were written out.
    calls: usize,
    /// The numbers of calls in the statement itself, by their texts: those that are alike have one, so that `GROUP BY` knows them again.
    numbers: HashMap<String, usize>,
}

/// A view or a function that is being written out, and the one that reads it.
struct Around<'a> {
    name: &'a str,
    /// The types of the arguments, of a function.
    parameters: Option<&'a [DataType]>,
    depth: usize,
    around: Option<&'a Around<'a>>,
}

impl Around<'_> {
    fn has(&self, name: &str) -> bool {
        self.name == name || self.around.is_some_and(|around| around.has(name))
    }
}

struct Expand<'a> {
    names: &'a Names,
    /// The functions that there are, if any.
    calls: Option<&'a Calls<'a>>,
    /// The text of the statement, for the names that stand in it.
    source: Option<&'a Source<'a>>,
    around: Option<&'a Around<'a>>,
    /// In which schema names are looked up that have none.
    schema: &'a str,
    counts: &'a mut Counts,
}

struct Walking<'a> {
    expand: Expand<'a>,
    scope: WithScope,
    /// What calls see.
    columns: Columns<'a>,
}

impl VisitorMut for Walking<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.enter(query);
        if self.expand.calls.is_some() {
            self.columns.enter_query(query);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.leave();
        if self.expand.calls.is_some() {
            self.columns.leave_query();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if self.expand.calls.is_some() {
            self.columns.enter(select);
        }
        let place = self.expand.place(&self.columns);
        told(functions::fields::spell_out(select, self.expand.calls, self.expand.names.tables(), place))?;
        if self.expand.calls.is_some_and(|calls| calls.has_call(&select.projection)) {
            functions::keep_names(select);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if self.expand.calls.is_some() {
            self.columns.leave();
            // Nothing stands before the first.
            if let Some(TableFactor::Derived { lateral, .. }) = select.from.first_mut().map(|table| &mut table.relation)
            {
                *lateral = false;
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match self.expand.calls {
            Some(calls) => told(self.expand.call(expr, calls, &self.columns)),
            None => ControlFlow::Continue(()),
        }
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let Some(calls) = self.expand.calls {
            told(self.expand.call_in_from(factor, calls, &self.columns))?;
        }
        told(self.expand.factor(factor, &self.scope))
    }
}

fn told(done: Result<()>) -> ControlFlow<Box<SqlError>> {
    done.map_or_else(|error| ControlFlow::Break(Box::new(error)), ControlFlow::Continue)
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

impl<'a> Expand<'a> {
    fn through(self, part: &mut impl WalkMut) -> Result<()> {
        let columns = self.calls.map(Calls::columns).unwrap_or_default();
        let walking = &mut Walking { expand: self, scope: WithScope::default(), columns };
        match part.walk_mut(walking) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(*error),
        }
    }

    /// Replaces a name in FROM that is a view's; says of which schema it is within a view.
    fn factor(&mut self, factor: &mut TableFactor, scope: &WithScope) -> Result<()> {
        let TableFactor::Table { name, alias, args: None, sample, .. } = factor else { return Ok(()) };
        if scope.has(name) {
            return Ok(());
        }
        let Some((schema, table)) = parts(name, self.schema) else { return Ok(()) };
        // What is not there, or not kept, is told when it is planned.
        let Ok(Some(found)) = self.names.find_in(&schema, &table) else { return Ok(()) };
        if found.view().is_some() {
            let at = self.source.and_then(|source| position(name, source));
            if sample.is_some() {
                return Err(samples::not_a_table().at(at));
            }
            let alias = alias.take();
            *factor = self.written_out(&found, (&schema, &table), alias).map_err(|error| error.at(at))?;
        } else if self.around.is_some() {
            alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: quoted(local(&table)),
                columns: Vec::new(),
                at: None,
            });
            *name = ObjectName::from(vec![quoted(&schema), quoted(&table)]);
        }
        Ok(())
    }

    fn written_out(
        &mut self,
        view: &Table,
        (schema, name): (&str, &str),
        alias: Option<TableAlias>,
    ) -> Result<TableFactor> {
        let known = if schema.starts_with(PAST) { name.to_owned() } else { name_in_schema(schema, name) };
        let text = view.view().map(|definition| definition.query.as_str()).unwrap_or_default();
        let depth = self.around.map_or(1, |around| around.depth + 1);
        if self.around.is_some_and(|around| around.has(&known)) {
            let message = format!("infinite recursion detected in rules for relation \"{name}\"");
            return Err(SqlError::new("42P17", message));
        }
        self.counts.views += 1;
        self.counts.bytes += text.len();
        if depth > DEPTH_MAX {
            return Err(limits::too_deep(format!("It reads more than {DEPTH_MAX} views, one within the other.")));
        }
        if self.counts.views > READ_MAX {
            return Err(limits::too_deep(format!("It reads views more than {READ_MAX} times.")));
        }
        let around = Around { name: &known, parameters: None, depth, around: self.around };
        let mut query = parse_query(text, Places::Unknown)?;
        let (names, calls, counts) = (self.names, self.calls, &mut *self.counts);
        // A view names the schema of what is not in the one that all know.
        let schema = if schema.starts_with(PAST) { schema } else { SCHEMA };
        Expand { names, calls, source: None, around: Some(&around), schema, counts }.through(query.as_mut())?;
        let alias = alias_of(view, local(name), alias)?;
        Ok(TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None })
    }

    /// Replaces a call in an expression.
    fn call(&mut self, expr: &mut Expr, calls: &Calls<'_>, columns: &Columns<'_>) -> Result<()> {
        let Expr::Function(function) = expr else { return Ok(()) };
        let FunctionArguments::List(list) = &function.args else { return Ok(()) };
        let at = self.source.and_then(|source| position(&function.name, source));
        let found = calls.find(&function.name, &list.args, self.place(columns)).map_err(|error| error.at(at))?;
        let Some(called) = found.filter(|called| !self.is_within_itself(called, &function.name, calls)) else {
            return Ok(());
        };
        functions::check_plain(function, &called.function.name).map_err(|error| error.at(at))?;
        let query = self.body_of(called.function, calls).map_err(|error| error.at(at))?;
        let number = match self.around {
            None if !calls.is_volatile(&called, &query) => {
                *self.counts.numbers.entry(expr.to_string()).or_insert(self.counts.calls)
            }
            _ => self.counts.calls,
        };
        *expr = calls.value(called, query, number, columns).map_err(|error| error.at(at))?;
        Ok(())
    }

    /// Replaces a call in FROM.
    fn call_in_from(&mut self, factor: &mut TableFactor, calls: &Calls<'_>, columns: &Columns<'_>) -> Result<()> {
        let (name, args, alias, is_numbered) = match factor {
            TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } => {
                (name, &args.args, alias, *with_ordinality)
            }
            TableFactor::Function { name, args, alias, with_ordinality, .. } => (name, &*args, alias, *with_ordinality),
            _ => return Ok(()),
        };
        let at = self.source.and_then(|source| position(name, source));
        let found = calls.find(name, args, self.place(columns)).map_err(|error| error.at(at))?;
        let Some(called) = found.filter(|called| !self.is_within_itself(called, name, calls)) else { return Ok(()) };
        let query = self.body_of(called.function, calls).map_err(|error| error.at(at))?;
        let rows = calls.rows(called, query, self.counts.calls, (alias.take(), is_numbered));
        *factor = rows.map_err(|error| error.at(at))?;
        Ok(())
    }

    /// What stands around the calls that are looked at.
    fn place<'p>(&'p self, columns: &'p Columns<'p>) -> Place<'p> {
        let parameters = self.around.and_then(|around| around.parameters);
        let is_in_view = self.around.is_some() && parameters.is_none();
        Place { columns, parameters: parameters.unwrap_or_default(), is_in_view }
    }

    /// Whether a call within a function's own body means what there is beside the function.
    fn is_within_itself(&self, called: &Called<'_>, name: &ObjectName, calls: &Calls<'_>) -> bool {
        calls.is_built_in(name) && self.around.is_some_and(|around| around.has(&called.key()))
    }

    /// The body of a function, all of it written out but for the arguments.
    fn body_of(&mut self, function: &MadeFunction, calls: &Calls<'_>) -> Result<Box<Query>> {
        let (known, parameters) = (functions::key(function), function.types());
        let depth = self.around.map_or(1, |around| around.depth + 1);
        if self.around.is_some_and(|around| around.has(&known)) {
            let what = format!("function {}, which calls itself,", function.signature());
            return Err(SqlError::unsupported(what).hint("Use WITH RECURSIVE."));
        }
        let mut query = calls.query_of(function)?;
        self.counts.views += 1;
        self.counts.calls += 1;
        self.counts.bytes += function.definition.body.len();
        if depth > DEPTH_MAX {
            let what = format!("It calls more than {DEPTH_MAX} functions, one within the other.");
            return Err(limits::too_deep(what));
        }
        if self.counts.views > READ_MAX {
            return Err(limits::too_deep(format!("It reads views and calls functions more than {READ_MAX} times.")));
        }
        let around = Around { name: &known, parameters: Some(&parameters), depth, around: self.around };
        let (names, counts) = (self.names, &mut *self.counts);
        let within = Expand { names, calls: Some(calls), source: None, around: Some(&around), schema: SCHEMA, counts };
        within.through(query.as_mut())?;
        Ok(query)
    }
}

/// The schema and the name of what may be a view; none for what stands in another schema.
fn parts(name: &ObjectName, schema: &str) -> Option<(String, String)> {
    let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    match &parts[..] {
        [table] => Some((schema.to_owned(), table.clone())),
        [own, table] | [_, own, table] if own == SCHEMA && (parts.len() == 2 || parts[0] == CATALOG) => {
            Some((schema.to_owned(), table.clone()))
        }
        [past, table] if past.starts_with(PAST) => Some((past.clone(), table.clone())),
        [own, table] if schema.starts_with(PAST) => Some((schema.to_owned(), name_in_schema(own, table))),
        [own, table] if !own.starts_with('\0') => Some((own.clone(), table.clone())),
        _ => None,
    }
}

/// The names of a view's columns, and first those that the statement gives them.
fn alias_of(view: &Table, name: &str, alias: Option<TableAlias>) -> Result<TableAlias> {
    let mut alias =
        alias.unwrap_or_else(|| TableAlias { explicit: true, name: quoted(name), columns: Vec::new(), at: None });
    let columns = view.schema().columns();
    if alias.columns.len() > columns.len() {
        let (label, known, given) = (fold(&alias.name), columns.len(), alias.columns.len());
        let message = format!("table \"{label}\" has {known} columns available but {given} columns specified");
        return Err(SqlError::new("42P10", message));
    }
    let rest = columns[alias.columns.len()..].iter();
    alias.columns.extend(rest.map(|column| TableAliasColumnDef { name: quoted(&column.name), data_type: None }));
    Ok(alias)
}
