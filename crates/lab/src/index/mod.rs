//! The benchmark of the indexes: our trees beside other people's, and the figures of the KISS-Tree's and tsx-index's papers.
//!
//! ```text
//! args       the command line
//! beside     the KISS-Tree and the B+tree beside their peers: inserts, reads, both at once, memory
//! kiss       the paper's figures about tree sizes, updates and batches (5, 6, 7, 9, 10, 11)
//! acquire    what each latch costs by itself, and throttling by socket around it
//! latches    what each latch costs around an index, from no inserts to nothing but inserts (tsx-index, figures 3 to 6, 9 and 10)
//! footprint  the cache lines of a lookup in the Delta Storage Index (tsx-index, section 5.1)
//! ```
//!
//! Structures that are compared take turns, and each turn builds its index anew, so that only one is in memory at a
//! time. Every read is checked by the sum of the values found.
use std::ffi::OsString;
use std::io::Write;
use std::process::Command;

use clap::ValueEnum;
use clap::builder::PossibleValue;

mod acquire;
mod args;
mod beside;
mod footprint;
mod kiss;
mod latches;

pub use args::{Case, IndexArgs};

use crate::figures::{Report, grouped};
use crate::peers::{Contestant, Peer};
use crate::workload::{Order, PickedKeys, side_by_side};
use crate::{LabError, Progress};

/// Runs the benchmark and writes its report to `out`. `itself` are the words of the command line before its arguments, the
/// program first: memory is measured in a process of its own. Without them there are no figures of memory.
///
/// # Errors
/// [`LabError::Output`] if `out` does not take more; [`LabError::Failed`] if a contestant reads a wrong sum, gets no
/// address space, or its memory cannot be measured.
pub fn bench(
    args: &IndexArgs,
    itself: Option<&[OsString]>,
    progress: &dyn Progress,
    out: &mut dyn Write,
) -> Result<(), LabError> {
    if let (Some(peer), [order, ..], [count, ..]) = (args.memory_of, &*args.orders, &*args.keys) {
        return Ok(writeln!(out, "{}", beside::grown_bytes(peer, *order, *count)?)?);
    }
    let mut report = Report::new(out, args.json, "index", &[]);
    for case in args.chosen_cases() {
        let mut bench = Bench { args, itself, progress, report: &mut report };
        match case {
            Case::Kiss => beside::kiss(&mut bench)?,
            Case::Btree => beside::bplus(&mut bench)?,
            Case::Sizes => kiss::sizes(&mut bench)?,
            Case::Updates => kiss::updates(&mut bench)?,
            Case::Batches => kiss::batches(&mut bench)?,
            Case::Acquire => acquire::latches(&mut bench)?,
            Case::Latches => latches::bplus(&mut bench)?,
            Case::DeltaLatches => latches::delta(&mut bench)?,
            Case::DeltaLines => footprint::lines(&mut bench)?,
        }
    }
    let title = format!("Indexes: keys of 32 bits, values of 64 bits, {} operations a run.", grouped(args.operations));
    Ok(report.finish(&title)?)
}

/// The input of every case.
struct Bench<'a, 'w> {
    args: &'a IndexArgs,
    itself: Option<&'a [OsString]>,
    progress: &'a dyn Progress,
    report: &'a mut Report<'w>,
}

impl Bench<'_, '_> {
    /// The memory of a contestant for each key, in bytes. Not a number where it can't be measured.
    fn memory_of(&self, peer: Peer, order: Order, count: u32) -> Result<f64, LabError> {
        let Some([program, arguments @ ..]) = self.itself else { return Ok(f64::NAN) };
        let name_of =
            |value: Option<PossibleValue>| value.map_or_else(String::new, |value| value.get_name().to_owned());
        let output = Command::new(program)
            .args(arguments)
            .args(["--memory-of", &name_of(peer.to_possible_value())])
            .args(["--order", &name_of(order.to_possible_value())])
            .args(["--keys", &count.to_string()])
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let bytes = text.trim().parse::<f64>().map_err(|_| {
            let told = String::from_utf8_lossy(&output.stderr);
            LabError::Failed(format!("the process that measures the memory of {} ended: {told}", peer.name()))
        })?;
        Ok(bytes / f64::from(count))
    }
}

/// Million operations a second.
fn rate(operations: usize, seconds: f64) -> f64 {
    operations as f64 / seconds.max(1e-9) / 1e6
}

/// A number of keys for people.
fn count_name(count: u32) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 if count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        10_000..10_000_000 => format!("{}K", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// A number of threads for people.
fn threads_name(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// Has threads read what was picked for them; million reads a second.
fn read_rate(
    name: &str,
    picks: &[PickedKeys],
    contestant: &dyn Contestant,
    read: impl Fn(&dyn Contestant, &[u64]) -> u64 + Sync,
) -> Result<f64, LabError> {
    let (seconds, sums) = side_by_side(picks.len(), |thread| read(contestant, &picks[thread].keys));
    check(name, picks.iter().map(|picked| picked.sum), sums)?;
    Ok(rate(picks.iter().map(|picked| picked.keys.len()).sum(), seconds))
}

/// The sums of what was read must be those of the values that the keys have.
fn check(name: &str, expected: impl Iterator<Item = u64>, found: Vec<u64>) -> Result<(), LabError> {
    if expected.eq(found) {
        return Ok(());
    }
    Err(LabError::Failed(format!("{name} gave wrong answers: the sum of the values read is not that of the keys")))
}

#[cfg(test)]
mod tests;
