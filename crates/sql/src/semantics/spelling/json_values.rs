//! Rows of `VALUES` with JSON: a string without a type is of the type that another row of its column is cast to.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{DataType, Expr, Query, SetExpr, Statement, Values, VisitorMut};

use super::spellings::cast;
use crate::syntax::walk::WalkMut;
use crate::values::literals::is_untyped;

/// Casts such strings of a statement.
pub(crate) fn spell_out(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Queries);
}

struct Queries;

impl VisitorMut for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Values(values) = query.body.as_mut() {
            columns(values);
        }
        ControlFlow::Continue(())
    }
}

fn json_type(expr: &Expr) -> Option<DataType> {
    match expr {
        Expr::Cast { data_type: to @ (DataType::JSON | DataType::JSONB), .. } => Some(to.clone()),
        Expr::Nested(inner) => json_type(inner),
        _ => None,
    }
}

fn columns(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..width {
        let mut cells = values.rows.iter().filter_map(|row| row.content.get(column));
        let Some(to) = cells.find_map(json_type) else { continue };
        for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)) {
            if is_untyped(cell) {
                *cell = cast(cell.clone(), to.clone());
            }
        }
    }
}
