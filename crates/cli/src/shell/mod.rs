//! The shell: a session with what surrounds it, and the loop that reads lines and runs what they hold.
//!
//! ```text
//! lines -> buffer -> a statement       -> statement -> rows, a tag, an error
//!                 -> a backslash command (`commands`)
//! ```
//!
//! This is the state. `main_loop` is the loop over a source of lines (`lines`), whose state is `reading`; `buffer` cuts them, `statement`
//! runs a statement, `destination` knows what becomes of its rows, and `copy_rows` has the rows of `COPY FROM STDIN`.
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use engine::Database;
use sql::{FileAccess, Session, SessionOptions, SqlError};

use crate::diagnostics::{self, ScriptPlace, Verbosity};
use crate::output::style::Style;
use crate::progress::CopyBars;

pub(crate) mod branches;
pub(crate) mod buffer;
pub(crate) mod copy_rows;
mod crosstab;
pub(crate) mod destination;
mod interrupts;
pub mod lines;
mod main_loop;
mod pager;
mod prompt;
pub(crate) mod reading;
pub(crate) mod sink;
pub(crate) mod statement;
pub(crate) mod variables;
pub(crate) mod words;

use interrupts::Interrupts;
use sink::Sink;
use variables::Variables;

/// Why running did not go on.
#[derive(Debug)]
pub enum Stop {
    /// A statement of the command line failed; the user has been told.
    Failed,
    /// A script was to stop at its first error (`ON_ERROR_STOP`), of which the user has been told.
    Script,
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

/// Why a statement or a command did not do what it was to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user has been told.
    Told,
    /// What the user is to be told.
    Message(String),
    /// Nothing more is to run.
    Stop(Stop),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Stop(Stop::Output(error))
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        Failure::Stop(stop)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Failure {
        Failure::Message(message.to_owned())
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Message(message)
    }
}

/// What went wrong with a file or a program, in the system's words.
pub(crate) fn trouble(name: impl std::fmt::Display, error: &io::Error) -> String {
    let reason = error.to_string();
    // The system's number says no more than its words.
    format!("{name}: {}", reason.split(" (os error").next().unwrap_or(&reason))
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
    /// Which database it is, as people say it.
    pub database: String,
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
    pub(crate) variables: Variables,
    /// what `\o` named, which then takes the place of `settings.out`
    pub(crate) redirected: Option<Sink>,
    pub(crate) timing: bool,
    /// The key that `\restrict` named: no other backslash command is taken until `\unrestrict` names it.
    pub(crate) restricted: Option<String>,
    /// The values for the parameters of the next statement (`\bind`).
    pub(crate) bound: Option<Vec<String>>,
    /// The newest error with its statement, for `\errverbose`.
    pub(crate) last_error: Option<(SqlError, String)>,
    /// Whether a statement or a command has failed, which the exit status tells.
    pub(crate) has_failed: bool,
    /// The scripts that are being run, the innermost last.
    pub(crate) scripts: Vec<PathBuf>,
    /// Where the command stands that runs.
    pub(crate) place: Option<ScriptPlace>,
    /// The statements that `\gexec` has found and not run.
    pub(crate) cells: Vec<String>,
    /// Whether long output goes through a program that shows it page by page.
    pub(crate) has_pager: bool,
    pub(crate) interrupts: Interrupts,
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
        Shell {
            db: db.clone(),
            session,
            settings,
            variables: Variables::default(),
            redirected: None,
            timing: false,
            restricted: None,
            bound: None,
            last_error: None,
            has_failed: false,
            scripts: Vec::new(),
            place: None,
            cells: Vec::new(),
            has_pager: true,
            interrupts: Interrupts::default(),
        }
    }

    /// Has Ctrl-C cancel the statement that runs, and not end the shell.
    ///
    /// # Errors
    /// If the signal cannot be waited for.
    pub fn survive_interrupts(&self) -> io::Result<()> {
        self.interrupts.cancel(self.session.cancel_handle())
    }

    /// Whether a user types the statements.
    pub fn is_interactive(&self) -> bool {
        self.settings.interactive
    }

    /// Whether a statement or a command has failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Where rows go at present.
    pub(crate) fn out(&mut self) -> &mut dyn Write {
        match &mut self.redirected {
            Some(sink) => sink,
            None => self.settings.out.as_mut(),
        }
    }

    /// Writes to where errors and notices go, behind all output from before.
    pub(crate) fn write_error(&mut self, text: &str) -> io::Result<()> {
        self.out().flush()?;
        self.settings.err.write_all(text.as_bytes())?;
        self.settings.err.flush()
    }

    /// Tells of a statement that failed, and remembers it.
    pub(crate) fn tell_error(
        &mut self,
        error: &SqlError,
        statement: &str,
        place: Option<&ScriptPlace>,
    ) -> io::Result<()> {
        let verbosity = Verbosity::named(self.variables.text("VERBOSITY"));
        let text = diagnostics::render(error, statement, place, verbosity, self.settings.err_color);
        self.last_error = Some((error.clone(), statement.to_owned()));
        self.write_error(&text)
    }

    /// Tells of a failure that no statement is to blame for.
    pub(crate) fn tell_failure(&mut self, message: &str, place: Option<&ScriptPlace>) -> io::Result<()> {
        let text = match place {
            Some(place) => format!("{}:{}: error: {message}\n", place.file, place.line),
            None => format!("{message}\n"),
        };
        self.write_error(&text)
    }
}
