//! The benchmark of the indexes, which is `lab`'s: here it gets a progress bar and standard output.
use std::io;

use lab::index::IndexArgs;

use crate::bench::BenchError;
use crate::progress::BenchProgress;

/// Runs the benchmark and writes its report to standard output.
pub fn bench(args: &IndexArgs) -> Result<(), BenchError> {
    Ok(lab::index::bench(args, &BenchProgress::on_stderr(), &mut io::stdout().lock())?)
}
