//! Rows dealt out to files by a hash of their keys.
//!
//! A batch of rows is cut into sixteen pieces, one a file. Pieces wait in memory until a file has a batch of them, or all files together
//! more than they may hold, so that files have few and long batches. A piece of texts has only the bytes of its own rows.
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use datafusion::common::hash_utils::create_hashes;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::spill::spill_pool::{SpillPoolSink, spsc_channel};
use foldhash::quality::FixedState;
use futures::{Stream, StreamExt};

use crate::access::small_batches::compact;

/// How many files the rows are dealt out to.
pub(super) const FILES: usize = 16;

/// How often the rows of a file are dealt out again. Sixteen files of sixteen, four times over, are 65,536.
pub(super) const DEPTH_MAX: usize = 4;

/// So many rows of a file are written at a time.
const ROWS_AT_ONCE: usize = 8192;

/// Of so many bytes the next file of a part is begun, and given up as soon as it is read.
const FILE_BYTES_MAX: usize = 256 << 20;

/// So many different keys are few.
const KEYS_FEW: usize = 256;

/// The rows of one part, written and ready to be read.
pub(super) struct Part {
    pub(super) batches: SendableRecordBatchStream,
    pub(super) rows: usize,
    pub(super) bytes: usize,
    pub(super) has_few_keys: bool,
}

/// A part that is being written.
struct Open {
    file: SpillPoolSink,
    batches: SendableRecordBatchStream,
    pieces: Vec<RecordBatch>,
    /// of the pieces
    rows_waiting: usize,
    rows: usize,
    bytes: usize,
    /// the hashes of its keys, as long as these are few
    keys: HashSet<u64, FixedState>,
}

/// Rows on their way to files.
pub(super) struct Partitions {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    hash: FixedState,
    hashes: Vec<u64>,
    parts: Vec<Open>,
    /// what all pieces take, and may take
    waiting: usize,
    waiting_max: usize,
    memory: MemoryReservation,
}

impl Partitions {
    /// Files for rows with these keys. Every depth has a hash of its own.
    pub(super) fn new(
        keys: Vec<Arc<dyn PhysicalExpr>>,
        depth: usize,
        manager: &Arc<SpillManager>,
        (waiting_max, memory): (usize, MemoryReservation),
    ) -> Partitions {
        let open = |_| {
            let (file, batches) = spsc_channel(FILE_BYTES_MAX, manager.clone());
            let keys = HashSet::default();
            Open { file, batches, pieces: Vec::new(), rows_waiting: 0, rows: 0, bytes: 0, keys }
        };
        let parts = (0..FILES).map(open).collect();
        // The rows of a partition have been told apart by the hash with seed 0 already.
        let hash = FixedState::with_seed(depth as u64 + 1);
        Partitions { keys, hash, hashes: Vec::new(), parts, waiting: 0, waiting_max, memory }
    }

    /// Deals out a batch.
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        let keys = self.keys.iter().map(|key| key.evaluate(batch)?.into_array(rows)).collect::<Result<Vec<_>>>()?;
        self.hashes.clear();
        self.hashes.resize(rows, 0);
        create_hashes(&keys, &self.hash, &mut self.hashes)?;
        let mut places: [Vec<u32>; FILES] = Default::default();
        for (row, hash) in (0u32..).zip(&self.hashes) {
            let part = (hash >> 32) as usize % FILES;
            places[part].push(row);
            let keys = &mut self.parts[part].keys;
            if keys.len() <= KEYS_FEW {
                keys.insert(*hash);
            }
        }
        for (part, places) in self.parts.iter_mut().zip(places) {
            if places.is_empty() {
                continue;
            }
            let piece = compact(&take_record_batch(batch, &UInt32Array::from(places))?)?;
            let bytes = piece.get_array_memory_size();
            part.rows += piece.num_rows();
            part.rows_waiting += piece.num_rows();
            part.bytes += bytes;
            part.pieces.push(piece);
            self.waiting += bytes;
            if part.rows_waiting >= ROWS_AT_ONCE {
                self.waiting -= part.write()?;
            }
        }
        if self.waiting > self.waiting_max {
            self.write_all()?;
        }
        self.memory.resize(self.waiting);
        Ok(())
    }

    /// Deals out all rows; the files of them in order.
    pub(super) async fn deal_out(
        mut self,
        mut rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
    ) -> Result<Vec<Part>> {
        while let Some(batch) = rows.next().await.transpose()? {
            self.add(&batch)?;
        }
        self.finish()
    }

    fn write_all(&mut self) -> Result<()> {
        for part in &mut self.parts {
            self.waiting -= part.write()?;
        }
        debug_assert_eq!(self.waiting, 0, "pieces are counted when they come and when they go");
        Ok(())
    }

    /// Writes what waits, and gives the parts in order.
    fn finish(mut self) -> Result<Vec<Part>> {
        self.write_all()?;
        self.memory.free();
        let part = |Open { batches, rows, bytes, keys, .. }: Open| Part {
            batches,
            rows,
            bytes,
            has_few_keys: keys.len() <= KEYS_FEW,
        };
        Ok(self.parts.into_iter().map(part).collect())
    }
}

impl Open {
    /// Writes the pieces; what they took.
    fn write(&mut self) -> Result<usize> {
        let bytes = self.pieces.iter().map(RecordBatch::get_array_memory_size).sum();
        if let Some(first) = self.pieces.first() {
            self.file.push_batch(&concat_batches(&first.schema(), &self.pieces)?)?;
        }
        self.pieces.clear();
        self.rows_waiting = 0;
        Ok(bytes)
    }
}
