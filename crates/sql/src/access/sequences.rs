//! What `SELECT` shows of a sequence.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use datafusion::catalog::TableProvider;
use engine::Sequence;

use crate::access::computed;
use crate::error::SqlError;
use crate::values::types::arrow_schema;

/// A sequence in FROM: one row that says where it stands, whatever moment the statement reads.
pub(crate) fn in_from(sequence: Sequence, table: &engine::Table) -> datafusion::error::Result<Arc<dyn TableProvider>> {
    let schema = arrow_schema(table.schema());
    let shown = schema.clone();
    computed::table("sequence", schema, move || {
        let stands = sequence.position()?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![stands.last_value])),
            Arc::new(Int64Array::from(vec![stands.ahead])),
            Arc::new(BooleanArray::from(vec![stands.is_called])),
        ];
        RecordBatch::try_new(shown.clone(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
    })
}
