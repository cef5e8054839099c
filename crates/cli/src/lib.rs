//! The `lstore` program: an interactive shell, scripts, and the benchmarks.
//!
//! [`run`] is all of it. Below stand the rooms, of which those that tests drive are public: `args` reads the command line;
//! [`shell`] reads lines and runs the statements in them, `commands` the backslash commands, of which `describe` has `\d` and its kin;
//! [`output`] writes rows and `diagnostics` errors; `editor` is the terminal with what `complete` offers, `serve` the server, `inspect`
//! a look at a directory from outside. The benchmarks are `lab`'s and `gpu`'s; `tpch`, `index` and `gpu` give those of these names what
//! they need of the program, the others need a progress bar only.
#![forbid(unsafe_code)]

mod args;
mod calibrate;
mod commands;
mod complete;
mod describe;
mod diagnostics;
mod dump;
mod editor;
mod gpu;
mod index;
mod inspect;
mod memory;
mod opening;
pub mod output;
mod progress;
mod run;
mod serve;
pub mod shell;
mod start;
mod terminal;
mod tpch;

pub use run::run;
