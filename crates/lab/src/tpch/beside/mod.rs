//! The 22 queries here and in DuckDB or DataFusion, in turns within one run.
//!
//! ```text
//! tables here ── COPY TO Parquet ──▶ folder beside the data ──▶ tables there, in memory
//!
//! in turns:             here  there  here  there ...     `crate::beside`
//! beside writers:       here  here ...                   while transactions change a copy at full speed, on as many threads
//! with writers:         here  here ...                   while they change the data
//! ```
//!
//! The other engine gets what the tables hold, so that both answer the same even if writers of earlier runs have changed the data. What
//! writers change is not told to it: its times beside them are those of the run without. Beside DataFusion, which plans our queries, it
//! is seen whether our own operators and rules make any of them slower.
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use engine::Database;

use super::args::TpchArgs;
use super::bench::{largest_order_key, prepare, settle};
use super::existing;
use super::queries::query;
use super::tables::TABLES;
use super::writer::Writers;
use crate::beside::{Query, Report, Rival, RivalKind, environment, folder, in_all_turns, quoted, run_here, session};
use crate::{LabError, Progress};

mod writers;

use writers::{BesideWriters, UnderWriters};

/// Runs the comparison and writes its report to `out`.
///
/// # Errors
/// As [`bench`](super::bench()); [`LabError::Failed`] if the other engine can't be had, and if a query's rows are not the same in both.
pub(super) fn bench_beside(
    args: &TpchArgs,
    kind: RivalKind,
    db: &Database,
    progress: &dyn Progress,
    out: &mut dyn Write,
) -> Result<(), LabError> {
    let dir = folder(args.dir.as_deref())?;
    let python = args.python.clone().map_or_else(|| environment(&dir, kind, progress), Ok)?;
    prepare(db, args, progress)?;
    let mut rival = Rival::start(kind, &python)?;
    hand_over(db, &mut rival, &dir, progress)?;
    settle(db, &TABLES, progress)?;
    let turns = in_all_turns(db, &mut rival, &queries(args.sf, &args.query_numbers()), args.runs_beside(), progress)?;
    let mut under_writers = Vec::new();
    if args.writer {
        let copy = copied(args, &dir, progress)?;
        for turns in &turns {
            let elsewhere = beside_writers(args, (db, &copy), turns.threads, progress)?;
            let here = beside_writers(args, (db, db), turns.threads, progress)?;
            under_writers.push(UnderWriters { elsewhere, here });
        }
    }
    let title = format!("TPC-H, scale factor {}", args.sf);
    let report = Report { bench: "tpch", title, rival: kind, version: rival.version.clone(), turns };
    match args.json {
        true => report.write_json(out)?,
        false => report.write_table(out)?,
    }
    for (under_writers, turns) in under_writers.iter().zip(&report.turns) {
        match args.json {
            true => under_writers.write_json((turns, kind), out)?,
            false => under_writers.write_table((turns, kind.name()), out)?,
        }
    }
    out.flush()?;
    report.problems().map_or(Ok(()), |problems| Err(LabError::Failed(problems)))
}

/// The queries that run, each with its name.
fn queries(sf: f64, numbers: &[usize]) -> Vec<Query> {
    let named = |number: &usize| Query { name: format!("q{number:02}"), text: query(*number, sf) };
    numbers.iter().map(named).collect()
}

/// Gives the other engine what the tables hold.
fn hand_over(db: &Database, rival: &mut Rival, dir: &Path, progress: &dyn Progress) -> Result<(), LabError> {
    let start = Instant::now();
    progress.start(&format!("tables for {}", rival.kind.name()), 2 * TABLES.len() as u64);
    let mut session = session(db, 1);
    for table in TABLES {
        let path = dir.join(format!("{table}.parquet"));
        let text = format!("COPY {table} TO {} (FORMAT parquet)", quoted(&path));
        session.execute(&text).map_err(|error| LabError::Sql(format!("copy of {table}"), Box::new(error)))?;
        progress.advance(1);
        rival.load(table, &path)?;
        progress.advance(1);
    }
    let (name, version) = (rival.kind.name(), &rival.version);
    progress.finish(&format!("tables for {name} {version}: {:.1} s", start.elapsed().as_secs_f64()));
    Ok(())
}

/// Another database of the same data, beside the data if that is in a directory.
fn copied(args: &TpchArgs, dir: &Path, progress: &dyn Progress) -> Result<Database, LabError> {
    let copy = match args.dir {
        Some(_) => Database::open(dir.join("copy"))?,
        None => Database::in_memory(),
    };
    prepare(&copy, args, progress)?;
    settle(&copy, &TABLES, progress)?;
    Ok(copy)
}

/// Measures all queries on the one database while transactions change the other, which may be the same.
fn beside_writers(
    args: &TpchArgs,
    (queried, written): (&Database, &Database),
    threads: usize,
    progress: &dyn Progress,
) -> Result<BesideWriters, LabError> {
    let start = Instant::now();
    let queries = queries(args.sf, &args.query_numbers());
    progress.start("queries beside writers", queries.len() as u64);
    let mut session = session(queried, threads);
    let last_key = largest_order_key(&mut crate::beside::session(written, 1))?;
    let writers = Writers::start(written, args.writers, args.sf, existing::last_order_key(args.sf), last_key)?;
    let mut all = Vec::new();
    for query in queries {
        let runs = (0..args.runs_beside()).map(|_| run_here(&mut session, &query));
        all.push(runs.collect::<Result<Vec<_>, _>>()?);
        progress.advance(1);
    }
    let written = writers.stop()?;
    progress.finish(&format!("queries beside writers: {:.1} s", start.elapsed().as_secs_f64()));
    Ok(BesideWriters { runs: all, written })
}

#[cfg(test)]
mod tests;
