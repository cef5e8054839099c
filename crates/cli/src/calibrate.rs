//! Calibrations, which are `lab`'s: here they get the database, a progress bar and standard output.
use std::io;

use engine::Database;
use lab::LabError;
use lab::calibrate::CalibrateArgs;
use lab::snapshots::SnapshotCase;

use crate::args::{Calibrate, Calibrated};
use crate::opening::open;
use crate::progress::BenchProgress;

/// Calibrates, and writes what was found to standard output.
pub(crate) fn run(args: Calibrate) -> Result<(), LabError> {
    match args.subject {
        None => cost_model(&args.model),
        Some(Calibrated::Snapshots(mut args)) => {
            if args.cases.is_empty() {
                args.cases = vec![SnapshotCase::Choice];
            }
            lab::snapshots::bench(&args, &BenchProgress::on_stderr(), &mut io::stdout().lock())
        }
    }
}

/// Calibrates the cost model.
fn cost_model(args: &CalibrateArgs) -> Result<(), LabError> {
    let db = match &args.dir {
        // Opening a directory would make a database of it.
        Some(dir) if !Database::is_in(dir) => {
            return Err(LabError::Failed(format!("there is no database in {}", dir.display())));
        }
        Some(dir) if args.workload.is_some() || !args.dry_run => Some(open(Some(dir)).map_err(LabError::Failed)?),
        _ => None,
    };
    lab::calibrate::calibrate(args, db.as_ref(), &BenchProgress::on_stderr(), &mut io::stdout().lock())
}
