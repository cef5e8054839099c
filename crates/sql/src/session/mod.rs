//! One connection: its settings, its open transaction, its prepared statements, and what a statement of it sees.
//!
//! This is the state. `dispatch` runs statements on it, `prepared` those with parameters, `transactions` those that begin and end
//! blocks, `set` those about settings.
//!
//! Beside it stand its block of statements (`block`, `transactions`) and its prepared statements (`prepared`, `kept_statements`, with
//! the types of parameters in `infer` and their values in `substitute`). Imports planning, `point` and below; statements import it.
pub(crate) mod block;
mod conflict_targets;
pub(crate) mod cursors;
pub(crate) mod infer;
pub(crate) mod kept_statements;
pub(crate) mod opening;
pub(crate) mod prepared;
pub(crate) mod progress;
pub(crate) mod qualify;
pub(crate) mod set_constraints;
pub(crate) mod substitute;
pub(crate) mod temporary;
pub(crate) mod transactions;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::sql::sqlparser::ast::Statement;
use engine::{Database, SeenTables};
use parking_lot::Mutex;

use crate::Progress;
use crate::coprocessor::Offload;
use crate::error::{Result, SqlError};
use crate::interrupt::cancel::Token;
use crate::names::made_types;
use crate::names::moment::{Moment, Past};
use crate::names::schemas::{SearchPath, is_public};
use crate::names::tables::Tables;
use crate::planning::planner::{Plan, Planner};
use crate::session::block::Block;
use crate::session::cursors::Cursors;
use crate::session::kept_statements::Statements;
use crate::session::temporary::Temporary;
use crate::state::activity;
use crate::state::activity::{Activity, CancelHandle};
use crate::state::advisory::Locks;
use crate::state::few_rows::FewRows;
use crate::state::notifications::Mailbox;
use crate::state::random::Random;
use crate::state::registered::Registered;
use crate::state::settings::{Limit, Settings};
use crate::state::taken_numbers::{StatementSequences, TakenNumbers};
use crate::state::transaction_number::TransactionNumber;
use crate::state::user_functions::{UserFunction, UserFunctions};
use crate::state::view::{RowTarget, View};
use crate::syntax::source::Source;

/// Whether `COPY` and `BACKUP` may touch files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// `COPY` from or to a file and `BACKUP` are refused.
    #[default]
    Denied,
    /// `COPY` reads and writes files with the rights of this process.
    Allowed,
}

/// How a session behaves.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Whether `COPY` and `BACKUP` may touch files.
    pub files: FileAccess,
    /// How many partitions a query runs in; the number of cores where it is not given.
    pub target_partitions: Option<usize>,
    /// A device for sections of queries, shared by the sessions of a database; without one the CPU does everything.
    pub offload: Option<Offload>,
}

/// Where a session stands, as the PostgreSQL protocol tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Outside of a block: each statement is its own transaction.
    Idle,
    /// In a block.
    InBlock,
    /// In a block that takes nothing but its end, or the way back to a savepoint.
    Failed,
}

/// One connection to a database.
///
/// Statements outside of `BEGIN ... COMMIT` are transactions of their own, and are tried again for a while when they
/// meet another transaction's writes. Calls block; call from a thread that may.
pub struct Session {
    pub(crate) db: Database,
    pub(crate) files: FileAccess,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    pub(crate) planner: Planner,
    offload: Option<Offload>,
    pub(crate) settings: Settings,
    /// `None` outside of `BEGIN ... COMMIT`, where each statement is its own transaction.
    pub(crate) block: Option<Block>,
    /// What `now()` is: when the transaction of the statement that runs began, in microseconds since 1970.
    pub(crate) now: i64,
    /// What `txid_current()` tells.
    pub(crate) number: TransactionNumber,
    /// What the statement that runs may name, as it looks before the moment that the statement reads is taken.
    pub(crate) tables: Tables,
    /// The numbers that it has got from sequences.
    taken: TakenNumbers,
    random: Random,
    pub(crate) activity: Arc<Activity>,
    /// Of the statement that runs, or ran last.
    pub(crate) token: Arc<Token>,
    /// Prepared statements by name.
    pub(crate) statements: Statements,
    pub(crate) cursors: Cursors,
    registered: Registered,
    user_functions: UserFunctions,
    /// What `pg_backend_pid()` is.
    process: i32,
    pub(crate) temporary: Temporary,
    /// Tables that statements by key have found, for the next of them.
    seen: Mutex<SeenTables>,
    pub(crate) few: Option<Box<FewRows>>,
}

impl Session {
    /// A connection to `db`.
    pub fn new(db: &Database, options: SessionOptions) -> Session {
        opening::supply(db);
        let planner = Planner::new(options.target_partitions);
        let process = std::process::id().cast_signed();
        Session {
            db: db.clone(),
            files: options.files,
            progress: None,
            settings: Settings::new(db, planner.partitions()),
            planner,
            offload: options.offload,
            block: None,
            now: 0,
            number: TransactionNumber::default(),
            tables: Tables::published(db),
            taken: TakenNumbers::default(),
            random: Random::default(),
            activity: activity::enter(db, process),
            token: Arc::default(),
            statements: Statements::default(),
            cursors: Cursors::default(),
            registered: Registered::default(),
            user_functions: UserFunctions::default(),
            process,
            temporary: Temporary::default(),
            few: None,
            seen: Mutex::default(),
        }
    }

    /// Does something with the tables that were found before. A statement within a statement finds none.
    pub(crate) fn with_seen<T>(&self, work: impl FnOnce(&mut SeenTables) -> T) -> T {
        match self.seen.try_lock() {
            Some(mut seen) => work(&mut seen),
            None => work(&mut SeenTables::default()),
        }
    }

    /// The database that this session is connected to.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// How many plans of queries the session keeps for when they come again, and how often one was kept or found. `SET
    /// lstore.kept_plans = off` has each query planned anew.
    pub fn kept_plans(&self) -> (usize, u64) {
        self.planner.kept_plans()
    }

    /// Has `progress` told of statements that read or write files.
    pub fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        self.progress = Some(progress);
    }

    /// Gives the session the number under which its client knows it: what `pg_backend_pid()` is.
    pub fn set_process(&mut self, process: u32) {
        self.process = process.cast_signed();
        self.activity.set_process(self.process);
    }

    /// Lets queries of this session read rows that the program has in memory, under a name; a table of the database hides them.
    ///
    /// # Errors
    /// 42804 if the batches are not of this schema, or a column does not become one of SQL.
    pub fn register(&mut self, name: &str, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<()> {
        self.registered.add(name, schema, batches)
    }

    /// Takes back what [`register`](Self::register) gave; whether there was something of this name.
    pub fn unregister(&mut self, name: &str) -> bool {
        self.registered.remove(name)
    }

    /// Lets statements of this session call a function of the program by a name, in place of one that it has given for this name.
    ///
    /// # Errors
    /// 42723 if SQL has a function of this name.
    pub fn register_function(&mut self, name: &str, function: Arc<dyn UserFunction>) -> Result<()> {
        if self.planner.has_function(name) {
            let message = format!("function {name} is one of SQL already");
            return Err(SqlError::new("42723", message).hint("Give the function another name."));
        }
        self.user_functions.add(name, function);
        Ok(())
    }

    /// Takes back what [`register_function`](Self::register_function) gave; whether there was a function of this name.
    pub fn unregister_function(&mut self, name: &str) -> bool {
        self.user_functions.remove(name)
    }

    /// What other threads stop this session's statements with.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle(Arc::downgrade(&self.activity))
    }

    /// Tells the session that it will be asked for a statement which its caller is still reading, so that a cancellation
    /// from now on is meant for that; or that all is done that it was asked for.
    pub fn set_asked(&self, is_asked: bool) {
        self.activity.set_asked(is_asked);
    }

    /// Where the session stands between `BEGIN` and the end of its block.
    pub fn transaction_status(&self) -> TransactionStatus {
        match &self.block {
            None => TransactionStatus::Idle,
            Some(block) if block.is_failing() => TransactionStatus::Failed,
            Some(_) => TransactionStatus::InBlock,
        }
    }

    /// The tables that a statement would see now.
    pub(crate) fn look_at_tables(&mut self) {
        let own = self.block.as_ref().and_then(Block::begun);
        self.tables = match own {
            Some(own) => Tables::of(&self.db, own),
            None if self.block.is_some() => self.activity.tables(&self.db),
            None => Tables::published(&self.db),
        };
        self.tables = self.tables.clone().with_path(self.path());
        made_types::offer(&self.tables, &self.token);
    }

    /// By which schemas names without one are looked up.
    pub(crate) fn path(&self) -> SearchPath {
        SearchPath::new(self.settings.search_path(), self.temporary.schema())
    }

    /// Whether names without a schema mean what they do without a path.
    pub(crate) fn has_plain_path(&self) -> bool {
        self.temporary.schema().is_none() && is_public(&self.settings.search_path())
    }

    /// What a query of this session reads now.
    pub(crate) fn moment(&mut self) -> Result<Moment> {
        match (self.settings.as_of(), &mut self.block) {
            (Some(at), _) => Moment::after(&self.db, at),
            (None, Some(block)) => block.moment(&self.db, &self.token),
            (None, None) => Moment::now(&self.db),
        }
    }

    /// Plans a query that reads what the session sees now.
    pub(crate) fn plan(&mut self, statement: Statement, source: &Source) -> Result<Plan> {
        let moment = self.moment()?;
        self.planner.plan(statement, self.view(moment, Vec::new()), source)
    }

    /// What a statement sees at a moment, names as well as rows; `targets` are the tables whose rows it changes or locks.
    pub(crate) fn view(&self, moment: Moment, targets: Vec<RowTarget>) -> View {
        let (past, partitions) = (Past::default(), self.settings.threads());
        let (db, tables, token) = (self.db.clone(), self.tables.at(&moment), self.token.clone());
        let settings = Arc::new(self.settings.all(self.modes()));
        let timeout = self.settings.limit(Limit::Lock);
        let locks = Locks::of(&db, &self.activity.advisory, &token, timeout);
        let notifications = self.activity.notifications.clone();
        let is_read_only = self.modes().is_read_only;
        let taking = self.sequences(is_read_only, &locks);
        let (now, process) = (self.now, self.process);
        let number = self.number.clone();
        let (cursors, statements) = (self.cursors.facts().into(), self.statements.facts());
        let (given, offload) = (Arc::default(), self.offload.clone());
        let (registered, user_functions) = (self.registered.clone(), self.user_functions.clone());
        View {
            db,
            tables,
            moment,
            past,
            partitions,
            targets,
            given,
            taking,
            settings,
            cursors,
            statements,
            registered,
            user_functions,
            offload,
            random: self.random.clone(),
            locks,
            notifications,
            process,
            number,
            now,
            token,
        }
    }

    /// The sequences as a statement may use them.
    fn sequences(&self, is_read_only: bool, locks: &Locks) -> StatementSequences {
        StatementSequences { taken: self.taken.clone(), is_read_only, waits: Arc::new(locks.clone()) }
    }

    /// The next number of a sequence, for a statement without a plan.
    pub(crate) fn next_number(&self, name: &str) -> Result<i64> {
        let sequence = self.tables.newest().sequence(name)?;
        let timeout = self.settings.limit(Limit::Lock);
        let locks = Locks::of(&self.db, &self.activity.advisory, &self.token, timeout);
        let numbers = self.sequences(self.modes().is_read_only, &locks).next(&sequence, 1)?;
        numbers.first().copied().ok_or_else(|| SqlError::new("XX000", "a sequence gave no number"))
    }

    /// Has `end` called when another session ends the connection that this one serves (`pg_terminate_backend`). The first call counts;
    /// without one nothing is ended but the statement that runs.
    pub fn ended_by(&self, end: impl Fn() + Send + Sync + 'static) {
        self.activity.ended_by(end);
    }

    /// What other sessions have said with `NOTIFY` on the channels that this one listens to (`LISTEN`).
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.activity.notifications.mailbox().clone()
    }

    /// Whether the session has listened to a channel at any time.
    pub fn has_listened(&self) -> bool {
        self.activity.notifications.has_listened()
    }

    /// The settings as they are become those that `RESET` and `DISCARD ALL` lead back to.
    pub fn settings_are_defaults(&mut self) {
        self.settings.become_defaults();
    }
}

impl Drop for Session {
    /// A block is rolled back, even while rows of it are still held.
    fn drop(&mut self) {
        self.leave_block();
        // What cannot be dropped now is of no use to anybody, and gone when the database is closed.
        drop(self.drop_temporary());
        activity::leave(&self.activity);
    }
}
