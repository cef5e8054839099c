//! The figures of `lstore bench sim` without the database around it: builds in seconds.
//!
//! `cargo run --release -p lstore-sim --example figures -- tle-1 tle-4`, or without names all of them.

use sim::figures::{Scale, entries, entry};

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let scale = Scale::default();
    for entry in entries().filter(|entry| names.is_empty() || names.iter().any(|name| name == entry.name)) {
        println!("{}: {}\n", entry.name, (entry.make)(&scale));
    }
    for name in names.iter().filter(|name| entry(name).is_none()) {
        eprintln!("there is no figure {name}");
    }
}
