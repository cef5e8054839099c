//! The names of columns that a statement may mean, as far as they are known before any name is looked up.
use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Query, Select, SelectItem, Statement, TableAlias, TableFactor, Visitor};

use crate::names::headings::heading;
use crate::names::tables::Tables;
use crate::semantics::naming::columns::Scope;
use crate::syntax::identifiers::fold;
use crate::syntax::walk::Walk;

/// The names of the columns of a statement's tables and of its queries; none where there is but one query, in which nothing
/// is taken for something else.
pub(super) fn columns(statement: &Statement, tables: &Tables) -> HashSet<String> {
    let mut names = Names { scope: Scope::new(tables), queries: 0, columns: HashSet::new() };
    let _ = statement.walk(&mut names);
    if names.queries > 1 { names.columns } else { HashSet::new() }
}

/// The names that a statement gives columns, and those of its tables.
struct Names<'a> {
    scope: Scope<'a>,
    queries: usize,
    columns: HashSet<String>,
}

impl Names<'_> {
    /// Adds the names that an alias gives columns.
    fn add(&mut self, alias: &TableAlias) {
        self.columns.extend(alias.columns.iter().map(|column| fold(&column.name)));
    }
}

impl Visitor for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.queries += 1;
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.add(&cte.alias);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => self.columns.insert(fold(alias)),
                SelectItem::UnnamedExpr(expr) => heading(expr).is_some_and(|name| self.columns.insert(name)),
                _ => false,
            };
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = factor
            && let Some(table) = self.scope.table(name)
        {
            self.columns.extend(table.schema().columns().iter().map(|column| column.name.clone()));
        }
        match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::TableFunction { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. } => self.add(alias),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
