//! A source of lines that is being read: what has been typed, what is open, and what comes next.
use super::branches::Branches;
use super::buffer::QueryBuffer;
use super::lines::LineSource;
use crate::diagnostics::ScriptPlace;
use crate::output::style::Style;

/// A source of lines that is being read.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) buffer: QueryBuffer,
    /// The branches of `\if` that are open.
    pub(crate) branches: Branches,
    /// How many lines have come.
    pub(crate) number: usize,
}

impl Reading {
    /// Whether statements and commands run, which those in a branch that is not taken don't.
    pub(crate) fn is_active(&self) -> bool {
        self.branches.is_active()
    }
}

/// What becomes of the rows of a query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Destination {
    /// The file or program that takes the output of this statement alone.
    pub(crate) sink: Option<String>,
    /// How the rows of this statement alone look.
    pub(crate) style: Option<Style>,
    /// The prefix of the variables that take the one row of the query.
    pub(crate) variables: Option<String>,
    /// Whether each value is a statement to run.
    pub(crate) executes: bool,
    /// Whether the columns are told, and nothing runs.
    pub(crate) describes: bool,
    /// The columns of a table whose columns are values.
    pub(crate) crosstab: Option<Vec<String>>,
}

/// What comes after a command.
pub(crate) enum Next {
    /// The line goes on.
    Line,
    /// What has been typed is sent.
    Send(Box<Destination>),
}

/// Where a script is.
pub(crate) fn place(source: &dyn LineSource, line: usize) -> Option<ScriptPlace> {
    source.name().map(|file| ScriptPlace { file: file.to_owned(), line })
}
