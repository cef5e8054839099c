//! Rows of ten whole numbers, as Arrow batches of which each is a transaction.
use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use engine::{Database, Durability, TransactionOptions};

use super::{HASH_MAP, LoadArgs, rate};
use crate::figures::{Figure, Report, in_turns};
use crate::numbers::{self, COLUMNS};
use crate::{LabError, Progress, Scratch};

const BATCH_ROWS: usize = 8192;

pub(super) fn bench(
    args: &LoadArgs,
    scratch: &Scratch,
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let rows = args.rows as usize;
    let batches: Vec<RecordBatch> = numbers::batches(0..rows, BATCH_ROWS).collect();
    let directory = scratch.sub("numbers");
    let cases = ["Arrow batches, in memory", "Arrow batches, in a directory"];
    let measured = in_turns(progress, args.runs, "rows of ten numbers", 1 + cases.len(), |at, _| {
        let start = Instant::now();
        let seconds = match at {
            0 => {
                let map = into_map(&batches);
                let seconds = start.elapsed();
                (map.len() == rows).then_some(seconds).ok_or_else(lost)?
            }
            1 => {
                let db = Database::in_memory();
                load(&db, &batches)?;
                let seconds = start.elapsed();
                check(&db, rows)?;
                seconds
            }
            _ => {
                load(&Database::open(&directory)?, &batches)?;
                let seconds = start.elapsed();
                check(&Database::open(&directory)?, rows)?;
                remove(&directory)?;
                seconds
            }
        };
        Ok(vec![rate(rows, seconds.as_secs_f64())])
    })?;
    for (case, values) in cases.iter().zip(&measured[1..]) {
        report.push(Figure::rate(case, "rows", "M/s", &values[0]).beside(HASH_MAP, &measured[0][0]))?;
    }
    Ok(())
}

fn lost() -> LabError {
    LabError::Failed("rows were lost on the way".to_owned())
}

/// Removes a directory between two runs.
pub(super) fn remove(directory: &Path) -> Result<(), LabError> {
    let fail = |error| LabError::Failed(format!("cannot remove {}: {error}", directory.display()));
    std::fs::remove_dir_all(directory).map_err(fail)
}

fn into_map(batches: &[RecordBatch]) -> HashMap<i64, [i64; COLUMNS]> {
    let mut map = HashMap::new();
    for batch in batches {
        let columns: Vec<&[i64]> =
            batch.columns().iter().map(|column| &column.as_primitive::<Int64Type>().values()[..]).collect();
        for (row, key) in columns[0].iter().enumerate() {
            map.insert(*key, std::array::from_fn(|column| columns[column][row]));
        }
    }
    map
}

/// Loads the batches, a transaction each.
fn load(db: &Database, batches: &[RecordBatch]) -> Result<(), LabError> {
    let table = numbers::create(db)?;
    let options = TransactionOptions { durability: Durability::Async, ..TransactionOptions::default() };
    for batch in batches {
        let mut transaction = db.begin_with(options)?;
        transaction.insert_batch(&table, batch)?;
        transaction.commit()?;
    }
    Ok(())
}

fn check(db: &Database, rows: usize) -> Result<(), LabError> {
    let loaded = db.table("numbers")?.aggregate(db.snapshot(), &[], &[])?.rows;
    if loaded == rows as u64 { Ok(()) } else { Err(lost()) }
}
