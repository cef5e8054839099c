//! How many instructions the server takes from one message to the next, counted by valgrind where that is installed: a prepared `SELECT` by
//! key, a range of 10 rows, one of 10 texts in their order, an `UPDATE` and an `INSERT` by key, each bound, run and synchronised, as in
//! `examples/messages`.
//!
//! The bounds are some per cent above what was counted when they were set. A change that makes the way shorter lowers them.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Instructions of each statement, with the compiler's optimisation and without.
const BOUNDS: [(&str, u64, u64); 5] = [
    ("SELECT by key", 14_000, 69_000),
    ("a range of 10", 24_000, 158_000),
    ("10 texts, sorted", 43_000, 195_000),
    ("UPDATE by key", 15_000, 89_000),
    ("INSERT by key", 16_500, 104_000),
];

/// Runs of each statement that are counted.
const RUNS: u64 = 100;

/// The example, which is built with the tests.
fn example() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let path = own.parent()?.parent()?.join("examples/messages");
    path.exists().then_some(path)
}

/// What was counted in each part of the example; `None` where there is nothing to count with.
fn counted(directory: &Path) -> Option<Vec<u64>> {
    let out = directory.join("part");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", out.display())])
        .args(["--toggle-collect=server::connection::Connection::serve", "--dump-after=messages::phase"])
        .arg(example()?)
        .arg(RUNS.to_string())
        .output()
        .ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let part = |number: usize| {
        let text = fs::read_to_string(out.with_extension(number.to_string())).ok()?;
        text.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
    };
    (1..=2 * BOUNDS.len()).map(part).collect()
}

#[test]
fn the_way_from_message_to_message_stays_as_short_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let Some(parts) = counted(directory.path()) else {
        println!("not counted: valgrind or the example is not there");
        return;
    };
    // In the first round nothing is known of the statements.
    for ((name, release, debug), part) in BOUNDS.into_iter().zip(&parts[BOUNDS.len()..]) {
        let (instructions, most) = (part / RUNS, if cfg!(debug_assertions) { debug } else { release });
        println!("{name}: {instructions} instructions");
        assert!(instructions > 0 && instructions <= most, "{name}: {instructions} instructions, {most} at most");
    }
}
