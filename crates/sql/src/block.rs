//! Transaction blocks, and the transaction of a single statement with its retries.
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::sql::sqlparser::ast::{Statement, TransactionAccessMode, TransactionIsolationLevel, TransactionMode};
use engine::{Database, Snapshot, Transaction};

use crate::error::{Result, SqlError};
use crate::moment::Moment;
use crate::outcome::{Command, Link};

/// How long a single statement is tried again when other transactions get in its way.
const RETRY_TIME: Duration = Duration::from_secs(5);
const BACKOFF_FIRST: Duration = Duration::from_micros(50);
const BACKOFF_MAX: Duration = Duration::from_millis(20);

/// Where a session stands between `BEGIN` and `COMMIT`.
#[derive(Default)]
pub(crate) enum Block {
    /// Outside: each statement is its own transaction.
    #[default]
    None,
    /// Inside.
    Open(Box<OpenBlock>),
    /// Inside, after an error: everything but the end is refused.
    Failed,
}

/// A transaction that statements share.
pub(crate) struct OpenBlock {
    transaction: Transaction,
    is_read_only: bool,
    /// Queries whose rows may still be read, or could not be.
    queries: Vec<Arc<Link>>,
}

/// A statement's transaction and what its own queries read.
pub(crate) struct Write<'a> {
    pub(crate) transaction: &'a mut Transaction,
    pub(crate) moment: Moment,
}

impl Write<'_> {
    /// Whether the statement's queries see what it writes itself.
    pub(crate) fn sees_own_writes(&self) -> bool {
        self.moment.snapshot().own.is_some()
    }
}

impl Block {
    /// Notices that rows of an earlier query in the block could not be read to their end.
    pub(crate) fn refresh(&mut self) {
        if let Block::Open(open) = self {
            // Rows that nobody holds any more and that did not fail have nothing to tell.
            open.queries.retain(|query| Arc::strong_count(query) > 1 || query.has_failed());
            if open.queries.iter().any(|query| query.has_failed()) {
                self.fail();
            }
        }
    }

    /// After an error a block takes nothing but its end. Outside of blocks nothing changes.
    pub(crate) fn fail(&mut self) {
        if let Block::Open(_) = self {
            *self = Block::Failed;
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self, Block::Failed)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Block::Open(_))
    }

    /// What a query of this session reads now.
    pub(crate) fn moment(&self, db: &Database) -> Result<Moment> {
        match self {
            Block::Open(open) => Ok(Moment::of_transaction(open.transaction.snapshot())),
            _ => Moment::now(db),
        }
    }

    /// Ties a query's rows to the block that it runs in.
    pub(crate) fn watch(&mut self, link: &Arc<Link>) {
        if let Block::Open(open) = self {
            open.queries.push(link.clone());
        }
    }

    /// `BEGIN` and `START TRANSACTION`.
    pub(crate) fn begin(&mut self, db: &Database, statement: &Statement) -> Result<Command> {
        let Statement::StartTransaction { modes, begin, modifier, statements, exception, .. } = statement else {
            return Err(SqlError::new("XX000", "not the start of a transaction"));
        };
        if modifier.is_some() || !statements.is_empty() || exception.is_some() {
            return Err(SqlError::unsupported("this form of BEGIN"));
        }
        let command = Command::new(if *begin { "BEGIN" } else { "START TRANSACTION" });
        if self.is_open() {
            return Ok(command.with_notice("there is already a transaction in progress"));
        }
        let mut is_read_only = false;
        for mode in modes {
            match mode {
                TransactionMode::AccessMode(access) => is_read_only = *access == TransactionAccessMode::ReadOnly,
                TransactionMode::IsolationLevel(level) => check_isolation(level)?,
            }
        }
        let transaction = db.begin()?;
        *self = Block::Open(Box::new(OpenBlock { transaction, is_read_only, queries: Vec::new() }));
        Ok(command)
    }

    /// `COMMIT`; of a block that failed it is a rollback.
    pub(crate) fn commit(&mut self) -> Result<Command> {
        match std::mem::take(self) {
            Block::None => Ok(Command::new("COMMIT").with_notice("there is no transaction in progress")),
            Block::Failed => Ok(Command::new("ROLLBACK")),
            Block::Open(open) => {
                open.close_queries();
                open.transaction.commit()?;
                Ok(Command::new("COMMIT"))
            }
        }
    }

    /// `ROLLBACK`.
    pub(crate) fn rollback(&mut self) -> Command {
        match std::mem::take(self) {
            Block::None => Command::new("ROLLBACK").with_notice("there is no transaction in progress"),
            Block::Failed => Command::new("ROLLBACK"),
            Block::Open(open) => {
                open.close_queries();
                open.transaction.rollback();
                Command::new("ROLLBACK")
            }
        }
    }

    /// Runs a statement that writes, in the open block or in a transaction of its own. The latter is committed when
    /// the statement succeeds, and tried again from the start when it met another transaction's writes.
    pub(crate) fn write<T>(
        &mut self,
        db: &Database,
        command: &str,
        work: impl Fn(&mut Write<'_>) -> Result<T>,
    ) -> Result<T> {
        if let Block::Open(open) = self {
            if open.is_read_only {
                return Err(SqlError::new("25006", format!("cannot execute {command} in a read-only transaction")));
            }
            let moment = Moment::of_transaction(open.transaction.snapshot());
            return work(&mut Write { transaction: &mut open.transaction, moment });
        }
        let started = Instant::now();
        let mut backoff = BACKOFF_FIRST;
        loop {
            match attempt(db, &work) {
                Err(error) if error.is_conflict() && started.elapsed() < RETRY_TIME => {
                    std::thread::sleep(backoff);
                    backoff = (backoff * 2).min(BACKOFF_MAX);
                }
                done => return done,
            }
        }
    }
}

impl OpenBlock {
    fn close_queries(&self) {
        self.queries.iter().for_each(|query| query.close());
    }
}

fn attempt<T>(db: &Database, work: impl Fn(&mut Write<'_>) -> Result<T>) -> Result<T> {
    let mut transaction = db.begin()?;
    // Without its own id a statement never meets the rows that it is just writing.
    let moment = Moment::of_transaction(Snapshot::at(transaction.snapshot().at));
    match work(&mut Write { transaction: &mut transaction, moment }) {
        Ok(value) => {
            transaction.commit()?;
            Ok(value)
        }
        Err(error) => {
            transaction.rollback();
            Err(error)
        }
    }
}

/// Every block reads one snapshot, which is what REPEATABLE READ is and more than the weaker levels ask for.
fn check_isolation(level: &TransactionIsolationLevel) -> Result<()> {
    match level {
        TransactionIsolationLevel::Serializable => {
            Err(SqlError::unsupported("ISOLATION LEVEL SERIALIZABLE").hint("Use REPEATABLE READ."))
        }
        _ => Ok(()),
    }
}
