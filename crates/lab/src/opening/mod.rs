//! The benchmark of opening: how long it takes to open a database, after a clean close and after a crash, and what its first
//! statements take then, beside reading the files.
//!
//! Each run opens a copy of the directory, as opening may change it.
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::{Database, Durability, OpenOptions, ScanOptions, TransactionOptions, Value};

mod args;

pub use args::OpenArgs;

use crate::figures::{Better, Figure, Report, in_turns};
use crate::{LabError, Progress, Scratch, numbers};

/// Reading all files of the directory.
const READING: &str = "reading the files";

const BATCH_ROWS: usize = 65_536;
/// One row of so many is updated.
const UPDATED: usize = 20;

/// Runs the benchmark and writes its report to `out`.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more.
/// - [`LabError::Failed`] if there is no place for the files, or a row is not there; [`LabError::Engine`] if the database refuses
///   something.
pub fn bench(args: &OpenArgs, progress: &dyn Progress, out: &mut dyn Write) -> Result<(), LabError> {
    let mut report = Report::new(out, args.json, "open", &[READING]);
    let scratch = Scratch::new(args.dir.clone(), "open")?;
    for &rows in &args.rows {
        size(args, rows as usize, &scratch, progress, &mut report)?;
    }
    let title = format!("Opening, in {}.", scratch.path().display());
    Ok(report.finish(&title)?)
}

/// One number of rows.
fn size(
    args: &OpenArgs,
    rows: usize,
    scratch: &Scratch,
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let (closed, crashed, copy) = (scratch.sub("closed"), scratch.sub("crashed"), scratch.sub("copy"));
    make(&closed, &crashed, rows)?;
    let states = [(&closed, "closed"), (&crashed, "crashed")];
    let measured = in_turns(progress, args.runs, &format!("{rows} rows"), states.len(), |at, _| {
        files(|| copy_directory(states[at].0, &copy))?;
        let reading = ms(|| files(|| read_directory(&copy)))?;
        let mut times = opened(&copy, rows)?;
        files(|| std::fs::remove_dir_all(&copy))?;
        times.push(reading);
        Ok(times)
    })?;
    for ((_, state), values) in states.iter().zip(&measured) {
        let case = format!("{rows} rows, {state}");
        report.push(Figure::time(&case, "opening", &values[0]).beside(READING, &values[3]))?;
        report.push(Figure::new(&case, "first row", "ms", Better::Less, &values[1]))?;
        report.push(Figure::new(&case, "first sum", "ms", Better::Less, &values[2]))?;
    }
    [closed, crashed].iter().try_for_each(|directory| files(|| std::fs::remove_dir_all(directory)))
}

/// Opens a database; what that took, the first row by its key, and the first sum, in milliseconds.
fn opened(directory: &Path, rows: usize) -> Result<Vec<f64>, LabError> {
    let start = Instant::now();
    let db = Database::open(directory)?;
    let opening = start.elapsed().as_secs_f64() * 1e3;
    let table = db.table("numbers")?;
    let (key, options) = ([Value::from(rows as i64 / 2)], ScanOptions { columns: vec![2], ..ScanOptions::default() });
    let first_row = ms(|| match table.lookup(db.snapshot(), &key, &options)?.num_rows() {
        1 => Ok(()),
        found => Err(LabError::Failed(format!("{found} rows have the key {}", key[0]))),
    })?;
    let first_sum = ms(|| match table.aggregate(db.snapshot(), &[], &[2])?.rows {
        found if found == rows as u64 => Ok(()),
        found => Err(LabError::Failed(format!("{found} rows of {rows} are there"))),
    })?;
    Ok(vec![opening, first_row, first_sum])
}

fn ms(work: impl FnOnce() -> Result<(), LabError>) -> Result<f64, LabError> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// A database that was closed, and what a crash shortly before would have left.
fn make(closed: &Path, crashed: &Path, rows: usize) -> Result<(), LabError> {
    // No checkpoint but the one below: it would leave less to the log, and change files that are copied.
    let unhurried = OpenOptions { recovery_time: Some(Duration::MAX), ..OpenOptions::default() };
    let db = Database::open_with(closed, unhurried)?;
    let table = numbers::create(&db)?;
    let options = TransactionOptions { durability: Durability::Async, ..TransactionOptions::default() };
    for (half, rows) in [0..rows / 2, rows / 2..rows].into_iter().enumerate() {
        for batch in numbers::batches(rows.clone(), BATCH_ROWS) {
            db.run(options, |transaction| transaction.insert_batch(&table, &batch).map(drop))?;
        }
        let updated: Vec<usize> = rows.step_by(UPDATED).collect();
        for ids in updated.chunks(1000) {
            db.run(options, |transaction| {
                ids.iter().try_for_each(|id| {
                    let (key, set) = ([Value::from(*id as i64)], [(1, Value::from(-(*id as i64)))]);
                    transaction.update_columns(&table, &key, &set).map(drop)
                })
            })?;
        }
        if half == 0 {
            db.merge_now();
            db.checkpoint()?;
        }
    }
    // A commit that is waited for puts all before it on disk.
    db.run(TransactionOptions::default(), |transaction| {
        transaction.update_columns(&table, &[Value::from(0i64)], &[(1, Value::from(1i64))]).map(drop)
    })?;
    files(|| copy_directory(closed, crashed))
}

fn files(work: impl FnOnce() -> std::io::Result<()>) -> Result<(), LabError> {
    work().map_err(|error| LabError::Failed(format!("the files cannot be used: {error}")))
}

fn copy_directory(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

fn read_directory(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        std::hint::black_box(std::fs::read(entry?.path())?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Quiet;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: OpenArgs,
    }

    #[test]
    fn both_states_have_times_beside_reading() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().to_str().unwrap();
        let Command { args } = Command::parse_from(["open", "--dir", dir, "--rows", "3000", "--runs", "2", "--json"]);
        let mut out = Vec::new();
        bench(&args, &Quiet, &mut out).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2 * 3, "{text}");
        assert!(lines.iter().all(|line| line["value"].as_f64().unwrap() > 0.0), "{text}");
        assert!(lines.iter().step_by(3).all(|line| line["ratio"].as_f64().unwrap() > 0.0), "{text}");
    }
}
