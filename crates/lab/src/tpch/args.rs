//! How `bench tpch` runs: its part of the command line.
use std::path::PathBuf;

use clap::Args;

use super::tables::check_scale_factor;
use crate::beside::RivalKind;

const EXAMPLES: &str = "\
Examples:
  lstore bench tpch                      scale factor 0.1, in memory
  lstore bench tpch --sf 1 --dir data    in directory data, loaded once
  lstore bench tpch --queries 1,6,18     three of the queries
  lstore bench tpch --json > tpch.jsonl  one JSON object a line
  lstore bench tpch --beside duckdb      the queries here and in DuckDB, in turns, answers compared
  lstore bench tpch --beside datafusion  beside the planner that lstore builds upon, on tables of its own";

/// How `bench tpch` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct TpchArgs {
    /// The scale factor: 1 is about 8.7 million rows
    #[arg(long, default_value_t = 0.1, value_parser = scale_factor)]
    pub sf: f64,
    /// The directory of the database, made if it is missing; without it the database lives in memory
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Throw away complete TPC-H tables of another scale factor found in DIR, instead of refusing to go on
    #[arg(long)]
    pub reload: bool,
    /// Some of the queries alone: their numbers, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", value_parser = clap::value_parser!(u32).range(1..=22))]
    pub queries: Vec<u32>,
    /// How often each query runs, idle and under updates; the median counts: 3, or 5 beside another database
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// Run the queries in another database as well, in turns, on one thread and on as many as there are cores, and compare
    /// the answers. What it needs is kept in DIR.beside, or among your caches
    #[arg(long, value_enum, value_name = "DATABASE")]
    pub beside: Option<RivalKind>,
    /// With --beside: measure once more while transactions change the data here at full speed, and while they change a copy of it: what
    /// the queries lose beside the copy is the machine's, such as its memory's
    #[arg(long, requires = "beside")]
    pub writer: bool,
    /// With --beside: a Python that has the other database's package, instead of an environment made for it
    #[arg(long, requires = "beside", value_name = "PROGRAM")]
    pub python: Option<PathBuf>,
    /// How many threads change the data
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub writers: u32,
    /// How often the consistency of orders with their lines is checked while the writers run
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub checks: u32,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
    /// The command that opens a shell on DIR, as told at the end
    #[arg(long, value_name = "COMMAND", hide = true)]
    pub shell_command: Option<String>,
}

impl TpchArgs {
    /// The numbers of the queries that run.
    pub(super) fn query_numbers(&self) -> Vec<usize> {
        match &self.queries[..] {
            [] => (1..=22).collect(),
            chosen => chosen.iter().map(|number| *number as usize).collect(),
        }
    }

    /// How often each query runs where the benchmark runs alone.
    pub(super) fn runs_alone(&self) -> u32 {
        self.runs.unwrap_or(3)
    }

    /// How often each query runs in each of two databases.
    pub(super) fn runs_beside(&self) -> u32 {
        self.runs.unwrap_or(5)
    }
}

/// Reads a scale factor of which data can be made.
///
/// # Errors
/// What is wrong with the text, or the number.
pub(crate) fn scale_factor(text: &str) -> Result<f64, String> {
    let sf = text.parse::<f64>().map_err(|_| "not a number".to_owned())?;
    check_scale_factor(sf)?;
    Ok(sf)
}
