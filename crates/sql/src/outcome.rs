//! What a statement gives back: rows that stream, or a command tag.
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tokio::sync::mpsc::Receiver;
use tokio::task::AbortHandle;

use crate::SqlError;
use crate::wait::wait;

/// The result of one statement.
#[derive(Debug)]
pub enum Outcome {
    /// A query's rows.
    Rows(Rows),
    /// What a command did.
    Done(Command),
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// PostgreSQL's command tag, such as `INSERT 0 3`.
    pub tag: String,
    /// Messages for the user beside the tag.
    pub notices: Vec<String>,
}

impl Command {
    pub(crate) fn new(tag: impl Into<String>) -> Command {
        Command { tag: tag.into(), notices: Vec::new() }
    }

    pub(crate) fn with_notice(mut self, notice: impl Into<String>) -> Command {
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

    /// Whether reading the rows failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.load(Ordering::Acquire) & Link::FAILED != 0
    }

    /// Tells the rows that their transaction is over and its snapshot with it.
    pub(crate) fn close(&self) {
        self.state.fetch_or(Link::CLOSED, Ordering::AcqRel);
    }
}

/// The rows of a query, batch by batch as they are computed. Dropping them stops the query.
pub struct Rows {
    schema: SchemaRef,
    source: Source,
    link: Arc<Link>,
}

enum Source {
    Ready(std::vec::IntoIter<RecordBatch>),
    Running { batches: Receiver<Result<RecordBatch, SqlError>>, task: AbortHandle },
}

impl Rows {
    /// Rows that are there already.
    pub(crate) fn ready(batch: RecordBatch) -> Rows {
        Rows { schema: batch.schema(), source: Source::Ready(vec![batch].into_iter()), link: Arc::default() }
    }

    /// Rows that a task computes.
    pub(crate) fn running(
        schema: SchemaRef,
        batches: Receiver<Result<RecordBatch, SqlError>>,
        task: AbortHandle,
    ) -> Rows {
        Rows { schema, source: Source::Running { batches, task }, link: Arc::default() }
    }

    /// The names and types of the columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    pub(crate) fn link(&self) -> Arc<Link> {
        self.link.clone()
    }

    /// The same rows under other column names.
    pub(crate) fn renamed(mut self, schema: SchemaRef) -> Rows {
        self.schema = schema;
        self
    }

    fn next_batch(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        match &mut self.source {
            Source::Ready(batches) => batches.next().map(Ok),
            Source::Running { batches, .. } => {
                if self.link.state.load(Ordering::Acquire) & Link::CLOSED != 0 {
                    let message = "the transaction that this query ran in is over";
                    return Some(Err(SqlError::new("24000", message)));
                }
                wait(batches.recv())
            }
        }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.link.has_failed() {
            return None;
        }
        let renamed = self.next_batch()?.and_then(|batch| {
            let rows = batch.num_rows();
            crate::target::batch(self.schema.clone(), batch.columns().to_vec(), rows)
        });
        if renamed.is_err() {
            self.link.state.fetch_or(Link::FAILED, Ordering::AcqRel);
        }
        Some(renamed)
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        if let Source::Running { task, .. } = &self.source {
            task.abort();
        }
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("schema", &self.schema).finish_non_exhaustive()
    }
}
