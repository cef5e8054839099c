//! `gpu-bench`: checks and measures the kernels on the device of this machine. It needs nothing but the driver.

use std::process::ExitCode;
use std::sync::Arc;

use gpu::Device;
use gpu::bench::report::{Line, Report};
use gpu::bench::{Size, check, groupings, joins, optimizer, roofs};

const USAGE: &str = "usage: gpu-bench properties
       gpu-bench check [SUBJECT] [FIRST_SEED] [LAST_SEED]   every kernel against its twin on the CPU
       gpu-bench measure roofs|micro|join|group|contention|all [--small] [--json] [--out FILE]
                         [--date DATE] [--commit COMMIT]

contention needs no device. --small runs everything once on inputs that say nothing about speed.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["properties"] => properties(),
        ["check", rest @ ..] => check(rest),
        ["measure", subject, rest @ ..] => Options::of(rest).and_then(|options| measure(subject, &options)),
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

struct Options {
    size: Size,
    is_json: bool,
    file: Option<String>,
    date: String,
    commit: String,
}

impl Options {
    fn of(arguments: &[&str]) -> Result<Self, String> {
        let mut options =
            Self { size: Size::Full, is_json: false, file: None, date: String::new(), commit: String::new() };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().map(|text| (*text).to_owned()).ok_or_else(|| USAGE.to_owned());
            match *argument {
                "--small" => options.size = Size::Small,
                "--json" => options.is_json = true,
                "--out" => options.file = Some(value()?),
                "--date" => options.date = value()?,
                "--commit" => options.commit = value()?,
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(options)
    }
}

fn measure(subject: &str, options: &Options) -> Result<(), String> {
    const SUBJECTS: [&str; 5] = ["roofs", "micro", "join", "group", "contention"];
    if subject != "all" && !SUBJECTS.contains(&subject) {
        return Err(USAGE.to_owned());
    }
    let asks_for = |name: &str| subject == name || subject == "all";
    let device = if subject == "contention" { None } else { Some(open()?) };
    let mut lines = Vec::new();
    if let Some(device) = &device {
        if device.properties().is_emulated && options.size == Size::Full {
            return Err("the emulated device has no times; --small sees whether everything runs".to_owned());
        }
        let told = |error: gpu::GpuError| error.to_string();
        let (found, figures) = roofs::measure(device, options.size).map_err(told)?;
        lines.extend(show(figures, options));
        if asks_for("micro") {
            lines.extend(show(roofs::micro(device, options.size).map_err(told)?, options));
        }
        if asks_for("join") {
            lines.extend(show(joins::measure(device, options.size, found).map_err(told)?, options));
        }
        if asks_for("group") {
            lines.extend(show(groupings::measure(device, options.size, found).map_err(told)?, options));
        }
    }
    if asks_for("contention") {
        lines.extend(show(optimizer::measure(options.size), options));
    }
    let Some(file) = &options.file else { return Ok(()) };
    let properties = device.as_deref().map(Device::properties);
    let report = Report::new(properties, options.date.clone(), options.commit.clone(), &lines);
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    std::fs::write(file, text + "\n").map_err(|error| format!("{file}: {error}"))
}

fn show(lines: Vec<Line>, options: &Options) -> Vec<Line> {
    for line in &lines {
        if options.is_json {
            println!("{}", serde_json::to_string(line).expect("a line of plain fields"));
        } else {
            println!("{line}");
        }
    }
    lines
}
