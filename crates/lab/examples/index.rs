//! `lstore bench index` without the database around it: builds in seconds.
//!
//! `cargo run --release -p lstore-lab --example index -- --case kiss --keys 1000000`
use std::io;
use std::process::ExitCode;

use clap::Parser;
use lab::index::IndexArgs;

/// The benchmark of the indexes.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: IndexArgs,
}

/// Tells stages on standard error.
struct Stages;

impl lab::Progress for Stages {
    fn start(&self, stage: &str, _total: u64) {
        eprintln!("{stage} ...");
    }

    fn advance(&self, _count: u64) {}

    fn tell(&self, note: &str) {
        eprintln!("{note}");
    }

    fn finish(&self, note: &str) {
        eprintln!("{note}");
    }
}

fn main() -> ExitCode {
    let Command { args } = Command::parse();
    let itself = std::env::args_os().take(1).collect::<Vec<_>>();
    match lab::index::bench(&args, Some(&itself), &Stages, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
