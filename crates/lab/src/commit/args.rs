//! How `bench commit` runs: its part of the command line.
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  lstore bench commit                            1, 4, 16 and 64 clients
  lstore bench commit --dir /mnt/disk            on another disk
  lstore bench commit --clients 8 --seconds 5 --runs 3
  lstore bench commit --json > commit.jsonl      one JSON object a line

A client is a thread that updates a row of its own and commits, over and over.
  sync   acknowledged once the commit and all before it are on disk
  async  acknowledged at once, on disk some milliseconds later
  partition  acknowledged once the commit and what it depends on are on disk
Beside them stands what the disk does: 512 bytes written and made durable, one
after the other, in a file that has its room already. Ratios are medians of the
runs' ratios; above 1 lstore is the better.

At the end transactions of `bench micro` run on a database with a log that
nobody waits for (async), beside the same in memory, without any.";

/// How `bench commit` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CommitArgs {
    /// Where to put the files, in a folder of their own that is removed at the end; by default here
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// How many clients commit at the same time; several numbers measure each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,4,16,64",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub clients: Vec<u32>,
    /// How long one run lasts
    #[arg(long, default_value = "1", value_parser = crate::seconds)]
    pub seconds: Duration,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Rows of the table in which the cost of a log is measured
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=1 << 31))]
    pub rows: u64,
    /// Leave that part out
    #[arg(long)]
    pub no_cost: bool,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}
