//! How `bench open` runs: its part of the command line.
use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  lstore bench open                          databases of 100,000 and a million rows
  lstore bench open --rows 10000000 --runs 3
  lstore bench open --dir /mnt/disk          on another disk
  lstore bench open --json > open.jsonl      one JSON object a line

Rows have ten whole numbers; a twentieth of them was updated. A database is
opened after it was closed, and as a crash would have left it: the last
checkpoint has half of the rows, the log has the others. Then come the first
row by its key, for which the index is filled, and the first sum of a column.
Beside the opening stands reading all files of the directory, which are in
the system's cache. Above 1 lstore is the better.";

/// How `bench open` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct OpenArgs {
    /// Where to put the files, in a folder of their own that is removed at the end; by default here
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// How many rows there are; several numbers measure each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "100000,1000000",
          value_parser = clap::value_parser!(u64).range(100..=1 << 31))]
    pub rows: Vec<u64>,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}
