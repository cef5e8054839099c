//! `lstore dump`: a database as a script of SQL that PostgreSQL loads, and lstore.
//!
//! What there is is read from the catalog, as `pg_dump` reads it, by one transaction that sees one moment. The script has it in an order
//! in which everything comes after what it needs, and rows before the indexes and constraints that would slow them down:
//!
//! ```text
//! extensions ─▶ schemas ─▶ enums ─▶ domains ─▶ sequences ─▶ tables with defaults and checks   extensions.rs, objects.rs, tables.rs
//!        ─▶ functions and views, each behind what it needs                                    routines.rs, objects.rs
//!        ─▶ COPY ... FROM stdin, rows, \.                                                     mod.rs
//!        ─▶ numbers of sequences ─▶ keys ─▶ indexes ─▶ foreign keys ─▶ comments               objects.rs, after.rs
//! ```
mod after;
mod catalog;
mod error;
mod extensions;
mod objects;
mod routines;
mod tables;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::PathBuf;

use clap::Args;
use engine::OpenOptions;
use lab::Progress;
use sql::{CopyInput, Outcome};

use crate::memory::MemoryArgs;
use crate::progress::{self, BenchProgress};
use catalog::{Catalog, Relation};
use error::Result;

pub use error::DumpError;

const EXAMPLES: &str = "\
Examples:
  lstore dump mydata > mydata.sql
  lstore dump mydata --schema-only
  lstore dump mydata -t orders -t shop.items -o two_tables.sql
  psql -f mydata.sql                  load it into PostgreSQL
  lstore newdata -f mydata.sql        load it into a new database

The script is PostgreSQL's SQL. Options that PostgreSQL has no words for, such
as a table's layout and retention, are left out, and so is history: `backup`
keeps both. The database must not be open elsewhere.";

/// How `dump` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DumpArgs {
    /// The directory of the database
    pub dir: PathBuf,
    /// Write what there is, and no rows
    #[arg(long, conflicts_with = "data_only")]
    pub schema_only: bool,
    /// Write rows, and nothing that makes tables
    #[arg(long)]
    pub data_only: bool,
    /// Write this table alone, with its sequences, indexes and constraints (may be repeated)
    #[arg(short = 't', long = "table", value_name = "TABLE")]
    pub tables: Vec<String>,
    /// Write to this file in place of standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Dumps a database.
///
/// # Errors
/// If the database cannot be opened or read, a table that is asked for is not there, or the output takes no more.
pub fn dump(args: &DumpArgs) -> Result<()> {
    let fail = |why: &dyn Display| DumpError::Told(format!("can't dump {}: {why}", args.dir.display()));
    if !args.dir.is_dir() {
        return Err(fail(&"there is no such directory"));
    }
    let memory_limit_bytes = MemoryArgs::default().limit_bytes();
    let options = OpenOptions { progress: progress::replay_progress(), memory_limit_bytes, ..OpenOptions::default() };
    let db = sql::open(&args.dir, options).map_err(|error| fail(&error))?;
    let mut catalog = Catalog::read(&db, &args.tables)?;
    match &args.output {
        None => write(&mut catalog, args, &mut BufWriter::new(io::stdout().lock()), !io::stdout().is_terminal()),
        Some(path) => {
            let told = |error| DumpError::Told(format!("can't write {}: {error}", path.display()));
            let mut out = BufWriter::new(File::create(path).map_err(told)?);
            write(&mut catalog, args, &mut out, true)
        }
    }
}

fn write(catalog: &mut Catalog, args: &DumpArgs, out: &mut dyn Write, shows_progress: bool) -> Result<()> {
    writeln!(out, "-- A dump by lstore {}\n", env!("CARGO_PKG_VERSION"))?;
    // Names of `public` are written without their schema in expressions.
    for setting in [
        "client_encoding = 'UTF8'",
        "standard_conforming_strings = on",
        "check_function_bodies = false",
        "client_min_messages = warning",
        "search_path = public",
        "timezone = 'UTC'",
    ] {
        writeln!(out, "SET {setting};")?;
    }
    writeln!(out)?;
    if !args.data_only {
        let is_whole = args.tables.is_empty();
        extensions::write(catalog, out)?;
        if is_whole {
            objects::write_schemas(catalog, out)?;
            objects::write_types(catalog, out)?;
            objects::write_collations(catalog, out)?;
        }
        objects::write_sequences(catalog, out)?;
        tables::write(catalog, out)?;
        objects::write_owners(catalog, out)?;
        if is_whole {
            routines::write(catalog, out)?;
        }
    }
    if !args.schema_only {
        write_rows(catalog, out, shows_progress && io::stderr().is_terminal())?;
        objects::write_numbers(catalog, out)?;
    }
    if !args.data_only {
        after::write_constraints(catalog, out, false)?;
        after::write_indexes(catalog, out)?;
        after::write_constraints(catalog, out, true)?;
        after::write_comments(catalog, out)?;
        if args.tables.is_empty() {
            routines::write_comments(catalog, out)?;
        }
    }
    if !args.schema_only && args.tables.is_empty() {
        objects::write_refreshes(catalog, out)?;
    }
    Ok(out.flush()?)
}

/// The rows of all tables, in PostgreSQL's text form.
fn write_rows(catalog: &mut Catalog, out: &mut dyn Write, shows_progress: bool) -> Result<()> {
    let bar = shows_progress.then(BenchProgress::on_stderr);
    let tables: Vec<Relation> = catalog.tables().cloned().collect();
    if let Some(bar) = &bar {
        bar.start("dumping tables", u64::try_from(tables.len()).unwrap_or(u64::MAX));
    }
    for table in &tables {
        let columns = tables::columns_with_values(catalog, table)?;
        // A table without a column that has values of its own has rows all the same, but COPY has no word for them.
        if !columns.is_empty() {
            let what = format!("{} ({})", table.spelled(), columns.join(", "));
            writeln!(out, "COPY {what} FROM stdin;")?;
            let mut rows = Rows { out: &mut *out };
            match catalog.session().execute_with_input(&format!("COPY {what} TO STDOUT"), &mut rows)? {
                Outcome::Done(_) | Outcome::Rows(_) => writeln!(out, "\\.\n")?,
            }
        }
        bar.iter().for_each(|bar| bar.advance(1));
    }
    bar.iter().for_each(|bar| bar.finish(&format!("{} tables", tables.len())));
    Ok(())
}

/// The way of rows into the script.
struct Rows<'a> {
    out: &'a mut dyn Write,
}

impl Read for Rows<'_> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl CopyInput for Rows<'_> {
    fn begin(&mut self, _: usize, _: bool) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a dump reads no rows"))
    }

    fn begin_giving(&mut self, _: usize, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn give(&mut self, line: &[u8]) -> io::Result<()> {
        self.out.write_all(line)
    }
}
