//! The benchmark of the cost model: the figures and tables of Bausch et al. ("Making Cost-Based Query Optimization Asymmetry-Aware", DaMoN
//! 2012), `lstore bench costs`.
//!
//! ```text
//! Figure 1   seeds x { original, asymmetric } x { default, calibrated }: all queries of TPC-H but the fifteenth
//! Figure 2   each query: asymmetric over original, both calibrated, geometric mean over the seeds
//! Figure 3   what the calibration tried, iteration by iteration            Table 4   what it found
//! Table 1    what sorts and a hash join write and read, in order and anywhere
//! ```
//!
//! What differs from the paper: the database keeps its columns encoded, and evicts all pages before each query in place of having less
//! memory than data; the queries of a seed differ in their dates alone; and the traces are of a sort and a hash join made for them, page by
//! page, where the paper traced a block device.
use std::io::Write;
use std::path::Path;

use costs::{Coefficient, Coefficients, Model, Random, Schedule};
use engine::{Database, OpenOptions};
use sql::{Session, SessionOptions};

mod args;
mod operators;
mod queries;
mod trace;

pub use args::{CostArgs, PaperFigure};
pub use operators::{hash_join, sort};
pub use trace::Counts;

use crate::calibrate::{Beginning, Limits, Step, done, free, search, with_values};
use crate::figures::{Figure, Report, median};
use crate::{LabError, Progress, Scratch, tpch};

/// What stands beside the asymmetric model with calibrated coefficients: the paper's names of the others.
const RIVALS: [&str; 4] = ["orig_default", "orig_pgcalib", "acm_default", "paper"];

/// The paper's Table 1, in percent of the writes, and of the reads: in order, anywhere.
const TABLE_1: [(&str, [f64; 4]); 4] = [
    ("external sort of unordered data", [30.42, 69.57, 5.47, 94.52]),
    ("external sort of ordered data", [77.15, 22.84, 95.89, 4.10]),
    ("sort-merge join", [75.40, 24.59, 91.71, 8.28]),
    ("hash join", [5.61, 94.38, 71.40, 28.59]),
];

/// Runs the benchmark and writes its report to `out`.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more, or a temporary file can't be written or read.
/// - [`LabError::Engine`] or [`LabError::Sql`] if the database refuses something; [`LabError::Failed`] if there is no place for the
///   files.
pub fn bench(args: &CostArgs, progress: &dyn Progress, out: &mut dyn Write) -> Result<(), LabError> {
    let scratch = Scratch::new(args.dir.clone(), "costs")?;
    let mut report = Report::new(out, args.json, "costs", &RIVALS);
    let asks = |figure| args.figures.contains(&figure);
    if asks(PaperFigure::Table1) {
        table_1(args, &scratch.sub("trace"), &mut report)?;
    }
    if asks(PaperFigure::Figure1) || asks(PaperFigure::Figure3) {
        by_models(args, &scratch, progress, &mut report)?;
    }
    let title =
        format!("Costs, in {}; lstore is acm_pgcalib, the asymmetric model, calibrated.", scratch.path().display());
    Ok(report.finish(&title)?)
}

/// Table 1: traces of sorts and of a hash join.
fn table_1(args: &CostArgs, path: &Path, report: &mut Report<'_>) -> Result<(), LabError> {
    let memory = args.trace_pages as usize;
    let rows = 20 * memory * trace::KEYS;
    let mut random = Random::new(1);
    let unordered = sort(path, (0..rows).map(|_| random.next_u64()), memory)?.1;
    let ordered = sort(path, 0..rows as u64, memory)?.1;
    // The sides of the twelfth query: four ordered rows of `lineitem` for each of `orders`, which is not in order.
    let orders = rows as u64 / 4;
    let of_orders = sort(path, (0..orders).map(|_| random.next_u64() % orders), memory)?.1;
    let lines = (0..rows as u64).map(|row| row / 4);
    let hashed = hash_join(path, (0..rows / 4).map(|_| random.next_u64() % orders), lines, memory)?.1;
    let found = [unordered, ordered, ordered.and(of_orders), hashed];
    for ((case, paper), counts) in TABLE_1.iter().zip(found) {
        let share = |part: u64, other: u64| 100.0 * part as f64 / (part + other).max(1) as f64;
        let Counts { sequential_writes, random_writes, sequential_reads, random_reads } = counts;
        let shares = [
            ("writes in order", share(sequential_writes, random_writes)),
            ("writes anywhere", share(random_writes, sequential_writes)),
            ("reads in order", share(sequential_reads, random_reads)),
            ("reads anywhere", share(random_reads, sequential_reads)),
        ];
        for ((metric, value), paper) in shares.into_iter().zip(paper) {
            report
                .push(Figure::amount(&format!("Table 1: {case}"), metric, "%", &[value]).beside("paper", &[*paper]))?;
        }
    }
    Ok(())
}

/// The coefficients of a model that took least time, and the search's course.
fn calibrated(
    args: &CostArgs,
    db: &Database,
    session: &mut Session,
    model: Model,
    (state, progress): (&Path, &dyn Progress),
) -> Result<(Coefficients, Vec<Step>), LabError> {
    let start = Coefficients::default();
    let free = free(model == Model::Original);
    let queries = queries::of_seed(0, args.sf);
    let mut measure = |values: &[f64]| {
        let coefficients = with_values(&start, &free, values);
        Ok(queries::times(db, session, &queries, (model, &coefficients))?.iter().sum::<f64>() / 1_000.0)
    };
    let beginning = Beginning {
        schedule: Schedule::default(),
        seed: 1,
        values: free.iter().map(|of| start.get(*of)).collect(),
        subject: model.name().to_owned(),
    };
    let limits = Limits { time: args.seconds, iterations: args.iterations };
    let (annealer, steps) = search(state, &beginning, limits, &mut measure, progress)?;
    Ok((with_values(&start, &free, annealer.best().0), steps))
}

/// Figures 1 to 3 and Table 4.
fn by_models(
    args: &CostArgs,
    scratch: &Scratch,
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let db = sql::open(scratch.sub("data"), OpenOptions::default())?;
    tpch::load(&db, args.sf, progress)?;
    progress.finish("loaded");
    db.merge_now();
    db.checkpoint()?;
    let mut session = Session::new(&db, SessionOptions::default());
    done(&mut session, &format!("SET lstore.operator_memory = '{}'", args.operator_memory))?;
    let mut found = |model: Model| {
        calibrated(args, &db, &mut session, model, (&scratch.sub(&format!("{}.state", model.name())), progress))
    };
    let (original, _) = found(Model::Original)?;
    let (asymmetric, steps) = found(Model::Asymmetric)?;
    if args.figures.contains(&PaperFigure::Figure3) {
        for (at, step) in steps.iter().enumerate().filter(|_| args.json) {
            report.push(Figure::time(
                &format!("Figure 3: iteration {}", at + 1),
                "all queries",
                &[step.cost * 1_000.0],
            ))?;
        }
        table_4(&original, &asymmetric, report)?;
    }
    if !args.figures.contains(&PaperFigure::Figure1) {
        return Ok(());
    }
    let default = Coefficients::default();
    let cases = [
        (Model::Original, &default),
        (Model::Original, &original),
        (Model::Asymmetric, &default),
        (Model::Asymmetric, &asymmetric),
    ];
    let mut speed_ups = vec![Vec::new(); queries::QUERIES.len()];
    progress.start("queries by model", u64::from(args.seeds) * 4);
    for seed in 1..=u64::from(args.seeds) {
        let queries = queries::of_seed(seed, args.sf);
        let mut measured = Vec::new();
        for case in cases {
            measured.push(queries::times(&db, &mut session, &queries, case)?);
            progress.advance(1);
        }
        let total = |at: usize| [measured[at].iter().sum::<f64>()];
        let mut figure = Figure::time(&format!("Figure 1: seed {seed}"), "21 queries", &total(3));
        for (at, name) in RIVALS[..3].iter().enumerate() {
            figure = figure.beside(name, &total(at));
        }
        report.push(figure)?;
        for (at, speed_up) in speed_ups.iter_mut().enumerate() {
            speed_up.push((measured[1][at] / measured[3][at]).ln());
        }
    }
    progress.finish("all queries have run");
    for (number, logarithms) in queries::QUERIES.iter().zip(&speed_ups) {
        let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
        let case = format!("Figure 2: Q{number}");
        report.push(Figure::rate(&case, "speed-up over orig_pgcalib", "times", &[mean]))?;
    }
    let all: Vec<f64> = speed_ups.iter().flatten().map(|logarithm| logarithm.exp()).collect();
    Ok(report
        .push(Figure::rate("Figure 2: all", "median speed-up", "times", &[median(&all)]).beside("paper", &[1.48]))?)
}

/// Table 4: the coefficients that were found. The paper's random write is missing in the text of it that we have.
fn table_4(original: &Coefficients, asymmetric: &Coefficients, report: &mut Report<'_>) -> Result<(), LabError> {
    for of in Coefficient::ALL {
        let paper = match of {
            Coefficient::SequentialRead => Some(1.0),
            Coefficient::SequentialWrite => Some(49.918_4),
            Coefficient::RandomRead => Some(5.627_24),
            Coefficient::Tuple => Some(0.000_03),
            Coefficient::IndexTuple => Some(0.016_08),
            Coefficient::Operator => Some(0.000_08),
            Coefficient::RandomWrite | Coefficient::SequentialMemory | Coefficient::RandomMemory => None,
        };
        let mut figure = Figure::amount("Table 4", of.setting(), "page reads", &[asymmetric.get(of)]);
        figure = figure.beside("orig_pgcalib", &[original.get(of)]);
        if let Some(paper) = paper {
            figure = figure.beside("paper", &[paper]);
        }
        report.push(figure)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Quiet;

    #[test]
    fn all_figures_come_from_one_command() {
        let folder = tempfile::tempdir().unwrap();
        let args = CostArgs {
            figures: vec![PaperFigure::Figure1, PaperFigure::Figure3, PaperFigure::Table1],
            sf: 0.01,
            seeds: 1,
            seconds: Duration::from_secs(600),
            iterations: 1,
            operator_memory: "256kB".to_owned(),
            trace_pages: 64,
            dir: Some(folder.path().to_owned()),
            json: true,
        };
        let mut out = Vec::new();
        bench(&args, &Quiet, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let count = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        assert_eq!((count("Table 1"), count("Figure 1"), count("Figure 3")), (16, 3, 1), "{text}");
        assert_eq!((count("Figure 2"), count("Table 4")), (22, 15), "{text}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
