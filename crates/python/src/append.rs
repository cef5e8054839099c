//! Rows of Arrow on their way into a table: the input of a `COPY ... FROM STDIN` that gets batches instead of bytes.
use std::io::{self, Read};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sql::{BatchInput, CopyInput, Progress, SqlError};

use crate::capsule::ForeignBatches;
use crate::progress::Meter;

/// See the module.
pub(crate) struct Batches {
    schema: SchemaRef,
    batches: ForeignBatches,
    meter: Arc<Meter>,
}

impl Batches {
    /// Batches that tell of their rows as they go.
    pub(crate) fn new((schema, batches): (SchemaRef, ForeignBatches), meter: Arc<Meter>) -> Batches {
        Batches { schema, batches, meter }
    }
}

impl Read for Batches {
    /// There are no bytes.
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl CopyInput for Batches {
    fn begin(&mut self, _: usize, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn batches(&mut self) -> Option<&mut dyn BatchInput> {
        Some(self)
    }
}

impl BatchInput for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next_batch(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        let batch = self.batches.next()?;
        let rows = batch.as_ref().map_or(0, |batch| batch.num_rows());
        self.meter.advance(rows as u64);
        Some(batch.map_err(|error| SqlError::new("22P04", format!("the Arrow data can't be read: {error}"))))
    }
}
