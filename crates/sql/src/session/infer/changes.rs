//! Parameters in statements that change rows: each takes the type of the column that it goes to.
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, FromTable, Function, FunctionArguments, Ident, Insert, Merge, MergeAction,
    MergeInsertExpr, MergeInsertKind, ObjectName, ObjectNamePart, OnConflict, OnConflictAction, OnInsert, SelectItem,
    SetExpr, Statement, TableFactor, TableObject,
};
use engine::{DataType, Schema};

use super::{Finder, plain_argument};
use crate::names::fold;
use crate::session::conflict_targets;
use crate::syntax::identifiers::last_part;
use crate::syntax::subscript_tokens::{ITEM, PART};
use crate::syntax::walk::Walk;

impl Finder<'_> {
    /// Looks at the clauses that only this kind of statement has.
    pub(super) fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => {
                self.enter(&update.table.relation);
                self.assignments(&update.assignments);
            }
            Statement::Merge(merge) => self.merge(merge),
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
                self.enter_all(from);
            }
            _ => {}
        }
    }

    /// Parameters take the types of the columns that are set to them.
    fn assignments(&mut self, assignments: &[Assignment]) {
        for assignment in assignments {
            if let (AssignmentTarget::Tuple(names), Expr::Tuple(values)) = (&assignment.target, &assignment.value) {
                for (name, value) in names.iter().zip(values) {
                    let column = name.0.last().and_then(ObjectNamePart::as_ident);
                    self.set(value, column.and_then(|column| self.column(None, column)));
                }
            }
            if let AssignmentTarget::ColumnName(name) = &assignment.target
                && let Some(column) = name.0.last().and_then(ObjectNamePart::as_ident)
            {
                match column.value.strip_suffix(PART) {
                    Some(whole) => self.part(&Ident::with_quote('"', whole), &assignment.value),
                    None => {
                        let data_type = self.column(None, column);
                        self.set(&assignment.value, data_type);
                    }
                }
            }
        }
    }

    /// Of a part of an array that is set the places are integers, and the value is an item or an array; of a `jsonb` texts and a `jsonb`.
    fn part(&mut self, column: &Ident, call: &Expr) {
        let Expr::Function(Function { args: FunctionArguments::List(list), name, .. }) = call else { return };
        let Some((value, places)) = list.args.split_last() else { return };
        let of = self.column(None, column);
        let place = if of == Some(DataType::Jsonb) { DataType::TEXT } else { DataType::Integer };
        places.iter().filter_map(plain_argument).for_each(|argument| self.set(argument, Some(place)));
        let of = match of {
            Some(DataType::Array(item)) if last_part(name).is_some_and(|name| name == ITEM) => Some(item.data_type()),
            other => other,
        };
        if let Some(value) = plain_argument(value) {
            self.set(value, of);
        }
    }

    fn merge(&mut self, merge: &Merge) {
        self.enter(&merge.table);
        self.enter(&merge.source);
        let TableFactor::Table { name, .. } = &merge.table else { return };
        let Some(schema) = self.schema(name) else { return };
        for clause in &merge.clauses {
            match &clause.action {
                MergeAction::Update(update) => self.assignments(&update.assignments),
                MergeAction::Insert(MergeInsertExpr { columns, kind: MergeInsertKind::Values(values), .. }) => {
                    let columns = columns_of(&schema, columns);
                    for row in &values.rows {
                        row.content.iter().zip(&columns).for_each(|(cell, data_type)| self.set(cell, *data_type));
                    }
                }
                _ => {}
            }
        }
    }

    fn insert(&mut self, insert: &Insert) {
        let TableObject::TableName(name) = &insert.table else { return };
        let Some(schema) = self.schema(name) else { return };
        if insert.returning.is_some() || insert.on.is_some() {
            let shown = insert.table_alias.as_ref().map(|alias| &alias.alias);
            let shown = shown.or(name.0.last().and_then(ObjectNamePart::as_ident)).map(fold).unwrap_or_default();
            self.scope.push((shown, schema.clone()));
            self.scope.push(("excluded".to_owned(), schema.clone()));
        }
        for expr in conflict_targets::expressions(insert) {
            // What breaks a walk is told of the statement itself, too.
            let _told = expr.walk(self);
        }
        if let Some(OnInsert::OnConflict(OnConflict { action: OnConflictAction::DoUpdate(update), .. })) = &insert.on {
            self.assignments(&update.assignments);
        }
        let Some(query) = &insert.source else { return };
        let columns = columns_of(&schema, &insert.columns);
        match query.body.as_ref() {
            SetExpr::Values(values) => {
                for row in &values.rows {
                    row.content.iter().zip(&columns).for_each(|(cell, data_type)| self.set(cell, *data_type));
                }
            }
            SetExpr::Select(select) => {
                for (item, data_type) in select.projection.iter().zip(&columns) {
                    if let SelectItem::UnnamedExpr(expr) = item {
                        self.set(expr, *data_type);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The types of the columns that an `INSERT` names, or of all.
fn columns_of(schema: &Schema, names: &[ObjectName]) -> Vec<Option<DataType>> {
    let named = names.iter().map(|name| {
        let column = name.0.last().and_then(ObjectNamePart::as_ident)?;
        schema.position(&fold(column)).map(|at| schema.columns()[at].data_type)
    });
    match names.is_empty() {
        true => schema.columns().iter().map(|column| Some(column.data_type)).collect(),
        false => named.collect(),
    }
}
