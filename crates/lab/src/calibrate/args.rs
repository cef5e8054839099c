//! How `lstore calibrate` runs: its part of the command line.
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::seconds::seconds;

const EXAMPLES: &str = "\
Examples:
  lstore calibrate                              the disk here and memory: prints settings, stores nothing
  lstore calibrate data                         the disk of data; stores the coefficients in the database there
  lstore calibrate data --workload queries.sql  then anneals them for a minute on the queries of a file
  lstore calibrate data --workload queries.sql --seconds 3600
  lstore calibrate data --dry-run --json        measures only, one JSON object a line

What a search has found is kept in DIR.calibration after each step: the
same command goes on from there if it was interrupted; with another workload,
--seed or --cycle it is refused unless --restart is said. ALTER DATABASE
lstore RESET ALL takes stored coefficients back.";

/// How `lstore calibrate` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CalibrateArgs {
    /// The directory of the database; without it the disk of this folder is measured, and nothing is stored
    pub dir: Option<PathBuf>,
    /// A file of queries, each ended by a semicolon: the coefficients are annealed until these take least time
    #[arg(long, value_name = "FILE", requires = "dir")]
    pub workload: Option<PathBuf>,
    /// How long the search on the workload may take
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub seconds: Duration,
    /// Iterations of the search, if it is to end before its time; those of earlier runs count
    #[arg(long, value_name = "COUNT", default_value_t = u64::MAX, hide_default_value = true)]
    pub iterations: u64,
    /// Iterations from one restart of the search to the next
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub cycle: u64,
    /// Where the search's random numbers begin
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where the state of the search is kept; by default DIR.calibration
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Begin the search anew, whatever an earlier run has found
    #[arg(long)]
    pub restart: bool,
    /// Search for PostgreSQL's symmetric model
    #[arg(long)]
    pub original: bool,
    /// The size of the file by which the disk is measured, in MB
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub device_mb: u32,
    /// Print what is found, and store nothing in the database
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}
