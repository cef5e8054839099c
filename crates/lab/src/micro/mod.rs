//! The micro benchmark of the L-Store paper (section 6.1): short transactions on a table of 10 columns under three
//! levels of contention, SUM over a column, and both at once, beside bounds that were measured in turns with them.
//!
//! ```text
//! workload     rows and transactions, from a seed
//! contestant   what holds the table: lstore, and the bounds without a database
//! drive        threads that run transactions and sums on a contestant for a while
//! store        the database for other benchmarks
//! cases        which of it makes which figure; levels are those about isolation, keepup is the long one
//! ```
use std::io::Write;

mod args;
mod bounds;
mod cases;
mod contestant;
mod drive;
mod keepup;
mod levels;
mod lstore;
mod process;
mod store;
mod workload;

pub use args::MicroArgs;
pub(crate) use store::Store;

use crate::figures::{Report, grouped};
use crate::{LabError, Progress};

/// Runs the benchmark and writes its report to `out`.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more.
/// - [`LabError::Failed`] if a transaction is to have no statement, or contestants do not agree; [`LabError::Engine`] if the
///   database refuses something.
pub fn bench(args: &MicroArgs, progress: &dyn Progress, out: &mut dyn Write) -> Result<(), LabError> {
    if args.reads + args.updates == 0 {
        return Err(LabError::Failed("a transaction needs a statement: --reads or --updates above 0".to_owned()));
    }
    let mut report = Report::new(out, args.json, "micro", &contestant::Kind::RIVALS);
    for case in args.chosen_cases() {
        cases::Bench { args, progress, report: &mut report }.run(*case)?;
    }
    let title = format!(
        "Micro benchmark: {} rows of 10 bigint; a transaction is {} reads and {} updates of {} columns.",
        grouped(args.rows),
        args.reads,
        args.updates,
        args.columns
    );
    Ok(report.finish(&title)?)
}
