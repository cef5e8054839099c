//! `gpu-bench`: checks and measures the kernels on the device of this machine. It needs nothing but the driver.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use gpu::Device;
use gpu::bench::command::{self, Options, Subject};
use gpu::bench::{Size, check};

const USAGE: &str = "usage: gpu-bench properties
       gpu-bench check [SUBJECT] [FIRST_SEED] [LAST_SEED]   every kernel against its twin on the CPU
       gpu-bench measure roofs|micro|join|group|search|contention|all [--small] [--only TEXT] [--json]
                         [--out FILE] [--date DATE] [--commit COMMIT]

contention needs no device: gpu-contention's Table 1 and Figures 3, 4, 9, bitwise-distribution's Figure 6.
--only measures joins and groupings whose names begin with TEXT.
--small runs everything once on inputs that say nothing about speed.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["properties"] => properties(),
        ["check", rest @ ..] => check(rest),
        ["measure", subject, rest @ ..] => options_of(rest).and_then(|options| measure(subject, &options)),
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

fn open() -> Result<Arc<Device>, String> {
    Device::open(0).map_err(|error| error.to_string())
}

fn properties() -> Result<(), String> {
    println!("{:#?}", open()?.properties());
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
    let device = open()?;
    for seed in first..=last {
        check::run(&device, subject, seed)?;
    }
    println!("{}: seeds {first} to {last} agree with the CPU", device.properties().name);
    Ok(())
}

fn options_of(arguments: &[&str]) -> Result<Options, String> {
    let (date, commit) = (String::new(), String::new());
    let mut options = Options { size: Size::Full, only: None, is_json: false, file: None, date, commit };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().map(|text| (*text).to_owned()).ok_or_else(|| USAGE.to_owned());
        match *argument {
            "--small" => options.size = Size::Small,
            "--only" => options.only = Some(value()?),
            "--json" => options.is_json = true,
            "--out" => options.file = Some(value()?),
            "--date" => options.date = value()?,
            "--commit" => options.commit = value()?,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

fn measure(subject: &str, options: &Options) -> Result<(), String> {
    let subjects = match (subject, Subject::of(subject)) {
        ("all", _) => Subject::ALL.to_vec(),
        (_, Some(subject)) => vec![subject],
        (_, None) => return Err(USAGE.to_owned()),
    };
    command::measure(&subjects, options, &mut io::stdout().lock()).map_err(|error| error.to_string())
}
