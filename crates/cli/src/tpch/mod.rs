//! The TPC-H benchmark: its tables, its data (by the `tpchgen` crate), its queries, and a writer beside them.
//!
//! [`load()`] fills a database; [`bench()`] measures the 22 queries idle and while transactions change the data at full
//! speed, and checks at every moment that what a query sees is one consistent state.
use std::io;

use engine::Database;

mod bench;
mod existing;
mod load;
pub mod queries;
mod report;
mod rows;
mod tables;
mod writer;

pub use bench::bench;
pub use load::load;
pub use tables::{TABLES, check_scale_factor, create_tables, schema};

/// Told how far a long stage has come.
pub trait Progress: Sync {
    /// A stage begins that will go through `total` steps.
    fn start(&self, stage: &str, total: u64);
    /// So many steps more are done.
    fn advance(&self, count: u64);
    /// The stage is over; `note` is worth keeping in sight.
    fn finish(&self, note: &str);
}

/// Tells nobody.
pub struct Quiet;

impl Progress for Quiet {
    fn start(&self, _stage: &str, _total: u64) {}
    fn advance(&self, _count: u64) {}
    fn finish(&self, _note: &str) {}
}

/// Why the benchmark did not come to its end.
#[derive(Debug)]
pub enum BenchError {
    /// The engine refused something.
    Engine(engine::Error),
    /// A statement failed; its name and why.
    Sql(String, Box<sql::SqlError>),
    /// The output does not take more.
    Output(io::Error),
    /// What was measured is wrong, or can't be measured.
    Failed(String),
}

impl std::fmt::Display for BenchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BenchError::Engine(error) => error.fmt(f),
            BenchError::Sql(name, error) => write!(f, "{name}: {error}"),
            BenchError::Output(error) => error.fmt(f),
            BenchError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<engine::Error> for BenchError {
    fn from(error: engine::Error) -> BenchError {
        BenchError::Engine(error)
    }
}

impl From<io::Error> for BenchError {
    fn from(error: io::Error) -> BenchError {
        BenchError::Output(error)
    }
}

/// How many rows a table has at a scale factor where the number is proportional: `per_unit` rows at 1.
fn scaled(per_unit: u32, sf: f64) -> u64 {
    // The generator cuts off, too.
    (f64::from(per_unit) * sf) as u64
}

/// A session that runs the benchmark's queries.
fn session(db: &Database) -> sql::Session {
    sql::Session::new(db, sql::SessionOptions::default())
}
