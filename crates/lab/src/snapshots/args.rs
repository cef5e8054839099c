//! How `bench snapshots` runs: its part of the command line.
use std::time::Duration;

use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  lstore bench snapshots                         every case, up to 128 MiB: some minutes
  lstore bench snapshots --case creation --size-mib 1,16,256
  lstore bench snapshots --case beside --period 0.1 --threads 2
  lstore bench snapshots --case choice --json > choice.jsonl

An array of 64-bit numbers is updated in place and read as of one instant, by
four mechanisms: physical copies, fork, a memory file whose snapshots are rewired
page by page, and write protection by userfaultfd. Cases:
  machine       its processors, caches and memory (table 2)
  creation      the beginning of a snapshot by size (the paper's figures 1 and 2)
  first-update  the first update of a page after it (figure 4)
  cycles        a snapshot and the updates until the next, by distribution and
                number of updates, by all mechanisms in turns (figures 3 and 5)
  queries       a number and a sum from a snapshot (section 3.3)
  choice        what is chosen from a calibration, and its regret (table 1)
  beside        updates a second while a snapshot is taken each period, beside a
                plain array without snapshots, an array behind a mutex,
                chunks behind arc-swap, and a persistent vector behind a
                mutex";

/// How `bench snapshots` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SnapshotArgs {
    /// What is measured; everything if not given
    #[arg(long = "case", value_enum, num_args = 1..)]
    pub cases: Vec<SnapshotCase>,
    /// Sizes of the array in MiB; `cycles`, `queries` and `beside` take the largest
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,8,32,128",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub size_mib: Vec<u32>,
    /// Updates between two snapshots, for `cycles` and `choice`
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1000,16000,128000,1000000",
          value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub updates: Vec<u32>,
    /// Threads that update, for `beside`, and that copy, for `creation`
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Vec<u32>,
    /// The time between two snapshots, for `beside`
    #[arg(long, default_value = "1", value_parser = crate::seconds)]
    pub period: Duration,
    /// How long one run of `beside` lasts
    #[arg(long, default_value = "2", value_parser = crate::seconds)]
    pub seconds: Duration,
    /// Updates that a writer announces together, for `beside`; a snapshot waits for them
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(usize))]
    pub batch: usize,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// A part of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SnapshotCase {
    /// What the machine has
    Machine,
    /// The beginning of a snapshot
    Creation,
    /// The first update of a page
    FirstUpdate,
    /// A snapshot and the updates until the next
    Cycles,
    /// Reading a snapshot
    Queries,
    /// What a calibration chooses
    Choice,
    /// Updates beside snapshots
    Beside,
}

impl SnapshotArgs {
    /// The largest size, in bytes.
    pub(super) fn largest_bytes(&self) -> usize {
        self.sizes_bytes().into_iter().max().unwrap_or(1 << 20)
    }

    pub(super) fn sizes_bytes(&self) -> Vec<usize> {
        self.size_mib.iter().map(|size| (*size as usize) << 20).collect()
    }
}
