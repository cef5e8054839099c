//! How `bench sim` runs: its part of the command line.
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  lstore bench sim                         the figures by name
  lstore bench sim tle-1 tle-4             what a second socket does to elision
  lstore bench sim all --json > sim.jsonl  all figures, one JSON object a line
  lstore bench sim tle-11 --simulated-us 1000 --seed 7

The machine is a model: caches, sockets, hardware transactions and clocks come from
a seed, not from this computer, so a figure is the same wherever it is made. Below
its points stands what the paper says of it, and whether that agrees. Figures of
hardware transactions on two sockets (tle-...), of elided index latches (tsx-...)
and of threads that migrate between instruction caches (migration-...).";

/// How `bench sim` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SimArgs {
    /// The figures to make, or `all`; without names they are listed
    #[arg(value_name = "FIGURE", num_args = 0..)]
    pub figures: Vec<String>,
    /// Where all chance comes from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The simulated time of a point, in microseconds
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub simulated_us: u64,
    /// Print one JSON object a line instead of a drawing
    #[arg(long)]
    pub json: bool,
}
