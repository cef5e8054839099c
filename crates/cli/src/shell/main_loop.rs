//! The loop of the shell: lines come from a source, and what they hold runs.
//!
//! An error is told, and the loop goes on with what follows, unless a script is to stop at its first error (`ON_ERROR_STOP`).
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use super::buffer::{Cut, TextLine};
use super::lines::{Line, LineSource, Script};
use super::reading::{Destination, Next, Reading, place};
use super::{Failure, Shell, Stop, trouble};
use crate::diagnostics::ScriptPlace;

/// How deep scripts may include scripts.
const INCLUDE_DEPTH_MAX: usize = 32;

/// What a failure means to what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Nothing: a user decides what comes next.
    Typed,
    /// Its end, where the script is to stop at errors.
    Script,
    /// Its end, as what one argument of the command line says belongs together.
    Argument,
}

impl Manner {
    fn of(source: &dyn LineSource) -> Manner {
        match source.name() {
            _ if source.is_interactive() => Manner::Typed,
            Some(_) => Manner::Script,
            None => Manner::Argument,
        }
    }
}

impl Shell {
    /// Runs SQL and backslash commands of the command line, up to the first that fails.
    ///
    /// # Errors
    /// - [`Stop::Failed`] if something has failed, which has been reported, and `ON_ERROR_STOP` is set.
    /// - [`Stop::Quit`] if the user leaves.
    /// - [`Stop::Output`] if the output does not take more.
    pub fn run_text(&mut self, text: &str) -> Result<(), Stop> {
        let mut bytes = text.as_bytes();
        match self.run_source(&mut Script::new(&mut bytes, None)) {
            Err(Stop::Script) if self.variables.is_on("ON_ERROR_STOP") => Err(Stop::Failed),
            Ok(()) | Err(Stop::Script) => Ok(()),
            Err(stop) => Err(stop),
        }
    }

    /// Runs the script at `path`, `-` being standard input.
    ///
    /// # Errors
    /// As [`run_source`](Self::run_source); [`Stop::Failed`], too, if the file cannot be read and `ON_ERROR_STOP` is set.
    pub fn run_file(&mut self, path: &Path) -> Result<(), Stop> {
        if path == Path::new("-") {
            return self.run_source(&mut Script::stdin(Some("<stdin>")));
        }
        match self.include(path) {
            Err(Failure::Stop(stop)) => Err(stop),
            done => self.settle(done, None, Manner::Script).map_err(|stop| match stop {
                Stop::Script => Stop::Failed,
                stop => stop,
            }),
        }
    }

    /// Runs a script that another one, or a user, names.
    pub(crate) fn include(&mut self, path: &Path) -> Result<(), Failure> {
        if self.scripts.len() == INCLUDE_DEPTH_MAX {
            return Err(Failure::Message(format!("{}: scripts include each other too deeply", path.display())));
        }
        let file = File::open(path).map_err(|error| trouble(path.display(), &error))?;
        self.scripts.push(path.to_owned());
        let (mut lines, name) = (BufReader::new(file), path.display().to_string());
        let done = self.run_source(&mut Script::new(&mut lines, Some(&name)));
        self.scripts.pop();
        Ok(done?)
    }

    /// Runs all that comes from a source of lines.
    ///
    /// # Errors
    /// - [`Stop::Script`] if a statement has failed that is to end a script.
    /// - [`Stop::Quit`] if the user leaves.
    /// - [`Stop::Output`] if the terminal is gone: no line can be read, or the output does not take what is written.
    pub fn run_source(&mut self, source: &mut dyn LineSource) -> Result<(), Stop> {
        let mut reading = Reading::default();
        let mut entry = String::new();
        let (is_interactive, manner) = (source.is_interactive(), Manner::of(source));
        loop {
            // Ctrl-C ends the scripts that the user's line has begun, too.
            if is_interactive {
                self.interrupts.begin();
            } else if self.interrupts.has_come() {
                return Err(Stop::Script);
            }
            let prompt = if is_interactive { self.prompt(&reading) } else { String::new() };
            let line = match source.read_line(&prompt) {
                Ok(Line::Text(line)) => line,
                Ok(Line::Interrupted) => {
                    reading.buffer.clear();
                    reading.branches.leave();
                    entry.clear();
                    continue;
                }
                Ok(Line::End) => break,
                Err(error) if is_interactive => return Err(Stop::Output(error)),
                Err(error) => {
                    reading.number += 1;
                    reading.buffer.clear();
                    let place = place(source, reading.number);
                    self.settle(Err(Failure::Message(error.to_string())), place.as_ref(), manner)?;
                    if error.kind() == io::ErrorKind::InvalidData { continue } else { break }
                }
            };
            reading.number += 1;
            if is_interactive {
                if reading.buffer.is_empty() && is_farewell(&line) {
                    return Ok(());
                }
                if reading.buffer.is_empty() && line.trim().trim_end_matches(';') == "help" {
                    let told = self.help_begin();
                    self.settle(told, None, manner)?;
                    continue;
                }
                entry.push_str(if entry.is_empty() { "" } else { "\n" });
                entry.push_str(&line);
            } else if self.variables.text("ECHO") == "all" {
                writeln!(self.out(), "{line}")?;
            }
            self.run_line(&mut reading, &line, source)?;
            if is_interactive && reading.buffer.is_empty() {
                let entry = std::mem::take(&mut entry);
                if !entry.trim().is_empty() {
                    source.remember(&entry);
                }
            }
        }
        self.end_of(&mut reading, source)
    }

    /// The source is over: what is left is the last statement of a script, semicolon or not.
    fn end_of(&mut self, reading: &mut Reading, source: &mut dyn LineSource) -> Result<(), Stop> {
        let manner = Manner::of(source);
        let is_script = manner != Manner::Typed;
        if is_script && reading.is_active() && !reading.buffer.text.trim().is_empty() {
            let sent = self.send(reading, Destination::default(), source);
            self.settle(sent, None, manner)?;
        }
        if reading.branches.is_open() && is_script {
            let message = "reached EOF without finding closing \\endif(s)".to_owned();
            self.settle(Err(Failure::Message(message)), None, manner)?;
        }
        Ok(())
    }

    fn run_line(&mut self, reading: &mut Reading, line: &str, source: &mut dyn LineSource) -> Result<(), Stop> {
        let manner = Manner::of(source);
        let mut line = TextLine::new(line, reading.number);
        loop {
            let done = match reading.buffer.take(&mut line, &self.variables) {
                Cut::End => return Ok(()),
                Cut::Statement if reading.is_active() => self.send(reading, Destination::default(), source),
                Cut::Statement => {
                    reading.buffer.clear();
                    if manner == Manner::Typed {
                        let message = "query ignored; use \\endif or Ctrl-C to exit current \\if block";
                        self.tell_failure(message, None)?;
                    }
                    Ok(())
                }
                Cut::Command => match self.run_command(reading, &mut line, source) {
                    Ok(Next::Line) => Ok(()),
                    Ok(Next::Send(destination)) => self.send(reading, *destination, source),
                    Err(failure) => {
                        // What stands behind a command that failed was meant for when it had not.
                        line.pass_all();
                        Err(failure)
                    }
                },
            };
            let place = place(source, line.number);
            self.settle(done, place.as_ref(), manner)?;
        }
    }

    /// Tells of a failure; whether that ends a script is the user's choice.
    fn settle(&mut self, done: Result<(), Failure>, place: Option<&ScriptPlace>, manner: Manner) -> Result<(), Stop> {
        match done {
            Ok(()) => return Ok(()),
            Err(Failure::Stop(Stop::Script)) if manner == Manner::Typed => return Ok(()),
            Err(Failure::Stop(stop)) => return Err(stop),
            Err(Failure::Message(message)) => self.tell_failure(&message, place)?,
            Err(Failure::Told) => {}
        }
        self.has_failed = true;
        match manner {
            Manner::Argument => Err(Stop::Script),
            Manner::Script if self.variables.is_on("ON_ERROR_STOP") => Err(Stop::Script),
            Manner::Typed | Manner::Script => Ok(()),
        }
    }
}

/// Whether the line is a word that people leave programs with.
fn is_farewell(line: &str) -> bool {
    matches!(line.trim().trim_end_matches(';'), "exit" | "quit")
}
