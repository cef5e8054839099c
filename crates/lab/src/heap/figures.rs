//! The paper's figures 4(a) and 4(b), each run beside its baseline: the cases of a figure take turns, round after round,
//! and a ratio is the median over the rounds.

use std::sync::Arc;
use std::time::Duration;

use durability::{CommitMode, Device, LogOptions};
use heap::{Heap, HeapOptions, HeapResult};

use crate::heap::{Pace, Table, Vacation, VacationOptions, Words, Workload, drive};

/// The measurements to take.
#[derive(Clone, Debug)]
pub struct FigureOptions {
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// How long each case runs in each round.
    pub time: Duration,
    /// Rounds.
    pub rounds: usize,
    /// Words of the heap that six of are touched at random.
    pub words: u64,
    /// Keys of the hash table.
    pub keys: u64,
    /// The parameters of vacation.
    pub vacation: VacationOptions,
    /// Times between two waits of a split-phase commit.
    pub intervals: Vec<Duration>,
}

/// One figure: what a case came to, beside its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The case that was measured.
    pub case: String,
    /// Of the rounds.
    pub per_s_median: f64,
    /// The lowest.
    pub per_s_min: f64,
    /// The highest.
    pub per_s_max: f64,
    /// How many rounds.
    pub rounds: usize,
    /// The baseline that ran beside it.
    pub baseline: Option<&'static str>,
    /// The median of the ratios of each round, ours over the baseline's.
    pub ratio: Option<f64>,
}

/// A heap with a workload on it, and how to commit.
struct Case {
    name: String,
    baseline: Option<&'static str>,
    heap: Heap,
    workload: Box<dyn Workload>,
    threads: usize,
    pace: Pace,
}

/// Makes an empty directory for a heap.
pub type MakeDevice<'a> = dyn FnMut() -> std::io::Result<Arc<dyn Device>> + 'a;

const WORKLOADS: [&str; 3] = ["words", "hash table", "vacation"];

impl FigureOptions {
    fn workload(&self, name: &str, heap: &Heap) -> HeapResult<Box<dyn Workload>> {
        Ok(match name {
            "words" => Box::new(Words::create(heap, self.words)?),
            "hash table" => Box::new(Table::create(heap, self.keys)?),
            _ => Box::new(Vacation::create(heap, self.vacation)?),
        })
    }

    /// A heap with room for the largest of the workloads, of which only what is touched costs memory.
    fn heap(&self, device: Option<Arc<dyn Device>>, partitions: usize) -> HeapResult<Heap> {
        let words = (2 * self.words).max(32 * self.keys).max(64 * self.vacation.rows) + (1 << 24);
        let defaults = HeapOptions::default();
        let options = HeapOptions { words, log: LogOptions { partitions, ..defaults.log }, ..defaults };
        match device {
            Some(device) => Heap::open(device, options).map(|(heap, _)| heap),
            None => Ok(Heap::volatile(options)),
        }
    }
}

/// Figure 4(a): transactional memory alone, with a log for each thread, and with one log for all, by the number of
/// threads; commits are asynchronous. On random words, on the hash table and on vacation.
///
/// # Errors
/// As [`Heap::open`], the workloads and [`drive`]; [`HeapError::Log`](heap::HeapError::Log) if `make_device`
/// fails.
///
/// # Panics
/// If a workload has left a wrong result, or `options` ask for no rounds.
pub fn durability_costs(
    options: &FigureOptions,
    make_device: &mut MakeDevice<'_>,
    each: &mut dyn FnMut(&Figure),
) -> HeapResult<()> {
    let pace = Pace::Each(CommitMode::Async);
    for workload_name in WORKLOADS {
        for &threads in &options.threads {
            let mut cases = Vec::new();
            for (log, baseline) in
                [("STM alone", None), ("partitioned log", Some("STM alone")), ("single log", Some("STM alone"))]
            {
                let device = if baseline.is_none() { None } else { Some(made(make_device)?) };
                let partitions = if log == "partitioned log" { threads } else { 1 };
                let heap = options.heap(device, partitions)?;
                let workload = options.workload(workload_name, &heap)?;
                let name = format!("{workload_name}, {threads} threads, {log}");
                cases.push(Case { name, baseline, heap, workload, threads, pace });
            }
            let rounds = run_rounds(options, &cases)?;
            report(&cases, &rounds, each);
            // The paper's other ratio.
            let ratio = median(rounds.iter().map(|round| round[1] / round[2]).collect());
            let figure = Figure { baseline: Some("single log"), ratio: Some(ratio), ..figure(&cases, &rounds, 1) };
            each(&figure);
        }
    }
    Ok(())
}

/// Figure 4(b): vacation with commits that are waited for each time an interval has passed, split-phase and with
/// partition commits in addition; beside asynchronous commits, and beside synchronous ones.
///
/// # Errors
/// As [`Heap::open`], the workload and [`drive`]; [`HeapError::Log`](heap::HeapError::Log) if `make_device`
/// fails.
///
/// # Panics
/// If the workload has left a wrong result, or `options` ask for no rounds.
pub fn commit_modes(
    options: &FigureOptions,
    make_device: &mut MakeDevice<'_>,
    each: &mut dyn FnMut(&Figure),
) -> HeapResult<()> {
    for &threads in &options.threads {
        let mut ways = vec![
            ("async".to_string(), Pace::Each(CommitMode::Async)),
            ("sync".to_string(), Pace::Each(CommitMode::Sync)),
            ("partition".to_string(), Pace::Each(CommitMode::Partition)),
        ];
        for interval in &options.intervals {
            let text = format!("every {} ms", interval.as_secs_f64() * 1e3);
            ways.push((format!("split-phase {text}"), Pace::Split(CommitMode::Async, *interval)));
            ways.push((format!("split-phase and partition {text}"), Pace::Split(CommitMode::Partition, *interval)));
        }
        // All ways share one heap in turn: it is the same agency, filled once.
        let heap = Arc::new(options.heap(Some(made(make_device)?), threads)?);
        let workload = Vacation::create(&heap, options.vacation)?;
        let mut rounds = Vec::new();
        for round in 0..=options.rounds {
            let one = |(number, (_, pace)): (usize, &(String, Pace))| {
                let seed = (round * ways.len() + number) as u64;
                drive(&heap, &workload, threads, options.time, *pace, seed).map(|drive| drive.per_s)
            };
            rounds.push(ways.iter().enumerate().map(one).collect::<HeapResult<Vec<f64>>>()?);
        }
        // The first one does not count.
        rounds.remove(0);
        expect_consistent(&heap, &workload)?;
        for (at, (name, _)) in ways.iter().enumerate() {
            let baseline = (at > 0).then_some("async");
            let values = rounds.iter().map(|round| round[at]).collect();
            let ratios = rounds.iter().map(|round| round[at] / round[0]).collect();
            each(&Figure::new(format!("vacation, {threads} threads, {name}"), values, baseline, ratios));
        }
    }
    Ok(())
}

/// Runs all cases, `rounds` times, and once before, which does not count.
fn run_rounds(options: &FigureOptions, cases: &[Case]) -> HeapResult<Vec<Vec<f64>>> {
    let mut rounds = Vec::new();
    for round in 0..=options.rounds as u64 {
        let one = |case: &Case| {
            let drive = drive(&case.heap, &*case.workload, case.threads, options.time, case.pace, round)?;
            Ok(drive.per_s)
        };
        rounds.push(cases.iter().map(one).collect::<HeapResult<Vec<f64>>>()?);
    }
    rounds.remove(0);
    cases.iter().try_for_each(|case| expect_consistent(&case.heap, &*case.workload))?;
    Ok(rounds)
}

/// # Panics
/// If a benchmark has come to a wrong result.
fn expect_consistent(heap: &Heap, workload: &dyn Workload) -> HeapResult<()> {
    let checked = workload.check(heap)?;
    checked.unwrap_or_else(|what| panic!("the benchmark has left a wrong result: {what}"));
    Ok(())
}

fn report(cases: &[Case], rounds: &[Vec<f64>], each: &mut dyn FnMut(&Figure)) {
    (0..cases.len()).for_each(|at| each(&figure(cases, rounds, at)));
}

fn figure(cases: &[Case], rounds: &[Vec<f64>], at: usize) -> Figure {
    let values = rounds.iter().map(|round| round[at]).collect();
    let ratios = rounds.iter().map(|round| round[at] / round[0]).collect();
    Figure::new(cases[at].name.clone(), values, cases[at].baseline, ratios)
}

impl Figure {
    fn new(case: String, values: Vec<f64>, baseline: Option<&'static str>, ratios: Vec<f64>) -> Figure {
        Figure {
            case,
            per_s_min: values.iter().copied().fold(f64::INFINITY, f64::min),
            per_s_max: values.iter().copied().fold(0.0, f64::max),
            rounds: values.len(),
            per_s_median: median(values),
            baseline,
            ratio: baseline.map(|_| median(ratios)),
        }
    }
}

fn made(make_device: &mut MakeDevice<'_>) -> HeapResult<Arc<dyn Device>> {
    let made = make_device();
    Ok(made.map_err(|source| durability::device_error("make a directory".to_string(), String::new(), source))?)
}

/// The upper one of two.
fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "a figure has at least one round");
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
