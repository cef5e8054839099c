//! Views in FROM: each name of one gives way to the query that it stands for, with the names that the view gives to its columns.
//!
//! ```text
//! FROM v AS x  ->  FROM (SELECT ... FROM public.t AS t ...) AS x (a, b)
//! ```
//!
//! What the view's query reads is looked up where the view was: now, or at the moment of the past of which the view itself is. Its
//! names get their schema, so that no query of WITH around is taken for them. Trees may be deeper afterwards than the
//! statement's text is long, so that a caller is told how much longer it would be if it were written out.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, Query, Statement, TableAlias, TableAliasColumnDef, TableFactor, VisitorMut,
};
use engine::{Table, name_in_schema};

use crate::error::{Result, SqlError};
use crate::names::schemas::local;
use crate::names::tables::{CATALOG, SCHEMA};
use crate::names::{fold, position};
use crate::parsing::parse::{Places, parse_query};
use crate::planning::catalog::Names;
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
pub(crate) fn expand(statement: &mut Statement, view: &View, source: &Source) -> Result<usize> {
    let names = Names::new(view.clone());
    let mut counts = Counts::default();
    let outermost = Expand { names: &names, source: Some(source), around: None, schema: SCHEMA, counts: &mut counts };
    outermost.through(statement)?;
    Ok(counts.bytes)
}

/// What was put in the place of views.
#[derive(Default)]
struct Counts {
    views: usize,
    bytes: usize,
}

/// A view that is being written out, and the one that reads it.
struct Around<'a> {
    name: &'a str,
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
}

impl VisitorMut for Walking<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.leave();
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        match self.expand.factor(factor, &self.scope) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

impl<'a> Expand<'a> {
    fn through(self, part: &mut impl WalkMut) -> Result<()> {
        match part.walk_mut(&mut Walking { expand: self, scope: WithScope::default() }) {
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
        let around = Around { name: &known, depth, around: self.around };
        let mut query = parse_query(text, Places::Unknown)?;
        let (names, counts) = (self.names, &mut *self.counts);
        // A view names the schema of what is not in the one that all know.
        let schema = if schema.starts_with(PAST) { schema } else { SCHEMA };
        Expand { names, source: None, around: Some(&around), schema, counts }.through(query.as_mut())?;
        let alias = alias_of(view, local(name), alias)?;
        Ok(TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None })
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
