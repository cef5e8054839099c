//! The columns that a statement gives of its rows, each under its name in the answer.
use std::sync::Arc;

use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use datafusion::sql::sqlparser::ast::SelectItem;

use super::scope::Scope;
use super::shape;
use crate::names::origin::Origin as Source;
use crate::values::blanks::blanks_to;

/// Columns of a table that a statement gives.
#[derive(Debug)]
pub(crate) struct Columns {
    /// their positions
    pub(crate) positions: Vec<usize>,
    /// under their names in the answer
    pub(crate) schema: SchemaRef,
    /// whether the table has them in the types in which they are given
    pub(crate) are_stored: bool,
}

impl Columns {
    /// Whether one is of `char(n)`, whose blanks are put there where rows are read.
    pub(crate) fn have_blanks(&self) -> bool {
        self.schema.fields().iter().any(|field| blanks_to(field).is_some())
    }

    /// Those of a `RETURNING`, if there is one; `None` if it gives more than columns.
    pub(super) fn of_clause(items: Option<&[SelectItem]>, scope: &Scope<'_>) -> Option<Option<Columns>> {
        match items {
            Some(items) => Columns::of(items, scope).map(Some),
            None => Some(None),
        }
    }

    /// Those of a list, if it is one of columns.
    pub(super) fn of(items: &[SelectItem], scope: &Scope<'_>) -> Option<Columns> {
        let items = shape::columns(items, scope)?;
        let (positions, schema) = (items.iter().map(|(column, _)| *column).collect::<Vec<_>>(), heading(scope, &items));
        let is_stored = |(column, field): (&usize, &Arc<Field>)| {
            let (table, at) = scope.place(*column);
            let column = &scope.tables[table].table.schema().columns()[at];
            column.data_type.to_stored_arrow() == *field.data_type()
        };
        let are_stored = positions.iter().zip(schema.fields()).all(is_stored);
        Some(Columns { positions, schema, are_stored })
    }
}

/// The columns of a query's answer, each under its name there.
fn heading(scope: &Scope<'_>, items: &[(usize, String)]) -> SchemaRef {
    let fields = items.iter().map(|(column, name)| field(scope, *column, name));
    Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()))
}

/// A column of a query's answer under its name there.
pub(super) fn field(scope: &Scope<'_>, column: usize, name: &str) -> Field {
    let (table, at) = scope.place(column);
    let field = Field::clone(&scope.field(column)).with_name(name).with_nullable(true);
    Source::of_column(scope.tables[table].table, at).noted_on(field)
}
