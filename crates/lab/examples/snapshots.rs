//! `lstore bench snapshots` without the shell and the server around it.
//!
//! `cargo run --release -p lstore-lab --example snapshots -- --case choice`
use std::io;
use std::process::ExitCode;

use clap::Parser;
use lab::snapshots::SnapshotArgs;

/// The benchmark of snapshots.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: SnapshotArgs,
}

fn main() -> ExitCode {
    let Command { args } = Command::parse();
    match lab::snapshots::bench(&args, &lab::Quiet, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
