//! Batches for queries with little memory: of fewer rows than pages have in a block, and with no bytes of other rows.
//!
//! What a batch takes is what its arrays keep alive. A slice of a batch keeps the whole, and a batch read from a file all that was read
//! with it, once for every column. So the rows are copied.
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::DataType;
use arrow_select::take::{take, take_record_batch};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};

use crate::state::target;

/// So many rows a batch has where memory is not short.
const ROWS_ENOUGH: usize = 8192;

/// The rows in batches of so many at the most.
pub(crate) fn cut(batches: SendableRecordBatchStream, rows: usize) -> SendableRecordBatchStream {
    if rows >= ROWS_ENOUGH {
        return batches;
    }
    let schema = batches.schema();
    let pieces = batches.map_ok(move |batch| stream::iter(pieces(batch, rows))).try_flatten();
    Box::pin(RecordBatchStreamAdapter::new(schema, pieces))
}

fn pieces(batch: RecordBatch, rows: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let all = batch.num_rows();
    (0..all.div_ceil(rows)).map(move |at| copied(&batch, at * rows..(at * rows + rows).min(all)))
}

/// Some rows of a batch in arrays of their own, which keep nothing else alive.
///
/// # Errors
/// None but faults of our own: the columns are those of a batch.
pub(crate) fn copied(batch: &RecordBatch, rows: Range<usize>) -> Result<RecordBatch> {
    match batch.num_columns() {
        0 => Ok(batch.slice(rows.start, rows.len())),
        _ => compact(&take_record_batch(batch, &UInt32Array::from_iter_values(rows.start as u32..rows.end as u32))?),
    }
}

/// Values in an array of their own, unless they are most of what the array keeps alive.
///
/// # Errors
/// What Arrow says of an array that is none.
pub(crate) fn own_values(values: &ArrayRef) -> Result<ArrayRef> {
    /// What an array takes beside its values.
    const BESIDE: usize = 256;
    // A look at all buffers of texts takes longer than a copy: texts of many groups have one each.
    let are_texts = matches!(values.data_type(), DataType::Utf8View | DataType::BinaryView);
    if !are_texts && values.get_array_memory_size() <= 2 * values.to_data().get_slice_memory_size()? + BESIDE {
        return Ok(values.clone());
    }
    let rows = UInt32Array::from_iter_values(0..values.len() as u32);
    Ok(without_others(&take(values, &rows, None)?))
}

/// The column without the bytes of texts that belong to other rows.
fn without_others(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()),
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        _ => column.clone(),
    }
}

/// The batch without the bytes of texts that belong to other rows.
///
/// # Errors
/// None but faults of our own: the columns are those of a batch.
pub(crate) fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = batch.columns().iter().map(without_others).collect();
    let compact = target::batch(batch.schema(), columns, batch.num_rows());
    compact.map_err(|error| DataFusionError::External(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringViewArray};
    use arrow_schema::{Field, Schema};
    use futures::StreamExt;

    use super::*;

    #[test]
    fn copied_rows_keep_nothing_else_alive() {
        let numbers = || Arc::new(Int64Array::from_iter_values(0..100_000)) as ArrayRef;
        let fields = vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Int64, false)];
        let whole = target::batch(Arc::new(Schema::new(fields)), vec![numbers(), numbers()], 100_000).unwrap();
        let few = copied(&whole, 7..9).unwrap();
        assert!(few == whole.slice(7, 2) && few.get_array_memory_size() < 2_000);
        assert!(whole.slice(7, 2).get_array_memory_size() > 1_000_000);
    }

    #[test]
    fn pieces_have_all_rows_in_order_and_the_bytes_of_their_own() {
        let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8View, false)]));
        let texts: Vec<String> = (0..1_000).map(|at| format!("a text that lies in the buffer, number {at}")).collect();
        let whole =
            RecordBatch::try_new(schema.clone(), vec![Arc::new(StringViewArray::from_iter_values(&texts))]).unwrap();
        let one = stream::iter([Ok(whole.clone()), Ok(whole.slice(0, 0))]);
        let rows = cut(Box::pin(RecordBatchStreamAdapter::new(schema, one)), 64);
        let batches: Vec<RecordBatch> = futures::executor::block_on(rows.map(Result::unwrap).collect());
        let found: Vec<&str> =
            batches.iter().flat_map(|batch| batch.column(0).as_string_view().iter().flatten()).collect();
        assert_eq!(found, texts);
        let largest = batches.iter().map(RecordBatch::get_array_memory_size).max().unwrap();
        assert!(batches.len() == 16 && largest * 8 < whole.get_array_memory_size(), "{largest}");
    }
}
