//! The TPC-H benchmark: its tables, its data (by the `tpchgen` crate), its queries, and a writer beside them.
//!
//! [`load()`] fills a database; [`bench()`] measures the 22 queries idle and while transactions change the data at full
//! speed, and checks at every moment that what a query sees is one consistent state; or measures them beside another engine.
use std::io::Write;

use engine::Database;

mod args;
mod bench;
mod beside;
mod existing;
mod load;
mod queries;
mod report;
mod rows;
mod tables;
mod writer;

pub use crate::beside::RivalKind;
pub use args::TpchArgs;
pub(crate) use args::scale_factor;
pub(crate) use bench::settle;
pub use load::load;
pub(crate) use queries::query;
pub use tables::{TABLES, create_tables};
pub(crate) use tables::{check_scale_factor, schema};

use crate::{LabError, Progress};

/// The rows of a table at a scale factor.
pub(crate) fn rows_of_table(table: &str, sf: f64) -> impl Iterator<Item = arrow_array::RecordBatch> {
    rows::Rows::new(sf).batches(table, 1, 1)
}

/// Runs the benchmark on a database and writes its report to `out`. The report ends with `shell_command`, which opens a shell
/// on the data where it outlives the program, unless it is a comparison with another database.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more; [`LabError::Engine`] or [`LabError::Sql`] if the database refuses
///   something.
/// - [`LabError::Failed`] if the database has other tables of these names, if what a query saw was not consistent, and if the
///   other database can't be had or answers differently.
pub fn bench(
    args: &TpchArgs,
    db: &Database,
    shell_command: Option<&str>,
    progress: &dyn Progress,
    out: &mut dyn Write,
) -> Result<(), LabError> {
    match args.beside {
        Some(rival) => beside::bench_beside(args, rival, db, progress, out),
        None => bench::bench_alone(args, db, shell_command, progress, out),
    }
}
