//! The TPC-DS benchmark: its 24 tables and 99 queries, here and in DuckDB, in turns within one run.
//!
//! ```text
//! generator (Java, by Maven) ── rows as text ──▶ DuckDB ──▶ Parquet, kept in a folder ──┬──▶ tables here
//! queries (package of Python) ──▶ a file in the folder                                 └──▶ tables of DuckDB, in memory
//! ```
//!
//! Neither the rows nor the texts of the queries are part of this program, as they are the TPC's. The rows come from
//! `io.trino.tpcds:tpcds`, a port of the TPC's generator to Java, which Maven fetches; the queries, with the specification's parameters,
//! from `duckdb-extension-tpcds`, a package of Python. Both are kept.
use std::io::Write;

use engine::Database;

mod args;
mod data;
mod load;
mod queries;
mod tables;

pub use args::TpcdsArgs;

use crate::beside::{Report, Rival, RivalKind, environment, folder, in_all_turns};
use crate::tpch::settle;
use crate::{LabError, Progress};

/// DuckDB sorts NULL as PostgreSQL does then: as the largest of all.
const NULL_ORDER: &str = "SET default_null_order = 'nulls_last_on_asc_first_on_desc'";

/// Runs the benchmark on a database and writes its report to `out`.
///
/// # Errors
/// - [`LabError::Output`] if `out` does not take more; [`LabError::Engine`] or [`LabError::Sql`] if the database refuses
///   a table or its rows.
/// - [`LabError::Failed`] if the generator, the queries or DuckDB can't be had, with what to install; if the database has other
///   tables of these names; and if a query fails or DuckDB gives other rows.
pub fn bench(args: &TpcdsArgs, db: &Database, progress: &dyn Progress, out: &mut dyn Write) -> Result<(), LabError> {
    let dir = folder(args.dir.as_deref())?;
    let queries = queries::queries(&dir, &args.only, progress)?;
    let python = args.python.clone().map_or_else(|| environment(&dir, RivalKind::Duckdb, progress), Ok)?;
    let mut duckdb = Rival::start(RivalKind::Duckdb, &python)?;
    let files = data::files(&dir, args.sf, &mut duckdb, progress)?;
    load::prepare(db, &mut duckdb, &files, args, progress)?;
    settle(db, &tables::TABLES.map(|table| table.name), progress)?;
    duckdb.execute(NULL_ORDER)?;
    let turns = in_all_turns(db, &mut duckdb, &queries, args.runs, progress)?;
    let title = format!("TPC-DS, scale factor {}", args.sf);
    let report = Report { bench: "tpcds", title, rival: duckdb.kind, version: duckdb.version.clone(), turns };
    match args.json {
        true => report.write_json(out)?,
        false => report.write_table(out)?,
    }
    out.flush()?;
    report.problems().map_or(Ok(()), |problems| Err(LabError::Failed(problems)))
}

#[cfg(test)]
mod tests;
