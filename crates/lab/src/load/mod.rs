//! The benchmark of loading: rows a second from Arrow batches, Parquet and CSV, beside a hash map of rows and beside what the
//! disk takes.
//!
//! ```text
//! args     the command line
//! numbers  rows of ten whole numbers, as Arrow batches
//! files    lineitem of TPC-H, from files and as Arrow batches
//! ```
//!
//! All that is compared takes turns, as everywhere (see `crate::figures`).
use std::io::Write;

mod args;
mod files;
mod numbers;

pub use args::LoadArgs;

use crate::figures::Report;
use crate::{LabError, Progress, Scratch};

/// A hash map of rows, which forgets everything at the end.
const HASH_MAP: &str = "hash map";

/// The bytes of the CSV file, written and made durable.
const DISK: &str = "raw write";

/// Runs the benchmark and writes its report to `out`.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more.
/// - [`LabError::Failed`] if there is no place for the files; [`LabError::Engine`] and [`LabError::Sql`] if the database refuses
///   something.
pub fn bench(args: &LoadArgs, progress: &dyn Progress, out: &mut dyn Write) -> Result<(), LabError> {
    let mut report = Report::new(out, args.json, "load", &[HASH_MAP, DISK]);
    let scratch = Scratch::new(args.dir.clone(), "load")?;
    numbers::bench(args, &scratch, progress, &mut report)?;
    files::bench(args, &scratch, progress, &mut report)?;
    let title = format!("Loading, in {}.", scratch.path().display());
    Ok(report.finish(&title)?)
}

/// A million rows a second.
fn rate(rows: usize, seconds: f64) -> f64 {
    rows as f64 / seconds.max(1e-9) / 1e6
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Quiet;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: LoadArgs,
    }

    #[test]
    fn every_way_of_loading_has_a_rate_beside_another() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().to_str().unwrap();
        let line = ["load", "--dir", dir, "--rows", "2000", "--sf", "0.01", "--runs", "2", "--json"];
        let Command { args } = Command::parse_from(line);
        let mut out = Vec::new();
        bench(&args, &Quiet, &mut out).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let rates: Vec<_> = lines.iter().filter(|line| line["metric"] == "rows").collect();
        assert_eq!(rates.len(), 2 + 3, "{text}");
        for line in rates {
            assert!(line["value"].as_f64().unwrap() > 0.0 && line["ratio"].as_f64().unwrap() > 0.0, "{line}");
        }
        assert!(Command::try_parse_from(["load", "--sf", "0"]).is_err());
    }
}
