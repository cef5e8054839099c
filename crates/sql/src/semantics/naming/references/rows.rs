//! Whole rows: a name that is no column's but a table's means the row of that table.
//!
//! ```text
//! t             ->  named_struct('a', t.a, 'b', t.b), or nothing where an outer join has left the row out
//! (t).a         ->  t.a
//! f(t.*)        ->  f(t)
//! ROW(t.*, 1)   ->  ROW(t.a, t.b, 1)
//! ```
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, JoinOperator, ObjectName, ObjectNamePart,
    Select, SelectItem, TableFactor, Value,
};

use super::{Flow, Item, Level, Resolver};
use crate::access::table::is_rid_column;
use crate::names::headings::heading;
use crate::semantics::naming::columns::sides_that_miss;
use crate::semantics::spelling::table_rows::row_of;
use crate::state::view::{RowTarget, TARGET_SCHEMA, target_table};
use crate::syntax::identifiers::{fold, last_part, shown};
use crate::syntax::row_tokens::ROW;

impl Item {
    /// The columns of its row, if they are known.
    fn fields(&self) -> Option<&[String]> {
        self.row.as_deref().filter(|row| !row.is_empty())
    }

    /// Its row.
    fn row(&self) -> Option<Expr> {
        Some(row_of(&Ident::with_quote('"', &self.label), self.fields()?, self.may_miss))
    }
}

impl Level {
    /// Whether a name that stands alone is that of a table here. `false` where it may be that of a column.
    pub(super) fn names_table(&self, name: &str) -> bool {
        let may_be_column = |item: &Item| item.row.as_ref().is_none_or(|row| row.iter().any(|own| shown(own) == name));
        self.items.iter().any(|item| item.label == name)
            && !self.aliases.iter().any(|alias| alias == name)
            && (self.outputs.is_some() || !self.items.iter().any(may_be_column))
    }

    /// Whether a table of it is known to have a column of this name.
    pub(super) fn has_column(&self, name: &str) -> bool {
        self.items.iter().any(|item| item.fields().is_some_and(|row| row.iter().any(|own| shown(own) == name)))
    }
}

impl Resolver<'_> {
    /// The row of a table that a query calls so.
    pub(super) fn row(&mut self, level: usize, name: &str) -> Option<Expr> {
        let item = self.levels[level].items.iter().find(|item| item.label == name)?;
        let row = item.row()?;
        self.rows += 1;
        Some(row)
    }

    /// The query of which a name that stands alone is a table, and no column of any.
    fn level_of_table(&self, name: &str) -> Option<usize> {
        let mut found = None;
        for (at, level) in self.levels.iter().enumerate().rev() {
            if level.outputs.iter().flatten().any(|output| shown(&output.name) == name) {
                return None;
            }
            let is_here = level.names_table(name);
            found = found.or(is_here.then_some(at)).filter(|_| level.outputs.is_some() || !level.has_column(name));
            if level.outputs.is_none() && !is_here {
                break;
            }
        }
        found
    }

    /// Makes a column of a row that of its table.
    pub(super) fn field(&mut self, expr: &mut Expr) -> Flow {
        let Expr::CompoundFieldAccess { root, access_chain } = &mut *expr else { return ControlFlow::Continue(()) };
        let mut within = root.as_ref();
        while let Expr::Nested(inner) = within {
            within = inner;
        }
        let (Expr::Identifier(label), [AccessExpr::Dot(Expr::Identifier(column))]) = (within, &access_chain[..]) else {
            return ControlFlow::Continue(());
        };
        if self.level_of_table(&fold(label)).is_none() {
            return ControlFlow::Continue(());
        }
        let (mut label, column) = (label.clone(), column.clone());
        let flow = self.column_of(&mut label, &column);
        *expr = Expr::CompoundIdentifier(vec![label, column]);
        flow
    }

    /// Gives a call the row of a table in place of all of its columns, and `ROW` the columns.
    pub(super) fn arguments(&mut self, expr: &mut Expr) {
        let Expr::Function(call) = expr else { return };
        let name = last_part(&call.name).unwrap_or_default();
        let takes_columns = name == "row";
        let FunctionArguments::List(list) = &mut call.args else { return };
        let is_of_table =
            |arg: &FunctionArg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)));
        if !list.args.iter().any(is_of_table) {
            return;
        }
        for arg in std::mem::take(&mut list.args) {
            let fields = match &arg {
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => self.fields_of(name, takes_columns),
                _ => None,
            };
            match fields {
                Some(fields) => {
                    let fields = fields.into_iter().map(|field| FunctionArg::Unnamed(FunctionArgExpr::Expr(field)));
                    list.args.extend(fields);
                }
                None => list.args.push(arg),
            }
        }
        if name.starts_with(ROW)
            && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(row))] = &mut list.args[..]
        {
            *expr = std::mem::replace(row, Expr::value(Value::Null));
        }
    }

    /// The columns of the nearest table of a name, each or all of them as one row.
    fn fields_of(&mut self, name: &ObjectName, each: bool) -> Option<Vec<Expr>> {
        let [ObjectNamePart::Identifier(label)] = &name.0[..] else { return None };
        let name = fold(label);
        let find = |level: &Level| level.items.iter().any(|item| item.label == name);
        let level = self.levels.iter().rposition(find)?;
        if !each {
            return self.row(level, &name).map(|row| vec![row]);
        }
        let item = self.levels[level].items.iter().find(|item| item.label == name)?;
        let column = |column: &String| Expr::CompoundIdentifier(vec![label.clone(), Ident::with_quote('"', column)]);
        let columns = item.fields()?.iter().map(column).collect();
        // `ROW(t.*) IS NULL` is known for what it is from now on.
        self.rows += 1;
        Some(columns)
    }

    /// How many tables are known of the query so far.
    pub(super) fn count(&self) -> usize {
        self.levels.last().map_or(0, |level| level.items.len())
    }

    /// Takes note that a join may leave out rows of the tables from the first place on, and from the second one on.
    pub(super) fn miss(&mut self, (first, second): (usize, usize), join: &JoinOperator) {
        let Some(level) = self.levels.last_mut() else { return };
        let (left, right) = sides_that_miss(join);
        level.items[first..second].iter_mut().for_each(|item| item.may_miss |= left);
        level.items[second..].iter_mut().for_each(|item| item.may_miss |= right);
    }

    /// The columns of a row of what stands in FROM, of which `*` gives these.
    pub(super) fn fields_of_factor(&self, factor: &TableFactor, columns: Option<&Vec<String>>) -> Option<Vec<String>> {
        match columns {
            Some(columns) => Some(columns.iter().filter(|column| !is_rid_column(column)).cloned().collect()),
            None => of_target(factor, self.targets),
        }
    }
}

/// The columns of a table that has rows changed or given back.
fn of_target(factor: &TableFactor, targets: &[RowTarget]) -> Option<Vec<String>> {
    let TableFactor::Table { name, alias, .. } = factor else { return None };
    let [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(table)] = &name.0[..] else { return None };
    if schema.value != TARGET_SCHEMA || alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
        return None;
    }
    let at = (0..targets.len()).find(|at| target_table(*at) == table.value)?;
    Some(targets[at].table.schema().columns().iter().map(|column| column.name.clone()).collect())
}

/// The names of the columns of a select list that have no alias.
pub(super) fn names(select: &Select) -> Vec<Option<String>> {
    let name = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => heading(expr),
        _ => None,
    };
    select.projection.iter().map(name).collect()
}

/// Gives the columns the names back that they had before rows were written out.
pub(super) fn keep_names(select: &mut Select, names: Vec<Option<String>>) {
    for (item, name) in select.projection.iter_mut().zip(names) {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Some(name) = name.filter(|name| heading(expr).as_ref() != Some(name))
        {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
        }
    }
}

/// Changes a query, whose columns keep their names.
pub(super) fn named_as_before(select: &mut Select, change: impl FnOnce(&mut Select)) {
    let names = names(select);
    change(select);
    keep_names(select, names);
}

/// The names that a select list gives columns.
pub(super) fn aliases(select: &Select) -> Vec<String> {
    let alias = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(shown(&fold(alias)).to_owned()),
        _ => None,
    };
    select.projection.iter().filter_map(alias).collect()
}
