//! How `bench costs` runs: its part of the command line.
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::seconds::seconds;
use crate::tpch;

const EXAMPLES: &str = "\
Examples:
  lstore bench costs                          all figures, small: a minute or two
  lstore bench costs --figure table1          the traces of sorts and of a hash join alone
  lstore bench costs --sf 1 --seeds 25 --seconds 3600 --dir /mnt/disk
  lstore bench costs --json > costs.jsonl     one JSON object a line

The database is in a folder, and before each query all of its pages are evicted,
so that a query reads from there what it asks for. The optimizer takes an
operator to have the memory of --operator-memory. Above 1 the asymmetric model
with calibrated coefficients is the better.";

/// A figure or table of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PaperFigure {
    /// Figures 1 and 2: the queries by model, coefficients and seed
    Figure1,
    /// Figure 3 and Table 4: the course of the calibration, and what it found
    Figure3,
    /// Table 1: what sorts and a hash join write and read, in order and anywhere
    Table1,
}

/// How `bench costs` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CostArgs {
    /// The figures; by default all
    #[arg(long = "figure", value_enum, num_args = 1..,
          default_values_t = [PaperFigure::Figure1, PaperFigure::Figure3, PaperFigure::Table1])]
    pub figures: Vec<PaperFigure>,
    /// The scale factor of TPC-H; the paper has 5
    #[arg(long, default_value_t = 0.01, value_parser = tpch::scale_factor)]
    pub sf: f64,
    /// How many seeds change the queries; the paper has 25
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// How long each of the two calibrations may take
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub seconds: Duration,
    /// Iterations of a calibration, if it is to end before its time
    #[arg(long, value_name = "COUNT", default_value_t = u64::MAX, hide_default_value = true)]
    pub iterations: u64,
    /// The memory that the optimizer takes an operator to have
    #[arg(long, default_value = "256kB")]
    pub operator_memory: String,
    /// The pages of memory of a traced sort or hash join; its input has twenty times as many
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=1 << 20))]
    pub trace_pages: u32,
    /// Where to put the files, in a folder of their own that is removed at the end; by default here
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}
