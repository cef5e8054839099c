//! Which statements are about a row by its key, by their syntax alone.
//!
//! A statement may say many things. Whatever it says beside what is looked at here has to be what the plainest statement of its
//! kind says. Nothing is copied: expressions may be deeper than a stack.
use std::sync::OnceLock;

use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, BinaryOperator, Delete, Distinct, Expr, FromTable, Insert, LimitClause, ObjectName, OnConflict,
    OnInsert, OrderBy, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement, TableFactor,
    TableObject, TableWithJoins, Update,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::scope::{Named, Scope};
use crate::names::schemas::local;
use crate::names::{column_name, fold, table_name};
use crate::syntax::source::Source;

/// Rows of one `INSERT` at most; more are better built as columns.
const ROWS_MAX: usize = 64;

/// A statement taken apart.
pub(super) struct Shape<'a> {
    pub(super) table: String,
    /// The qualifier of its columns.
    pub(super) label: String,
    /// Joined by AND.
    pub(super) conditions: Vec<&'a Expr>,
    pub(super) action: Action<'a>,
}

pub(super) enum Action<'a> {
    Select(Selection<'a>),
    Update {
        sets: Vec<(String, &'a Expr)>,
        returning: Option<&'a [SelectItem]>,
    },
    Delete {
        returning: Option<&'a [SelectItem]>,
    },
    Insert {
        columns: Vec<String>,
        rows: Vec<&'a [Expr]>,
        on: Option<&'a OnConflict>,
        returning: Option<&'a [SelectItem]>,
    },
}

/// What a query gives of its rows.
pub(crate) struct Selection<'a> {
    pub(super) items: &'a [SelectItem],
    pub(super) is_distinct: bool,
    pub(super) order: Option<&'a OrderBy>,
    pub(super) limit: Option<&'a LimitClause>,
}

impl Selection<'_> {
    /// Whether it gives all of its rows, in any order.
    pub(super) fn is_plain(&self) -> bool {
        !self.is_distinct && self.order.is_none() && self.limit.is_none()
    }
}

/// Whether two values of a type are the same but for some fields. All fields are named, so that none is forgotten.
macro_rules! is_same {
    ($given:expr, $plain:expr, $name:path { $($field:ident),* }, but $($other:ident),*) => {{
        let $name { $($field,)* $($other: _,)* } = $given;
        $(*$field == $plain.$field)&&*
    }};
}

impl<'a> Shape<'a> {
    pub(super) fn of(statement: &'a Statement) -> Option<Shape<'a>> {
        match statement {
            Statement::Query(query) => Shape::of_query(query),
            Statement::Update(statement) => update(statement),
            Statement::Delete(statement) => delete(statement),
            Statement::Insert(statement) => insert(statement),
            _ => None,
        }
    }

    pub(super) fn of_query(query: &'a Query) -> Option<Shape<'a>> {
        let (select, selection) = selection(query)?;
        let [from] = &select.from[..] else { return None };
        let (table, label) = named(from)?;
        let conditions = conditions(select.selection.as_ref());
        Some(Shape { table, label, conditions, action: Action::Select(selection) })
    }
}

/// The `SELECT` of a query, and what it gives, if it says nothing else but its tables and conditions.
pub(super) fn selection(query: &Query) -> Option<(&Select, Selection<'_>)> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let plain = &plain()?.query;
    let SetExpr::Select(plain_select) = plain.body.as_ref() else { return None };
    let is_distinct = match &select.distinct {
        None | Some(Distinct::All) => false,
        Some(Distinct::Distinct) => true,
        Some(Distinct::On(_)) => return None,
    };
    let (order, limit) = (query.order_by.as_ref(), query.limit_clause.as_ref());
    let selection = Selection { items: &select.projection, is_distinct, order, limit };
    (is_plain_query(query, plain) && is_plain_select(select, plain_select)).then_some((select, selection))
}

/// The plainest statements, parsed once.
struct Plain {
    query: Box<Query>,
    update: Update,
    delete: Delete,
    insert: Insert,
}

/// The table of the plainest statements.
fn plain() -> Option<&'static Plain> {
    static PLAIN: OnceLock<Option<Plain>> = OnceLock::new();
    let parse = |text| Parser::parse_sql(&PostgreSqlDialect {}, text).ok()?.pop();
    let all = || match (
        parse("SELECT a FROM t"),
        parse("UPDATE t SET a = 1"),
        parse("DELETE FROM t"),
        parse("INSERT INTO t VALUES (1)"),
    ) {
        (
            Some(Statement::Query(query)),
            Some(Statement::Update(update)),
            Some(Statement::Delete(delete)),
            Some(Statement::Insert(insert)),
        ) => Some(Plain { query, update, delete, insert }),
        _ => None,
    };
    PLAIN.get_or_init(all).as_ref()
}

/// Whether a query says nothing but its `SELECT`, its order and its limit.
fn is_plain_query(query: &Query, plain: &Query) -> bool {
    is_same!(query, plain, Query {
        with, fetch, locks, for_clause, settings, format_clause, pipe_operators
    }, but body, order_by, limit_clause)
}

fn is_plain_select(select: &Select, plain: &Select) -> bool {
    is_same!(select, plain, Select {
        optimizer_hints, select_modifiers, top, top_before_distinct, exclude, into, lateral_views, prewhere,
        connect_by, group_by, cluster_by, distribute_by, sort_by, having, named_window, qualify, window_before_qualify,
        value_table_mode, flavor
    }, but select_token, distinct, projection, from, selection)
}

fn update(update: &Update) -> Option<Shape<'_>> {
    let plain = &plain()?.update;
    let is_plain = is_same!(update, plain, Update {
        optimizer_hints, from, output, or, order_by, limit
    }, but update_token, table, assignments, selection, returning);
    let set = |assignment: &'_ datafusion::sql::sqlparser::ast::Assignment| match &assignment.target {
        AssignmentTarget::ColumnName(name) => column_name(name, &Source::new("")).ok(),
        AssignmentTarget::Tuple(_) => None,
    };
    let sets = update.assignments.iter().map(|one| Some((set(one)?, &one.value))).collect::<Option<Vec<_>>>()?;
    let (table, label) = named(&update.table)?;
    let conditions = conditions(update.selection.as_ref());
    let action = Action::Update { sets, returning: update.returning.as_deref() };
    is_plain.then_some(Shape { table, label, conditions, action })
}

fn delete(delete: &Delete) -> Option<Shape<'_>> {
    let plain = &plain()?.delete;
    let FromTable::WithFromKeyword(tables) = &delete.from else { return None };
    let [from] = &tables[..] else { return None };
    let is_plain = is_same!(delete, plain, Delete {
        optimizer_hints, tables, using, output, order_by, limit
    }, but delete_token, from, selection, returning);
    let (table, label) = named(from)?;
    let conditions = conditions(delete.selection.as_ref());
    let action = Action::Delete { returning: delete.returning.as_deref() };
    is_plain.then_some(Shape { table, label, conditions, action })
}

fn insert(insert: &Insert) -> Option<Shape<'_>> {
    let plain = &plain()?.insert;
    let TableObject::TableName(name) = &insert.table else { return None };
    let query = insert.source.as_deref()?;
    let SetExpr::Values(values) = query.body.as_ref() else { return None };
    let is_plain = is_same!(insert, plain, Insert {
        optimizer_hints, or, ignore, into, table_alias, overwrite, assignments, partitioned, after_columns,
        has_table_keyword, output, replace_into, priority, insert_alias, settings, format_clause,
        multi_table_insert_type, multi_table_into_clauses, multi_table_when_clauses, multi_table_else_clause
    }, but insert_token, table, columns, source, on, returning);
    let is_cut = query.order_by.is_some() || query.limit_clause.is_some();
    let is_plain_source = is_plain_query(query, plain.source.as_deref()?) && !is_cut;
    if values.rows.len() > ROWS_MAX || values.explicit_row || !is_plain_source {
        return None;
    }
    let columns = insert.columns.iter().map(|name| column_name(name, &Source::new("")).ok());
    let columns = columns.collect::<Option<Vec<_>>>()?;
    let rows = values.rows.iter().map(|row| &row.content[..]).collect();
    let table = table_of(name)?;
    let label = local(&table).to_owned();
    let returning = insert.returning.as_deref();
    let on = match &insert.on {
        None => None,
        Some(OnInsert::OnConflict(clause)) => Some(clause),
        Some(_) => return None,
    };
    is_plain.then(|| Shape {
        table,
        label,
        conditions: Vec::new(),
        action: Action::Insert { columns, rows, on, returning },
    })
}

/// The name of the one table in FROM, and what its columns are called by.
fn named(from: &TableWithJoins) -> Option<(String, String)> {
    factor(&from.relation).filter(|_| from.joins.is_empty())
}

/// The name of a table, and what its columns are called by.
pub(super) fn factor(factor: &TableFactor) -> Option<(String, String)> {
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = factor
    else {
        return None;
    };
    if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
        return None;
    }
    let table = table_of(name)?;
    match alias {
        None => Some((table.clone(), local(&table).to_owned())),
        Some(alias) if alias.columns.is_empty() && alias.at.is_none() => Some((table, fold(&alias.name))),
        Some(_) => None,
    }
}

fn table_of(name: &ObjectName) -> Option<String> {
    table_name(name, &Source::new("")).ok()
}

/// The parts of a condition that are joined by AND.
pub(super) fn conditions(condition: Option<&Expr>) -> Vec<&Expr> {
    let mut parts = Vec::new();
    let mut rest: Vec<&Expr> = condition.into_iter().collect();
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => rest.extend([&**right, &**left]),
            Expr::Nested(inner) => rest.push(inner),
            other => parts.push(other),
        }
    }
    parts
}

/// The columns that a query asks for, with their names in the answer.
pub(super) fn columns(items: &[SelectItem], scope: &Scope<'_>) -> Option<Vec<(usize, String)>> {
    let mut columns = Vec::with_capacity(items.len());
    for item in items {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let column = scope.column(expr)?;
                columns.push((column, scope.known(column).name.clone()));
            }
            SelectItem::ExprWithAlias { expr, alias } => columns.push((scope.column(expr)?, fold(alias))),
            SelectItem::Wildcard(options) if *options == Default::default() => {
                if scope.tables.iter().any(|named| !named.merged.is_empty()) {
                    return None;
                }
                scope.tables.iter().for_each(|named| columns.extend(all_of(named)));
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                if *options == Default::default() =>
            {
                let [part] = &name.0[..] else { return None };
                let label = fold(part.as_ident()?);
                columns.extend(all_of(scope.tables.iter().find(|named| named.label == label)?));
            }
            _ => return None,
        }
    }
    Some(columns)
}

/// All columns of a table, under their own names.
fn all_of<'n>(named: &'n Named<'_>) -> impl Iterator<Item = (usize, String)> + 'n {
    let columns = named.table.schema().columns().iter().enumerate();
    columns.map(|(at, column)| (named.first + at, column.name.clone()))
}
