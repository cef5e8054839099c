//! How `bench sim` runs: its part of the command line.
use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  lstore bench sim                         the figures by name
  lstore bench sim tle-1 tle-4             what a second socket does to elision
  lstore bench sim all --json > sim.jsonl  all figures, one JSON object a line
  lstore bench sim tle-11 --simulated-us 1000 --seed 7
  lstore bench sim migration-8 --traces lstore.traces
  lstore bench sim calibrate               the model beside this computer

The machine is a model: caches, sockets, hardware transactions and clocks come from
a seed, not from this computer, so a figure is the same wherever it is made. Below
its points stands what the paper says of it, and whether that agrees. Figures of
hardware transactions on two sockets (tle-...), of elided index latches (tsx-...)
and of threads that migrate between instruction caches (migration-...): these replay
recorded transactions if there are any, and generated ones otherwise.

`calibrate` sets the model's latencies to those of this computer, and runs the same
programs on both: no figure, and never the same twice.";

/// How `bench sim` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SimArgs {
    /// The figures to make, or `all`, or `calibrate`; without names they are listed
    #[arg(value_name = "FIGURE", num_args = 0..)]
    pub figures: Vec<String>,
    /// Where all chance comes from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The simulated time of a point, in microseconds
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub simulated_us: u64,
    /// Recorded transactions for the figures of migrating threads; without it those of `lstore.traces` in this directory, if
    /// there is such a file
    #[arg(long, value_name = "FILE")]
    pub traces: Option<PathBuf>,
    /// Print one JSON object a line instead of a drawing
    #[arg(long)]
    pub json: bool,
}
