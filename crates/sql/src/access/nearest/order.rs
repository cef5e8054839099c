//! Rows that come nearly in the order of their distances, put into it.
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::{concat, concat_batches, take, take_record_batch};
use datafusion::error::{DataFusionError, Result};

/// Rows that may be farther than others which are still to come, with their distances.
pub(crate) struct ByDistance {
    rows: RecordBatch,
    distances: Float64Array,
}

impl ByDistance {
    /// Without rows, which will be of this schema.
    pub(crate) fn new(schema: &SchemaRef) -> ByDistance {
        ByDistance { rows: RecordBatch::new_empty(schema.clone()), distances: Float64Array::new_null(0) }
    }

    /// Whether no row waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.num_rows() == 0
    }

    /// Takes more rows, of these distances, where all that are still to come are so far away at least; gives, in order, those that are
    /// as near as that. All are given where it is NaN: nothing comes any more.
    pub(crate) fn take(&mut self, rows: &RecordBatch, distances: &ArrayRef, beyond: f64) -> Result<RecordBatch> {
        let Some(distances) = distances.as_primitive_opt::<Float64Type>() else {
            return Err(DataFusionError::Internal("a distance is no float".into()));
        };
        let rows = concat_batches(&self.rows.schema(), [&self.rows, rows])?;
        let distances = concat(&[&self.distances, distances])?;
        let distances = distances.as_primitive::<Float64Type>();
        let order = ordered(distances);
        let of = |at: &u32| distances.is_valid(*at as usize).then(|| distances.value(*at as usize));
        // What is no number is farther than all that may come, but for NULL, and known to be in its place when nothing comes.
        let is_ready = |at: &u32| beyond.is_nan() || of(at).is_some_and(|distance| distance <= beyond);
        let ready = order.iter().take_while(|at| is_ready(at)).count();
        let (ready, waiting) = order.split_at(ready);
        let (ready, waiting) = (UInt32Array::from(ready.to_vec()), UInt32Array::from(waiting.to_vec()));
        self.distances = take(distances, &waiting, None)?.as_primitive::<Float64Type>().clone();
        self.rows = take_record_batch(&rows, &waiting)?;
        Ok(take_record_batch(&rows, &ready)?)
    }
}

/// The places of distances in their order: numbers, NaN, NULL.
fn ordered(distances: &Float64Array) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(distances.len()).collect();
    let key = |at: u32| {
        let distance = distances.is_valid(at as usize).then(|| distances.value(at as usize));
        distance.map(|distance| if distance.is_nan() { f64::NAN } else { distance + 0.0 })
    };
    order.sort_by(|one, other| match (key(*one), key(*other)) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_ordered_numbers_first_then_nan_then_null() {
        let distances =
            Float64Array::from(vec![None, Some(2.0), Some(-f64::NAN), Some(0.5), Some(f64::INFINITY), None]);
        assert_eq!(ordered(&distances), [3, 1, 4, 2, 0, 5]);
    }
}
