//! Runs statements, and tells what comes of them: rows, a tag, notices, an error, how long it took.
//!
//! Statements that are sent together (`\;`) are one transaction without `BEGIN`, as with PostgreSQL's protocol.
use std::io::{self, Write};
use std::time::{Duration, Instant};

use sql::{Notice, Notification, Outcome, SqlError, TransactionStatus};

use super::copy_rows::{CopyRows, RowSource};
use super::lines::LineSource;
use super::reading::{Destination, Reading, place};
use super::sink::Sink;
use super::variables::literal;
use super::words::{first_word, takes_rows};
use super::{Failure, Shell, Stop, trouble};
use crate::diagnostics::ScriptPlace;
use crate::output::rows::RowsError;
use crate::output::style::Format;

/// The savepoint before each statement where `ON_ERROR_ROLLBACK` is set.
const SAVEPOINT: &str = "pg_psql_temporary_savepoint";
/// The code of a statement that the user has stopped.
const CANCELED: &str = "57014";
/// The name under which a statement with parameters is prepared.
const BOUND: &str = "lstore_bound";

/// A statement that runs: its text, and where it stands.
#[derive(Clone, Copy)]
struct Statement<'t> {
    text: &'t str,
    place: Option<&'t ScriptPlace>,
}

impl Shell {
    /// Sends what has been typed, or what was sent before where nothing has.
    pub(crate) fn send(
        &mut self,
        reading: &mut Reading,
        destination: Destination,
        source: &mut dyn LineSource,
    ) -> Result<(), Failure> {
        let typed = reading.buffer.finish();
        let text = if typed.is_empty() { reading.buffer.previous.clone() } else { typed };
        let before = match &destination.sink {
            Some(target) => {
                let sink = Sink::open(target).map_err(|error| trouble(target.trim(), &error))?;
                self.out().flush()?;
                Some(self.redirected.replace(sink))
            }
            None => None,
        };
        let done = self.send_text(&text, reading, &destination, source);
        if let Some(before) = before {
            self.out().flush()?;
            self.redirected = before;
        }
        done
    }

    pub(super) fn send_text(
        &mut self,
        text: &str,
        reading: &mut Reading,
        destination: &Destination,
        source: &mut dyn LineSource,
    ) -> Result<(), Failure> {
        let pieces = sql::split(text);
        let line = reading.buffer.line;
        let place_of =
            |source: &dyn LineSource, offset: usize| place(source, line + text[..offset].matches('\n').count());
        let [_, _, ..] = pieces[..] else {
            return match pieces.is_empty() {
                true => Ok(()),
                false => {
                    let place = place_of(source, 0);
                    self.run_statement(Statement { text, place: place.as_ref() }, reading, destination, source)
                }
            };
        };
        for piece in &pieces {
            let place = place_of(source, piece.offset);
            let statement = Statement { text: piece.text, place: place.as_ref() };
            let begun = self.session.begin_implicit().map_err(|error| self.failed(&error, statement));
            let done = begun.and_then(|()| self.run_statement(statement, reading, destination, source));
            if done.is_err() {
                // The statements before it are undone with it, which the error has told.
                let _ = self.session.end_implicit();
                return done;
            }
        }
        let place = place_of(source, 0);
        self.session.end_implicit().map_err(|error| self.failed(&error, Statement { text, place: place.as_ref() }))
    }

    fn run_statement(
        &mut self,
        statement: Statement<'_>,
        reading: &mut Reading,
        destination: &Destination,
        source: &mut dyn LineSource,
    ) -> Result<(), Failure> {
        if self.variables.text("ECHO") == "queries" {
            writeln!(self.out(), "{}", statement.text)?;
        }
        let is_guarded = self.prepare_ground(statement, source)?;
        let start = Instant::now();
        let done = self.execute(statement, reading, destination, source);
        if is_guarded {
            self.leave_guard(&done);
        }
        let done = match done {
            Ok(()) => Ok(()),
            Err(RowsError::Output(error)) => return Err(error.into()),
            Err(RowsError::Refused(message)) => Err(Failure::Message(message)),
            Err(RowsError::Query(error)) => Err(self.failed(&error, statement)),
        };
        if self.timing {
            let line = timing_line(start.elapsed());
            writeln!(self.out(), "{line}")?;
        }
        self.tell_heard()?;
        self.out().flush()?;
        match done {
            Ok(()) if destination.executes => self.run_cells(reading, source),
            done => done,
        }
    }

    /// Runs a statement about the transaction around all that the command line asks for, without a word where it does not fail.
    pub(crate) fn control(&mut self, text: &str) -> Result<(), Stop> {
        let Err(error) = self.session.execute(text) else { return Ok(()) };
        self.has_failed = true;
        self.tell_error(&error, text, None)?;
        Err(Stop::Failed)
    }

    /// Begins what surrounds the statement: a transaction where statements do not commit by themselves, a savepoint where failures are
    /// to be rolled back. Returns whether there is a savepoint.
    fn prepare_ground(&mut self, statement: Statement<'_>, source: &dyn LineSource) -> Result<bool, Failure> {
        let word = first_word(statement.text);
        let is_control =
            ["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "prepare", "vacuum"]
                .contains(&word.as_str());
        if self.session.transaction_status() == TransactionStatus::Idle {
            if !self.variables.is_on("AUTOCOMMIT") && !is_control {
                self.session.execute("BEGIN").map_err(|error| self.failed(&error, statement))?;
            } else {
                return Ok(false);
            }
        }
        let wanted = match self.variables.text("ON_ERROR_ROLLBACK") {
            "on" => true,
            "interactive" => source.is_interactive(),
            _ => false,
        };
        if !wanted || is_control || self.session.transaction_status() != TransactionStatus::InBlock {
            return Ok(false);
        }
        self.session.execute(&format!("SAVEPOINT {SAVEPOINT}")).map_err(|error| self.failed(&error, statement))?;
        Ok(true)
    }

    /// Ends the savepoint: what the statement has done is kept, or undone where it failed.
    fn leave_guard(&mut self, done: &Result<(), RowsError>) {
        let _ = match done {
            Ok(()) => self.session.execute(&format!("RELEASE {SAVEPOINT}")),
            Err(_) => self.session.execute(&format!("ROLLBACK TO {SAVEPOINT}")),
        };
    }

    fn execute(
        &mut self,
        statement: Statement<'_>,
        reading: &mut Reading,
        destination: &Destination,
        source: &mut dyn LineSource,
    ) -> Result<(), RowsError> {
        if destination.describes {
            return self.tell_columns(statement.text);
        }
        let text = self.with_bound(statement.text).map_err(RowsError::Query)?;
        let out: &mut dyn Write = match &mut self.redirected {
            Some(sink) => sink,
            None => self.settings.out.as_mut(),
        };
        let mut rows = CopyRows::new(RowSource::Lines(source), out);
        let executed = self.session.execute_with_input(&text, &mut rows);
        match &executed {
            Err(error) if error.sqlstate == CANCELED => rows.give_up(),
            Err(_) if takes_rows(&text) => rows.expect(),
            _ => {}
        }
        rows.pass_over()?;
        let has_copied = rows.has_given;
        reading.number += rows.lines;
        match executed {
            Ok(Outcome::Rows(rows)) => {
                let tag = rows.tag().map(str::to_owned);
                let count = self.take_rows(rows, destination)?;
                self.note_success(count);
                // Of a query the rows are all that there is to say.
                let tag = tag.filter(|tag| !["SELECT", "FETCH"].iter().any(|word| tag.starts_with(word)));
                Ok(tag.map_or(Ok(()), |tag| self.tell_tag(&tag))?)
            }
            Ok(Outcome::Done(command)) => {
                self.note_success(command.rows().unwrap_or(0));
                self.tell_notices(&command.notices, statement.place)?;
                // The rows are all that there is to say, as a reader of them expects.
                if has_copied { Ok(()) } else { Ok(self.tell_tag(&command.tag)?) }
            }
            Err(error) => Err(RowsError::Query(error)),
        }
    }

    /// Runs a `COPY` whose rows come from elsewhere, or go to elsewhere.
    pub(crate) fn copy_rows(
        &mut self,
        text: &str,
        reading: &mut Reading,
        from: RowSource<'_>,
        to: Option<&mut dyn Write>,
    ) -> Result<(), Failure> {
        let goes_elsewhere = to.is_some();
        let out: &mut dyn Write = match (to, &mut self.redirected) {
            (Some(to), _) => to,
            (None, Some(sink)) => sink,
            (None, None) => self.settings.out.as_mut(),
        };
        let mut rows = CopyRows::new(from, out);
        let executed = self.session.execute_with_input(text, &mut rows);
        if executed.as_ref().is_err_and(|error| error.sqlstate == CANCELED) {
            rows.give_up();
        }
        rows.pass_over()?;
        let has_copied = rows.has_given && !goes_elsewhere;
        reading.number += rows.lines;
        let place = self.place.clone();
        match executed {
            Ok(Outcome::Done(command)) => {
                self.note_success(command.rows().unwrap_or(0));
                self.tell_notices(&command.notices, place.as_ref())?;
                if has_copied { Ok(()) } else { Ok(self.tell_tag(&command.tag)?) }
            }
            Ok(Outcome::Rows(_)) => Ok(()),
            Err(error) => Err(self.failed(&error, Statement { text, place: place.as_ref() })),
        }
    }

    /// The text of the statement, or of what runs it with the values of `\bind`.
    fn with_bound(&mut self, text: &str) -> Result<String, SqlError> {
        let Some(values) = self.bound.take() else { return Ok(text.to_owned()) };
        // A statement that was bound before is there only where it failed.
        let _ = self.session.execute(&format!("DEALLOCATE {BOUND}"));
        self.session.execute(&format!("PREPARE {BOUND} AS {text}"))?;
        let values: Vec<String> = values.iter().map(|value| literal(value)).collect();
        let values = if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) };
        Ok(format!("EXECUTE {BOUND}{values}"))
    }

    fn failed(&mut self, error: &SqlError, statement: Statement<'_>) -> Failure {
        self.note_failure(error);
        let is_told = self.tell_error(error, statement.text, statement.place);
        let echoes = self.variables.text("ECHO") == "errors";
        let told = match is_told {
            Ok(()) if echoes => self.write_error(&format!("STATEMENT:  {}\n", statement.text)),
            told => told,
        };
        told.map_or_else(Failure::from, |()| Failure::Told)
    }

    fn note_success(&mut self, rows: u64) {
        for (name, value) in [("ERROR", "false"), ("SQLSTATE", "00000"), ("ROW_COUNT", &rows.to_string())] {
            // These names are names.
            let _ = self.variables.set(name, value);
        }
    }

    fn note_failure(&mut self, error: &SqlError) {
        let told = [
            ("ERROR", "true"),
            ("SQLSTATE", error.sqlstate),
            ("ROW_COUNT", "0"),
            ("LAST_ERROR_SQLSTATE", error.sqlstate),
            ("LAST_ERROR_MESSAGE", &error.message),
        ];
        for (name, value) in told {
            let _ = self.variables.set(name, value);
        }
    }

    /// Tells what has been said with `NOTIFY` on channels that the session listens to, outside of a transaction, as psql does.
    fn tell_heard(&mut self) -> io::Result<()> {
        if !self.session.has_listened() || self.session.transaction_status() != TransactionStatus::Idle {
            return Ok(());
        }
        for Notification { channel, payload, process } in self.session.mailbox().take() {
            let with = if payload.is_empty() { String::new() } else { format!(" with payload \"{payload}\"") };
            let from = format!("received from server process with PID {process}.");
            writeln!(self.out(), "Asynchronous notification \"{channel}\"{with} {from}")?;
        }
        Ok(())
    }

    fn tell_notices(&mut self, notices: &[Notice], place: Option<&ScriptPlace>) -> io::Result<()> {
        for notice in notices {
            let place = place.map_or_else(String::new, |place| format!("{}:{}: ", place.file, place.line));
            self.write_error(&format!("{place}{}:  {notice}\n", notice.severity))?;
        }
        Ok(())
    }

    fn tell_tag(&mut self, tag: &str) -> io::Result<()> {
        let is_wanted =
            self.settings.interactive || matches!(self.settings.style.format, Format::Table | Format::Wrapped);
        if is_wanted && !self.variables.is_on("QUIET") {
            writeln!(self.out(), "{tag}")?;
        }
        Ok(())
    }
}

/// How long a statement took, as psql tells it.
fn timing_line(elapsed: Duration) -> String {
    let ms = elapsed.as_secs_f64() * 1000.0;
    if ms < 1000.0 {
        return format!("Time: {ms:.3} ms");
    }
    let seconds = elapsed.as_secs_f64();
    format!("Time: {ms:.3} ms ({:02}:{:06.3})", seconds as u64 / 60, seconds % 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timing_is_told_as_psql_does() {
        assert_eq!(timing_line(Duration::from_micros(1_234)), "Time: 1.234 ms");
        assert_eq!(timing_line(Duration::from_millis(61_500)), "Time: 61500.000 ms (01:01.500)");
    }
}
