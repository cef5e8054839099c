//! The results of a statement: rows that stream, or a command tag.
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use arrow_array::{ArrayRef, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tokio::sync::mpsc::Receiver;
use tokio::task::AbortHandle;

use crate::SqlError;
use crate::interrupt::cancel::Token;
use crate::interrupt::session_zone::{self, ZoneScope};
use crate::interrupt::time_style::TimeStyle;
use crate::names::schemas::shown;
use crate::state::activity::RunningStatement;
use crate::state::stop::StopFlag;
use crate::values::blanks;

/// The result of one statement.
#[derive(Debug)]
pub enum Outcome {
    /// A query's rows.
    Rows(Rows),
    /// The command has run.
    Done(Command),
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// PostgreSQL's command tag, such as `INSERT 0 3`.
    pub tag: String,
    /// Messages for the user beside the tag.
    pub notices: Vec<Notice>,
}

/// How much a notice matters, in PostgreSQL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Good to know.
    Notice,
    /// Probably not what was meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
        })
    }
}

/// A message that is no error; displayed it is its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// How much it matters.
    pub severity: Severity,
    /// The five-character SQLSTATE.
    pub sqlstate: &'static str,
    /// The text.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
}

impl Notice {
    /// One of what there is already, which is passed over.
    pub(crate) fn skipping(sqlstate: &'static str, message: impl std::fmt::Display) -> Notice {
        Notice { severity: Severity::Notice, sqlstate, message: format!("{message}, skipping"), detail: None }
    }

    pub(crate) fn warning(sqlstate: &'static str, message: impl Into<String>) -> Notice {
        Notice { severity: Severity::Warning, sqlstate, message: message.into(), detail: None }
    }
}

impl From<String> for Notice {
    fn from(message: String) -> Notice {
        Notice { severity: Severity::Notice, sqlstate: "00000", message, detail: None }
    }
}

impl Outcome {
    /// The outcome with names in its notices as people know them.
    pub(crate) fn shown(self) -> Outcome {
        let notice = |notice: Notice| Notice { message: shown(&notice.message), ..notice };
        match self {
            Outcome::Done(Command { tag, notices }) => {
                Outcome::Done(Command { tag, notices: notices.into_iter().map(notice).collect() })
            }
            rows => rows,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(f, "\nDETAIL:  {detail}"))
    }
}

/// The number of rows that a command's tag tells: of `INSERT 0 3` and `UPDATE 3` 3.
pub fn rows_of_tag(tag: &str) -> Option<u64> {
    tag.rsplit(' ').next()?.parse().ok()
}

impl Command {
    /// The number of rows that the tag tells, if it tells one.
    pub fn rows(&self) -> Option<u64> {
        rows_of_tag(&self.tag)
    }

    pub(crate) fn new(tag: impl Into<String>) -> Command {
        Command { tag: tag.into(), notices: Vec::new() }
    }

    /// That of a query which has given so many rows.
    pub(crate) fn of_rows(rows: u64) -> Command {
        Command::new(["SELECT ", itoa::Buffer::new().format(rows)].concat())
    }

    pub(crate) fn with_notice(mut self, notice: impl Into<Notice>) -> Command {
        self.notices.push(notice.into());
        self
    }
}

impl From<Command> for Outcome {
    fn from(command: Command) -> Outcome {
        Outcome::Done(command)
    }
}

/// How a query's rows and its session's transaction block see each other.
#[derive(Debug, Default)]
pub(crate) struct Link {
    state: AtomicU8,
}

impl Link {
    const FAILED: u8 = 1;
    const CLOSED: u8 = 2;
    const TIED: u8 = 4;

    /// Whether reading the rows failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.load(Ordering::Acquire) & Link::FAILED != 0
    }

    /// Ties the rows to the session's block: it fails with them.
    pub(crate) fn tie(&self) {
        self.state.fetch_or(Link::TIED, Ordering::AcqRel);
    }

    /// Notes that reading the rows failed; whether a block fails with them.
    fn fail(&self) -> bool {
        self.state.fetch_or(Link::FAILED, Ordering::AcqRel) & (Link::TIED | Link::CLOSED) == Link::TIED
    }

    /// Tells the rows that their transaction is over and its snapshot with it.
    pub(crate) fn close(&self) {
        self.state.fetch_or(Link::CLOSED, Ordering::AcqRel);
    }
}

/// The rows of a query, batch by batch as they are computed. Dropping them stops the query.
pub struct Rows {
    schema: SchemaRef,
    pub(crate) source: Source,
    link: Arc<Link>,
    /// Of a statement that has changed rows.
    tag: Option<String>,
    /// How their times are written.
    times: TimeStyle,
    /// Until the last row is read the statement is not over.
    running: Option<RunningStatement>,
}

pub(crate) enum Source {
    /// one batch, as most statements give, until it is read
    One(Option<RecordBatch>),
    Ready(std::vec::IntoIter<RecordBatch>),
    Running {
        batches: Receiver<Result<RecordBatch, SqlError>>,
        stop: Stop,
        token: Arc<Token>,
    },
}

/// How a query is stopped: its task is, where it yields, and its operators are, where they look at the flag.
pub(crate) struct Stop {
    pub(crate) task: AbortHandle,
    pub(crate) flag: StopFlag,
}

impl Rows {
    /// Rows that are there already.
    pub(crate) fn ready(batch: RecordBatch) -> Rows {
        let schema = batch.schema();
        Rows::of(schema, Source::One(Some(batch)))
    }

    /// A batch of rows that are there already, for a thread that does not work in the style of the session.
    pub(crate) fn ready_in(batch: RecordBatch, times: TimeStyle) -> Rows {
        let mut rows = Rows::ready(batch);
        rows.times = times;
        rows
    }

    /// Batches of rows that are there already.
    pub(crate) fn all(schema: SchemaRef, batches: Vec<RecordBatch>) -> Rows {
        Rows::of(schema, Source::Ready(batches.into_iter()))
    }

    /// Notes that a statement has changed rows before it gave these.
    pub(crate) fn with_tag(mut self, tag: String) -> Rows {
        self.tag = Some(tag);
        self
    }

    /// PostgreSQL's command tag of a statement that has changed rows (`INSERT 0 3` and its like) and gives rows back; none of a
    /// query.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Rows that a task computes.
    pub(crate) fn running(
        schema: SchemaRef,
        batches: Receiver<Result<RecordBatch, SqlError>>,
        stop: Stop,
        token: Arc<Token>,
    ) -> Rows {
        Rows::of(schema, Source::Running { batches, stop, token })
    }

    /// Rows of the statement for which the thread works.
    fn of(schema: SchemaRef, source: Source) -> Rows {
        Rows { schema, source, link: Arc::default(), tag: None, times: session_zone::style(), running: None }
    }

    /// Has the thread write times in the zone and style of the session that asked for the rows, until what is returned is dropped: the
    /// text form of a `timestamptz` and of an `interval` ([`text_value`](crate::text_value)) depends on them.
    pub fn in_zone(&self) -> ZoneScope {
        ZoneScope::of(self.times)
    }

    /// Ties the rows to a statement that runs until they are read.
    pub(crate) fn while_running(mut self, running: RunningStatement) -> Rows {
        self.running = match self.source {
            Source::One(_) | Source::Ready(_) => None,
            Source::Running { .. } => Some(running),
        };
        self
    }

    /// The names and types of the columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// An error if the statement is to stop, for a caller that takes long over a batch.
    ///
    /// # Errors
    /// 57014 and its like.
    pub fn check(&self) -> Result<(), SqlError> {
        match &self.source {
            Source::One(_) | Source::Ready(_) => Ok(()),
            Source::Running { token, .. } => token.check(),
        }
    }

    pub(crate) fn link(&self) -> Arc<Link> {
        self.link.clone()
    }

    /// Has the rows that are left be read by another statement than the one that asked for them.
    pub(crate) fn read_by(&mut self, reader: &Arc<Token>) {
        if let Source::Running { token, .. } = &mut self.source {
            token.clone_from(reader);
        }
    }

    /// Puts the rows under other column names.
    pub(crate) fn renamed(mut self, schema: SchemaRef) -> Rows {
        self.schema = schema;
        self
    }

    /// A batch under the names of the columns, with the blanks of what is `char(n)`.
    fn shown(&self, batch: RecordBatch) -> Result<RecordBatch, SqlError> {
        let fields = self.schema.fields();
        if Arc::ptr_eq(batch.schema_ref(), &self.schema)
            && !fields.iter().any(|field| blanks::blanks_to(field).is_some())
        {
            return Ok(batch);
        }
        let columns = batch.columns().iter().zip(fields).map(|(column, field)| blanks::shown(column, field)).collect();
        crate::state::target::batch(self.schema.clone(), columns, batch.num_rows())
    }

    /// The next batch as it was computed, for a reader that goes by the places of its columns: under names of its own, and with what is
    /// `char(n)` without the blanks that it is filled up with ([`blanks_to`](crate::wire::rows::blanks_to)).
    pub fn next_unfilled(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        self.next_as(|_, batch| Ok(batch))
    }

    /// The next batch as `shown` has it; an error ends the rows.
    fn next_as(
        &mut self,
        shown: impl FnOnce(&Rows, RecordBatch) -> Result<RecordBatch, SqlError>,
    ) -> Option<Result<RecordBatch, SqlError>> {
        if self.link.has_failed() {
            return None;
        }
        let Some(batch) = self.next_batch() else {
            self.running = None;
            return None;
        };
        let batch = batch.and_then(|batch| shown(self, batch));
        if batch.is_err() {
            let running = self.running.take();
            match self.link.fail() {
                true => running.iter().for_each(RunningStatement::fail_block),
                false => running.iter().for_each(RunningStatement::fail_alone),
            }
        }
        Some(batch)
    }

    fn next_batch(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        match &mut self.source {
            Source::One(batch) => batch.take().map(Ok),
            Source::Ready(batches) => batches.next().map(Ok),
            Source::Running { batches, token, .. } => {
                if self.link.state.load(Ordering::Acquire) & Link::CLOSED != 0 {
                    let message = "the transaction that this query ran in is over";
                    return Some(Err(SqlError::new("24000", message)));
                }
                token.wait(batches.recv()).unwrap_or_else(|error| Some(Err(error)))
            }
        }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_as(Rows::shown)
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        if let Source::Running { stop, .. } = &self.source {
            stop.flag.raise();
            stop.task.abort();
        }
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Rows of texts, given by columns.
pub(crate) fn texts(names: &[&str], columns: Vec<Vec<String>>) -> Result<Rows, SqlError> {
    let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Utf8View, false)).collect();
    let array = |texts: Vec<String>| Arc::new(texts.into_iter().map(Some).collect::<StringViewArray>()) as ArrayRef;
    let columns = columns.into_iter().map(array).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    batch.map(Rows::ready).map_err(|error| SqlError::new("XX000", error.to_string()))
}
