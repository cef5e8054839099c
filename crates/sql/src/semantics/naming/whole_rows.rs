//! Whole rows as values: `ROW(a, b) IS NULL`, and `count(t.*)`, which is `count(t)`, of a table that an outer join may have no row of.
//! Elsewhere the row itself is worked out ([`references`](super::references)).
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Query, Select, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins, VisitorMut,
};

use super::columns::{Scope, sides_that_miss};
use crate::error::{Result, SqlError};
use crate::names::tables::Tables;
use crate::semantics::spelling::row_values::row;
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::visit::own;
use crate::syntax::walk::WalkMut;

/// Rewrites tests of rows for NULL: all of their fields are tested.
pub(crate) fn test_fields(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Tests);
}

struct Tests;

impl VisitorMut for Tests {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let (inner, is_null) = match expr {
            Expr::IsNull(inner) => (inner, true),
            Expr::IsNotNull(inner) => (inner, false),
            _ => return ControlFlow::Continue(()),
        };
        let test = |field: Expr| match is_null {
            true => Expr::IsNull(Box::new(field)),
            false => Expr::IsNotNull(Box::new(field)),
        };
        if let Some(fields) = fields(inner) {
            let all = fields.into_iter().map(test).reduce(|left, right| Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::And,
                right: Box::new(right),
            });
            if let Some(all) = all {
                *expr = Expr::Nested(Box::new(all));
            }
        }
        ControlFlow::Continue(())
    }
}

/// The fields of a row that is written out.
fn fields(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Nested(inner) => fields(inner),
        other => Some(row(other)?.into_iter().cloned().collect()),
    }
}

/// Rewrites `count(t.*)` as the count of a column of `t` that is never NULL, or of all rows where none of `t` is missing.
pub(crate) fn rewrite(statement: &mut Statement, tables: &Tables) -> Result<()> {
    match statement.walk_mut(&mut Queries { scope: Scope::new(tables) }) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Queries<'a> {
    scope: Scope<'a>,
}

impl VisitorMut for Queries<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if query.with.is_some() {
            self.scope.enter(query);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if query.with.is_some() {
            self.scope.leave();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        let counts = Counts { scope: &self.scope, from: &select.from };
        own(&mut select.projection, |expr| counts.spell_out(expr))?;
        own(&mut select.having, |expr| counts.spell_out(expr))
    }
}

struct Counts<'a> {
    scope: &'a Scope<'a>,
    from: &'a [TableWithJoins],
}

impl Counts<'_> {
    fn spell_out(&self, expr: &mut Expr) -> ControlFlow<Box<SqlError>> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let name = last_part(&call.name);
        if name.as_deref() != Some("count") {
            return ControlFlow::Continue(());
        }
        let FunctionArguments::List(list) = &mut call.args else { return ControlFlow::Continue(()) };
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
            return ControlFlow::Continue(());
        }
        let counted = match &list.args[..] {
            [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table))] => self.counted(table),
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(label)))] if self.is_table(label) => {
                self.counted(&ObjectName::from(vec![label.clone()]))
            }
            _ => return ControlFlow::Continue(()),
        };
        match counted {
            Ok(Some(arg)) => list.args = vec![FunctionArg::Unnamed(arg)],
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(Box::new(error)),
        }
        ControlFlow::Continue(())
    }

    /// Whether this is the label of a table, and no column.
    fn is_table(&self, label: &Ident) -> bool {
        let wanted = fold(label);
        self.from.iter().any(|table| find(table, &wanted).is_some()) && !may_be_column(self.from, self.scope, label)
    }

    /// The argument that is counted in place of the rows of a table, if it is less than a row.
    fn counted(&self, label: &ObjectName) -> Result<Option<FunctionArgExpr>> {
        let Some(label) = label.0.last().and_then(ObjectNamePart::as_ident) else {
            return Ok(Some(FunctionArgExpr::Wildcard));
        };
        let wanted = fold(label);
        let found = self.from.iter().find_map(|table| find(table, &wanted));
        let Some((factor, may_miss)) = found else {
            let message = format!("missing FROM-clause entry for table \"{wanted}\"");
            return Err(SqlError::new("42P01", message));
        };
        if !may_miss {
            return Ok(Some(FunctionArgExpr::Wildcard));
        }
        let column = match factor {
            TableFactor::Table { name, args: None, alias, .. }
                if alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) =>
            {
                self.scope.table(name).and_then(|table| {
                    let schema = table.schema();
                    let never_null = schema.columns().iter().find(|column| !column.nullable);
                    never_null.map(|column| column.name.clone())
                })
            }
            _ => None,
        };
        Ok(column.map(|column| {
            let column = Ident::with_quote('"', column);
            FunctionArgExpr::Expr(Expr::CompoundIdentifier(vec![label.clone(), column]))
        }))
    }
}

/// The names of the columns of a table in FROM, if they are known here.
fn columns_of(factor: &TableFactor, scope: &Scope<'_>) -> Option<Vec<Ident>> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. }
            if !alias.columns.is_empty() =>
        {
            Some(alias.columns.iter().map(|column| column.name.clone()).collect())
        }
        TableFactor::Table { name, args: None, .. } => {
            let table = scope.table(name)?;
            Some(table.schema().columns().iter().map(|column| quoted(&column.name)).collect())
        }
        TableFactor::Derived { subquery, .. } => {
            let SetExpr::Select(select) = subquery.body.as_ref() else { return None };
            let name = |item: &SelectItem| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.clone()),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().cloned(),
                _ => None,
            };
            select.projection.iter().map(name).collect()
        }
        _ => None,
    }
}

/// Whether a name may be that of a column of these tables, which comes before the name of a table.
fn may_be_column(from: &[TableWithJoins], scope: &Scope<'_>, name: &Ident) -> bool {
    let wanted = fold(name);
    let is_of = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => {
            may_be_column(std::slice::from_ref(table_with_joins.as_ref()), scope, name)
        }
        factor => columns_of(factor, scope).is_none_or(|columns| columns.iter().any(|column| fold(column) == wanted)),
    };
    from.iter().any(|table| is_of(&table.relation) || table.joins.iter().any(|join| is_of(&join.relation)))
}

/// The table of this label, and whether an outer join may leave its row out.
fn find<'t>(table: &'t TableWithJoins, wanted: &str) -> Option<(&'t TableFactor, bool)> {
    let mut found = within(&table.relation, wanted);
    for join in &table.joins {
        let (left_misses, right_misses) = sides_that_miss(&join.join_operator);
        found = match found {
            Some((factor, may_miss)) => Some((factor, may_miss || left_misses)),
            None => within(&join.relation, wanted).map(|(factor, may_miss)| (factor, may_miss || right_misses)),
        };
    }
    found
}

fn within<'t>(factor: &'t TableFactor, wanted: &str) -> Option<(&'t TableFactor, bool)> {
    let label = match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => return find(table_with_joins, wanted),
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. } => fold(&alias.name),
        TableFactor::Table { name, .. } => last_part(name)?,
        _ => return None,
    };
    (label == wanted).then_some((factor, false))
}
