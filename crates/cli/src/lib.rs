//! The `lstore` program: an interactive shell, scripts, and the benchmarks.
//!
//! [`run`] is all of it. Below stand the rooms, of which those that tests drive are public: `args` reads the command line;
//! `input` cuts what comes in into statements and backslash commands; [`shell`] runs them, [`output`] writes rows and
//! `diagnostics` errors; [`interactive`] is the shell at a terminal, `serve` the server, `inspect` a look at a directory from
//! outside; [`tpch`], `micro`, `commit`, `index` and `gpu` are the benchmarks of those names, `bench` what they share
//! beside `lab`, whose `bench heap` needs nothing here.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod commit;
mod complete;
mod diagnostics;
mod editor;
mod gpu;
mod index;
mod input;
mod inspect;
pub mod interactive;
mod memory;
mod meta;
mod micro;
pub mod output;
mod progress;
mod run;
mod serve;
pub mod shell;
pub mod tpch;

pub use run::run;
