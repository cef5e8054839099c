//! The `lstore` program: an interactive shell, scripts, and the benchmarks.
//!
//! [`run`] is all of it. Below stand the rooms: [`args`] reads the command line; [`input`] cuts what comes in into
//! statements and backslash commands; [`shell`] runs them, [`output`] writes rows and [`diagnostics`] errors;
//! [`interactive`] is the shell at a terminal, [`serve`] the server, [`inspect`] a look at a directory from outside;
//! [`tpch`], [`micro`], [`commit`], [`heap`], [`mod@index`] and [`mod@gpu`] are the benchmarks of those names, [`mod@bench`] what they
//! share beside `lab`.
#![forbid(unsafe_code)]

pub mod args;
pub mod bench;
pub mod commit;
mod complete;
pub mod diagnostics;
mod editor;
pub mod gpu;
pub mod heap;
pub mod index;
pub mod input;
pub mod inspect;
pub mod interactive;
mod memory;
mod meta;
pub mod micro;
pub mod output;
mod progress;
mod run;
pub mod serve;
pub mod shell;
pub mod tpch;

pub use run::run;
