//! The figures of `lstore bench sim` without the database around it: builds in seconds.
//!
//! `cargo run --release -p lstore-sim --example figures -- tle-1 tle-4`, or without names all of them. `traces=FILE` replays recorded
//! transactions; `calibrate` sets the model beside this computer.

use sim::calibration::{CalibrationSize, calibrate};
use sim::figures::{Scale, entries, entry};
use sim::instructions::decode;

fn main() {
    let (options, names): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|name| name.contains('='));
    let mut scale = Scale::default();
    for file in options.iter().filter_map(|option| option.strip_prefix("traces=")) {
        let read = std::fs::read(file).map_err(|why| why.to_string());
        match read.and_then(|bytes| decode(&bytes).map_err(|why| why.to_string())) {
            Ok(traces) => scale.traces = Some(traces.into()),
            Err(why) => eprintln!("{file}: {why}"),
        }
    }
    if names.iter().any(|name| name == "calibrate") {
        println!("{}", calibrate(&CalibrationSize::FULL, scale.seed));
    }
    for entry in entries().filter(|entry| names.is_empty() || names.iter().any(|name| name == entry.name)) {
        println!("{}: {}\n", entry.name, (entry.make)(&scale));
    }
    for name in names.iter().filter(|name| entry(name).is_none() && *name != "calibrate") {
        eprintln!("there is no figure {name}");
    }
}
