//! The tables in both databases: of the Parquet files, unless an earlier run loaded them here.
use std::path::Path;
use std::time::Instant;

use engine::Database;
use sql::Session;

use super::args::TpcdsArgs;
use super::data::file;
use super::tables::{TABLES, Table};
use crate::beside::{Rival, quoted, rows_of, session};
use crate::figures::grouped;
use crate::{LabError, Progress};

/// The tables that are there.
enum ExistingTables {
    /// None, or those of a load that did not come to its end.
    Unfinished,
    /// The rows of the files.
    Complete,
    /// Other rows: what differs.
    Other(String),
}

/// Has the rows of the files in both databases.
pub(super) fn prepare(
    db: &Database,
    duckdb: &mut Rival,
    files: &Path,
    args: &TpcdsArgs,
    progress: &dyn Progress,
) -> Result<(), LabError> {
    let start = Instant::now();
    progress.start("tables for DuckDB", TABLES.len() as u64);
    for table in &TABLES {
        duckdb.load(table.name, &file(files, table))?;
        progress.advance(1);
    }
    progress.finish(&format!("tables for DuckDB {}: {:.1} s", duckdb.version, start.elapsed().as_secs_f64()));
    let mut session = session(db, std::thread::available_parallelism().map_or(1, usize::from));
    match look(db, &mut session, duckdb)? {
        ExistingTables::Complete => {
            progress.finish(&format!("TPC-DS, scale factor {}, is loaded already", args.sf));
            Ok(())
        }
        ExistingTables::Other(difference) if !args.reload => Err(LabError::Failed(format!(
            "the TPC-DS tables there are not those of scale factor {}: {difference}. Choose another directory with --dir, or have \
             the tables replaced with --reload",
            args.sf
        ))),
        ExistingTables::Other(_) | ExistingTables::Unfinished => load(db, &mut session, files, progress),
    }
}

/// Looks for the tables. Tables with these names but other columns are an error: they have another use.
fn look(db: &Database, session: &mut Session, duckdb: &mut Rival) -> Result<ExistingTables, LabError> {
    let found = existing(db);
    for table in &found {
        let stored = db.table(table.name)?;
        let stored = stored.schema().columns().iter().map(|column| column.name.as_str());
        if !stored.eq(table.column_names()) {
            let why = format!("table \"{}\" exists and is not that of TPC-DS; choose another directory", table.name);
            return Err(LabError::Failed(why));
        }
    }
    if found.len() < TABLES.len() {
        return Ok(ExistingTables::Unfinished);
    }
    for table in &TABLES {
        let text = format!("SELECT count(*) FROM {}", table.name);
        let here = rows_of(session, table.name, &text)?.first().and_then(|batch| sql::text_value(batch.column(0), 0));
        let there = duckdb.rows(&text)?.into_iter().flatten().next().flatten();
        if here != there {
            let told = |count: Option<String>| count.unwrap_or_else(|| "no".to_owned());
            let (name, here, there) = (table.name, told(here), told(there));
            return Ok(ExistingTables::Other(format!("table \"{name}\" has {here} rows where {there} are expected")));
        }
    }
    Ok(ExistingTables::Complete)
}

/// Those of the tables that the database has.
fn existing(db: &Database) -> Vec<&'static Table> {
    let names = db.table_names();
    TABLES.iter().filter(|table| names.iter().any(|name| name == table.name)).collect()
}

/// Makes the tables and loads them, in place of those that are there.
fn load(db: &Database, session: &mut Session, files: &Path, progress: &dyn Progress) -> Result<(), LabError> {
    let start = Instant::now();
    progress.start("loading TPC-DS", TABLES.len() as u64);
    for table in existing(db) {
        db.drop_table(table.name)?;
    }
    for table in &TABLES {
        let Table { name, key, columns } = table;
        let statements = [
            format!("CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))"),
            format!("COPY {name} FROM {} (FORMAT parquet)", quoted(&file(files, table))),
        ];
        for statement in statements {
            let failed = |error| LabError::Sql(format!("load of {name}"), Box::new(error));
            session.execute(&statement).map_err(failed)?;
        }
        progress.advance(1);
    }
    let seconds = start.elapsed().as_secs_f64();
    progress.finish(&format!("loaded TPC-DS, {} tables, in {seconds:.1} s", grouped(TABLES.len() as u64)));
    Ok(())
}
