//! `lstore inspect`, `verify`, `backup` and `restore`: a database's directory seen from outside.
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use engine::{
    ArchivedLife, CheckpointFileKind, Database, Inspection, LogFileContent, OpenOptions, RecoveryTarget, Value,
};
use lab::figures::grouped;
use serde_json::json;

use crate::memory::MemoryArgs;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::progress;

const INSPECT_EXAMPLES: &str = "\
Examples:
  lstore inspect mydata              checkpoints, their tables, and all files
  lstore inspect mydata --json       the same, one JSON object a line
  lstore inspect /mnt/archive        the lives of databases in an archive";

const VERIFY_EXAMPLES: &str = "\
Examples:
  lstore verify mydata && echo whole

Reads every page of both checkpoints, replays the log, and looks at every
version of every row: what pages say of themselves, NOT NULL, and that each
index lists it and nothing else. Nothing is changed; the database must not be
open elsewhere.
The status is 0 if all is whole, 1 if something is not, 2 if it can't be told.";

const BACKUP_EXAMPLES: &str = "\
Examples:
  lstore backup mydata /mnt/backups/monday
  lstore restore /mnt/backups/monday mydata
  lstore mydata --archive /mnt/archive      keep the log, for moments in between

`backup` opens the database; while a shell or program has it open, say
BACKUP TO '/mnt/backups/monday' there: no transaction waits for it. A server
writes no files for its clients: stop it first. A backup is a database like
any other: it can be opened, read and verified where it is.";

/// How `backup` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = BACKUP_EXAMPLES)]
pub struct CopyArgs {
    /// The directory to copy from
    pub from: PathBuf,
    /// The directory to copy to, empty or missing
    pub to: PathBuf,
}

const RESTORE_EXAMPLES: &str = "\
Examples:
  lstore restore /mnt/backups/monday mydata
  lstore restore /mnt/backups/monday mydata --archive /mnt/archive
  lstore restore /mnt/backups/monday mydata --archive /mnt/archive \\
         --to-time '2026-11-22 10:15:00'
  lstore restore mydata before --to-lsn 4711

Without --to-lsn or --to-time everything that is there comes back. A time is
one of UTC unless it has a zone, as in '2026-11-22 10:15:00+02'; a commit's
number is what SELECT lstore_commit() told. Instead of a backup it can be the
directory of a database that is not open. `lstore inspect` of a backup or an
archive tells which moments can be reached.

The new database goes on by itself: its log is archived apart from that of its
origin, in the same directory or another, once it is opened with --archive.";

/// How `restore` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = RESTORE_EXAMPLES)]
pub struct RestoreArgs {
    /// The backup, or a database that is not open
    pub from: PathBuf,
    /// The directory to restore to, empty or missing
    pub to: PathBuf,
    /// The archive of the database's log, for what came after the backup
    #[arg(long, value_name = "DIR")]
    pub archive: Option<PathBuf>,
    /// Stop after this commit
    #[arg(long, value_name = "N", conflicts_with = "to_time")]
    pub to_lsn: Option<u64>,
    /// Stop after the last commit at or before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub to_time: Option<i64>,
}

fn parse_time(text: &str) -> Result<i64, String> {
    sql::parse_time(text).map_err(|error| error.to_string())
}

/// How `inspect` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = INSPECT_EXAMPLES)]
pub struct InspectArgs {
    /// The directory of the database, or an archive
    pub dir: PathBuf,
    /// Print one JSON object a line instead of tables
    #[arg(long)]
    pub json: bool,
}

/// How `verify` runs.
#[derive(Args, Clone, Debug)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct VerifyArgs {
    /// The directory of the database
    pub dir: PathBuf,
    /// How much memory tables may take
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// One line for a file: its name, bytes, and what is in it.
fn file_lines(inspection: &Inspection) -> Vec<(String, u64, String)> {
    let mut lines = Vec::new();
    for file in &inspection.checkpoint_files {
        let kept: Vec<String> = file.needed_by.iter().map(u64::to_string).collect();
        let kept = if kept.is_empty() { "no checkpoint".to_owned() } else { format!("checkpoint {}", kept.join(", ")) };
        let content = match file.kind {
            CheckpointFileKind::Manifest => format!("manifest of {kept}"),
            CheckpointFileKind::Blobs => {
                format!("{} blobs, {} live bytes, of {kept}", grouped(file.live_blobs), grouped(file.live_bytes))
            }
            CheckpointFileKind::Load => {
                let (blobs, bytes) = (grouped(file.live_blobs), grouped(file.live_bytes));
                let kept =
                    if file.needed_by.is_empty() { "which the log may name".to_owned() } else { format!("of {kept}") };
                format!("{blobs} blobs of a load, {bytes} live bytes, {kept}")
            }
        };
        lines.push((file.name.clone(), file.bytes, content));
    }
    for file in &inspection.log_files {
        let content = match &file.content {
            LogFileContent::Segment { partition, sequence, lsn_before } => {
                format!("log, partition {partition}, segment {sequence}, after commit {lsn_before}")
            }
            LogFileContent::Unfinished => "log, not begun".to_owned(),
            LogFileContent::Damaged(why) => format!("log, damaged: {why}"),
        };
        lines.push((file.name.clone(), file.bytes, content));
    }
    lines
}

/// A time for people.
fn time(micros: i64) -> String {
    Value::TimestampTz(micros).to_string()
}

fn write_json(out: &mut dyn Write, inspection: &Inspection) -> io::Result<()> {
    if let Some(backup) = inspection.backup {
        let log = format!("{:016x}", backup.log);
        writeln!(out, "{}", json!({ "backup_of_log": log, "until": backup.until, "time": time(backup.micros) }))?;
    }
    for checkpoint in &inspection.checkpoints {
        let table = |table: &engine::CheckpointedTable| {
            let name = engine::shown_name(&table.name);
            json!({ "name": name, "ranges": table.ranges, "images": table.images })
        };
        let tables: Vec<_> = checkpoint.tables.iter().map(table).collect();
        let (blobs, bytes) = checkpoint.live;
        let line = json!({ "checkpoint": checkpoint.number, "from": checkpoint.from, "blobs": blobs, "bytes": bytes, "tables": tables });
        writeln!(out, "{line}")?;
    }
    for (name, bytes, content) in file_lines(inspection) {
        writeln!(out, "{}", json!({ "file": name, "bytes": bytes, "content": content }))?;
    }
    inspection.damaged.iter().try_for_each(|what| writeln!(out, "{}", json!({ "damaged": what })))
}

fn write_text(out: &mut dyn Write, inspection: &Inspection) -> io::Result<()> {
    if let Some(backup) = inspection.backup {
        let (until, at) = (backup.until, time(backup.micros));
        writeln!(out, "Backup of log {:016x}: every commit up to {until}, the newest at {at}.", backup.log)?;
        writeln!(out, "An archive of this log that goes on from there brings back any later moment.\n")?;
    }
    if inspection.checkpoints.is_empty() {
        writeln!(out, "There is no checkpoint: the log has everything.\n")?;
    }
    for checkpoint in &inspection.checkpoints {
        let (blobs, bytes) = checkpoint.live;
        let (blobs, bytes) = (grouped(blobs), grouped(bytes));
        writeln!(
            out,
            "Checkpoint {}: {blobs} blobs, {bytes} bytes; the log is needed after commit {}.",
            checkpoint.number, checkpoint.from
        )?;
        let mut table = Table::new([("table", false), ("ranges", true), ("images of commits", false)]);
        for found in &checkpoint.tables {
            let images = found.images.map_or_else(String::new, |(from, to)| format!("{from} to {to}"));
            table.push_texts([engine::shown_name(&found.name), found.ranges.to_string(), images]);
        }
        table.write(out, &Style::default())?;
        writeln!(out)?;
    }
    let mut table = Table::new([("file", false), ("bytes", true), ("content", false)]);
    for (name, bytes, content) in file_lines(inspection) {
        table.push_texts([name, grouped(bytes), content]);
    }
    table.write(out, &Style::default())?;
    inspection.damaged.iter().try_for_each(|what| writeln!(out, "Damaged: {what}"))
}

fn write_lives(out: &mut dyn Write, lives: &[ArchivedLife], as_json: bool) -> io::Result<()> {
    if as_json {
        return lives.iter().try_for_each(|life| {
            let log = format!("{:016x}", life.log);
            let (from, until) = life.commits.unzip();
            let time = from.map(|_| time(life.micros));
            let line = json!({ "log": log, "from": from, "until": until, "time": time, "segments": life.segments,
                               "bytes": life.bytes });
            writeln!(out, "{line}")
        });
    }
    let columns = [("log", false), ("commits", false), ("as of", false), ("segments", true), ("bytes", true)];
    let mut table = Table::new(columns);
    for life in lives {
        let commits = life.commits.map_or_else(String::new, |(from, until)| format!("{from} to {until}"));
        let at = life.commits.map_or_else(String::new, |_| time(life.micros));
        table.push_texts([format!("{:016x}", life.log), commits, at, grouped(life.segments), grouped(life.bytes)]);
    }
    table.write(out, &Style::default())
}

/// Shows what is in a directory.
pub fn inspect(args: &InspectArgs) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("can't inspect {}: {error}", args.dir.display());
    let lives = Database::inspect_archive(&args.dir).map_err(|error| fail(&error))?;
    let mut out = io::stdout().lock();
    let written = if lives.is_empty() {
        let inspection = Database::inspect(&args.dir).map_err(|error| fail(&error))?;
        if args.json { write_json(&mut out, &inspection) } else { write_text(&mut out, &inspection) }
    } else {
        write_lives(&mut out, &lives, args.json)
    };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(fail(&error)),
        _ => Ok(()),
    }
}

/// Looks at all of a database; whether it is whole.
pub fn verify(args: &VerifyArgs) -> Result<bool, String> {
    let fail = |error: &dyn std::fmt::Display| format!("can't verify {}: {error}", args.dir.display());
    let mut bar = progress::replay_progress();
    let progress = move |done: u64, all: u64| bar.iter_mut().for_each(|bar| bar(done, all));
    let options = OpenOptions {
        memory_limit_bytes: args.memory.limit_bytes(),
        progress: Some(Box::new(progress)),
        ..OpenOptions::default()
    };
    let found = Database::verify_with(&args.dir, sql::with_expressions(options)).map_err(|error| fail(&error))?;
    let mut out = io::stdout().lock();
    let written = if args.json {
        let line = json!({ "tables": found.tables, "rows": found.rows, "versions": found.versions,
                           "index_entries": found.index_entries, "checkpoint_bytes": found.checkpoint_bytes,
                           "faults": found.faults });
        writeln!(out, "{line}")
    } else {
        let (tables, rows) = (grouped(found.tables), grouped(found.rows));
        found.faults.iter().try_for_each(|fault| writeln!(out, "fault: {fault}")).and_then(|()| {
            let verdict = match found.faults.len() {
                0 => "no fault".to_owned(),
                1 => "1 fault".to_owned(),
                count => format!("{count} faults"),
            };
            let (versions, entries) = (grouped(found.versions), grouped(found.index_entries));
            let bytes = grouped(found.checkpoint_bytes);
            writeln!(
                out,
                "{tables} tables, {rows} rows in {versions} versions, {entries} index entries, {bytes} bytes of \
                 checkpoints: {verdict}"
            )
        })
    };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(fail(&error)),
        _ => Ok(found.faults.is_empty()),
    }
}

/// Copies a database to an empty directory.
pub fn backup(args: &CopyArgs) -> Result<(), String> {
    let fail = |error: engine::Error| format!("can't back {} up: {error}", args.from.display());
    if !args.from.is_dir() {
        return Err(format!("can't back {} up: there is no such directory", args.from.display()));
    }
    let memory_limit_bytes = MemoryArgs::default().limit_bytes();
    let options = OpenOptions { progress: progress::replay_progress(), memory_limit_bytes, ..OpenOptions::default() };
    let done = sql::open(&args.from, options).and_then(|db| db.backup(&args.to)).map_err(fail)?;
    let (bytes, to) = (grouped(done.bytes), args.to.display());
    println!("{to}: every commit up to {}, {bytes} bytes of checkpoint, {} commits of log", done.until.0, done.commits);
    Ok(())
}

/// Brings a database to a moment in an empty directory, and looks whether it is whole there.
pub fn restore(args: &RestoreArgs) -> Result<bool, String> {
    let fail = |error: engine::Error| format!("can't restore {}: {error}", args.from.display());
    let moment = match (args.to_lsn, args.to_time) {
        (Some(lsn), _) => RecoveryTarget::Lsn(lsn),
        (None, Some(micros)) => RecoveryTarget::Time(micros),
        (None, None) => RecoveryTarget::Latest,
    };
    let mut bar = progress::replay_progress();
    let progress = |done: u64, all: u64| bar.iter_mut().for_each(|bar| bar(done, all));
    let done = Database::restore_to(&args.from, args.archive.as_deref(), &args.to, moment, progress).map_err(fail)?;
    let (bytes, to) = (grouped(done.bytes), args.to.display());
    let at = done.micros.map_or_else(String::new, |micros| format!(" ({})", time(micros)));
    println!(
        "{to}: every commit up to {}{at}, {bytes} bytes of checkpoint, {} commits of log",
        done.until.0, done.commits
    );
    verify(&VerifyArgs { dir: args.to.clone(), memory: MemoryArgs::default(), json: false })
}
