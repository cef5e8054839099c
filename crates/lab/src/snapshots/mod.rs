//! The benchmark of snapshots of memory, after Šidlauskas, Jensen and Šaltenis, "A Comparison of the Use of Virtual Versus Physical
//! Snapshots for Supporting Update-Intensive Workloads" (DaMoN 2012).
//!
//! ```text
//! args      the command line
//! arrays    arrays of the mechanisms, and words for them
//! parts     what the mechanisms cost apart: beginnings, first updates, queries (figures 1, 2, 4; section 3.3)
//! cycles    snapshots with the updates between them (figures 3 and 5), the choice among mechanisms and its regret (table 1)
//! beside    updates while snapshots are taken by time, beside rivals
//! machine   what the machine has
//! rivals    a plain array, one behind a mutex, chunks behind arc-swap, and a persistent vector
//! ```
//!
//! All that is compared takes turns, as everywhere (see `crate::figures`). Mechanisms that do not run here are told and left out.
mod args;
mod arrays;
mod beside;
mod cycles;
mod machine;
mod parts;
mod rivals;

use std::io::Write;

use snapshot::{Candidate, SnapshotArray};

pub use args::{SnapshotArgs, SnapshotCase};

use arrays::PHYSICAL;

use crate::figures::Report;
use crate::{LabError, Progress};

/// Runs the benchmark and writes its report to `out`.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more.
/// - [`LabError::Failed`] if the system refuses memory or a snapshot.
pub fn bench(args: &SnapshotArgs, progress: &dyn Progress, out: &mut dyn Write) -> Result<(), LabError> {
    let mut report = Report::new(out, args.json, "snapshots", &[PHYSICAL]);
    let is_wanted = |case| args.cases.is_empty() || args.cases.contains(&case);
    let candidates = running_here(progress);
    if is_wanted(SnapshotCase::Machine) {
        machine::machine(&mut report)?;
    }
    if is_wanted(SnapshotCase::Creation) {
        parts::creation(args, &candidates, progress, &mut report)?;
    }
    if is_wanted(SnapshotCase::FirstUpdate) {
        parts::first_update(args, &candidates, progress, &mut report)?;
    }
    if is_wanted(SnapshotCase::Queries) {
        parts::queries(args, &candidates, progress, &mut report)?;
    }
    if is_wanted(SnapshotCase::Cycles) {
        cycles::cycles(args, &candidates, progress, &mut report)?;
    }
    if is_wanted(SnapshotCase::Choice) {
        cycles::choice(args, progress, &mut report)?;
    }
    if is_wanted(SnapshotCase::Beside) {
        beside::beside(args, &candidates, progress, &mut report)?;
    }
    Ok(report.finish("Snapshots of arrays of 64-bit numbers in memory.")?)
}

/// The mechanisms that run here, the physical one first.
fn running_here(progress: &dyn Progress) -> Vec<Candidate> {
    let mut candidates = Candidate::all();
    candidates.retain(|candidate| {
        let tried = SnapshotArray::<u64>::new(1, &candidate.options()).and_then(|array| array.snapshot().map(drop));
        if let Err(reason) = &tried {
            progress.tell(&reason.to_string());
        }
        tried.is_ok()
    });
    candidates
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Quiet;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: SnapshotArgs,
    }

    fn lines(arguments: &str) -> Vec<serde_json::Value> {
        let words = ["snapshots", "--json", "--size-mib", "1", "--runs", "1", "--seconds", "0.05", "--period", "0.02"];
        let Command { args } = Command::parse_from(words.into_iter().chain(arguments.split_whitespace()));
        let mut out = Vec::new();
        bench(&args, &Quiet, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn every_case_has_figures_above_zero_for_every_mechanism_that_runs() {
        let candidates = running_here(&Quiet);
        assert!(lines("--case machine").iter().all(|line| line["value"].as_f64().is_some_and(|value| value > 0.0)));
        for case in ["creation", "first-update", "queries", "beside"] {
            let lines = lines(&format!("--case {case} --threads 1"));
            for candidate in &candidates {
                let name = candidate.name();
                assert!(lines.iter().any(|line| line["case"].as_str().unwrap().ends_with(&name)), "{case}: {name}");
            }
            assert!(lines.iter().all(|line| line["value"].as_f64().unwrap() >= 0.0), "{case}: {lines:?}");
        }
    }

    #[test]
    fn updates_beside_snapshots_are_told_beside_each_rival() {
        let lines = lines("--case beside --threads 2");
        let rivals = lines.iter().filter(|line| line["metric"] == "updates" && !line["baseline"].is_null());
        let rivals: std::collections::BTreeSet<&str> = rivals.filter_map(|line| line["baseline"].as_str()).collect();
        assert_eq!(
            rivals.into_iter().collect::<Vec<_>>(),
            ["arc-swap chunks", "mutex", "persistent vector", "plain array"]
        );
    }

    #[test]
    fn cycles_are_those_of_the_paper_and_a_choice_has_a_regret() {
        let cycles = lines("--case cycles --updates 500");
        for distribution in snapshot::Distribution::ALL {
            let of_it = cycles.iter().filter(|line| line["case"].as_str().unwrap().contains(distribution.name()));
            assert!(of_it.filter(|line| line["metric"] == "cycle").count() >= running_here(&Quiet).len());
        }
        let choices = lines("--case choice --updates 500");
        assert_eq!(choices.iter().filter(|line| line["metric"] == "regret").count(), 7 + 2);
        assert!(choices.iter().all(|line| line["value"].as_f64().unwrap() >= 0.0));
    }
}
