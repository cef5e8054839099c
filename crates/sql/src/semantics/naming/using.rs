//! `JOIN ... USING (column)` and `NATURAL JOIN`.
//!
//! - `*` has the merged columns first, then the others of the left and of the right side: it is written out in that order.
//! - A merged column of a RIGHT join is the one on the right, of a FULL join whichever there is, and of columns of two types it
//!   has the type of both: such joins are written with ON, and the column, wherever it stands without a table, as what it is.
//! - Of other joins the planner takes the column for ambiguous in `WHERE` unless it is told the column's table, and anywhere once
//!   more than one join merges columns: these are written with ON, too.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderBy, Query, Select, SelectItem, SetExpr, Statement,
    TableFactor, TableWithJoins, VisitMut, Visitor, VisitorMut, WildcardAdditionalOptions,
};

use super::columns::{Output, Scope, merges, merges_from_the_right};
use crate::error::{Result, SqlError};
use crate::names::tables::Tables;
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::visit::{constraint_mut, own_after};
use crate::syntax::walk::{Walk, WalkMut};

/// Rewrites the joins of a statement.
pub(crate) fn rewrite(statement: &mut Statement, tables: &Tables) -> Result<()> {
    let has_merges = |table: &TableWithJoins| has_merges(table);
    if !any_from(statement, &has_merges) {
        return Ok(());
    }
    if let ControlFlow::Break(error) = statement.walk_mut(&mut Joins { scope: Scope::new(tables) }) {
        return Err(*error);
    }
    let _ = statement.walk_mut(&mut Selects);
    Ok(())
}

/// Whether a part of a statement's FROM clauses is such.
fn any_from(statement: &Statement, is_such: &dyn Fn(&TableWithJoins) -> bool) -> bool {
    struct Any<'a>(&'a dyn Fn(&TableWithJoins) -> bool);
    impl Visitor for Any<'_> {
        type Break = ();

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            match select.from.iter().any(self.0) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    statement.walk(&mut Any(is_such)).is_break()
}

fn has_merges(table: &TableWithJoins) -> bool {
    any_join(table, &merges)
}

fn any_join(table: &TableWithJoins, is_such: &dyn Fn(&JoinOperator) -> bool) -> bool {
    let within = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => any_join(table_with_joins, is_such),
        _ => false,
    };
    within(&table.relation) || table.joins.iter().any(|join| is_such(&join.join_operator) || within(&join.relation))
}

/// How many joins of a chain merge columns; none where joins are within each other.
fn count_of_merges(table: &TableWithJoins) -> usize {
    let is_nested = |factor: &TableFactor| matches!(factor, TableFactor::NestedJoin { .. });
    let is_chain = !is_nested(&table.relation) && !table.joins.iter().any(|join| is_nested(&join.relation));
    if is_chain { table.joins.iter().filter(|join| merges(&join.join_operator)).count() } else { 0 }
}

struct Joins<'a> {
    scope: Scope<'a>,
}

impl VisitorMut for Joins<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.enter(query);
        let order = query.order_by.as_mut();
        if let SetExpr::Select(select) = query.body.as_mut() {
            return self.select(select, order);
        }
        self.body(&mut query.body)
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.leave();
        ControlFlow::Continue(())
    }
}

impl Joins<'_> {
    fn body(&mut self, body: &mut SetExpr) -> ControlFlow<Box<SqlError>> {
        match body {
            SetExpr::Select(select) => self.select(select, None),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left)?;
                self.body(right)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn select(&mut self, select: &mut Select, order: Option<&mut OrderBy>) -> ControlFlow<Box<SqlError>> {
        if !select.from.iter().any(has_merges) {
            return ControlFlow::Continue(());
        }
        let is_computed = |output: &Output| output.is_merged && matches!(output.expr, Expr::Function(_));
        let mut of_types = select.from.iter().filter_map(|table| self.scope.joined(table)).flatten();
        let is_written = of_types.any(|output| is_computed(&output));
        let is_from_the_right = is_written
            || select.from.iter().any(|table| any_join(table, &merges_from_the_right))
            || self.merges_many(select);
        let all: Option<Vec<Vec<Output>>> = match is_from_the_right {
            true => select.from.iter_mut().map(|table| self.scope.spell_out(table)).collect(),
            false => select.from.iter().map(|table| self.scope.joined(table)).collect(),
        };
        let Some(outputs) = all.map(|all| all.into_iter().flatten().collect::<Vec<_>>()) else {
            if !is_from_the_right {
                return ControlFlow::Continue(());
            }
            if let Some(error) = select.from.iter_mut().find_map(|table| self.missing(table)) {
                return ControlFlow::Break(Box::new(error));
            }
            let error = SqlError::unsupported("this form of RIGHT or FULL JOIN with USING or NATURAL");
            let hint = "Write ON, and COALESCE for the column of both tables.";
            return ControlFlow::Break(Box::new(error.hint(hint)));
        };
        match is_from_the_right {
            true => replace_merged(select, order, &outputs),
            false => put_merged(&mut select.selection, &merged_of(&outputs)),
        }
        write_out(&mut select.projection, &outputs);
        ControlFlow::Continue(())
    }

    /// Whether more joins merge columns than the planner can tell them of, and all columns are known.
    fn merges_many(&mut self, select: &Select) -> bool {
        let is_long = select.from.iter().any(|table| count_of_merges(table) > 1);
        is_long && select.from.iter().all(|table| self.scope.joined(table).is_some())
    }

    /// The first column in `USING` that one of the sides is known not to have.
    fn missing(&mut self, table: &mut TableWithJoins) -> Option<SqlError> {
        for at in 0..table.joins.len() {
            let Some(JoinConstraint::Using(names)) = constraint_mut(&mut table.joins[at].join_operator) else {
                continue;
            };
            let names = names.clone();
            let left = TableWithJoins { relation: table.relation.clone(), joins: table.joins[..at].to_vec() };
            let sides = [("left", self.scope.joined(&left)), ("right", self.scope.factor(&table.joins[at].relation))];
            for (name, (side, columns)) in names.iter().flat_map(|name| sides.iter().map(move |side| (name, side))) {
                let Some(name) = last_part(name) else { continue };
                if columns.as_ref().is_some_and(|columns| columns.iter().all(|column| column.name != name)) {
                    let message = format!("column \"{name}\" specified in USING clause does not exist in {side} table");
                    return Some(SqlError::new("42703", message));
                }
            }
        }
        None
    }
}

/// `*` as a list of the columns.
fn write_out(projection: &mut Vec<SelectItem>, outputs: &[Output]) {
    for item in std::mem::take(projection) {
        match item {
            SelectItem::Wildcard(options) if options == WildcardAdditionalOptions::default() => {
                projection.extend(outputs.iter().map(Output::item));
            }
            other => projection.push(other),
        }
    }
}

/// The columns of items of FROM that merge some; `None` where they merge none, or their columns are not known.
pub(crate) fn outputs_of_merging(from: &[TableWithJoins], tables: &Tables) -> Option<Vec<Output>> {
    if !from.iter().any(has_merges) {
        return None;
    }
    let mut scope = Scope::new(tables);
    let outputs: Option<Vec<Vec<Output>>> = from.iter().map(|table| scope.joined(table)).collect();
    outputs.map(|outputs| outputs.into_iter().flatten().collect())
}

/// Writes out `*` in items that are about a table and what stands beside it, whose columns are merged ones among others. A merged column
/// that the table has, too, stays what it is: nobody could tell which is meant.
pub(crate) fn write_out_beside(items: &mut Vec<SelectItem>, own: Vec<Output>, beside: &[Output]) {
    let is_other = |output: &Output| own.iter().all(|other| other.name != output.name);
    let merged: Vec<Output> = merged_of(beside).into_iter().filter(is_other).collect();
    name_merged(items, &merged);
    put_merged(items, &merged);
    write_out(items, &own.into_iter().chain(beside.iter().cloned()).collect::<Vec<_>>());
}

fn merged_of(outputs: &[Output]) -> Vec<Output> {
    outputs.iter().filter(|output| output.is_merged).cloned().collect()
}

/// Has a merged column of a select list keep its name, whatever takes its place.
fn name_merged(projection: &mut [SelectItem], merged: &[Output]) {
    for item in projection {
        if let SelectItem::UnnamedExpr(Expr::Identifier(name)) = item
            && find(merged, name).is_some()
        {
            let (expr, alias) = (Expr::Identifier(name.clone()), name.clone());
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}

/// Puts what a merged column is in the place of its name.
fn replace_merged(select: &mut Select, order: Option<&mut OrderBy>, outputs: &[Output]) {
    let mut merged = merged_of(outputs);
    let mut shown = Vec::new();
    name_merged(&mut select.projection, &merged);
    for item in &select.projection {
        match item {
            SelectItem::ExprWithAlias { alias, .. } => shown.push(fold(alias)),
            SelectItem::Wildcard(_) => shown.extend(merged.iter().map(|output| output.name.clone())),
            _ => {}
        }
    }
    put_merged(&mut select.projection, &merged);
    put_merged(&mut select.selection, &merged);
    put_merged(&mut select.group_by, &merged);
    put_merged(&mut select.having, &merged);
    put_merged(&mut select.distinct, &merged);
    put_merged(&mut select.named_window, &merged);
    if let Some(order) = order {
        // A name of the select list is meant first.
        merged.retain(|output| !shown.contains(&output.name));
        put_merged(order, &merged);
    }
}

fn find<'o>(merged: &'o [Output], name: &Ident) -> Option<&'o Output> {
    let name = fold(name);
    merged.iter().find(|output| output.name == name)
}

fn put_merged(part: &mut impl VisitMut, merged: &[Output]) {
    own_after(part, |expr| {
        if let Expr::Identifier(name) = expr
            && let Some(output) = find(merged, name)
        {
            let place = name.span;
            *expr = output.expr.clone();
            if let Expr::CompoundIdentifier(parts) = expr {
                parts.iter_mut().for_each(|part| part.span = place);
            }
        }
    });
}

struct Selects;

impl VisitorMut for Selects {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let [table] = &select.from[..]
            && let Some(condition) = &mut select.selection
            && let Some((owner, columns)) = merged(table)
        {
            qualify(condition, &owner, &columns);
        }
        ControlFlow::Continue(())
    }
}

/// The name of the first table, and the columns that the first join merges. For columns of further joins the table
/// is not known here.
fn merged(table: &TableWithJoins) -> Option<(Ident, Vec<String>)> {
    let owner = match &table.relation {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            alias.name.clone()
        }
        TableFactor::Table { name, alias: None, .. } => name.0.last()?.as_ident()?.clone(),
        _ => return None,
    };
    let columns = match &table.joins.first()?.join_operator {
        JoinOperator::Join(JoinConstraint::Using(columns))
        | JoinOperator::Inner(JoinConstraint::Using(columns))
        | JoinOperator::Left(JoinConstraint::Using(columns))
        | JoinOperator::LeftOuter(JoinConstraint::Using(columns)) => columns,
        _ => return None,
    };
    let name = |column: &ObjectName| last_part(column);
    Some((owner, columns.iter().filter_map(name).collect()))
}

/// Says of columns in a condition whose they are.
fn qualify(condition: &mut Expr, owner: &Ident, columns: &[String]) {
    own_after(condition, |expr| {
        if let Expr::Identifier(column) = expr
            && columns.contains(&fold(column))
        {
            let owner = Ident { span: column.span, ..owner.clone() };
            *expr = Expr::CompoundIdentifier(vec![owner, column.clone()]);
        }
    });
}
