//! What all benchmarks share: progress, errors, and the one form of a JSON line.
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Told how far a long stage has come.
pub trait Progress: Sync {
    /// A stage begins that will go through `total` steps.
    fn start(&self, stage: &str, total: u64);
    /// So many steps more are done.
    fn advance(&self, count: u64);
    /// Something worth keeping in sight while the stage goes on.
    fn tell(&self, note: &str);
    /// The stage is over; `note` is worth keeping in sight.
    fn finish(&self, note: &str);
}

/// Tells nobody.
pub struct Quiet;

impl Progress for Quiet {
    fn start(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _count: u64) {}
    fn tell(&self, _note: &str) {}
    fn finish(&self, _note: &str) {}
}

/// Why a benchmark did not come to its end.
#[derive(Debug)]
pub enum BenchError {
    /// The engine refused something.
    Engine(engine::Error),
    /// A statement failed; its name and why.
    Sql(String, Box<sql::SqlError>),
    /// The output does not take more.
    Output(io::Error),
    /// What was measured is wrong, or can't be measured.
    Failed(String),
}

impl std::fmt::Display for BenchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BenchError::Engine(error) => error.fmt(f),
            BenchError::Sql(name, error) => write!(f, "{name}: {error}"),
            BenchError::Output(error) => error.fmt(f),
            BenchError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<engine::Error> for BenchError {
    fn from(error: engine::Error) -> BenchError {
        BenchError::Engine(error)
    }
}

impl From<io::Error> for BenchError {
    fn from(error: io::Error) -> BenchError {
        BenchError::Output(error)
    }
}

/// One measured value as `--json` prints it, its fields in the order in which they are written.
#[derive(Serialize)]
pub(crate) struct Line<'a> {
    pub(crate) bench: &'a str,
    pub(crate) case: &'a str,
    pub(crate) metric: &'a str,
    pub(crate) value: f64,
    pub(crate) unit: &'a str,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) runs: usize,
    /// What was measured beside it in the same command.
    pub(crate) baseline: Option<&'a str>,
    /// Ours over the baseline's, greater than 1 = ours better.
    pub(crate) ratio: Option<f64>,
}

impl Line<'_> {
    /// Writes the line.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", serde_json::to_string(self)?)
    }
}

/// The folder of a benchmark's files, removed at the end.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A folder in `parent`, or where the program was started, for the benchmark of this name.
    pub(crate) fn new(parent: Option<PathBuf>, bench: &str) -> Result<Scratch, BenchError> {
        let parent = parent.unwrap_or_else(|| PathBuf::from("."));
        let path = parent.join(format!("lstore-bench-{bench}-{}", std::process::id()));
        let fail = |error| BenchError::Failed(format!("cannot make the folder {}: {error}", path.display()));
        std::fs::create_dir_all(&path).map_err(fail)?;
        Ok(Scratch { path })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path in it.
    pub(crate) fn sub(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed is left for people to see.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number that may be negative, rounded, with its digits in groups of three.
pub(crate) fn grouped_signed(number: f64) -> String {
    let sign = if number < 0.0 { "-" } else { "" };
    format!("{sign}{}", grouped(number.abs().round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
