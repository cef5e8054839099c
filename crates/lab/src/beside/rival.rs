//! Another engine in a process of its own: a Python that has its package, and the script that answers questions line by line.
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::answers::Row;
use crate::{LabError, Progress};

/// An engine that has a package of Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RivalKind {
    /// The package duckdb of Python
    Duckdb,
    /// The package datafusion of Python: our planner on tables of its own
    Datafusion,
}

impl RivalKind {
    /// As people call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RivalKind::Duckdb => "DuckDB",
            RivalKind::Datafusion => "DataFusion",
        }
    }

    /// Its package.
    fn package(self) -> &'static str {
        match self {
            RivalKind::Duckdb => "duckdb",
            RivalKind::Datafusion => "datafusion",
        }
    }

    fn script(self) -> &'static str {
        match self {
            RivalKind::Duckdb => include_str!("duckdb.py"),
            RivalKind::Datafusion => include_str!("datafusion.py"),
        }
    }

    /// By how much its averages of decimals may be rounded.
    pub(crate) fn rounding(self) -> f64 {
        match self {
            RivalKind::Duckdb => 0.0,
            // They have six digits behind the point.
            RivalKind::Datafusion => 1e-6,
        }
    }

    /// The folder of its environment.
    fn environment_name(self) -> &'static str {
        match self {
            RivalKind::Duckdb => "python",
            RivalKind::Datafusion => "python-datafusion",
        }
    }
}

/// One measured run of a query.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    /// of all its threads; `None` where it is not known
    pub(crate) cpu_seconds: Option<f64>,
}

/// The Python of an environment in a folder, which is made, with the engine from the index of Python's packages, unless it is there.
pub(crate) fn environment(dir: &Path, kind: RivalKind, progress: &dyn Progress) -> Result<PathBuf, LabError> {
    environment_with(&dir.join(kind.environment_name()), kind.package(), &[kind.package()], progress)
}

/// The Python of an environment with some packages, which is made unless it is there; `module` is imported to see that it is.
pub(crate) fn environment_with(
    environment: &Path,
    module: &str,
    packages: &[&str],
    progress: &dyn Progress,
) -> Result<PathBuf, LabError> {
    let python = environment.join("bin").join("python");
    if done(&python, &["-c", &format!("import {module}")].map(Path::new)).is_ok() {
        return Ok(python);
    }
    let packages_told = packages.join(" and ");
    progress.start(&format!("making a Python environment with {packages_told}"), 2);
    let base = Path::new("python3");
    let make = ["-m", "venv", "--clear"].map(Path::new);
    done(base, &[&make[..], &[environment]].concat()).map_err(|why| {
        let remedy = format!(
            "Install Python 3 with its module venv, or name a Python that has the package {packages_told} with --python"
        );
        LabError::Failed(format!("no Python environment could be made in {}: {why}. {remedy}", environment.display()))
    })?;
    progress.advance(1);
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let install: Vec<&Path> = install.iter().chain(packages).map(Path::new).collect();
    done(&python, &install).map_err(|why| {
        let remedy = "It comes over the network. Without one, name a Python that has it with --python";
        LabError::Failed(format!("the package {packages_told} could not be installed: {why}. {remedy}"))
    })?;
    progress.advance(1);
    progress.finish(&format!("a Python environment with {packages_told} is there"));
    Ok(python)
}

/// Runs a program to its end; the last that it said, if it failed.
pub(crate) fn done(program: &Path, args: &[&Path]) -> Result<(), String> {
    let ran = Command::new(program).args(args).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("{} does not start: {error}", program.display()))?;
    match ran.status.success() {
        true => Ok(()),
        false => {
            let (errors, text) = (String::from_utf8_lossy(&ran.stderr), String::from_utf8_lossy(&ran.stdout));
            let mut lines = errors.lines().chain(text.lines()).map(str::trim).filter(|line| !line.is_empty());
            let last = lines.next_back().unwrap_or("it does not say why").trim_end_matches('.').to_owned();
            Err(last)
        }
    }
}

/// The engine, with its tables in memory. It ends when this is dropped.
pub(crate) struct Rival {
    pub(crate) kind: RivalKind,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub(crate) version: String,
}

impl Rival {
    /// Starts it in a Python that has its package.
    pub(crate) fn start(kind: RivalKind, python: &Path) -> Result<Rival, LabError> {
        let fail =
            |why: String| LabError::Failed(format!("{} does not start in {}: {why}", kind.name(), python.display()));
        let mut command = Command::new(python);
        command.args(["-c", kind.script()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| fail(error.to_string()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fail("it has no input and output".to_owned()));
        };
        let (input, output) = (Some(input), BufReader::new(output));
        let mut rival = Rival { kind, child, input, output, version: String::new() };
        let first = rival.answer().map_err(|error| fail(error.to_string()))?;
        rival.version = first["version"].as_str().unwrap_or("of no version").to_owned();
        Ok(rival)
    }

    /// Makes a table of a Parquet file.
    pub(crate) fn load(&mut self, table: &str, path: &Path) -> Result<(), LabError> {
        self.ask(&json!({ "load": table, "path": path.display().to_string() })).map(drop)
    }

    /// Runs statements that have no rows.
    pub(crate) fn execute(&mut self, text: &str) -> Result<(), LabError> {
        self.ask(&json!({ "execute": text })).map(drop)
    }

    /// Runs queries on so many threads from now on.
    pub(crate) fn set_threads(&mut self, threads: usize) -> Result<(), LabError> {
        self.ask(&json!({ "threads": threads })).map(drop)
    }

    /// Measures a query.
    pub(crate) fn run(&mut self, query: &str) -> Result<Run, LabError> {
        let told = self.ask(&json!({ "run": query }))?;
        let seconds = told["seconds"].as_f64().ok_or_else(|| self.unreadable(&told))?;
        Ok(Run { seconds, cpu_seconds: told["cpu_seconds"].as_f64() })
    }

    /// The rows of a query.
    pub(crate) fn rows(&mut self, query: &str) -> Result<Vec<Row>, LabError> {
        let mut told = self.ask(&json!({ "rows": query }))?;
        serde_json::from_value(told["rows"].take()).map_err(|_| self.unreadable(&told))
    }

    fn ask(&mut self, request: &Value) -> Result<Value, LabError> {
        if let Some(input) = &mut self.input {
            let written = writeln!(input, "{request}").and_then(|()| input.flush());
            written.map_err(|error| self.ended(&error.to_string()))?;
        }
        self.answer()
    }

    fn answer(&mut self) -> Result<Value, LabError> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => return Err(self.ended("it says nothing more")),
            Ok(_) => {}
            Err(error) => return Err(self.ended(&error.to_string())),
        }
        let told: Value = serde_json::from_str(&line).map_err(|_| self.unreadable(&line))?;
        match told["error"].as_str() {
            Some(why) => Err(LabError::Failed(format!("{}: {why}", self.kind.name()))),
            None => Ok(told),
        }
    }

    fn ended(&self, why: &str) -> LabError {
        LabError::Failed(format!("{} has ended: {why}", self.kind.name()))
    }

    fn unreadable(&self, told: &dyn std::fmt::Display) -> LabError {
        LabError::Failed(format!("{} answers what the benchmark does not understand: {told}", self.kind.name()))
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        // At the end of its input the script ends.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
