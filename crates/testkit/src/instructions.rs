//! How many instructions a part of a program takes, counted by valgrind where that is installed, so that a change that makes it longer
//! does not go unnoticed. Counts are the same each time, which times are not.
use std::path::PathBuf;
use std::process::Command;

/// Memory is copied and cleared by plain instructions, of which as many are counted as are executed. One that does all of it, as the C
/// library would take for large memory, valgrind counts by the byte.
const TUNABLES: &str = "glibc.cpu.x86_rep_movsb_threshold=100000000:glibc.cpu.x86_rep_stosb_threshold=100000000";

/// An example of the crate whose test is running: it is built with the tests.
fn example(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let path = own.parent()?.parent()?.join("examples").join(name);
    path.exists().then_some(path)
}

/// The instructions that an example with these arguments executes within its functions `counted*`; `None`, and a line that says so, where
/// valgrind or the example is not there.
///
/// # Panics
/// If the example fails.
#[must_use]
pub fn counted(name: &str, arguments: &[String]) -> Option<u64> {
    let count = || {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", &format!("--toggle-collect={name}::counted*")])
            .arg(example(name)?)
            .args(arguments)
            .env("GLIBC_TUNABLES", TUNABLES)
            .output()
            .ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find_map(|line| line.split("Collected :").nth(1));
        line.and_then(|number| number.trim().parse().ok())
    };
    let counted = count();
    if counted.is_none() {
        println!("not counted: valgrind or the example is not there");
    }
    counted
}
