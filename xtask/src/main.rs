//! The house rules as checks: `cargo xtask depcheck` holds the architecture between crates, `cargo xtask modules` the one
//! inside them, `cargo xtask tidy` the style. `cargo xtask miri` runs tests under an interpreter.
//!
//! All read the working tree, print what they looked at and every offence as
//! `path:line: what; remedy`, and end with a status other than 0 when there was one. STYLE.md says
//! which rule is held by which check.

#![forbid(unsafe_code)]

mod depcheck;
mod files;
mod manifest;
mod miri;
mod modules;
mod offence;
mod tidy;
mod tokens;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use offence::Verdict;

const USAGE: &str = "\
usage: cargo xtask <check>

  depcheck   which crate may depend on which, which may reach DataFusion, which may have unsafe code
  modules    circles of modules inside each crate, imports between its layers; with a crate's name, what ties its circles
  tidy       lengths, headers, leftovers, SAFETY comments, words of comments, machine paths, links between documents
  miri       some tests under the interpreter; needs a nightly compiler and some minutes";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = repository_root();
    let verdict = match names.as_slice() {
        ["depcheck"] => depcheck::run(&root),
        ["modules"] => modules::run(&root, None),
        ["modules", shown] => modules::run(&root, Some(shown)),
        ["tidy"] => tidy::run(&root),
        ["miri"] => miri::run(&root),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    conclude(names[0], verdict)
}

/// The folder above `xtask/`. Cargo names it at run time; the compiled-in path serves a binary that is
/// started by hand, and would be the wrong tree where two checkouts share a target folder.
fn repository_root() -> PathBuf {
    let xtask = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&xtask).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

fn conclude(check: &str, verdict: Result<Verdict, String>) -> ExitCode {
    match verdict {
        Ok(verdict) if verdict.offences.is_empty() => {
            println!("{check}: {}: all in order", verdict.checked);
            ExitCode::SUCCESS
        }
        Ok(mut verdict) => {
            verdict.offences.sort();
            for offence in &verdict.offences {
                println!("{offence}");
            }
            let count = verdict.offences.len();
            let noun = if count == 1 { "offence" } else { "offences" };
            println!("{check}: {}: {count} {noun}", verdict.checked);
            ExitCode::FAILURE
        }
        Err(reason) => {
            eprintln!("{check}: could not run: {reason}");
            ExitCode::FAILURE
        }
    }
}
