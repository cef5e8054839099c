//! `lineitem` of TPC-H from files and as Arrow batches, into a directory that is closed then.
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrow_array::RecordBatch;
use engine::Database;
use sql::{FileAccess, Session, SessionOptions};

use super::numbers::remove;
use super::{DISK, LoadArgs, rate};
use crate::figures::{Figure, Report, in_turns};
use crate::tpch::{rows_of_table, schema};
use crate::{LabError, Progress, Scratch};

/// Tests go with the first batch.
const BATCHES_MAX: usize = if cfg!(test) { 1 } else { usize::MAX };

/// How rows come.
#[derive(Clone, Copy)]
enum Source {
    Parquet,
    Csv,
    Arrow,
}

const SOURCES: [(Source, &str); 3] = [
    (Source::Parquet, "lineitem from Parquet"),
    (Source::Csv, "lineitem from CSV"),
    (Source::Arrow, "lineitem as Arrow batches"),
];

/// The rows, and the files that have them.
struct Lines {
    batches: Vec<RecordBatch>,
    rows: usize,
    csv: PathBuf,
    parquet: PathBuf,
}

pub(super) fn bench(
    args: &LoadArgs,
    scratch: &Scratch,
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let lines = Lines::make(args.sf, scratch)?;
    let bytes = std::fs::read(&lines.csv).map_err(|error| unusable(&lines.csv, &error))?;
    let (target, raw) = (scratch.sub("lineitem"), scratch.sub("raw"));
    let case = format!("lineitem, {} rows", lines.rows);
    let measured = in_turns(progress, args.runs, &case, 1 + SOURCES.len(), |at, _| {
        let start = Instant::now();
        let Some(at) = at.checked_sub(1) else {
            let written = File::create(&raw).and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()));
            written.map_err(|error| unusable(&raw, &error))?;
            return Ok(vec![rate(lines.rows, start.elapsed().as_secs_f64())]);
        };
        lines.load(SOURCES[at].0, &target)?;
        let seconds = start.elapsed().as_secs_f64();
        let size = size_of_directory(&target)?;
        remove(&target)?;
        Ok(vec![rate(lines.rows, seconds), size as f64 / 1e6])
    })?;
    for ((_, case), values) in SOURCES.iter().zip(&measured[1..]) {
        report.push(Figure::rate(case, "rows", "M/s", &values[0]).beside(DISK, &measured[0][0]))?;
        report.push(Figure::amount(case, "directory", "MB", &values[1]))?;
    }
    Ok(())
}

impl Lines {
    fn make(sf: f64, scratch: &Scratch) -> Result<Lines, LabError> {
        let batches: Vec<RecordBatch> = rows_of_table("lineitem", sf).take(BATCHES_MAX).collect();
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        let lines = Lines { batches, rows, csv: scratch.sub("lineitem.csv"), parquet: scratch.sub("lineitem.parquet") };
        let db = Database::in_memory();
        lines.insert(&db)?;
        for (path, format) in [(&lines.csv, "csv"), (&lines.parquet, "parquet")] {
            copy(&db, &format!("COPY lineitem TO {} WITH (FORMAT {format})", quoted(path)))?;
        }
        Ok(lines)
    }

    fn insert(&self, db: &Database) -> Result<(), LabError> {
        let table = db.create_table("lineitem", schema("lineitem"))?;
        let mut transaction = db.begin()?;
        for batch in &self.batches {
            transaction.insert_batch(&table, batch)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Loads the rows into a new directory, and closes it.
    fn load(&self, source: Source, directory: &Path) -> Result<(), LabError> {
        let db = Database::open(directory)?;
        let (path, format) = match source {
            Source::Arrow => return self.insert(&db),
            Source::Csv => (&self.csv, "csv"),
            Source::Parquet => (&self.parquet, "parquet"),
        };
        db.create_table("lineitem", schema("lineitem"))?;
        copy(&db, &format!("COPY lineitem FROM {} WITH (FORMAT {format})", quoted(path)))
    }
}

fn copy(db: &Database, statement: &str) -> Result<(), LabError> {
    let options = SessionOptions { files: FileAccess::Allowed, ..SessionOptions::default() };
    let mut session = Session::new(db, options);
    session.execute(statement).map(drop).map_err(|error| LabError::Sql(statement.to_owned(), Box::new(error)))
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}

fn unusable(path: &Path, error: &std::io::Error) -> LabError {
    LabError::Failed(format!("cannot use {}: {error}", path.display()))
}

fn size_of_directory(directory: &Path) -> Result<u64, LabError> {
    let sizes = std::fs::read_dir(directory).and_then(|entries| {
        entries
            .map(|entry| entry.and_then(|entry| entry.metadata()).map(|file| file.len()))
            .sum::<std::io::Result<u64>>()
    });
    sizes.map_err(|error| unusable(directory, &error))
}
