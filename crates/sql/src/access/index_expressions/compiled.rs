//! An expression of an index that can be worked out for rows, and compared with those of queries.
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, SchemaRef};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::physical_plan::PhysicalExpr;
use engine::{DataType, ExpressionError, RowExpression};

use crate::interrupt::session_zone;
use crate::names::diagnose::diagnose;
use crate::syntax::source::Source;
use crate::values::stored::{as_stored, rows_as_queried};

/// An expression that can be worked out for rows.
#[derive(Debug)]
pub(crate) struct CompiledExpression {
    /// As the planner has it where a query says the same; see [`comparable`].
    pub(crate) logical: Expr,
    pub(crate) physical: Arc<dyn PhysicalExpr>,
    pub(crate) data_type: DataType,
    /// The columns that it names, by their positions.
    pub(crate) columns: Vec<usize>,
    /// The rows that it is worked out for, as a query has them.
    pub(crate) schema: SchemaRef,
}

impl CompiledExpression {
    /// The one behind what the engine holds.
    pub(crate) fn of(expression: &dyn RowExpression) -> Option<&CompiledExpression> {
        (expression as &dyn std::any::Any).downcast_ref()
    }

    /// The expression that a query's expression is compared with.
    pub(crate) fn logical(&self) -> &Expr {
        &self.logical
    }
}

impl RowExpression for CompiledExpression {
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef, ExpressionError> {
        let _scope = session_zone::in_utc();
        let form: ArrowType = self.data_type.to_arrow();
        let rows = &rows_as_queried(rows, &self.schema);
        let value = self.physical.evaluate(rows).and_then(|value| value.into_array(rows.num_rows()));
        let values = value.and_then(|values| match *values.data_type() == form {
            true => Ok(values),
            false => Ok(cast(&values, &form)?),
        });
        values.map(|values| as_stored(&values)).map_err(|error| {
            let error = diagnose(&error, &Source::new(""));
            ExpressionError::new(error.sqlstate, error.message)
        })
    }
}

/// An expression of a plan in the form in which two that mean the same are equal: without the names of tables.
pub(crate) fn comparable(expr: Expr) -> Expr {
    unnormalize_col(expr.unalias_nested().data)
}
