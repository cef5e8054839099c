//! Tables that have their rows worked out when a query reads them.
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;

use crate::error::SqlError;

/// The rows of such a table.
type Rows = dyn Fn() -> Result<RecordBatch, SqlError> + Send + Sync;

struct ComputedRows {
    name: &'static str,
    schema: SchemaRef,
    rows: Arc<Rows>,
}

/// A table of these columns; `rows` works out all of it.
pub(crate) fn table(
    name: &'static str,
    schema: SchemaRef,
    rows: impl Fn() -> Result<RecordBatch, SqlError> + Send + Sync + 'static,
) -> Result<Arc<dyn TableProvider>> {
    let computed = ComputedRows { name, schema: schema.clone(), rows: Arc::new(rows) };
    Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(computed)])?))
}

impl PartitionStream for ComputedRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.clone();
        let batch = async move { rows().map_err(|error| DataFusionError::External(Box::new(error))) };
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::once(batch)))
    }
}

impl fmt::Debug for ComputedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComputedRows").field("name", &self.name).finish_non_exhaustive()
    }
}
