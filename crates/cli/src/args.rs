//! The command line: what may stand on it, and its help.
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use lab::asymmetry::CostArgs;
use lab::calibrate::CalibrateArgs;
use lab::commit::CommitArgs;
use lab::heap::HeapArgs;
use lab::index::IndexArgs;
use lab::load::LoadArgs;
use lab::micro::MicroArgs;
use lab::opening::OpenArgs;
use lab::point::PointArgs;
use lab::sim::SimArgs;
use lab::snapshots::SnapshotArgs;
use lab::spatial::{BwdArgs, GistArgs};
use lab::tpcds::TpcdsArgs;
use lab::tpch::TpchArgs;

use crate::dump::DumpArgs;
use crate::gpu::GpuArgs;
use crate::inspect::{CopyArgs, InspectArgs, RestoreArgs, VerifyArgs};
use crate::memory::MemoryArgs;
use crate::output::style::Format;
use crate::serve::ServeArgs;

const EXAMPLES: &str = "\
Examples:
  lstore                            a shell on a database in memory
  lstore data                       a shell on the database in directory data
  lstore data -c 'select 1'         run a statement and leave
  lstore data -f a.sql -c '\\dt'     run a script, then list the tables
  lstore data --format csv < a.sql  run standard input, write rows as CSV
  lstore data --archive /mnt/log    archive the log there from now on
  lstore data --memory-limit 2GB    tables may be larger, and stay in data then
  lstore dump data > data.sql       the database as SQL for PostgreSQL
  lstore serve data                 the database in data for psql and drivers
  lstore calibrate data             measure the disk for the optimizer
  lstore bench tpch --sf 0.1        TPC-H's queries, idle and under updates
  lstore bench micro                short transactions and SUM beside bounds

Scripts go on after an error, as psql's do, and the status is 1 at their end;
with -v ON_ERROR_STOP=1 they stop there, with status 3.

Without -c and -f, and with a terminal on standard input, lstore is an
interactive shell. Type \\? there for its commands.";

/// A real-time OLTP + OLAP database: transactions and analytical queries on one copy of the data.
#[derive(Parser, Debug)]
#[command(name = "lstore", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do instead of running SQL.
    #[command(subcommand)]
    pub task: Option<Task>,
    /// How to run SQL.
    #[command(flatten)]
    pub sql: SqlArgs,
}

/// How to run SQL.
#[derive(Args, Debug)]
pub struct SqlArgs {
    /// The directory of the database, made if it is missing; without it the database lives in memory
    pub dir: Option<PathBuf>,
    /// Archive the log of the database to this directory from now on, so that it can be restored to any moment
    #[arg(long, value_name = "DIR", requires = "dir", conflicts_with = "no_archive")]
    pub archive: Option<PathBuf>,
    /// Archive the log no longer
    #[arg(long, requires = "dir")]
    pub no_archive: bool,
    /// How much memory tables may take
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Run this SQL or these backslash commands up to the first error, and leave (may be repeated, in order with -f)
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    pub commands: Vec<String>,
    /// Run this script and leave; - is standard input (may be repeated, in order with -c)
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How rows are written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// How the shell behaves, as psql's options have it
    #[command(flatten)]
    pub shell: ShellArgs,
    /// What -c and -f ask for, in the order of the command line
    #[arg(skip)]
    pub steps: Vec<ScriptStep>,
}

/// How the shell behaves.
#[derive(Args, Clone, Debug, Default)]
pub struct ShellArgs {
    /// Give a variable a value, as \set does: -v ON_ERROR_STOP=1 stops scripts at the first error, with status 3
    #[arg(short = 'v', long = "set", alias = "variable", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
    /// Set how rows look, as \pset does: -P null=NULL
    #[arg(short = 'P', long = "pset", value_name = "NAME[=VALUE]")]
    pub options: Vec<String>,
    /// Leave out the line of column names, titles and the row count
    #[arg(short = 't', long = "tuples-only", visible_alias = "no-header")]
    pub tuples_only: bool,
    /// Write values with a separator between them, without aligning them
    #[arg(short = 'A', long = "no-align", conflicts_with = "csv")]
    pub unaligned: bool,
    /// Write rows as CSV (as --format csv)
    #[arg(long)]
    pub csv: bool,
    /// Write each column on a line of its own
    #[arg(short = 'x', long)]
    pub expanded: bool,
    /// Write this between unaligned values
    #[arg(short = 'F', long = "field-separator", value_name = "TEXT")]
    pub field_separator: Option<String>,
    /// Write this between unaligned rows
    #[arg(short = 'R', long = "record-separator", value_name = "TEXT")]
    pub record_separator: Option<String>,
    /// Write rows to this file
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<String>,
    /// Write no tags and messages besides rows and errors
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Run everything in one transaction, which is rolled back where something fails
    #[arg(short = '1', long = "single-transaction")]
    pub single_transaction: bool,
    /// Write each statement before it runs
    #[arg(short = 'e', long = "echo-queries")]
    pub echo_queries: bool,
    /// Write each line of scripts
    #[arg(short = 'a', long = "echo-all", conflicts_with = "echo_queries")]
    pub echo_all: bool,
    /// Write the queries behind \d and its kin
    #[arg(short = 'E', long = "echo-hidden")]
    pub echo_hidden: bool,
    /// Do not read ~/.lstorerc (or what LSTORERC names) first
    #[arg(short = 'X', long = "no-rc", alias = "no-psqlrc")]
    pub no_rc: bool,
}

/// One `-c` or `-f`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptStep {
    /// SQL text.
    Command(String),
    /// A script.
    File(PathBuf),
}

/// What else the program can do.
#[derive(Subcommand, Debug)]
pub enum Task {
    /// Serve a database to PostgreSQL's drivers and tools
    Serve(ServeArgs),
    /// Measure the disk and memory for the optimizer, and tune its coefficients on a workload
    Calibrate(Calibrate),
    /// Measure the database
    #[command(subcommand)]
    Bench(Bench),
    /// Show the checkpoints and files of a database
    Inspect(InspectArgs),
    /// Check every page, log frame and index entry of a database
    Verify(VerifyArgs),
    /// Copy a database to another directory
    Backup(CopyArgs),
    /// Write a database as SQL that PostgreSQL loads
    Dump(DumpArgs),
    /// Bring a backup back in a new directory, as it was or at a later moment, and verify it there
    Restore(RestoreArgs),
}

/// What is calibrated: the optimizer's cost model, where nothing else is said.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Calibrate {
    #[command(subcommand)]
    pub subject: Option<Calibrated>,
    #[command(flatten)]
    pub model: CalibrateArgs,
}

/// What else is calibrated.
#[derive(Subcommand, Debug)]
pub enum Calibrated {
    /// Measure what snapshots of arrays in memory cost by mechanism, and what is chosen from that, with its regret
    Snapshots(SnapshotArgs),
}

/// The benchmarks.
#[derive(Subcommand, Debug)]
pub enum Bench {
    /// The 22 queries of TPC-H, idle and while writers change the data at full speed
    Tpch(TpchArgs),
    /// The 99 queries of TPC-DS here and in DuckDB, in turns, answers compared
    Tpcds(TpcdsArgs),
    /// The L-Store paper's micro benchmark: short transactions, SUM, and both at once, beside bounds
    Micro(MicroArgs),
    /// Commits a second and how long each takes, by when they are acknowledged, beside the disk's own rate
    Commit(CommitArgs),
    /// Rows a second from Arrow batches, Parquet and CSV, beside a hash map and what the disk takes
    Load(LoadArgs),
    /// The optimizer's cost model: plans and times by model and coefficients, and what sorts and joins write: its paper's figures
    Costs(CostArgs),
    /// How long opening a database takes, and its first statements, after a clean close and after a crash
    Open(OpenArgs),
    /// Prepared statements by key, short ranges and a join, beside SQLite
    Point(PointArgs),
    /// What durability costs a transactional heap, and the ways to commit: the Hathi paper's figures
    Heap(HeapArgs),
    /// The indexes beside other people's, and the figures of the KISS-Tree's and tsx-index's papers
    Index(IndexArgs),
    /// The generalized search tree beside rstar, a scan and a B+tree, and the figures of its coprocessor paper
    Gist(GistArgs),
    /// Bitwise-distributed columns of points beside plain scans, a tree and a B+tree: the figures of their paper
    Bwd(BwdArgs),
    /// Snapshots of arrays in memory, by mechanism and workload, and which one to choose: the figures of their paper
    Snapshots(SnapshotArgs),
    /// Hardware transactions, sockets and instruction caches on a model of the machine: the figures of three papers
    Sim(SimArgs),
    /// The operators for graphics processors beside the roofs of the device, and the figures of their papers
    Gpu(GpuArgs),
}

/// Reads the command line, the program's name first.
pub fn parse(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Cli, clap::Error> {
    let matches = Cli::command().try_get_matches_from(args)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    cli.sql.steps = steps(&cli.sql, &matches);
    Ok(cli)
}

/// Brings `-c` and `-f` back into the one order that they were given in.
fn steps(sql: &SqlArgs, matches: &ArgMatches) -> Vec<ScriptStep> {
    let places = |id| matches.indices_of(id).into_iter().flatten();
    let commands = places("commands").zip(sql.commands.iter().cloned().map(ScriptStep::Command));
    let files = places("files").zip(sql.files.iter().cloned().map(ScriptStep::File));
    let mut steps: Vec<(usize, ScriptStep)> = commands.chain(files).collect();
    steps.sort_by_key(|(place, _)| *place);
    steps.into_iter().map(|(_, step)| step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn commands_and_files_keep_their_order() {
        let cli = parse(["lstore", "data", "-f", "a.sql", "-c", "select 1", "-f", "b.sql"]).unwrap();
        let file = |name: &str| ScriptStep::File(PathBuf::from(name));
        assert_eq!(cli.sql.steps, [file("a.sql"), ScriptStep::Command("select 1".into()), file("b.sql")]);
        assert_eq!(cli.sql.dir, Some(PathBuf::from("data")));
    }

    #[test]
    fn a_moment_is_a_commit_or_a_time() {
        let restore = |moment: &[&str]| {
            let args = ["lstore", "restore", "a", "b", "--archive", "c"].iter().chain(moment).copied();
            match parse(args)?.task {
                Some(Task::Restore(args)) => Ok((args.to_lsn, args.to_time)),
                other => panic!("{other:?}"),
            }
        };
        let moment = |args: &[&str]| restore(args).map_err(|error: clap::Error| error.kind());
        assert_eq!(moment(&[]), Ok((None, None)));
        assert_eq!(moment(&["--to-lsn", "7"]), Ok((Some(7), None)));
        assert_eq!(moment(&["--to-time", "1970-01-01 02:00:00+01"]), Ok((None, Some(3_600_000_000))));
        assert!(moment(&["--to-time", "noon"]).is_err() && moment(&["--to-lsn", "x"]).is_err());
        assert!(moment(&["--to-lsn", "7", "--to-time", "2026-11-22"]).is_err());
        assert!(parse(["lstore", "--archive", "c"]).is_err(), "a database in memory has no archive");
        assert!(parse(["lstore", "d", "--archive", "c", "--no-archive"]).is_err());
    }

    #[test]
    fn the_benchmark_has_its_own_arguments() {
        let cli = parse(["lstore", "bench", "tpch", "--sf", "0.01", "--dir", "d", "--json"]).unwrap();
        let Some(Task::Bench(Bench::Tpch(tpch))) = cli.task else { panic!("not the benchmark") };
        assert_eq!((tpch.sf, tpch.dir, tpch.json), (0.01, Some(PathBuf::from("d")), true));
        for bad in ["0", "-1", "nan", "1000", "x", "0.001", "0.012"] {
            assert!(parse(["lstore", "bench", "tpch", "--sf", bad]).is_err(), "{bad}");
        }
    }
}
