//! The benchmark's course: load, measure idle, start the writer, measure again, check consistency, tell.
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::grouped;
use engine::{Database, TableStats};
use sql::Session;

use super::args::TpchArgs;
use super::existing::{self, ExistingTables};
use super::load::load;
use super::queries::{CONSISTENCY, query};
use super::report::{Report, Times};
use super::tables::TABLES;
use super::writer::{Writers, WrittenTotals};
use crate::beside::rows_of;
use crate::{LabError, Progress};

/// A query that has taken this long in all is not run again: the others' turn.
const QUERY_BUDGET: Duration = Duration::from_secs(2);
/// Merges are at rest when none has ended for this long.
const SETTLED: Duration = Duration::from_millis(500);
/// Merges that are not at rest after this long are measured as part of idle.
const SETTLE_MAX: Duration = Duration::from_secs(20);
/// Every so many checks of consistency, the sums are looked at too.
const PLAUSIBILITY_EVERY: u32 = 10;

/// A session that runs the benchmark's queries.
fn session(db: &Database) -> sql::Session {
    sql::Session::new(db, sql::SessionOptions::default())
}

/// Runs the queries idle and under updates, and writes the report to `out`.
pub(super) fn bench_alone(
    args: &TpchArgs,
    db: &Database,
    shell_command: Option<&str>,
    progress: &dyn Progress,
    out: &mut dyn Write,
) -> Result<(), LabError> {
    prepare(db, args, progress)?;
    settle(db, &TABLES, progress)?;
    let before = stats(db, &TABLES)?;
    let mut session = session(db);
    let idle = time_queries(&mut session, args, "queries, idle", progress)?;
    let counts_before = live_counts(db)?;
    let last_loaded = existing::last_order_key(args.sf);
    let last_key = largest_order_key(&mut session)?;
    let writers = Writers::start(db, args.writers, args.sf, last_loaded, last_key)?;
    let busy = time_queries(&mut session, args, "queries, under updates", progress)?;
    let checks_held = check_consistency(&mut session, &writers, args.checks, progress)?;
    let written = writers.stop()?;
    check_counts(db, counts_before, &written)?;
    let after = stats(db, &TABLES)?;
    let report = Report {
        sf: args.sf,
        writer_count: args.writers,
        queries: args.query_numbers(),
        idle,
        busy,
        written,
        merges: after.merges - before.merges,
        tail_records_unmerged: after.tail_records_unmerged,
        checks: args.checks,
        checks_held,
    };
    match args.json {
        true => report.write_json(out)?,
        false => report.write_table(out, shell_command)?,
    }
    out.flush()?;
    if checks_held < args.checks {
        let broken = args.checks - checks_held;
        return Err(LabError::Failed(format!("{broken} checks saw orders that differ from their lines")));
    }
    Ok(())
}

/// Has the data there: loads it unless an earlier run did.
pub(super) fn prepare(db: &Database, args: &TpchArgs, progress: &dyn Progress) -> Result<(), LabError> {
    match existing::look(db, args.sf)? {
        ExistingTables::Complete => {
            progress.finish(&format!("TPC-H, scale factor {}, is loaded already", args.sf));
            return Ok(());
        }
        ExistingTables::Other(difference) if !args.reload => {
            let why = format!(
                "the TPC-H tables there are not those of scale factor {}: {difference}. Choose another directory \
                 with --dir, or have the tables replaced with --reload",
                args.sf
            );
            return Err(LabError::Failed(why));
        }
        ExistingTables::CutOff => {
            progress.finish("an earlier load was cut off; loading again");
            existing::drop_tables(db)?;
        }
        ExistingTables::Other(_) => existing::drop_tables(db)?,
        ExistingTables::Nothing => {}
    }
    let start = Instant::now();
    let rows = load(db, args.sf, progress)?;
    progress.finish(&format!("loaded {} rows in {:.1} s", grouped(rows), start.elapsed().as_secs_f64()));
    Ok(())
}

/// Waits until the background has merged what loading or opening left to it, so that idle is idle.
pub(crate) fn settle(db: &Database, tables: &[&str], progress: &dyn Progress) -> Result<(), LabError> {
    let start = Instant::now();
    let (mut seen, mut seen_at) = (stats(db, tables)?, Instant::now());
    while seen_at.elapsed() < SETTLED && start.elapsed() < SETTLE_MAX {
        thread::sleep(Duration::from_millis(20));
        let now = stats(db, tables)?;
        if now != seen {
            (seen, seen_at) = (now, Instant::now());
        }
    }
    progress.finish(&format!("merges at rest: {:.1} s", start.elapsed().as_secs_f64()));
    Ok(())
}

/// Times each query a few times.
fn time_queries(
    session: &mut Session,
    args: &TpchArgs,
    stage: &str,
    progress: &dyn Progress,
) -> Result<Vec<Times>, LabError> {
    let start = Instant::now();
    let numbers = args.query_numbers();
    progress.start(stage, numbers.len() as u64);
    let mut all = Vec::new();
    for number in numbers {
        let text = query(number, args.sf);
        let query_start = Instant::now();
        let mut times = Vec::new();
        while times.len() < args.runs_alone() as usize && (times.is_empty() || query_start.elapsed() < QUERY_BUDGET) {
            let run_start = Instant::now();
            rows_of(session, &format!("q{number:02}"), &text)?;
            times.push(run_start.elapsed().as_secs_f64() * 1000.0);
        }
        all.push(Times::new(times));
        progress.advance(1);
    }
    progress.finish(&format!("{stage}: {:.1} s", start.elapsed().as_secs_f64()));
    Ok(all)
}

/// The values of a query's one row, as text.
fn single_row(session: &mut Session, name: &str, text: &str) -> Result<Vec<String>, LabError> {
    let batches = rows_of(session, name, text)?;
    match batches.iter().find(|batch| batch.num_rows() > 0) {
        Some(batch) => {
            Ok(batch.columns().iter().map(|column| sql::text_value(column, 0).unwrap_or_default()).collect())
        }
        None => Err(LabError::Failed(format!("{name}: no row came back"))),
    }
}

fn single_number(session: &mut Session, name: &str, text: &str) -> Result<i64, LabError> {
    let row = single_row(session, name, text)?;
    let number = row.first().and_then(|value| value.parse().ok());
    number.ok_or_else(|| LabError::Failed(format!("{name}: not a number: {row:?}")))
}

/// The largest key of an order there is.
pub(super) fn largest_order_key(session: &mut Session) -> Result<i64, LabError> {
    single_number(session, "largest order key", "select max(o_orderkey) from orders")
}

/// Looks for orders that differ from their lines, again and again while the writer runs; returns how often none was found.
fn check_consistency(
    session: &mut Session,
    writers: &Writers,
    checks: u32,
    progress: &dyn Progress,
) -> Result<u32, LabError> {
    let start = Instant::now();
    progress.start("consistency under updates", u64::from(checks));
    let mut held = 0;
    let mut lines_before = 0;
    for check in 0..checks {
        if writers.has_failed() {
            break;
        }
        let mut is_sound = single_number(session, "consistency", CONSISTENCY)? == 0;
        if check % PLAUSIBILITY_EVERY == 0 {
            is_sound &= are_sums_plausible(session, &mut lines_before)?;
        }
        held += u32::from(is_sound);
        progress.advance(1);
    }
    progress.finish(&format!("consistency under updates: {:.1} s", start.elapsed().as_secs_f64()));
    Ok(held)
}

/// Whether quantities stay within 1 to 50, average about 25, and no line that was there before is gone.
fn are_sums_plausible(session: &mut Session, lines_before: &mut i64) -> Result<bool, LabError> {
    let text = "select count(*), cast(sum(l_quantity) as double precision), cast(min(l_quantity) as double precision), \
                cast(max(l_quantity) as double precision) from lineitem";
    let row = single_row(session, "sums", text)?;
    let numbers: Vec<f64> = row.iter().filter_map(|value| value.parse().ok()).collect();
    let [lines, sum, min, max] = numbers[..] else {
        return Err(LabError::Failed(format!("sums: not numbers: {row:?}")));
    };
    let has_lost_lines = (lines as i64) < *lines_before;
    *lines_before = lines as i64;
    Ok(!has_lost_lines && min >= 1.0 && max <= 50.0 && (20.0..=31.0).contains(&(sum / lines)))
}

/// How many orders and lines are there.
fn live_counts(db: &Database) -> Result<(u64, u64), LabError> {
    Ok((existing::count(db, "orders", None)?, existing::count(db, "lineitem", None)?))
}

/// Every order and line that the writer committed is there once, and no other came or went.
fn check_counts(db: &Database, before: (u64, u64), written: &WrittenTotals) -> Result<(), LabError> {
    let after = live_counts(db)?;
    let expected = (before.0 + written.new_orders, before.1 + written.new_lines);
    if after != expected {
        let why =
            format!("{} orders and {} lines where {} and {} are expected", after.0, after.1, expected.0, expected.1);
        return Err(LabError::Failed(why));
    }
    Ok(())
}

/// The sums of the tables' statistics.
fn stats(db: &Database, tables: &[&str]) -> Result<TableStats, LabError> {
    let mut sum = TableStats::default();
    for name in tables {
        let stats = db.table(name)?.stats();
        sum.merges += stats.merges;
        sum.tail_records_unmerged += stats.tail_records_unmerged;
    }
    Ok(sum)
}
