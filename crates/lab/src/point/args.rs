//! How `bench point` runs: its part of the command line.
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  lstore bench point                       100,000 accounts, in memory and in a directory
  lstore bench point --rows 1000000 --seconds 1
  lstore bench point --threads 4           rates of up to four threads
  lstore bench point --only select         one statement
  lstore bench point --json > point.jsonl  one JSON object a line

Statements are prepared once and run in this process with other keys each
time, as lstore's library and as SQLite's. In memory SQLite has a database of
its own; in a directory it writes ahead with synchronous = normal, and lstore
has synchronous_commit = off: neither waits for the disk. Both are asked for
rows of the same keys first and have to give the same. Ratios are medians of
the runs' ratios; above 1 lstore is the better.";

/// How `bench point` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct PointArgs {
    /// Where to put the files, in a folder of their own that is removed at the end; by default here
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Accounts; a tenth as many owners have them
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..=1 << 31))]
    pub rows: u64,
    /// Seconds of a measurement
    #[arg(long, default_value = "0.3", value_parser = crate::seconds)]
    pub seconds: Duration,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Measure lstore with so many threads as well; by default as many as there are cores
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Measure only statements with this in their name, such as update
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}
