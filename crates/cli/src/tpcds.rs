//! The TPC-DS benchmark, which is `lab`'s: here it gets a database, a progress bar and standard output.
use std::io;

use lab::LabError;
use lab::tpcds::TpcdsArgs;

use crate::progress::BenchProgress;
use crate::run::open;

/// Runs the benchmark and writes its report to standard output.
pub fn bench(args: &TpcdsArgs) -> Result<(), LabError> {
    let db = open(args.dir.as_deref()).map_err(LabError::Failed)?;
    lab::tpcds::bench(args, &db, &BenchProgress::on_stderr(), &mut io::stdout().lock())
}
