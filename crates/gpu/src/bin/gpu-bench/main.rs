//! `gpu-bench`: checks and measures the kernels on the device of this machine. It needs nothing but the driver.

use std::process::ExitCode;

use gpu::Device;
use gpu::bench::check;

const USAGE: &str = "usage: gpu-bench properties
       gpu-bench check [SUBJECT] [FIRST_SEED] [LAST_SEED]    every kernel against its twin on the CPU";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["properties"] => properties(),
        ["check", rest @ ..] => check(rest),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn properties() -> Result<(), String> {
    let device = Device::open(0).map_err(|error| error.to_string())?;
    println!("{:#?}", device.properties());
    Ok(())
}

fn check(arguments: &[&str]) -> Result<(), String> {
    let subject = arguments.first().copied().unwrap_or("");
    let seed = |at: usize, otherwise: u64| match arguments.get(at) {
        Some(text) => text.parse::<u64>().map_err(|_| USAGE.to_owned()),
        None => Ok(otherwise),
    };
    let first = seed(1, 1)?;
    let last = seed(2, first)?;
    let device = Device::open(0).map_err(|error| error.to_string())?;
    for seed in first..=last {
        check::run(&device, subject, seed)?;
    }
    println!("{}: seeds {first} to {last} agree with the CPU", device.properties().name);
    Ok(())
}
