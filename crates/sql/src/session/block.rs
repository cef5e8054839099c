//! Transaction blocks: what a session is in between `BEGIN` and `COMMIT`, and its savepoints.
//!
//! The engine's transaction begins with the first statement that needs it, so that `SET TRANSACTION` may still say what
//! it shall be, and a block that has done nothing holds nothing.
//!
//! A statement that fails undoes what was written since the newest savepoint, and the block takes nothing but
//! `ROLLBACK TO` or its end. Where that is long it is left to these, so that the answer is not late. Without a savepoint
//! the whole transaction is rolled back at once: nobody waits for its locks until the session says `ROLLBACK`.
use std::sync::Arc;

use engine::{Database, Durability, Savepoint, SessionNumber, Transaction, TransactionOptions};

use crate::error::{Result, SqlError};
use crate::interrupt::cancel::Token;
use crate::interrupt::watcher::Alarm;
use crate::names::moment::Moment;
use crate::parsing::modes::{AskedModes, Modes};
use crate::state::activity;
use crate::state::outcome::Link;
use crate::state::settings::SavedSettings;
use crate::state::transaction_number::TransactionNumber;

/// A transaction that statements share.
pub(crate) struct Block {
    session: SessionNumber,
    /// `None` before the first statement that needs it, after a failure without savepoint, and between statements, when it
    /// is parked. In a box, as it goes to and fro with each statement.
    transaction: Option<Box<Transaction>>,
    modes: Modes,
    /// What `txid_current()` tells.
    number: TransactionNumber,
    /// In microseconds since 1970.
    started: i64,
    /// How it is expected to be committed.
    durability: Durability,
    has_failed: bool,
    /// Whether the statements so far have locked tables and done nothing else, and whether they had before this one.
    has_locked: bool,
    locked_before: bool,
    /// Not opened by `BEGIN`: statements that came together are one transaction.
    is_implicit: bool,
    /// The oldest first.
    savepoints: Vec<Mark>,
    queries: Vec<WatchedQuery>,
    /// How many savepoints there were when the memory limit was altered, if it was.
    memory_limit_altered: Option<usize>,
    /// The settings before the block.
    settings: SavedSettings,
    _time_limit: Option<Alarm>,
}

/// A savepoint with what `ROLLBACK TO` brings back.
struct Mark {
    name: String,
    savepoint: Savepoint,
    settings: SavedSettings,
    is_read_only: bool,
    /// What the session had locked and noted.
    mark: activity::Mark,
}

/// A query with rows that may still be read, or could not be, and how many savepoints there were when it began.
struct WatchedQuery {
    link: Arc<Link>,
    depth: usize,
}

impl Block {
    pub(crate) fn new(
        modes: Modes,
        started: i64,
        durability: Durability,
        settings: SavedSettings,
        time_limit: Option<Alarm>,
        session: SessionNumber,
    ) -> Block {
        Block {
            session,
            transaction: None,
            modes,
            number: TransactionNumber::default(),
            started,
            durability,
            has_failed: false,
            has_locked: false,
            locked_before: false,
            is_implicit: false,
            savepoints: Vec::new(),
            queries: Vec::new(),
            memory_limit_altered: None,
            settings,
            _time_limit: time_limit,
        }
    }

    /// Notices that rows of an earlier query could not be read to their end.
    pub(crate) fn refresh(&mut self) {
        // Rows that nobody holds any more and that did not fail have nothing to tell.
        self.queries.retain(|query| Arc::strong_count(&query.link) > 1 || query.link.has_failed());
        if self.queries.iter().any(|query| query.link.has_failed()) {
            self.fail();
        }
    }

    /// After an error a block takes nothing but its end, or the way back to a savepoint.
    pub(crate) fn fail(&mut self) {
        if self.has_failed {
            return;
        }
        self.has_failed = true;
        let depth = self.savepoints.len();
        self.close_queries(|query| query.depth >= depth);
        if let (Some(newest), Some(transaction)) = (self.savepoints.last(), &mut self.transaction)
            && (transaction.is_long_since(newest.savepoint) || transaction.rollback_to(newest.savepoint).is_ok())
        {
            return;
        }
        self.lose();
    }

    /// Everything written is gone, savepoints with it.
    pub(crate) fn lose(&mut self) {
        self.has_failed = true;
        self.savepoints.clear();
        self.close_queries(|_| true);
        self.transaction = None;
    }

    /// Whether nobody has said `BEGIN`.
    pub(crate) fn is_implicit(&self) -> bool {
        self.is_implicit
    }

    pub(crate) fn set_implicit(&mut self, is_implicit: bool) {
        self.is_implicit = is_implicit;
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether it has failed, or reading rows of it has failed since its last statement.
    pub(crate) fn is_failing(&self) -> bool {
        self.has_failed || self.queries.iter().any(|query| query.link.has_failed())
    }

    pub(crate) fn modes(&self) -> Modes {
        self.modes
    }

    /// When it began, in microseconds since 1970.
    pub(crate) fn started(&self) -> i64 {
        self.started
    }

    /// The settings before the block, once it is over.
    pub(crate) fn into_settings(self) -> SavedSettings {
        self.settings
    }

    /// Takes the transaction for a statement that begins.
    pub(crate) fn resume(&mut self, transaction: Option<Box<Transaction>>) {
        self.transaction = transaction;
    }

    /// Gives the transaction away until the next statement.
    pub(crate) fn suspend(&mut self) -> Option<Box<Transaction>> {
        self.transaction.take()
    }

    /// How many savepoints there are.
    pub(crate) fn savepoints(&self) -> usize {
        self.savepoints.len()
    }

    /// How far a failure takes the transaction back.
    pub(crate) fn newest_savepoint(&self) -> Option<Savepoint> {
        self.savepoints.last().map(|mark| mark.savepoint)
    }

    /// What a failure leaves of the transaction's advisory locks and of what it has to tell.
    pub(crate) fn kept(&self) -> activity::Mark {
        self.savepoints.last().map_or(activity::Mark::default(), |mark| mark.mark)
    }

    /// What `txid_current()` tells.
    pub(crate) fn number(&self) -> TransactionNumber {
        self.number.clone()
    }

    /// The transaction, begun if it is not yet.
    pub(crate) fn transaction(&mut self, db: &Database, token: &Token) -> Result<&mut Transaction> {
        if self.transaction.is_none() {
            let (durability, session) = (self.durability, Some(self.session));
            let options = TransactionOptions { durability, session, ..options(self.modes) };
            let transaction = db.begin_with(options)?;
            token.interrupts(transaction.interrupter());
            self.transaction = Some(Box::new(transaction));
        }
        self.transaction.as_deref_mut().ok_or_else(|| SqlError::new("XX000", "there is no transaction"))
    }

    /// The transaction, if it has begun.
    pub(crate) fn running(&mut self) -> Option<&mut Transaction> {
        self.transaction.as_deref_mut()
    }

    /// The transaction, if it has begun, to look at.
    pub(crate) fn begun(&self) -> Option<&Transaction> {
        self.transaction.as_deref()
    }

    /// A statement begins.
    pub(crate) fn begin_statement(&mut self) {
        self.locked_before = std::mem::take(&mut self.has_locked);
    }

    /// Notes that a statement has locked tables, and that all before it have, too.
    pub(crate) fn note_lock(&mut self, is_first: bool) {
        self.has_locked = is_first;
    }

    /// Whether the statements before this one have locked tables and done nothing else.
    pub(crate) fn has_only_locked(&self) -> bool {
        self.locked_before
    }

    /// The moment that a query reads which begins now.
    pub(crate) fn moment(&mut self, db: &Database, token: &Token) -> Result<Moment> {
        Ok(Moment::of(self.transaction(db, token)?.view()?))
    }

    /// Ties a query's rows to the block.
    pub(crate) fn watch(&mut self, link: &Arc<Link>) {
        link.tie();
        self.queries.push(WatchedQuery { link: link.clone(), depth: self.savepoints.len() });
    }

    /// `SET TRANSACTION`.
    pub(crate) fn set_modes(&mut self, asked: AskedModes) -> Result<()> {
        let refuse = |message: &str| Err(SqlError::new("25001", message));
        let (has_begun, is_divided) = (self.transaction.is_some(), !self.savepoints.is_empty());
        if asked.isolation.is_some_and(|level| level != self.modes.isolation) {
            if is_divided {
                return refuse("SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction");
            }
            if has_begun {
                return refuse("SET TRANSACTION ISOLATION LEVEL must be called before any query");
            }
        }
        if asked.is_read_only == Some(false) && self.modes.is_read_only {
            if self.savepoints.last().is_some_and(|mark| mark.is_read_only) {
                return refuse("cannot set transaction read-write mode inside a read-only transaction");
            }
            if has_begun {
                return refuse("transaction read-write mode must be set before any query");
            }
        }
        if asked.is_deferrable.is_some() {
            if is_divided {
                return refuse("SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction");
            }
            if has_begun {
                return refuse("SET TRANSACTION [NOT] DEFERRABLE must be called before any query");
            }
        }
        self.modes = self.modes.with(asked);
        Ok(())
    }

    /// `SAVEPOINT`.
    pub(crate) fn savepoint(
        &mut self,
        name: String,
        settings: SavedSettings,
        mark: activity::Mark,
        db: &Database,
        token: &Token,
    ) -> Result<()> {
        let savepoint = self.transaction(db, token)?.savepoint();
        self.savepoints.push(Mark { name, savepoint, settings, is_read_only: self.modes.is_read_only, mark });
        Ok(())
    }

    /// The newest savepoint of a name.
    fn find(&self, name: &str) -> Result<usize> {
        let found = self.savepoints.iter().rposition(|mark| mark.name == name);
        found.ok_or_else(|| SqlError::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }

    /// `RELEASE`: the savepoint goes, and those after it; what was done since stays.
    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        let at = self.find(name)?;
        if let Some(transaction) = &mut self.transaction {
            transaction.release(self.savepoints[at].savepoint)?;
        }
        self.savepoints.truncate(at);
        self.queries.iter_mut().for_each(|query| query.depth = query.depth.min(at));
        self.memory_limit_altered = self.memory_limit_altered.map(|depth| depth.min(at));
        Ok(())
    }

    /// `ROLLBACK TO`: what was done since goes, the savepoint stays. Returns the settings of then.
    pub(crate) fn rollback_to(&mut self, name: &str) -> Result<SavedSettings> {
        let at = self.find(name)?;
        let mark = &self.savepoints[at];
        let transaction = self.transaction.as_mut();
        let transaction = transaction.ok_or_else(|| SqlError::new("XX000", "a savepoint without a transaction"))?;
        transaction.rollback_to(mark.savepoint)?;
        self.modes.is_read_only = mark.is_read_only;
        let settings = mark.settings.clone();
        self.savepoints.truncate(at + 1);
        self.has_failed = false;
        self.close_queries(|query| query.depth > at);
        self.memory_limit_altered = self.memory_limit_altered.filter(|depth| *depth <= at);
        Ok(settings)
    }

    /// Notes that the block has altered the memory limit, which takes effect with its commit.
    pub(crate) fn alter_memory_limit(&mut self) {
        self.memory_limit_altered = self.memory_limit_altered.or(Some(self.savepoints.len()));
    }

    /// Whether it has, and has not taken it back.
    pub(crate) fn has_altered_memory_limit(&self) -> bool {
        !self.has_failed && self.memory_limit_altered.is_some()
    }

    /// Ends the block. Returns the transaction that is to be committed, if there is one.
    pub(crate) fn end(&mut self) -> Option<Box<Transaction>> {
        self.close_queries(|_| true);
        self.transaction.take().filter(|_| !self.has_failed)
    }

    /// Tells rows that what they read is over.
    fn close_queries(&mut self, is_over: impl Fn(&WatchedQuery) -> bool) {
        self.queries.iter().filter(|query| is_over(query)).for_each(|query| query.link.close());
        self.queries.retain(|query| !is_over(query));
    }
}

/// The options of the engine for these modes.
pub(crate) fn options(modes: Modes) -> TransactionOptions {
    let (isolation, read_only) = (modes.isolation.isolation(), modes.is_read_only);
    TransactionOptions { isolation, read_only, ..TransactionOptions::default() }
}
