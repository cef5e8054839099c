//! How `bench load` runs: its part of the command line.
use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  lstore bench load                          a million rows of numbers, 600,000 of lineitem
  lstore bench load --sf 1 --dir /mnt/disk   lineitem of TPC-H at scale factor 1, on another disk
  lstore bench load --rows 10000000 --runs 3
  lstore bench load --json > load.jsonl      one JSON object a line

Rows of ten whole numbers come as Arrow batches, a transaction each: into
memory, and into a directory with a log that no commit waits for, closing
included. Beside them the same rows go into a hash map. The rows of lineitem,
with its key of two columns, come from a Parquet and a CSV file and as Arrow
batches, in one transaction, into a directory that is closed then; beside
them the disk takes the bytes of the CSV file. Ratios are medians of the
runs' ratios; above 1 lstore is the better.";

/// How `bench load` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct LoadArgs {
    /// Where to put the files, in a folder of their own that is removed at the end; by default here
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Rows of ten whole numbers
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=1 << 31))]
    pub rows: u64,
    /// Scale factor of lineitem: at 1 it has six million rows
    #[arg(long, default_value = "0.1", value_parser = scale_factor)]
    pub sf: f64,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

fn scale_factor(text: &str) -> Result<f64, String> {
    let sf: f64 = text.parse().map_err(|_| format!("'{text}' is no number"))?;
    crate::tpch::check_scale_factor(sf).map(|()| sf)
}
