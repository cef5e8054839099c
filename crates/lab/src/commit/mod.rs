//! The benchmark of commits: how many a second and how long each takes, by when they are acknowledged and how many
//! clients there are, beside the rate at which the disk makes small writes durable; and what a log costs beside none.
//!
//! ```text
//! args      the command line
//! clients   threads that commit, and how long each commit took
//! disk      the bound: small writes made durable one by one
//! cost      transactions of `bench micro` with a log that no client waits for, beside those without a log
//! ```
//!
//! All that is compared takes turns, as everywhere (see `crate::figures`).
use std::io::Write;

mod args;
mod clients;
mod cost;
mod disk;

pub use args::CommitArgs;
use clients::{Clients, MODES, mode_name};

use crate::figures::{Better, Figure, Report, in_turns};
use crate::{LabError, Progress, Scratch};

const DISK: &str = "raw fdatasync";

/// Runs the benchmark and writes its report to `out`.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more.
/// - [`LabError::Failed`] if there is no place for the files; [`LabError::Engine`] if the database refuses something.
pub fn bench(args: &CommitArgs, progress: &dyn Progress, out: &mut dyn Write) -> Result<(), LabError> {
    let mut report = Report::new(out, args.json, "commit", &[DISK]);
    let scratch = Scratch::new(args.dir.clone(), "commit")?;
    for &clients in &args.clients {
        commits(args, clients, &scratch, progress, &mut report)?;
    }
    if !args.no_cost {
        cost::bench(args, &scratch, progress, &mut report)?;
    }
    let title = format!("Commits of one small update each, in {}.", scratch.path().display());
    Ok(report.finish(&title)?)
}

/// One number of clients: each mode beside the disk.
fn commits(
    args: &CommitArgs,
    clients: u32,
    scratch: &Scratch,
    progress: &dyn Progress,
    report: &mut Report<'_>,
) -> Result<(), LabError> {
    let case = format!("{clients} client{}", if clients == 1 { "" } else { "s" });
    let database = Clients::new(&scratch.sub(&format!("clients-{clients}")), clients)?;
    let measured = in_turns(progress, args.runs, &case, 1 + MODES.len(), |at, _| match at.checked_sub(1) {
        None => Ok(vec![disk::rate(scratch.path(), args.seconds)?]),
        Some(mode) => Ok(database.commit_for(args.seconds, MODES[mode])?.figures()),
    })?;
    let (disk, measured) = (&measured[0][0], &measured[1..]);
    for (mode, values) in MODES.iter().zip(measured) {
        let case = format!("{case}, {}", mode_name(*mode));
        report.push(Figure::rate(&case, "commits", "/s", &values[0]).beside(DISK, disk))?;
        for ((metric, _), values) in clients::PERCENTILES.iter().zip(&values[1..]) {
            report.push(Figure::new(&case, metric, "us", Better::Less, values))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Quiet;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: CommitArgs,
    }

    #[test]
    fn every_mode_has_a_rate_beside_the_disk_and_three_percentiles() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().to_str().unwrap();
        let Command { args } = Command::parse_from(["commit", "--dir", dir, "--seconds", "0.02", "--runs", "2"]);
        let mut out = Vec::new();
        let mut report = Report::new(&mut out, true, "commit", &[DISK]);
        let scratch = Scratch::new(args.dir.clone(), "commit").unwrap();
        commits(&args, 3, &scratch, &Quiet, &mut report).unwrap();
        report.finish("").unwrap();
        drop(scratch);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), MODES.len() * 4);
        for lines in lines.chunks(4) {
            assert_eq!((&lines[0]["baseline"], &lines[0]["metric"]), (&DISK.into(), &"commits".into()));
            let value = |at: usize| lines[at]["value"].as_f64().unwrap();
            assert!(value(0) > 0.0 && lines[0]["ratio"].as_f64().unwrap() > 0.0);
            assert!(0.0 < value(1) && value(1) <= value(2) && value(2) <= value(3), "{lines:?}");
        }
    }
}
