//! The `lstore` program: an interactive shell, scripts, and the benchmarks.
//!
//! [`run`] is all of it. Below stand the rooms, of which those that tests drive are public: `args` reads the command line;
//! `input` cuts what comes in into statements and backslash commands; [`shell`] runs them, [`output`] writes rows and
//! `diagnostics` errors; [`interactive`] is the shell at a terminal, `serve` the server, `inspect` a look at a directory from
//! outside. The benchmarks are `lab`'s and `gpu`'s; `tpch`, `index` and `gpu` give those of these names what they need of the
//! program, the others need a progress bar only.
#![forbid(unsafe_code)]

mod args;
mod calibrate;
mod complete;
mod diagnostics;
mod dump;
mod editor;
mod gpu;
mod index;
mod input;
mod inspect;
pub mod interactive;
mod memory;
mod meta;
pub mod output;
mod progress;
mod run;
mod script_rows;
mod serve;
pub mod shell;
mod tpch;

pub use run::run;
