//! Rows of a join whose partners the device has found: what is left is to put their columns together, which any thread may do.
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take;
use datafusion::error::Result;

use crate::coprocessor::Partners;

/// A portion of the probe side, and where its rows have partners.
pub(super) struct Portion {
    build: RecordBatch,
    probe: Vec<RecordBatch>,
    found: Found,
}

enum Found {
    /// The rows that have one, and the rows of the build side in their order.
    One(BooleanArray, UInt32Array),
    /// Pairs of rows of the build side and of the probe side, which is one batch.
    Pairs(Vec<u64>),
}

/// Rows of a portion that make a batch.
pub(super) struct Chunk {
    portion: Arc<Portion>,
    /// Batches of the probe side, and the first row of the first of them.
    batches: Range<usize>,
    first_row: usize,
    /// Rows of the build side, or pairs.
    partners: Range<usize>,
}

/// What is still to be given of a portion.
pub(super) struct Rest {
    portion: Arc<Portion>,
    batch: usize,
    row: usize,
    partner: usize,
}

impl Rest {
    /// All rows of a portion.
    pub(super) fn new(build: RecordBatch, probe: Vec<RecordBatch>, partners: Partners) -> Result<Rest> {
        let (probe, found) = match partners {
            Partners::One { bits, rows } => {
                let count = probe.iter().map(RecordBatch::num_rows).sum();
                (probe, Found::One(BooleanArray::new_from_packed(bits, 0, count), rows.into()))
            }
            // Their rows are from anywhere in the portion.
            Partners::Pairs(pairs) => match probe.first() {
                Some(first) => (vec![concat_batches(&first.schema(), &probe)?], Found::Pairs(pairs)),
                None => (probe, Found::Pairs(pairs)),
            },
        };
        Ok(Rest { portion: Arc::new(Portion { build, probe, found }), batch: 0, row: 0, partner: 0 })
    }

    /// The next rows, about as many as a batch has; `None` where there are no more.
    pub(super) fn next(&mut self, most: usize) -> Option<Chunk> {
        let portion = self.portion.clone();
        let (first, first_row, partner) = (self.batch, self.row, self.partner);
        match &portion.found {
            Found::Pairs(pairs) => self.partner = pairs.len().min(partner + most),
            Found::One(bits, _) => {
                while let Some(batch) = portion.probe.get(self.batch) {
                    let matches = bits.slice(self.row, batch.num_rows()).true_count();
                    if self.partner > partner && self.partner + matches > partner + most {
                        break;
                    }
                    (self.batch, self.row) = (self.batch + 1, self.row + batch.num_rows());
                    self.partner += matches;
                }
            }
        }
        let (batches, partners) = (first..self.batch, partner..self.partner);
        (!partners.is_empty()).then_some(Chunk { portion, batches, first_row, partners })
    }
}

impl Chunk {
    /// The rows.
    pub(super) fn rows(&self, schema: &SchemaRef) -> Result<RecordBatch> {
        let Portion { build, probe, found } = &*self.portion;
        let (of_build, probe) = match found {
            Found::One(bits, rows) => (rows.slice(self.partners.start, self.partners.len()), self.chosen(bits)?),
            Found::Pairs(pairs) => {
                let pairs = &pairs[self.partners.clone()];
                let of_build = UInt32Array::from_iter_values(pairs.iter().map(|pair| *pair as u32));
                let of_probe = UInt32Array::from_iter_values(pairs.iter().map(|pair| (*pair >> 32) as u32));
                (of_build, taken(&probe[0], &of_probe)?)
            }
        };
        let mut columns = taken(build, &of_build)?.columns().to_vec();
        columns.extend_from_slice(probe.columns());
        Ok(RecordBatch::try_new(schema.clone(), columns)?)
    }

    /// The rows of the probe side that have a partner.
    fn chosen(&self, bits: &BooleanArray) -> Result<RecordBatch> {
        let mut row = self.first_row;
        let mut chosen = Vec::with_capacity(self.batches.len());
        for batch in &self.portion.probe[self.batches.clone()] {
            let bits = bits.slice(row, batch.num_rows());
            row += batch.num_rows();
            chosen.push(match bits.true_count() {
                0 => continue,
                count if count == batch.num_rows() => batch.clone(),
                _ => filter_record_batch(batch, &bits)?,
            });
        }
        match &chosen[..] {
            [one] => Ok(one.clone()),
            several => Ok(concat_batches(&self.portion.probe[0].schema(), several)?),
        }
    }
}

fn taken(batch: &RecordBatch, rows: &UInt32Array) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| take(column, rows, None));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, Int32Array};
    use arrow_schema::{DataType, Field, Schema};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn batch(name: &str, values: Vec<i32>) -> RecordBatch {
        RecordBatch::try_from_iter([(name, Arc::new(Int32Array::from(values)) as ArrayRef)]).unwrap()
    }

    /// All rows of a portion, and the rows of each batch.
    fn rows(mut rest: Rest, most: usize) -> (Vec<(i32, i32)>, Vec<usize>) {
        let field = |name| Field::new(name, DataType::Int32, true);
        let schema = Arc::new(Schema::new(vec![field("b"), field("p")]));
        let (mut rows, mut sizes) = (Vec::new(), Vec::new());
        while let Some(chunk) = rest.next(most) {
            let batch = chunk.rows(&schema).unwrap();
            sizes.push(batch.num_rows());
            let [build, probe] = [0, 1].map(|at| batch.column(at).as_primitive::<Int32Type>().values().to_vec());
            rows.extend(build.into_iter().zip(probe));
        }
        (rows, sizes)
    }

    #[test]
    fn partners_make_the_rows_that_pairs_make() {
        for seed in 0..200 {
            let mut random = StdRng::seed_from_u64(seed);
            let sizes: Vec<i32> = (0..random.random_range(0..8)).map(|_| random.random_range(0..40)).collect();
            let (mut probe, mut first) = (Vec::new(), 0);
            for size in sizes {
                probe.push(batch("p", (first..first + size).collect()));
                first += size;
            }
            let build = batch("b", (0..50).map(|row| row * 1000).collect());
            let share = [0.0, 0.05, 0.6, 1.0][random.random_range(0..4)];
            let having: Vec<u32> = (0..first as u32).filter(|_| random.random_bool(share)).collect();
            let mut bits = vec![0u32; first as usize / 32 + 1];
            having.iter().for_each(|row| bits[*row as usize / 32] |= 1 << (row % 32));
            let partners: Vec<u32> = having.iter().map(|_| random.random_range(0..50)).collect();
            let pair = |(row, partner): (&u32, &u32)| u64::from(*partner) | u64::from(*row) << 32;
            let pairs: Vec<u64> = having.iter().zip(&partners).map(pair).collect();
            let most = random.random_range(1..50);
            let one = Partners::One { bits, rows: partners.clone() };
            let (found, sizes) = rows(Rest::new(build.clone(), probe.clone(), one).unwrap(), most);
            let (expected, _) = rows(Rest::new(build, probe.clone(), Partners::Pairs(pairs)).unwrap(), most);
            assert_eq!(found, expected, "seed {seed}");
            assert_eq!(found.len(), having.len(), "seed {seed}");
            // A batch of the probe side is not cut, and is more than was asked for at the most.
            let largest = probe.iter().map(RecordBatch::num_rows).max().unwrap_or(0).max(most);
            assert!(sizes.iter().all(|size| (1..=largest).contains(size)), "seed {seed}: {sizes:?}");
        }
    }
}
