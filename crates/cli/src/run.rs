//! From the command line to an exit status: 0 done, 1 something failed, 2 bad usage, 3 a script stopped at an error (`ON_ERROR_STOP`).
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use engine::ArchiveSetting;
use lab::LabError;
use lab::tpcds::TpcdsArgs;

use crate::args::{self, Bench, ScriptStep, SqlArgs, Task};
use crate::calibrate;
use crate::dump::{self, DumpError};
use crate::editor::TerminalEditor;
use crate::gpu;
use crate::index;
use crate::inspect;
use crate::opening::{open, open_with};
use crate::progress::BenchProgress;
use crate::serve;
use crate::shell::{Shell, Stop};
use crate::start;
use crate::tpch;

/// The status where a script has stopped at an error because it was to, as psql has it.
const STATUS_OF_STOPPED_SCRIPT: u8 = 3;

/// Runs the program with its command line, the program's name first.
pub fn run(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> ExitCode {
    let cli = match args::parse(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too, with the status 0. If they can't be written, there is no reader.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match cli.task {
        Some(Task::Calibrate(args)) => end_of_bench(calibrate::run(args)),
        Some(Task::Bench(Bench::Tpch(args))) => end_of_bench(tpch::bench(&args)),
        Some(Task::Bench(Bench::Tpcds(args))) => end_of_bench(tpcds(&args)),
        Some(Task::Bench(Bench::Micro(args))) => {
            end_of_bench(lab::micro::bench(&args, &BenchProgress::on_stderr(), &mut io::stdout().lock()))
        }
        Some(Task::Bench(Bench::Commit(args))) => {
            end_of_bench(lab::commit::bench(&args, &BenchProgress::on_stderr(), &mut io::stdout().lock()))
        }
        Some(Task::Bench(Bench::Costs(args))) => {
            end_of_bench(lab::asymmetry::bench(&args, &BenchProgress::on_stderr(), &mut io::stdout().lock()))
        }
        Some(Task::Bench(Bench::Load(args))) => {
            end_of_bench(lab::load::bench(&args, &BenchProgress::on_stderr(), &mut io::stdout().lock()))
        }
        Some(Task::Bench(Bench::Open(args))) => {
            end_of_bench(lab::opening::bench(&args, &BenchProgress::on_stderr(), &mut io::stdout().lock()))
        }
        Some(Task::Bench(Bench::Point(args))) => {
            end_of_bench(lab::point::bench(&args, &BenchProgress::on_stderr(), &mut io::stdout().lock()))
        }
        Some(Task::Bench(Bench::Heap(args))) => end_of_bench(lab::heap::bench(&args, &mut io::stdout().lock())),
        Some(Task::Bench(Bench::Index(args))) => end_of_bench(index::bench(&args)),
        Some(Task::Bench(Bench::Gist(args))) => {
            let (device, progress) = (gpu::for_searches(), BenchProgress::on_stderr());
            end_of_bench(lab::spatial::bench_gist(&args, device.as_deref(), &progress, &mut io::stdout().lock()))
        }
        Some(Task::Bench(Bench::Bwd(args))) => {
            let (device, progress) = (gpu::for_searches(), BenchProgress::on_stderr());
            end_of_bench(lab::spatial::bench_bwd(&args, device.as_deref(), &progress, &mut io::stdout().lock()))
        }
        Some(Task::Bench(Bench::Snapshots(args))) => {
            end_of_bench(lab::snapshots::bench(&args, &BenchProgress::on_stderr(), &mut io::stdout().lock()))
        }
        Some(Task::Bench(Bench::Sim(args))) => {
            end_of_bench(lab::sim::bench(&args, &BenchProgress::on_stderr(), &mut io::stdout().lock()))
        }
        Some(Task::Bench(Bench::Gpu(args))) => end_of_bench(gpu::bench(&args)),
        Some(Task::Serve(args)) => told(serve::serve(&args).map(|()| true)),
        Some(Task::Inspect(args)) => told(inspect::inspect(&args).map(|()| true)),
        Some(Task::Verify(args)) => told(inspect::verify(&args)),
        Some(Task::Backup(args)) => told(inspect::backup(&args).map(|()| true)),
        Some(Task::Dump(args)) => match dump::dump(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(DumpError::Told(message)) => told(Err(message)),
            Err(DumpError::Output(error)) => end_of_output(&error),
        },
        Some(Task::Restore(args)) => told(inspect::restore(&args)),
        None => run_sql(&cli.sql),
    }
}

/// The status of a look at a database: 0 if it is whole, 2 if that can't be told.
fn told(outcome: Result<bool, String>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("lstore: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs the benchmark TPC-DS on its database.
fn tpcds(args: &TpcdsArgs) -> Result<(), LabError> {
    let db = open(args.dir.as_deref()).map_err(LabError::Failed)?;
    lab::tpcds::bench(args, &db, &BenchProgress::on_stderr(), &mut io::stdout().lock())
}

fn end_of_bench(outcome: Result<(), LabError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(LabError::Output(error)) => end_of_output(&error),
        Err(error) => {
            eprintln!("lstore: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The status when the output takes no more: quiet where the reader has gone away, as after `| head`.
fn end_of_output(error: &io::Error) -> ExitCode {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    eprintln!("lstore: can't write: {error}");
    ExitCode::FAILURE
}

fn run_sql(args: &SqlArgs) -> ExitCode {
    let archive = match &args.archive {
        Some(archive) => ArchiveSetting::To(archive.clone()),
        None if args.no_archive => ArchiveSetting::Nowhere,
        None => ArchiveSetting::AsBefore,
    };
    let db = match open_with(args.dir.as_deref(), args.memory, archive) {
        Ok(db) => db,
        Err(message) => {
            eprintln!("lstore: {message}");
            return ExitCode::FAILURE;
        }
    };
    let mut shell = Shell::new(&db, start::settings(args));
    let done = start::begin(&mut shell, &args.shell).and_then(|()| match shell.is_interactive() {
        true => at_terminal(&mut shell),
        false => run_steps(&mut shell, args),
    });
    match done {
        Ok(()) | Err(Stop::Quit) if shell.is_interactive() || !shell.has_failed() => ExitCode::SUCCESS,
        Ok(()) | Err(Stop::Quit | Stop::Failed) => ExitCode::FAILURE,
        Err(Stop::Script) => ExitCode::from(STATUS_OF_STOPPED_SCRIPT),
        Err(Stop::Output(error)) => end_of_output(&error),
    }
}

fn run_steps(shell: &mut Shell, args: &SqlArgs) -> Result<(), Stop> {
    if args.shell.single_transaction {
        shell.control("BEGIN")?;
    }
    if args.steps.is_empty() {
        shell.run_file(Path::new("-"))?;
    }
    for step in &args.steps {
        match step {
            ScriptStep::Command(text) => shell.run_text(text)?,
            ScriptStep::File(path) => shell.run_file(path)?,
        }
    }
    // Where something has failed nothing may stay behind.
    match args.shell.single_transaction {
        true if shell.has_failed() => shell.control("ROLLBACK"),
        true => shell.control("COMMIT"),
        false => Ok(()),
    }
}

fn at_terminal(shell: &mut Shell) -> Result<(), Stop> {
    shell.survive_interrupts()?;
    start::greet(shell)?;
    let mut editor = TerminalEditor::new(&shell.db)?;
    shell.run_source(&mut editor)
}
