//! How `bench gist` and `bench bwd` run: their parts of the command line.
use std::num::NonZero;

use clap::{Args, ValueEnum};

const GIST_EXAMPLES: &str = "\
Examples:
  lstore bench gist                                everything, a million boxes
  lstore bench gist --boxes 10000000 --case load range nearest
  lstore bench gist --case batches                 gist-coprocessor figures 4 to 6
  lstore bench gist --json > gist.jsonl            one JSON object a line

Boxes of two dimensions lie at random in a square with sides of a million, and
have sides up to 500; a window finds some thirty of a million. Participants:
the tree; rstar, an R*-tree; a scan of all boxes; our B+tree on the low ends of
x, which takes the candidates from there and looks at their boxes. A batch
stands beside one descent a query, by slots of a node and queries of a batch;
its phases are the tests of nodes, and what is left: queues and results.
The regret of the scheduler is how much longer the ways took that it chose.";

const BWD_EXAMPLES: &str = "\
Examples:
  lstore bench bwd                                 a million points, 2 MB for them
  lstore bench bwd --points 10000000 --budget 16MB --queries 1,16,128,2048
  lstore bench bwd --points 240000000 --budget 400MB
                                                   as many as in the paper
  lstore bench bwd --json > bwd.jsonl              one JSON object a line

Points lie along roads between towns, with 20 bits a coordinate; windows lie
around some of them, with sides up to 5,000. Participants: the columns, cut
into prefixes, suffixes (both in the budget) and residuals; plain columns,
scanned for each query, or block by block for all of them; the generalized
search tree of points, by batch; our B+tree on x, with y beside. Figures of
bitwise-distribution: 6 is what a cut keeps by the length of its prefix, 10
loading and clustering, 11 searches and their two phases by number of queries.
Scans and the B+tree get 16 queries at most, as each takes as long. All is in
memory: some 130 bytes a point while the structures are made.";

/// How `bench gist` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = GIST_EXAMPLES)]
pub struct GistArgs {
    /// What to measure; by default everything
    #[arg(long = "case", value_enum, value_name = "CASE", num_args = 1..)]
    pub cases: Vec<GistCase>,
    /// How many boxes
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(100..=1 << 30))]
    pub boxes: u32,
    /// How many queries a run asks
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(16..=1 << 24))]
    pub queries: u32,
    /// Measure bulk loads and batches with so many threads as well; by default as many as there are cores
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// The cases of `bench gist`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum GistCase {
    /// All boxes at once
    Load,
    /// Boxes one by one, and ranges after them; a fifth of the boxes
    Insert,
    /// Ranges one by one and in batches
    Range,
    /// The ten nearest of a point
    Nearest,
    /// A batch beside descents by slots and queries, and its phases: figures 4 to 6
    Batches,
    /// Batches of many sizes as the scheduler decides, and its regret
    Scheduler,
}

impl GistArgs {
    /// The cases asked for, or all.
    pub(super) fn chosen_cases(&self) -> &[GistCase] {
        if self.cases.is_empty() { GistCase::value_variants() } else { &self.cases }
    }

    /// One thread, and more if they are to be measured as well.
    pub(super) fn thread_counts(&self) -> Vec<NonZero<usize>> {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let most =
            self.threads.map_or_else(cores, |threads| NonZero::new(threads.into()).unwrap_or(NonZero::<usize>::MIN));
        let mut counts = vec![NonZero::<usize>::MIN, most];
        counts.dedup();
        counts
    }
}

/// How `bench bwd` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = BWD_EXAMPLES)]
pub struct BwdArgs {
    /// How many points
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(100..=1 << 30))]
    pub points: u32,
    /// The memory of prefixes and suffixes, such as 512kB or 16MB
    #[arg(long, value_name = "SIZE", default_value = "2MB", value_parser = budget)]
    pub budget: usize,
    /// How many queries are asked together; several numbers measure each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16,128,2048",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub queries: Vec<u32>,
    /// How often each figure is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Reads a size in bytes.
fn budget(text: &str) -> Result<usize, String> {
    let bytes = sql::parse_memory_limit(text)?.ok_or("columns need a budget: give a size, such as 16MB")?;
    usize::try_from(bytes).map_err(|_| "more than this machine can address".to_owned())
}
