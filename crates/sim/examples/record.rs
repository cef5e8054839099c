//! Records the transactions of crate `engine`'s example `oltp` by valgrind's tool lackey, for the figures of migrating threads.
//!
//! ```text
//! cargo run --release -p lstore-sim --example record -- [FILE] [COUNT]      COUNT (12) of each type, to FILE (lstore.traces)
//! lstore bench sim migration-8 --traces lstore.traces
//! ```
//!
//! The program is built first. It says where its marks are and waits for a line, so that nothing is recorded before they are known.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sim::instructions::{Lackey, Trace, encode};

/// Builds the program beside this one.
fn program() -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built =
        Command::new(cargo).args(["build", "--release", "-p", "lstore-engine", "--example", "oltp"]).status()?;
    let path = std::env::current_exe()?.with_file_name("oltp");
    if built.success() && path.exists() { Ok(path) } else { Err(format!("{} was not built", path.display()).into()) }
}

fn record(count: &str) -> Result<Vec<Trace>, Box<dyn Error>> {
    let mut child = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", "--basic-counts=no"])
        .arg(program()?)
        .arg(count)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| format!("valgrind does not start: {why}; install it"))?;
    let (Some(mut input), Some(output), Some(printed)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("valgrind has no pipes".into());
    };
    let marks = OnceLock::new();
    let traces = std::thread::scope(|scope| {
        scope.spawn(|| {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let address = line.strip_prefix("marks at 0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
                match address {
                    Some(address) => {
                        let _known = marks.set(address);
                        let _told = input.write_all(b"go\n");
                    }
                    None => println!("{line}"),
                }
            }
        });
        Lackey::default().read(BufReader::with_capacity(1 << 20, printed), || marks.get().copied())
    })?;
    if child.wait()?.success() { Ok(traces) } else { Err("the program failed under valgrind".into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "lstore.traces".to_owned());
    let traces = record(&arguments.next().unwrap_or_else(|| "12".to_owned()))?;
    let bytes = encode(&traces);
    std::fs::write(&file, &bytes)?;
    let instructions: u64 = traces.iter().map(Trace::instructions).sum();
    println!("{} transactions, {instructions} instructions, {} bytes in {file}", traces.len(), bytes.len());
    Ok(())
}
