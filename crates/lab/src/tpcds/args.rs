//! How `bench tpcds` runs: its part of the command line.
use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  lstore bench tpcds                      scale factor 1, in memory
  lstore bench tpcds --sf 0.1 --dir data  in directory data, loaded once
  lstore bench tpcds --only 14,23         two of the queries
  lstore bench tpcds --json > tpcds.jsonl  one JSON object a line

The first run fetches the generator of the rows (Java 17 and Maven make it run), DuckDB and the queries (packages of Python)
over the network. What it fetches and makes is kept in DIR.beside, or among your caches.";

/// How `bench tpcds` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct TpcdsArgs {
    /// The scale factor: 1 is about 19.6 million rows
    #[arg(long, default_value_t = 1.0, value_parser = scale_factor)]
    pub sf: f64,
    /// The directory of the database, made if it is missing; without it the database lives in memory
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Throw away complete TPC-DS tables of another scale factor found in DIR, instead of refusing to go on
    #[arg(long)]
    pub reload: bool,
    /// How often each query runs in each of the two databases; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Run these queries only, by their numbers
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=99))]
    pub only: Vec<u32>,
    /// A Python that has the package duckdb, instead of an environment made for it
    #[arg(long, value_name = "PROGRAM")]
    pub python: Option<PathBuf>,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Reads a scale factor of which data can be made.
fn scale_factor(text: &str) -> Result<f64, String> {
    let sf = text.parse::<f64>().map_err(|_| "not a number".to_owned())?;
    match (0.01..=100.0).contains(&sf) {
        true => Ok(sf),
        false => Err("a scale factor is a number from 0.01 to 100".to_owned()),
    }
}
