//! The arguments of an accumulator that is fed by hand.
use std::sync::Arc;

use arrow_schema::{Field, FieldRef, Schema};
use datafusion::common::ScalarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal};

/// The arguments of an accumulator as columns that stand beside each other, and constants.
pub(crate) fn inputs(
    fields: &[FieldRef],
    literal: &dyn Fn(usize) -> Option<ScalarValue>,
) -> (Vec<Arc<dyn PhysicalExpr>>, Schema) {
    let name = |at: usize| format!("{at}");
    let column = |at: usize| -> Arc<dyn PhysicalExpr> {
        match literal(at) {
            Some(value) => Arc::new(Literal::new(value)),
            None => Arc::new(Column::new(&name(at), at)),
        }
    };
    let field = |(at, field): (usize, &FieldRef)| -> Field { field.as_ref().clone().with_name(name(at)) };
    let schema = Schema::new(fields.iter().enumerate().map(field).collect::<Vec<_>>());
    ((0..fields.len()).map(column).collect(), schema)
}
