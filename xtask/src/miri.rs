//! The interpreter `miri` over the crates with unsafe code of their own: it finds reads outside of memory, races and broken
//! borrows that the processor lets pass.
//!
//! Not a part of `./test`, as it needs a nightly compiler (`rustup toolchain install nightly --component miri,rust-src`) and some
//! minutes; a workflow runs it every night. The tests are those whose sizes fit an interpreter: `tests/small.rs` of a crate goes
//! once through all that it does, and [`RUNS`] names unit tests beside it. [`FLAGS`] are its settings:
//!
//! | flag | why |
//! |---|---|
//! | `disable-isolation` | clocks, files and random keys come from the system |
//! | `tree-borrows` | the model of borrows that crossbeam's epochs keep to; the older one refuses them |
//! | `permissive-provenance` | the B+tree keeps addresses of nodes in atomic words, and exposes them |
//! | `ignore-leaks` | epochs free memory when threads come by again, not at the end |

use std::path::Path;
use std::process::Command;

use crate::offence::{Offence, Verdict};

/// What is run: arguments of `cargo test`.
const RUNS: [&[&str]; 6] = [
    &["-p", "lstore-sync", "--lib"],
    &["-p", "lstore-index", "--test", "small"],
    &["-p", "lstore-lineage", "--test", "small"],
    &["-p", "lstore-lineage", "--lib", "codec::tests::meta"],
    &["-p", "lstore-snapshot", "--test", "small"],
    &["-p", "lstore-snapshot", "--lib", "gate::tests"],
];

const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks";

/// Runs all of them, also after one has failed.
///
/// # Errors
/// Where there is no nightly compiler with miri.
pub fn run(root: &Path) -> Result<Verdict, String> {
    let mut offences = Vec::new();
    for arguments in RUNS {
        let status = Command::new("rustup")
            .args(["run", "nightly", "cargo", "miri", "test"])
            .args(arguments)
            .env("MIRIFLAGS", FLAGS)
            .env("PROPTEST_CASES", "2")
            .env("CARGO_TARGET_DIR", root.join("target/miri"))
            .env_remove("RUSTUP_TOOLCHAIN")
            .current_dir(root)
            .status()
            .map_err(|error| format!("rustup can't be started: {error}"))?;
        if !status.success() {
            let what = format!("miri stops in: cargo miri test {}", arguments.join(" "));
            offences.push(Offence::new("xtask/src/miri.rs", 1, what, "mend the fault that it names"));
        }
    }
    Ok(Verdict { checked: format!("{} runs", RUNS.len()), offences })
}
