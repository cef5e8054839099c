//! The turns: every query here and there, a few times each, after the answers of both were compared.
use std::time::Instant;

use arrow_array::RecordBatch;
use engine::Database;
use sql::{Outcome, Session};

use super::answers::{Row, difference};
use super::cpu::CpuTimes;
use super::rival::{Rival, Run};
use super::session;
use crate::{LabError, Progress};

/// A query and its name.
pub(crate) struct Query {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// How the answers of both are to each other.
pub(crate) enum Answer {
    Same,
    Differs(String),
    FailsHere(String),
    FailsThere(String),
}

/// The runs of one query; none of one that fails.
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) here: Vec<Run>,
    pub(crate) there: Vec<Run>,
    pub(crate) answer: Answer,
}

/// All queries on so many threads.
pub(crate) struct Turns {
    pub(crate) threads: usize,
    pub(crate) pairs: Vec<Pair>,
}

/// Measures all queries in both, `runs` times each, on one thread and on as many as there are cores.
pub(crate) fn in_all_turns(
    db: &Database,
    rival: &mut Rival,
    queries: &[Query],
    runs: u32,
    progress: &dyn Progress,
) -> Result<Vec<Turns>, LabError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let counts = if cores > 1 { vec![1, cores] } else { vec![1] };
    let mut all = Vec::new();
    for threads in counts {
        let stage = format!("queries in turns, threads: {threads}");
        let start = Instant::now();
        progress.start(&stage, queries.len() as u64);
        let mut session = session(db, threads);
        rival.set_threads(threads)?;
        let mut pairs = Vec::new();
        for query in queries {
            pairs.push(pair(&mut session, rival, query, runs)?);
            progress.advance(1);
        }
        progress.finish(&format!("{stage}: {:.1} s", start.elapsed().as_secs_f64()));
        all.push(Turns { threads, pairs });
    }
    Ok(all)
}

/// Compares and measures a query.
fn pair(session: &mut Session, rival: &mut Rival, query: &Query, runs: u32) -> Result<Pair, LabError> {
    let (mut here, mut there) = (Vec::new(), Vec::new());
    let answer = match (rows_here(session, query), rival.rows(&query.text)) {
        (Err(error), _) => Answer::FailsHere(error.to_string()),
        (_, Err(error)) => Answer::FailsThere(error.to_string()),
        (Ok(ours), Ok(theirs)) => {
            for _ in 0..runs {
                here.push(run_here(session, query)?);
                there.push(rival.run(&query.text)?);
            }
            difference(&ours, &theirs, rival.kind.rounding()).map_or(Answer::Same, Answer::Differs)
        }
    };
    Ok(Pair { name: query.name.clone(), here, there, answer })
}

/// Measures a query here.
pub(crate) fn run_here(session: &mut Session, query: &Query) -> Result<Run, LabError> {
    let (start, cpu_start) = (Instant::now(), CpuTimes::now());
    rows_of(session, &query.name, &query.text)?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = cpu_start.zip(CpuTimes::now()).map(|(start, end)| end.seconds_since(&start));
    Ok(Run { seconds, cpu_seconds })
}

/// The rows of a query here, values as texts.
pub(super) fn rows_here(session: &mut Session, query: &Query) -> Result<Vec<Row>, LabError> {
    let batches = rows_of(session, &query.name, &query.text)?;
    let rows = batches.iter().flat_map(|batch| {
        let row = |at| batch.columns().iter().map(|column| sql::text_value(column, at)).collect();
        (0..batch.num_rows()).map(row)
    });
    Ok(rows.collect())
}

/// Runs a query to its end.
pub(crate) fn rows_of(session: &mut Session, name: &str, text: &str) -> Result<Vec<RecordBatch>, LabError> {
    let failed = |error| LabError::Sql(name.to_owned(), Box::new(error));
    match session.execute(text).map_err(failed)? {
        Outcome::Rows(rows) => rows.collect::<Result<_, _>>().map_err(failed),
        Outcome::Done(_) => Err(LabError::Failed(format!("{name} is not a query"))),
    }
}
