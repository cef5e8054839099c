//! The names that a statement's expressions may use: the columns of its tables, side by side, counted from the first table's on.
use arrow_schema::FieldRef;
use datafusion::sql::sqlparser::ast::Expr;
use engine::{Column, DataType, Schema, Table};

use crate::names::fold;
use crate::values::types::arrow_columns;

/// The names and types that a statement's expressions may use.
pub(crate) struct Scope<'a> {
    /// At least one.
    pub(crate) tables: &'a [Named<'a>],
    /// of the parameters
    pub(crate) types: &'a [DataType],
    /// Whether expressions are compiled, which pays where the statement comes again.
    pub(crate) compiles: bool,
}

/// A table under its name in a statement.
pub(crate) struct Named<'a> {
    pub(crate) label: &'a str,
    pub(crate) table: &'a Table,
    /// where its columns begin among those of all tables
    pub(crate) first: usize,
    /// its columns that `USING` has made one with those of a table before it
    pub(crate) merged: Vec<usize>,
}

impl<'a> Named<'a> {
    /// The only table of a statement.
    pub(crate) fn only(label: &'a str, table: &'a Table) -> Named<'a> {
        Named { label, table, first: 0, merged: Vec::new() }
    }

    /// The column of a name that is not qualified, counted within the table.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.table.schema().position(name).filter(|at| !self.merged.contains(at))
    }
}

impl Scope<'_> {
    /// The table of a statement of one.
    pub(crate) fn table(&self) -> &Table {
        debug_assert_eq!(self.tables.len(), 1, "a statement of one table");
        self.tables[0].table
    }

    /// Its columns.
    pub(crate) fn schema(&self) -> &Schema {
        self.table().schema()
    }

    /// The table of a column, and the column within it.
    pub(crate) fn place(&self, column: usize) -> (usize, usize) {
        let table = self.tables.iter().rposition(|named| named.first <= column).unwrap_or(0);
        (table, column - self.tables[table].first)
    }

    /// What is known of a column.
    pub(crate) fn known(&self, column: usize) -> &Column {
        let (table, at) = self.place(column);
        &self.tables[table].table.schema().columns()[at]
    }

    /// A column as queries have it.
    pub(crate) fn field(&self, column: usize) -> FieldRef {
        let (table, at) = self.place(column);
        arrow_columns(&self.tables[table].table.schema().columns()[at..=at]).fields()[0].clone()
    }

    /// The column that an expression is; of several with its name none.
    pub(crate) fn column(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Identifier(ident) => {
                let name = fold(ident);
                let of_table = |named: &Named<'_>| Some(named.first + named.position(&name)?);
                let mut all = self.tables.iter().filter_map(of_table);
                all.next().filter(|_| all.next().is_none())
            }
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [table, column] => {
                    let label = fold(table);
                    let named = self.tables.iter().find(|named| named.label == label)?;
                    Some(named.first + named.table.schema().position(&fold(column))?)
                }
                _ => None,
            },
            Expr::Nested(inner) => self.column(inner),
            _ => None,
        }
    }
}

/// Whether it is a table that was made as one, and all of it is ordered as its values are: what a materialized view may do is for the
/// planner to know, and what the order of a language is, or of texts without case; and none has to be read first.
pub(crate) fn is_plain(table: &Table) -> bool {
    let has_order_of_its_own = |column: &Column| {
        let of_language = column.collation.as_ref().is_some_and(|collation| collation.locale.is_some());
        of_language || matches!(column.data_type, DataType::CITEXT | DataType::HSTORE)
    };
    table.sequence().is_none()
        && table.view().is_none()
        && !table.is_materialized()
        && !table.schema().columns().iter().any(has_order_of_its_own)
}
