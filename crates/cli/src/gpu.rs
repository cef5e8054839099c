//! The benchmark of the operators for graphics processors, which is crate `gpu`'s: here it gets its command line.
use std::io;
use std::sync::Arc;

use ::gpu::bench::Size;
use ::gpu::bench::command::{self, CommandError, Options, Subject};
use clap::Args;
use engine::SearchDevice;
use lab::LabError;

/// How `bench gpu` runs.
#[derive(Args, Clone, Debug)]
pub struct GpuArgs {
    /// What is measured; `contention` alone needs no device
    #[arg(long = "case", num_args = 1.., value_parser = subject, default_values = names())]
    pub subjects: Vec<Subject>,
    /// Run everything once on inputs that say nothing about speed
    #[arg(long)]
    pub small: bool,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
    /// A file for all figures, with the device and its driver
    #[arg(long, value_name = "FILE")]
    pub out: Option<String>,
    /// The day, for the file
    #[arg(long, default_value = "")]
    pub date: String,
    /// The commit of the sources, for the file
    #[arg(long, default_value = "")]
    pub commit: String,
}

fn names() -> Vec<&'static str> {
    Subject::ALL.into_iter().map(Subject::name).collect()
}

fn subject(name: &str) -> Result<Subject, String> {
    Subject::of(name).ok_or_else(|| format!("none of {}", names().join(", ")))
}

/// The device for benchmarks of searches, if there is one whose times mean something; its name goes to standard error.
pub fn for_searches() -> Option<Arc<dyn SearchDevice>> {
    let offload = devices::open().ok().filter(|offload| !offload.facts().is_emulated)?;
    eprintln!("with the device {}", offload.facts());
    Some(offload.searches("bench", "bench", true))
}

/// Runs the benchmark and writes its report to standard output.
pub fn bench(args: &GpuArgs) -> Result<(), LabError> {
    let options = Options {
        size: if args.small { Size::Small } else { Size::Full },
        only: None,
        is_json: args.json,
        file: args.out.clone(),
        date: args.date.clone(),
        commit: args.commit.clone(),
    };
    command::measure(&args.subjects, &options, &mut io::stdout().lock()).map_err(|error| match error {
        CommandError::Output(error) => LabError::Output(error),
        CommandError::Device(_) | CommandError::File(_) | CommandError::Emulated => LabError::Failed(error.to_string()),
    })
}
