//! The `lstore` program. Everything it does is in the library `cli`.
#![forbid(unsafe_code)]
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(std::env::args_os())
}
