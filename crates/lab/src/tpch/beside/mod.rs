//! The 22 queries here and in DuckDB, in turns within one run.
//!
//! ```text
//! tables here ── COPY TO Parquet ──▶ folder beside the data ──▶ tables of DuckDB, in memory
//!
//! for 1 thread, and for as many as there are cores
//!     for each query:   here  there  here  there ...     medians; the rows of both compared
//! with writers:         here  here ...                    while transactions change the data at full speed
//! ```
//!
//! DuckDB gets what the tables hold, so that both answer the same even if writers of earlier runs have changed the data. It is the
//! package of Python, in an environment of its own that the first run makes. Its times end with the first row, when each of these
//! queries has done its work; ours with the last one. What writers change is not told to DuckDB: its times beside them are those
//! of the run without.
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use engine::Database;
use sql::{FileAccess, Session, SessionOptions};

use super::args::TpchArgs;
use super::bench::{largest_order_key, prepare, rows_of, settle};
use super::existing;
use super::queries::query;
use super::tables::TABLES;
use super::writer::{Writers, WrittenTotals};
use crate::{LabError, Progress};

mod answers;
mod cpu;
mod report;
mod rival;

use answers::{Row, difference};
use cpu::CpuTimes;
use report::{Pair, Report, Turns};
use rival::{DuckDb, Run, environment};

/// Runs the comparison and writes its report to `out`.
///
/// # Errors
/// As [`bench`](super::bench()); [`LabError::Failed`] if DuckDB can't be had, and if a query's rows are not the same in both.
pub(super) fn bench_beside(
    args: &TpchArgs,
    db: &Database,
    progress: &dyn Progress,
    out: &mut dyn Write,
) -> Result<(), LabError> {
    let dir = folder(args)?;
    let python = args.python.clone().map_or_else(|| environment(&dir, progress), Ok)?;
    prepare(db, args, progress)?;
    let mut duckdb = DuckDb::start(&python)?;
    hand_over(db, &mut duckdb, &dir, progress)?;
    settle(db, progress)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut turns = vec![in_turns(args, db, &mut duckdb, 1, progress)?];
    if cores > 1 {
        turns.push(in_turns(args, db, &mut duckdb, cores, progress)?);
    }
    let under_writers = match args.writer {
        true => Some(under_writers(args, db, cores, progress)?),
        false => None,
    };
    let report = Report { sf: args.sf, version: duckdb.version.clone(), turns, under_writers };
    match args.json {
        true => report.write_json(out)?,
        false => report.write_table(out)?,
    }
    out.flush()?;
    match report.difference() {
        Some(difference) => Err(LabError::Failed(difference)),
        None => Ok(()),
    }
}

/// The folder of what DuckDB needs: beside the data, or among the user's caches where the data is in memory.
fn folder(args: &TpchArgs) -> Result<PathBuf, LabError> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let caches = || std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let dir = match &args.dir {
        Some(dir) => {
            let mut name = dir.clone().into_os_string();
            name.push(".beside");
            PathBuf::from(name)
        }
        None => caches().unwrap_or_else(std::env::temp_dir).join("lstore").join("beside"),
    };
    let fail = |error| LabError::Failed(format!("the folder {} can't be made: {error}", dir.display()));
    std::fs::create_dir_all(&dir).map_err(fail)?;
    std::path::absolute(&dir).map_err(fail)
}

fn session(db: &Database, threads: usize) -> Session {
    let target_partitions = Some(threads);
    Session::new(db, SessionOptions { target_partitions, files: FileAccess::Allowed, ..SessionOptions::default() })
}

/// Gives DuckDB what the tables hold.
fn hand_over(db: &Database, duckdb: &mut DuckDb, dir: &Path, progress: &dyn Progress) -> Result<(), LabError> {
    let start = Instant::now();
    progress.start("tables for DuckDB", 2 * TABLES.len() as u64);
    let mut session = session(db, 1);
    for table in TABLES {
        let path = dir.join(format!("{table}.parquet"));
        let text = format!("COPY {table} TO '{}' (FORMAT parquet)", path.display().to_string().replace('\'', "''"));
        session.execute(&text).map_err(|error| LabError::Sql(format!("copy of {table}"), Box::new(error)))?;
        progress.advance(1);
        duckdb.load(table, &path)?;
        progress.advance(1);
    }
    progress.finish(&format!("tables for DuckDB {}: {:.1} s", duckdb.version, start.elapsed().as_secs_f64()));
    Ok(())
}

/// Measures all queries in both on so many threads.
fn in_turns(
    args: &TpchArgs,
    db: &Database,
    duckdb: &mut DuckDb,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Turns, LabError> {
    let stage = format!("queries in turns, threads: {threads}");
    let start = Instant::now();
    progress.start(&stage, 22);
    let mut session = session(db, threads);
    duckdb.set_threads(threads)?;
    let mut pairs = Vec::new();
    for number in 1..=22 {
        let text = query(number, args.sf);
        let difference = difference(&rows_here(&mut session, number, &text)?, &duckdb.rows(&text)?);
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for _ in 0..args.runs_beside() {
            here.push(run_here(&mut session, number, &text)?);
            there.push(duckdb.run(&text)?);
        }
        pairs.push(Pair { here, there, difference });
        progress.advance(1);
    }
    progress.finish(&format!("{stage}: {:.1} s", start.elapsed().as_secs_f64()));
    Ok(Turns { threads, pairs })
}

/// Measures all queries here while transactions change the data.
fn under_writers(
    args: &TpchArgs,
    db: &Database,
    threads: usize,
    progress: &dyn Progress,
) -> Result<(Vec<Vec<Run>>, WrittenTotals), LabError> {
    let start = Instant::now();
    progress.start("queries under updates", 22);
    let mut session = session(db, threads);
    let last_key = largest_order_key(&mut session)?;
    let writers = Writers::start(db, args.writers, args.sf, existing::last_order_key(args.sf), last_key)?;
    let mut all = Vec::new();
    for number in 1..=22 {
        let text = query(number, args.sf);
        let runs = (0..args.runs_beside()).map(|_| run_here(&mut session, number, &text));
        all.push(runs.collect::<Result<Vec<_>, _>>()?);
        progress.advance(1);
    }
    let written = writers.stop()?;
    progress.finish(&format!("queries under updates: {:.1} s", start.elapsed().as_secs_f64()));
    Ok((all, written))
}

fn run_here(session: &mut Session, number: usize, text: &str) -> Result<Run, LabError> {
    let (start, cpu_start) = (Instant::now(), CpuTimes::now());
    rows_of(session, &format!("q{number:02}"), text)?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = cpu_start.zip(CpuTimes::now()).map(|(start, end)| end.seconds_since(&start));
    Ok(Run { seconds, cpu_seconds })
}

fn rows_here(session: &mut Session, number: usize, text: &str) -> Result<Vec<Row>, LabError> {
    let batches = rows_of(session, &format!("q{number:02}"), text)?;
    let rows = batches.iter().flat_map(|batch| {
        let row = |at| batch.columns().iter().map(|column| sql::text_value(column, at)).collect();
        (0..batch.num_rows()).map(row)
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests;
