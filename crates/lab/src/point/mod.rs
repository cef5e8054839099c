//! The benchmark of prepared statements: statements by key, short ranges and a short join, run in this process beside SQLite.
//!
//! ```text
//! args        the command line
//! statements  the statements and the values of their parameters
//! contestant  lstore and SQLite
//! ```
//!
//! Both run each statement with other keys each time, in turns (see `crate::figures`). Before that they have to give the same for the
//! same keys. Then lstore runs it with several threads, each with a session of its own.
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use engine::Database;

mod args;
mod contestant;
mod statements;

pub use args::PointArgs;

use crate::figures::{Figure, Report, in_turns};
use crate::{LabError, Progress, Scratch};
use contestant::{Contestant, Lstore, Sqlite};
use statements::Statement;

const SQLITE: &str = "SQLite";
const ONE_THREAD: &str = "one thread";
/// So many runs of each statement have to give the same.
const COMPARED: u64 = 100;
/// After so many runs the clock is looked at.
const RUNS_BETWEEN_LOOKS: u64 = 16;

/// Runs the benchmark and writes its report to `out`.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more.
/// - [`LabError::Failed`] if there is no place for the files, or the databases do not agree; [`LabError::Engine`] and
///   [`LabError::Sql`] if lstore refuses something.
pub fn bench(args: &PointArgs, progress: &dyn Progress, out: &mut dyn Write) -> Result<(), LabError> {
    if chosen(args).next().is_none() {
        let (text, names) = (args.only.as_deref().unwrap_or_default(), Statement::ALL.map(Statement::name).join(", "));
        return Err(LabError::Failed(format!("no statement has \"{text}\" in its name: {names}")));
    }
    let mut report = Report::new(out, args.json, "point", &[SQLITE, ONE_THREAD]);
    place(args, "in memory", None, progress, &mut report)?;
    let scratch = Scratch::new(args.dir.clone(), "point")?;
    place(args, "in a directory", Some(&scratch), progress, &mut report)?;
    Ok(report.finish("Prepared statements, thousand a second.")?)
}

/// All statements, in memory or in files.
fn place(
    args: &PointArgs,
    place: &str,
    scratch: Option<&Scratch>,
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let files = scratch.map(|scratch| (scratch.sub("lstore"), scratch.sub("sqlite")));
    if let Some((_, sqlite)) = &files {
        let fail = |error| LabError::Failed(format!("cannot make {}: {error}", sqlite.display()));
        std::fs::create_dir_all(sqlite).map_err(fail)?;
    }
    let (ours, theirs): (Option<&Path>, Option<&Path>) = match &files {
        Some((ours, theirs)) => (Some(ours), Some(theirs)),
        None => (None, None),
    };
    let db = Lstore::load(ours, args.rows)?;
    let (mut lstore, mut sqlite) = (Lstore::connect(&db)?, Sqlite::load(theirs, args.rows)?);
    compare(&mut lstore, &mut sqlite, args.rows)?;
    for statement in chosen(args) {
        let case = format!("{}, {place}", statement.name());
        let numbers = [Numbers::new(statement), Numbers::new(statement)];
        let measured = in_turns(progress, args.runs, &case, 2, |at, _| {
            let contestant: &mut dyn Contestant = if at == 0 { &mut lstore } else { &mut sqlite };
            Ok(vec![rate(contestant, statement, &numbers[at], args)?])
        })?;
        report.push(Figure::rate(&case, "statements", "k/s", &measured[0][0]).beside(SQLITE, &measured[1][0]))?;
        threads(args, &db, statement, &case, &numbers[0], progress, report)?;
    }
    Ok(())
}

/// The statements that are to be measured.
fn chosen(args: &PointArgs) -> impl Iterator<Item = Statement> {
    let text = args.only.as_deref().unwrap_or_default().to_lowercase();
    Statement::ALL.into_iter().filter(move |statement| statement.name().to_lowercase().contains(&text))
}

/// A statement with several threads beside one.
fn threads(
    args: &PointArgs,
    db: &Database,
    statement: Statement,
    case: &str,
    numbers: &Numbers,
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let threads = args.threads.unwrap_or_else(cores);
    // What was inserted is gone by then.
    if threads < 2 || statement == Statement::Delete {
        return Ok(());
    }
    let label = format!("{case}, {threads} threads");
    let measured = in_turns(progress, args.runs, &label, 2, |at, _| {
        let count = if at == 0 { threads } else { 1 };
        let rates = std::thread::scope(|scope| {
            let run = || rate(&mut Lstore::connect(db)?, statement, numbers, args);
            let running: Vec<_> = (0..count).map(|_| scope.spawn(run)).collect();
            running.into_iter().map(|thread| thread.join().expect("no thread panics")).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(vec![rates.iter().sum()])
    })?;
    Ok(report.push(Figure::rate(&label, "statements", "k/s", &measured[0][0]).beside(ONE_THREAD, &measured[1][0]))?)
}

/// The numbers that keys are made of: spread evenly, or one after the other.
struct Numbers {
    next: AtomicU64,
    goes_on: bool,
}

impl Numbers {
    fn new(statement: Statement) -> Numbers {
        Numbers { next: AtomicU64::new(0), goes_on: statement.goes_on() }
    }

    /// So many numbers that nobody else gets.
    fn take(&self, count: u64) -> impl Iterator<Item = u64> {
        let (first, goes_on) = (self.next.fetch_add(count, Ordering::Relaxed), self.goes_on);
        (first..first + count).map(move |at| if goes_on { at } else { at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 })
    }
}

/// Thousand runs of a statement a second.
fn rate(
    contestant: &mut dyn Contestant,
    statement: Statement,
    numbers: &Numbers,
    args: &PointArgs,
) -> Result<f64, LabError> {
    let start = Instant::now();
    let (mut runs, mut sum) = (0, 0_i64);
    while start.elapsed() < args.seconds {
        for number in numbers.take(RUNS_BETWEEN_LOOKS) {
            sum = sum.wrapping_add(contestant.run(statement, &statement.values(number, args.rows))?);
        }
        runs += RUNS_BETWEEN_LOOKS;
    }
    std::hint::black_box(sum);
    Ok(runs as f64 / start.elapsed().as_secs_f64() / 1e3)
}

/// Has both answer the same questions.
fn compare(lstore: &mut Lstore, sqlite: &mut Sqlite, rows: u64) -> Result<(), LabError> {
    for statement in Statement::ALL {
        for at in 0..COMPARED {
            let number = if statement.goes_on() { (1 << 40) + at } else { at * 7919 };
            let values = statement.values(number, rows);
            let (ours, theirs) = (lstore.run(statement, &values)?, sqlite.run(statement, &values)?);
            if ours != theirs {
                let text = statement.text();
                return Err(LabError::Failed(format!("{text} with {values:?}: lstore {ours}, SQLite {theirs}")));
            }
        }
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
        args: PointArgs,
    }

    #[test]
    fn every_statement_has_a_rate_beside_sqlite() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().to_str().unwrap();
        let line =
            ["point", "--dir", dir, "--rows", "300", "--seconds", "0.01", "--runs", "1", "--threads", "2", "--json"];
        let Command { args } = Command::parse_from(line);
        let mut out = Vec::new();
        bench(&args, &Quiet, &mut out).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for (rival, count) in [(SQLITE, 22), (ONE_THREAD, 20)] {
            let beside: Vec<_> = lines.iter().filter(|line| line["baseline"] == rival).collect();
            assert_eq!(beside.len(), count, "{text}");
            assert!(beside.iter().all(|line| line["value"].as_f64().unwrap() > 0.0), "{text}");
        }
    }
}
