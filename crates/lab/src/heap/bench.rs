//! The benchmark of the durable heap: what durability costs a transactional heap, and what the ways to commit cost (the
//! paper's figures 4(a) and 4(b); Hathi, section 5): its part of the command line, its files and its report.
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use durability::{Device, FsDevice};
use heap::HeapError;

use crate::figures::{Line, Table, grouped_signed};
use crate::heap::figures::{self, FigureOptions};
use crate::heap::vacation::VacationOptions;
use crate::{LabError, Scratch};

const EXAMPLES: &str = "\
Examples:
  lstore bench heap                              both figures, 1 and 2 threads
  lstore bench heap --figure 4a --threads 1,2,4  what the log costs
  lstore bench heap --figure 4b --dir /mnt/disk  the ways to commit, on another disk
  lstore bench heap --json > heap.jsonl          one JSON object a line

The heap is a row of words in transactions (software transactional memory), with
a redo log and checkpoints on disk. Workloads: random words, a hash table, and
STAMP's vacation, a travel agency. Ratios are medians of the rounds' ratios.";

/// How `bench heap` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct HeapArgs {
    /// Which figure of the paper; both if not given
    #[arg(long, value_enum)]
    pub figure: Option<PaperFigure>,
    /// How many threads run transactions; several numbers measure each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Vec<u32>,
    /// Where to put the files, in a folder of their own that is removed at the end; by default here
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// How long each case runs in each round
    #[arg(long, default_value = "0.3", value_parser = crate::seconds)]
    pub seconds: Duration,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Rows of each of vacation's tables
    #[arg(long, default_value_t = 1 << 14, value_parser = clap::value_parser!(u64).range(16..=1 << 24))]
    pub rows: u64,
    /// Vacation under high contention
    #[arg(long)]
    pub high: bool,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// A figure of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PaperFigure {
    /// Transactional memory alone, with a log for each thread, with one log for all
    #[value(name = "4a")]
    DurabilityCosts,
    /// Commits that are waited for at each interval, by kind
    #[value(name = "4b")]
    CommitModes,
}

impl HeapArgs {
    fn options(&self) -> FigureOptions {
        let contention = if self.high { VacationOptions::HIGH } else { VacationOptions::LOW };
        FigureOptions {
            threads: self.threads.iter().map(|threads| *threads as usize).collect(),
            time: self.seconds,
            rounds: self.runs as usize,
            words: 1 << 22,
            keys: 100_000,
            vacation: VacationOptions { rows: self.rows, ..contention },
            intervals: [200, 500, 1_000, 2_000, 5_000, 10_000].map(Duration::from_micros).to_vec(),
        }
    }
}

/// Runs the benchmark and writes its report to `out`.
///
/// # Errors
/// [`LabError::Output`] if `out` does not take more; [`LabError::Failed`] if there is no place for the files, or the heap
/// fails.
pub fn bench(args: &HeapArgs, out: &mut dyn Write) -> Result<(), LabError> {
    let scratch = Scratch::new(args.dir.clone(), "heap")?;
    let mut reported = Vec::new();
    let mut made = 0;
    let mut make_device = || {
        made += 1;
        FsDevice::new(scratch.sub(&made.to_string())).map(|device| Arc::new(device) as Arc<dyn Device>)
    };
    let mut written = Ok(());
    let mut each = |figure: &figures::Figure| {
        if args.json && written.is_ok() {
            written = line(figure).write(out);
        }
        reported.push(figure.clone());
    };
    let failed = |error: HeapError| LabError::Failed(error.to_string());
    let options = args.options();
    if args.figure != Some(PaperFigure::CommitModes) {
        figures::durability_costs(&options, &mut make_device, &mut each).map_err(failed)?;
    }
    if args.figure != Some(PaperFigure::DurabilityCosts) {
        figures::commit_modes(&options, &mut make_device, &mut each).map_err(failed)?;
    }
    written?;
    if !args.json {
        table(&reported).write(out)?;
    }
    Ok(())
}

fn line(figure: &figures::Figure) -> Line<'_> {
    Line {
        bench: "heap",
        case: &figure.case,
        metric: "transactions",
        value: figure.per_s_median,
        unit: "/s",
        min: figure.per_s_min,
        max: figure.per_s_max,
        runs: figure.rounds,
        baseline: figure.baseline,
        ratio: figure.ratio,
    }
}

fn table(reported: &[figures::Figure]) -> Table {
    let head = [("case", false), ("transactions/s", true), ("min..max", true), ("beside", false), ("ratio", true)];
    let mut table = Table::new(head.to_vec());
    for figure in reported {
        table.push(vec![
            figure.case.clone(),
            grouped_signed(figure.per_s_median),
            format!("{}..{}", grouped_signed(figure.per_s_min), grouped_signed(figure.per_s_max)),
            figure.baseline.unwrap_or_default().to_owned(),
            figure.ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}")),
        ]);
    }
    table
}
