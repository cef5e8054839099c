//! What names within a function's body mean: columns of the body's own tables, or none of them.
//!
//! A body stands within the statement that calls it and must not see the columns of that statement, whatever has become of its own
//! tables since it was written. So its names are looked up among its own tables alone, the innermost first:
//!
//! ```text
//! a query in FROM       sees nothing of the tables beside it, unless it is LATERAL: then it sees those before it, as functions there do
//! a query of WITH       sees nothing of the query that it is for
//! ORDER BY, GROUP BY    take a name that stands alone for a column of the select list, as PostgreSQL does
//! ```
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, ObjectName, ObjectNamePart, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableFactor, TableWithJoins,
};

use crate::names::headings::heading;
use crate::names::tables::Tables;
use crate::semantics::naming::columns::{Scope, label};
use crate::syntax::identifiers::fold;

/// The columns that every table has and no catalog lists.
const OF_SYSTEM: [&str; 1] = ["tableoid"];

/// What stands in FROM.
#[derive(Clone)]
struct Item {
    label: Option<String>,
    /// `None` where they are not known.
    columns: Option<Vec<String>>,
}

impl Item {
    fn has(&self, column: &str) -> Option<bool> {
        let columns = self.columns.as_ref()?;
        Some(OF_SYSTEM.contains(&column) || columns.iter().any(|known| known == column))
    }
}

/// What is seen at a place.
enum Frame {
    /// The tables of a SELECT, and how many of them the walk through its FROM has passed; it is nowhere in it before and afterwards.
    Select { items: Vec<Item>, passed: Option<usize> },
    /// The tables of a statement that changes rows.
    Change(Vec<Item>),
    /// What the ORDER BY of a SELECT's query sees, once the walk is there: the tables of the SELECT.
    Order { items: Vec<Item>, is_there: bool },
    /// A query in FROM, which does not see the SELECT around it.
    Derived,
}

/// What a name by itself means.
pub(super) enum Meaning {
    /// A column, or a row, of the body's tables.
    Own,
    /// No column of a table of which the columns are known; these are the labels of the others.
    Unknown(Vec<Option<String>>),
}

/// What a name with that of a table before it means.
pub(super) enum OfTable {
    /// A column of that table, as far as its columns are known.
    Own,
    /// Nothing: the table has no such column.
    NoColumn,
    /// Nothing: there is no such table.
    NoTable,
}

/// The tables around a place of a body.
pub(super) struct Names<'a> {
    scope: Option<Scope<'a>>,
    frames: Vec<Frame>,
    /// Where names stand that mean columns of select lists, or parameters of functions.
    kept: Vec<*const Expr>,
}

impl<'a> Names<'a> {
    /// Without tables nothing is known of what stands in FROM.
    pub(super) fn new(tables: Option<&'a Tables>) -> Names<'a> {
        Names { scope: tables.map(Scope::new), frames: Vec::new(), kept: Vec::new() }
    }

    pub(super) fn enter_query(&mut self, query: &Query) {
        self.scope.iter_mut().for_each(|scope| scope.enter(query));
        let mut items = Vec::new();
        let mut given = None;
        if let SetExpr::Select(select) = query.body.as_ref() {
            (items, given) = (self.items(select), Some(outputs(select)));
        }
        if let Some(OrderByKind::Expressions(keys)) = query.order_by.as_ref().map(|order| &order.kind) {
            // Nothing but the columns that it gives orders a set operation.
            self.keep(keys.iter().map(|key| &key.expr), |name| given.as_ref().is_none_or(|given| given.contains(name)));
        }
        self.frames.push(Frame::Order { items, is_there: false });
    }

    pub(super) fn leave_query(&mut self) {
        self.frames.pop();
        self.scope.iter_mut().for_each(Scope::leave);
    }

    pub(super) fn enter_select(&mut self, select: &Select) {
        let (items, outputs) = (self.items(select), outputs(select));
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            let is_output =
                |name: &String| outputs.contains(name) && !items.iter().any(|item| item.has(name) == Some(true));
            self.keep(keys.iter(), is_output);
        }
        if let Some(Distinct::On(keys)) = &select.distinct {
            self.keep(keys.iter(), |name| outputs.contains(name));
        }
        self.frames.push(Frame::Select { items, passed: None });
    }

    pub(super) fn leave_select(&mut self) {
        self.frames.pop();
        // What orders the query stands behind it.
        if let Some(Frame::Order { is_there, .. }) = self.frames.last_mut() {
            *is_there = true;
        }
    }

    /// Goes into a statement that changes rows of a table, beside which it reads others.
    pub(super) fn enter_change(&mut self, tables: &[&TableWithJoins]) {
        let mut items = Vec::new();
        tables.iter().for_each(|table| self.add_joined(table, &mut items));
        self.frames.push(Frame::Change(items));
    }

    /// Goes into what an `INSERT` does with rows that it puts in, or has not put in.
    pub(super) fn enter_insert(&mut self, table: &ObjectName, alias: Option<&Ident>) {
        let label = alias.or_else(|| table.0.last().and_then(ObjectNamePart::as_ident)).map(fold);
        let known = self.scope.as_ref().and_then(|scope| scope.table(table));
        let columns = known
            .map(|table| table.schema().columns().iter().map(|column| column.name.clone()).collect::<Vec<String>>());
        let excluded = Item { label: Some("excluded".to_owned()), columns: columns.clone() };
        self.frames.push(Frame::Change(vec![Item { label, columns }, excluded]));
    }

    /// Comes out of what was entered so.
    pub(super) fn leave_change(&mut self) {
        self.frames.pop();
    }

    pub(super) fn enter_factor(&mut self, factor: &TableFactor) {
        if let Some(Frame::Select { passed, .. }) = self.frames.last_mut() {
            passed.get_or_insert(0);
        }
        if let TableFactor::Derived { lateral: false, .. } = factor {
            self.frames.push(Frame::Derived);
        }
    }

    pub(super) fn leave_factor(&mut self, factor: &TableFactor) {
        if let TableFactor::Derived { lateral: false, .. } = factor {
            self.frames.pop();
        }
        let is_item = !matches!(factor, TableFactor::NestedJoin { alias: None, .. });
        if let Some(Frame::Select { items, passed: Some(passed) }) = self.frames.last_mut().filter(|_| is_item) {
            *passed = (*passed + 1).min(items.len());
        }
    }

    /// Notes names that are to stay.
    fn keep<'e>(&mut self, keys: impl Iterator<Item = &'e Expr>, is_kept: impl Fn(&String) -> bool) {
        let named = keys.filter(|key| matches!(key, Expr::Identifier(name) if is_kept(&fold(name))));
        self.kept.extend(named.map(std::ptr::from_ref));
    }

    /// Notes the name of a parameter in a call.
    pub(super) fn keep_parameter(&mut self, name: &Expr) {
        self.kept.push(std::ptr::from_ref(name));
    }

    /// Whether an expression is a name that is to stay.
    pub(super) fn is_kept(&self, expr: &Expr) -> bool {
        self.kept.iter().any(|kept| std::ptr::eq(*kept, expr))
    }

    fn items(&mut self, select: &Select) -> Vec<Item> {
        let mut items = Vec::new();
        select.from.iter().for_each(|table| self.add_joined(table, &mut items));
        items
    }

    fn add_joined(&mut self, table: &TableWithJoins, items: &mut Vec<Item>) {
        for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, alias } => {
                    self.add_joined(table_with_joins, items);
                    let whole = alias.as_ref().map(|alias| Item { label: Some(fold(&alias.name)), columns: None });
                    items.extend(whole);
                }
                factor => {
                    let columns = self.scope.as_mut().and_then(|scope| columns(factor, scope));
                    items.push(Item { label: called(factor), columns });
                }
            }
        }
    }

    /// The tables that are seen, the innermost first.
    fn seen(&self) -> impl Iterator<Item = &[Item]> {
        let mut hidden = 0;
        self.frames.iter().rev().filter_map(move |frame| match frame {
            Frame::Derived => {
                hidden += 1;
                None
            }
            Frame::Select { .. } | Frame::Change(_) if hidden > 0 => {
                hidden -= 1;
                None
            }
            Frame::Select { items, passed } => Some(&items[..passed.unwrap_or(items.len())]),
            Frame::Change(items) => Some(&items[..]),
            Frame::Order { items, is_there } => is_there.then_some(&items[..]),
        })
    }

    /// What a name by itself means.
    pub(super) fn column(&self, name: &str) -> Meaning {
        let mut unknown = Vec::new();
        for item in self.seen().flatten() {
            match item.has(name) {
                Some(true) => return Meaning::Own,
                Some(false) => {}
                None => unknown.push(item.label.clone()),
            }
        }
        let is_row = self.seen().flatten().any(|item| item.label.as_deref() == Some(name));
        if is_row { Meaning::Own } else { Meaning::Unknown(unknown) }
    }

    /// What a name behind that of a table means.
    pub(super) fn column_of(&self, table: &str, name: &str) -> OfTable {
        let is_it = |item: &&Item| item.label.as_deref() == Some(table);
        // The nearest table of this name hides others.
        match self.seen().find(|items| items.iter().any(|item| is_it(&item))) {
            None if self.seen().flatten().any(|item| item.label.is_none()) => OfTable::Own,
            None => OfTable::NoTable,
            Some(items) => match items.iter().filter(is_it).any(|item| item.has(name) != Some(false)) {
                true => OfTable::Own,
                false => OfTable::NoColumn,
            },
        }
    }
}

/// The names of the columns of something in FROM.
fn columns(factor: &TableFactor, scope: &mut Scope<'_>) -> Option<Vec<String>> {
    match factor {
        TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } => {
            scope.of_call(name, args.args.len(), alias.as_ref(), *with_ordinality)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            scope.of_call(name, args.len(), alias.as_ref(), *with_ordinality)
        }
        TableFactor::UNNEST { array_exprs, alias, with_ordinality, .. } => {
            let name = ObjectName::from(vec![Ident::new("unnest")]);
            scope.of_call(&name, array_exprs.len(), alias.as_ref(), *with_ordinality)
        }
        other => Some(scope.factor(other)?.into_iter().map(|output| output.name).collect()),
    }
}

/// What something in FROM is called by.
fn called(factor: &TableFactor) -> Option<String> {
    let found = match factor {
        TableFactor::Table { name, alias: None, .. } | TableFactor::Function { name, alias: None, .. } => {
            name.0.last().and_then(ObjectNamePart::as_ident).cloned()
        }
        TableFactor::Function { alias: Some(alias), .. } | TableFactor::UNNEST { alias: Some(alias), .. } => {
            Some(alias.name.clone())
        }
        TableFactor::UNNEST { alias: None, .. } => Some(Ident::new("unnest")),
        other => label(other),
    };
    found.map(|name| fold(&name))
}

/// The names of the columns of a select list, as far as its text tells them.
fn outputs(select: &Select) -> Vec<String> {
    let name = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => heading(expr),
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    };
    select.projection.iter().filter_map(name).collect()
}
