//! The TPC-H benchmark: its tables, its data (by the `tpchgen` crate), its queries, and a writer beside them.
//!
//! [`load()`] fills a database; [`bench()`] measures the 22 queries idle and while transactions change the data at full
//! speed, and checks at every moment that what a query sees is one consistent state.
use engine::Database;

mod args;
mod bench;
mod existing;
mod load;
mod queries;
mod report;
mod rows;
mod tables;
mod writer;

pub use args::TpchArgs;
pub use bench::bench;
pub use load::load;
pub use tables::{TABLES, create_tables};
pub(crate) use tables::{check_scale_factor, schema};

/// How many rows a table has at a scale factor where the number is proportional: `per_unit` rows at 1.
fn scaled(per_unit: u32, sf: f64) -> u64 {
    // The generator cuts off, too.
    (f64::from(per_unit) * sf) as u64
}

/// The rows of a table at a scale factor.
pub(crate) fn rows_of_table(table: &str, sf: f64) -> impl Iterator<Item = arrow_array::RecordBatch> {
    rows::batches(table, sf, 1, 1)
}

/// A session that runs the benchmark's queries.
fn session(db: &Database) -> sql::Session {
    sql::Session::new(db, sql::SessionOptions::default())
}
