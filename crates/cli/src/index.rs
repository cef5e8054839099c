//! The benchmark of the indexes, which is `lab`'s: here it gets a progress bar and standard output.
use std::env;
use std::io;

use lab::LabError;
use lab::index::IndexArgs;

use crate::progress::BenchProgress;

/// Runs the benchmark and writes its report to standard output.
pub fn bench(args: &IndexArgs) -> Result<(), LabError> {
    let program = env::current_exe()?.into_os_string();
    let itself = [program, "bench".into(), "index".into()];
    lab::index::bench(args, Some(&itself), &BenchProgress::on_stderr(), &mut io::stdout().lock())
}
