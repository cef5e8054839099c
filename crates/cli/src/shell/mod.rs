//! Runs statements and scripts on one session and writes what comes of them.
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Database;
use sql::{Command, FileAccess, Notification, Outcome, Session, SessionOptions, SqlError, TransactionStatus};

use crate::diagnostics::{self, ScriptPlace};
use crate::input::{Input, Item};
use crate::output::{RowsError, Style, write_rows};
use crate::progress::CopyBars;
use crate::script_rows::ScriptRows;

/// How deep scripts may include scripts.
const INCLUDE_DEPTH_MAX: usize = 32;

/// Why running did not go on.
#[derive(Debug)]
pub enum Stop {
    /// A statement or command failed; the user has been told.
    Failed,
    /// `\q`
    Quit,
    /// The output does not take more.
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Output(error)
    }
}

/// Where a shell writes, and how.
pub struct Settings {
    /// Where rows and tags go.
    pub out: Box<dyn Write>,
    /// Where errors and notices go.
    pub err: Box<dyn Write>,
    /// How rows look.
    pub style: Style,
    /// Whether errors may be coloured.
    pub err_color: bool,
    /// Whether a user types the statements: tags are then written in every format.
    pub interactive: bool,
    /// Whether long statements that read or write files show a bar.
    pub bars: bool,
}

/// A session with what surrounds it.
pub struct Shell {
    pub(crate) db: Database,
    pub(crate) session: Session,
    pub(crate) settings: Settings,
    /// the file that `\o` named, which then takes the place of `settings.out`
    pub(crate) redirected: Option<Box<dyn Write>>,
    pub(crate) timing: bool,
    /// The key that `\restrict` named: no other backslash command is taken until `\unrestrict` names it.
    pub(crate) restricted: Option<String>,
    depth: usize,
}

impl Shell {
    /// A shell on a database.
    pub fn new(db: &Database, settings: Settings) -> Shell {
        // Without a device that can be used the CPU does everything.
        let offload = devices::open().ok();
        let options = SessionOptions { files: FileAccess::Allowed, offload, ..SessionOptions::default() };
        let mut session = Session::new(db, options);
        if settings.bars {
            session.set_progress(Arc::new(CopyBars::default()));
        }
        let db = db.clone();
        Shell { db, session, settings, redirected: None, timing: false, restricted: None, depth: 0 }
    }

    /// Whether a transaction that the user began is open.
    pub fn in_transaction(&self) -> bool {
        self.session.transaction_status() != TransactionStatus::Idle
    }

    /// Where rows go at present.
    pub(crate) fn out(&mut self) -> &mut dyn Write {
        self.redirected.as_mut().unwrap_or(&mut self.settings.out).as_mut()
    }

    /// Runs SQL text and backslash commands to the end or the first failure.
    ///
    /// # Errors
    /// - [`Stop::Failed`] if a statement or command has failed, which has been reported.
    /// - [`Stop::Quit`] if the user leaves.
    /// - [`Stop::Output`] if the output does not take more.
    pub fn run_text(&mut self, text: &str) -> Result<(), Stop> {
        self.run_lines(&mut text.as_bytes(), None)
    }

    /// Runs the script at `path`, `-` being standard input.
    ///
    /// # Errors
    /// As [`run_text`](Self::run_text); [`Stop::Failed`], too, if the file cannot be read, is no UTF-8, or scripts
    /// include each other too deeply.
    pub fn run_file(&mut self, path: &Path) -> Result<(), Stop> {
        if path == Path::new("-") {
            return self.run_lines(&mut io::stdin().lock(), Some("<stdin>"));
        }
        if self.depth == INCLUDE_DEPTH_MAX {
            return Err(self.fail(&format!("{}: scripts include each other too deeply", path.display()), None));
        }
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => return Err(self.fail(&format!("{}: {error}", path.display()), None)),
        };
        self.depth += 1;
        let done = self.run_lines(&mut BufReader::new(file), Some(&path.display().to_string()));
        self.depth -= 1;
        done
    }

    fn run_lines(&mut self, lines: &mut dyn BufRead, name: Option<&str>) -> Result<(), Stop> {
        let mut input = Input::default();
        let mut number = 0;
        let mut line = Vec::new();
        loop {
            line.clear();
            number += 1;
            let place = |line| name.map(|file| ScriptPlace { file: file.to_owned(), line });
            let count = match lines.read_until(b'\n', &mut line) {
                Ok(count) => count,
                Err(error) => return Err(self.fail(&error.to_string(), place(number).as_ref())),
            };
            if count == 0 {
                break;
            }
            let Ok(text) = std::str::from_utf8(&line) else {
                return Err(self.fail("invalid byte sequence for encoding \"UTF8\"", place(number).as_ref()));
            };
            let text = text.strip_suffix('\n').unwrap_or(text);
            let text = text.strip_suffix('\r').unwrap_or(text);
            let text = if number == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
            let items = input.push_line(text);
            // Where rows of COPY follow is known of scripts only.
            let taken = match name {
                Some(_) => self.run_items(items, name, Some(&mut *lines))?,
                None => self.run_items(items, name, None)?,
            };
            input.pass_over(taken);
            number += taken;
        }
        self.run_items(input.finish(), name, None).map(drop)
    }

    /// Runs items to the end or the first failure; `file` names where they come from, and `script` is what follows there. Returns how many
    /// lines of that were rows.
    pub(crate) fn run_items(
        &mut self,
        items: Vec<Item>,
        file: Option<&str>,
        mut script: Option<&mut dyn BufRead>,
    ) -> Result<usize, Stop> {
        let place = |line| file.map(|file| ScriptPlace { file: file.to_owned(), line });
        let mut taken = 0;
        for item in items {
            match item {
                Item::Statement { text, line } => {
                    // What is lent to one statement goes on to the next.
                    let rows = script.as_mut().map(|script| &mut **script as &mut dyn BufRead);
                    taken += self.run_statement(&text, place(line).as_ref(), rows)?;
                }
                Item::Command { text, line } => self.run_command(&text, place(line).as_ref())?,
            }
        }
        Ok(taken)
    }

    fn run_statement(
        &mut self,
        statement: &str,
        place: Option<&ScriptPlace>,
        script: Option<&mut dyn BufRead>,
    ) -> Result<usize, Stop> {
        let start = Instant::now();
        let out = self.redirected.as_deref_mut().unwrap_or(&mut *self.settings.out);
        let mut rows = ScriptRows::new(script, out);
        let executed = self.session.execute_with_input(statement, &mut rows);
        rows.pass_over()?;
        let (has_copied, taken) = (rows.has_given, rows.lines);
        let done = match executed {
            Ok(Outcome::Rows(rows)) => {
                let (schema, _zone) = (rows.schema(), rows.in_zone());
                let style = self.settings.style;
                let style = Style { color: style.color && self.redirected.is_none(), ..style };
                let tag = rows.tag().map(str::to_owned);
                let written = write_rows(self.out(), &schema, rows, style);
                written.and_then(|_| tag.map_or(Ok(()), |tag| self.tell_tag(&tag).map_err(RowsError::Output)))
            }
            // The rows are all that there is to say, as a reader of them expects.
            Ok(Outcome::Done(_)) if has_copied => Ok(()),
            Ok(Outcome::Done(command)) => self.tell_done(&command).map_err(RowsError::Output),
            Err(error) => Err(RowsError::Query(error)),
        };
        match done {
            Ok(()) => {}
            Err(RowsError::Output(error)) => return Err(Stop::Output(error)),
            Err(RowsError::Query(error)) => return Err(self.tell_error(&error, statement, place)),
        }
        if self.timing {
            let line = timing_line(start.elapsed());
            writeln!(self.out(), "{line}")?;
        }
        self.tell_heard()?;
        self.out().flush()?;
        Ok(taken)
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

    fn tell_done(&mut self, command: &Command) -> io::Result<()> {
        if !command.notices.is_empty() {
            self.out().flush()?;
            for notice in &command.notices {
                writeln!(self.settings.err, "{}:  {notice}", notice.severity)?;
            }
            self.settings.err.flush()?;
        }
        self.tell_tag(&command.tag)
    }

    fn tell_tag(&mut self, tag: &str) -> io::Result<()> {
        if self.settings.interactive || self.settings.style.format == crate::output::Format::Table {
            writeln!(self.out(), "{tag}")?;
        }
        Ok(())
    }

    fn tell_error(&mut self, error: &SqlError, statement: &str, place: Option<&ScriptPlace>) -> Stop {
        let text = diagnostics::render(error, statement, place, self.settings.err_color);
        // Output from before the failure comes before its message.
        if let Err(error) = self.out().flush() {
            return Stop::Output(error);
        }
        match self.settings.err.write_all(text.as_bytes()).and_then(|()| self.settings.err.flush()) {
            Ok(()) => Stop::Failed,
            Err(error) => Stop::Output(error),
        }
    }

    /// Tells of a failure that no statement is to blame for.
    pub(crate) fn fail(&mut self, message: &str, place: Option<&ScriptPlace>) -> Stop {
        self.tell_error(&SqlError::new("XX000", message), "", place)
    }

    /// Has rows go to the file at `path` from now on, or back to where they went at first.
    pub(crate) fn redirect(&mut self, path: Option<&Path>) -> io::Result<()> {
        self.out().flush()?;
        self.redirected = match path {
            Some(path) => Some(Box::new(BufWriter::new(File::create(path)?))),
            None => None,
        };
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
