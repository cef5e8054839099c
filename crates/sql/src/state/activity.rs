//! The state that a session shares with the rows that it has given out, its cancel handles and the watcher: the
//! running statements, and the transaction of its block while no statement uses it.
//!
//! ```text
//! statement begins   the transaction is taken from here               the idle alarm is called off
//! statement ends     it is parked here again                          the idle alarm is set once no rows are open
//! alarm              the transaction is taken and rolled back; the session learns of it at its next statement
//! ```
//!
//! So the locks and the snapshot of a block that is over its time go at once, whether or not its session ever comes back.
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use engine::{Database, Savepoint, SessionNumber, Transaction, TxnId};

use crate::error::Result;
use crate::interrupt::cancel::{Reason, Token};
use crate::interrupt::time_style::TimeStyle;
use crate::interrupt::watcher::{self, Alarm};
use crate::names::tables::Tables;
use crate::state::advisory::Advisory;
use crate::state::notifications::Notifications;
use crate::values::datetime::wall_time;

/// See the module.
#[derive(Default)]
pub(crate) struct Activity {
    /// which database it is on
    address: usize,
    /// when it began, in microseconds since 1970
    begun: i64,
    state: Mutex<ActivityState>,
    /// What ends the connection that the session serves.
    ends: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// The session's advisory locks.
    pub(crate) advisory: Arc<Advisory>,
    /// What the session tells others, and is told.
    pub(crate) notifications: Arc<Notifications>,
}

#[derive(Default)]
struct ActivityState {
    /// Statements that run, and those that have their rows read.
    running: Vec<Arc<Token>>,
    /// Whether the session has been asked for a statement that may not have begun yet.
    is_asked: bool,
    /// Whether that is cancelled.
    is_cancelled_ahead: bool,
    parked: Option<ParkedTransaction>,
    /// Why the transaction of the block was rolled back, until the session has been told.
    expired: Option<Reason>,
    is_in_block: bool,
    /// Counts blocks, so that an alarm of one does not reach the next.
    block: u64,
    idle_timeout: Option<Duration>,
    idle_alarm: Option<Alarm>,
    /// Counts idle times, likewise.
    idle: u64,
    /// What others may know of it.
    told: Told,
}

/// What a session is doing, or did last.
#[derive(Clone, Default)]
struct Told {
    process: i32,
    application: String,
    /// the text of its last statement, as far as [`QUERY_BYTES_MAX`]
    query: String,
    /// when that began, when the session last began or ended one, and when its block began: microseconds since 1970
    query_start: i64,
    changed: i64,
    block_start: i64,
}

/// PostgreSQL's `track_activity_query_size`.
const QUERY_BYTES_MAX: usize = 1024;

/// What `pg_stat_activity` says of a session.
pub(crate) struct SessionFacts {
    pub(crate) process: i32,
    pub(crate) application: String,
    pub(crate) state: &'static str,
    pub(crate) query: String,
    /// Microseconds since 1970, of the session, its transaction, its last statement and the last change of its state.
    pub(crate) begun: i64,
    pub(crate) transaction_start: Option<i64>,
    pub(crate) query_start: Option<i64>,
    pub(crate) changed: Option<i64>,
}

/// How far a transaction had come: how many advisory locks it had taken, and how much it had to tell.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mark {
    locks: usize,
    notices: usize,
}

/// A statement that begins.
pub(crate) struct Beginning<'s> {
    pub(crate) text: &'s str,
    /// the setting `application_name`
    pub(crate) application: &'s str,
}

impl Told {
    fn note(&mut self, beginning: &Beginning<'_>) {
        let Beginning { text, application } = *beginning;
        self.query.clear();
        self.query.push_str(&text[..text.floor_char_boundary(QUERY_BYTES_MAX)]);
        if self.application != application {
            application.clone_into(&mut self.application);
        }
        self.query_start = wall_time();
        self.changed = self.query_start;
    }
}

/// A transaction that no statement uses, and how far a failure takes it back: all the way if there is no savepoint.
struct ParkedTransaction {
    transaction: Box<Transaction>,
    newest: Option<Savepoint>,
}

impl Activity {
    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A statement begins, with times in this style, and may take this long.
    pub(crate) fn start(
        self: &Arc<Activity>,
        times: TimeStyle,
        limit: Option<(Duration, Reason)>,
        beginning: &Beginning<'_>,
    ) -> Result<RunningStatement> {
        let token = Arc::new(Token::with_times(times));
        let stop = token.clone();
        let alarm = limit.map(|(after, reason)| watcher::set(after, move || stop.cancel(reason)));
        let alarm = alarm.transpose()?;
        let mut state = self.state();
        state.running.push(token.clone());
        state.told.note(beginning);
        if std::mem::take(&mut state.is_cancelled_ahead) {
            token.cancel(Reason::User);
        }
        state.idle += 1;
        let idle_alarm = state.idle_alarm.take();
        drop(state);
        drop(idle_alarm);
        Ok(RunningStatement { activity: self.clone(), token, _alarm: alarm })
    }

    /// Whether the next statement is to stop before it begins.
    pub(crate) fn is_cancelled_ahead(&self) -> bool {
        self.state().is_cancelled_ahead
    }

    fn end(self: &Arc<Activity>, token: &Arc<Token>) {
        let mut state = self.state();
        state.running.retain(|running| !Arc::ptr_eq(running, token));
        state.told.changed = wall_time();
        if let Some(timeout) = state.idle_timeout
            && state.running.is_empty()
            && state.is_in_block
        {
            let (activity, idle) = (Arc::downgrade(self), state.idle);
            // Without its thread there is no limit, which is less harm than an error where no statement is.
            state.idle_alarm = watcher::set(timeout, move || expire_idle(&activity, idle)).ok();
        }
        let is_over = state.running.is_empty() && !state.is_in_block;
        drop(state);
        if is_over {
            self.end_transaction(true);
        }
    }

    /// A transaction is over: its advisory locks are given free, and what it has to tell is told if it was committed.
    fn end_transaction(&self, is_committed: bool) {
        self.advisory.back_to(0);
        match is_committed {
            true => self.notifications.committed(|| self.state().told.process),
            false => self.notifications.back_to(0),
        }
    }

    /// What the transaction has locked and noted since then is given free and forgotten.
    pub(crate) fn back_to(&self, mark: Mark) {
        self.advisory.back_to(mark.locks);
        self.notifications.back_to(mark.notices);
    }

    /// How much the transaction has locked and noted.
    pub(crate) fn mark(&self) -> Mark {
        Mark { locks: self.advisory.mark(), notices: self.notifications.mark() }
    }

    /// A block begins, and may take this long.
    pub(crate) fn begin_block(self: &Arc<Activity>, timeout: Option<Duration>) -> Result<Option<Alarm>> {
        let mut state = self.state();
        state.block += 1;
        (state.is_in_block, state.expired) = (true, None);
        state.told.block_start = state.told.query_start;
        let (activity, block) = (Arc::downgrade(self), state.block);
        drop(state);
        timeout.map(|timeout| watcher::set(timeout, move || expire_block(&activity, block))).transpose()
    }

    /// The block ends.
    pub(crate) fn end_block(&self, is_committed: bool) {
        let mut state = self.state();
        state.block += 1;
        (state.is_in_block, state.expired) = (false, None);
        let parked = state.parked.take();
        drop(state);
        drop(parked);
        self.end_transaction(is_committed);
    }

    /// Leaves the block's transaction here until the next statement. Without one, or if its time is over, it is gone.
    pub(crate) fn park(
        &self,
        transaction: Option<Box<Transaction>>,
        newest: Option<Savepoint>,
        idle_timeout: Option<Duration>,
    ) {
        let parked = transaction.map(|transaction| ParkedTransaction { transaction, newest });
        let mut state = self.state();
        state.idle_timeout = idle_timeout;
        let over = match state.expired {
            None => {
                state.parked = parked;
                None
            }
            Some(_) => parked,
        };
        drop(state);
        drop(over);
    }

    /// Takes the transaction back, or says why it is gone.
    pub(crate) fn unpark(&self) -> std::result::Result<Option<Box<Transaction>>, Reason> {
        let mut state = self.state();
        match state.expired.take() {
            Some(reason) => Err(reason),
            None => Ok(state.parked.take().map(|parked| parked.transaction)),
        }
    }

    /// The tables that a statement of the block would see.
    pub(crate) fn tables(&self, db: &Database) -> Tables {
        let state = self.state();
        state.parked.as_ref().map_or_else(|| Tables::published(db), |parked| Tables::of(db, &parked.transaction))
    }

    /// Rows of the block could not be read: it has failed, and gives its locks free before its session hears of it.
    fn fail(&self) {
        let mut state = self.state();
        let parked = state.parked.take();
        state.parked = parked.and_then(|mut parked| {
            let newest = parked.newest?;
            parked.transaction.rollback_to(newest).ok().map(|()| parked)
        });
        if state.parked.is_none() {
            self.end_transaction(false);
        }
    }

    /// The session knows that the block's time is over.
    pub(crate) fn forget_expiry(&self) {
        self.state().expired = None;
    }

    /// Stops everything that runs, or what the session has been asked for; whether there was anything.
    pub(crate) fn cancel(&self, reason: Reason) -> bool {
        let mut state = self.state();
        let running = state.running.clone();
        state.is_cancelled_ahead = running.is_empty() && state.is_asked;
        let is_any = !running.is_empty() || state.is_asked;
        drop(state);
        running.iter().for_each(|token| token.cancel(reason));
        is_any
    }

    /// Has `end` called when another session ends this one's connection. The first call counts.
    pub(crate) fn ended_by(&self, end: impl Fn() + Send + Sync + 'static) {
        let _ = self.ends.set(Box::new(end));
    }

    /// Gives the session the number by which others name it.
    pub(crate) fn set_process(&self, process: i32) {
        self.state().told.process = process;
    }

    fn facts(&self) -> SessionFacts {
        let state = self.state();
        let told = state.told.clone();
        let is_active = !state.running.is_empty();
        let said = match (is_active, state.is_in_block) {
            (true, _) => "active",
            (false, true) => "idle in transaction",
            (false, false) => "idle",
        };
        let transaction_start = match state.is_in_block {
            true => Some(told.block_start),
            false => is_active.then_some(told.query_start),
        };
        let known = |time: i64| (time != 0).then_some(time);
        let (query_start, changed) = (known(told.query_start), known(told.changed));
        let (begun, Told { process, application, query, .. }) = (self.begun, told);
        SessionFacts { process, application, state: said, query, begun, transaction_start, query_start, changed }
    }

    /// The session has been asked for a statement, or has done what it was asked for.
    pub(crate) fn set_asked(&self, is_asked: bool) {
        let mut state = self.state();
        (state.is_asked, state.is_cancelled_ahead) = (is_asked, false);
    }
}

/// The sessions of the process. It is written only where they begin and end, and read where all of them are asked
/// for.
static SESSIONS: Mutex<Vec<Weak<Activity>>> = Mutex::new(Vec::new());

/// The activity of a session on a database, under this number, to be asked for until [`leave`].
pub(crate) fn enter(db: &Database, process: i32) -> Arc<Activity> {
    let notifications = Arc::new(Notifications::on(db));
    let activity = Activity { address: db.address(), begun: wall_time(), notifications, ..Activity::default() };
    let activity = Arc::new(activity);
    activity.set_process(process);
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&activity));
    activity
}

/// The session is over.
pub(crate) fn leave(activity: &Arc<Activity>) {
    let is_other = |known: &Weak<Activity>| !std::ptr::eq(known.as_ptr(), Arc::as_ptr(activity));
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner).retain(is_other);
    activity.advisory.end();
    activity.notifications.end();
}

/// The sessions of a database.
fn sessions(db: &Database) -> Vec<Arc<Activity>> {
    let known = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    known.iter().filter_map(Weak::upgrade).filter(|activity| activity.address == db.address()).collect()
}

/// The numbers by which the sessions of a database are known here and to others.
pub(crate) fn processes(db: &Database) -> Vec<(SessionNumber, i32)> {
    sessions(db).iter().map(|activity| (activity.advisory.session(), activity.state().told.process)).collect()
}

/// What there is to know of the sessions of a database.
pub(crate) fn facts(db: &Database) -> Vec<SessionFacts> {
    sessions(db).iter().map(|activity| activity.facts()).collect()
}

/// Cancels what the session with this number does; whether there is such a session.
pub(crate) fn cancel_process(db: &Database, process: i32) -> bool {
    stop_process(db, process, Reason::User)
}

/// Ends the connection of the session with this number, and what it does; whether there is such a session.
pub(crate) fn end_process(db: &Database, process: i32) -> bool {
    stop_process(db, process, Reason::Terminated)
}

fn stop_process(db: &Database, process: i32, reason: Reason) -> bool {
    let mut found = sessions(db);
    found.retain(|activity| activity.state().told.process == process);
    for activity in &found {
        // First, so that nothing begins behind what is cancelled.
        if reason == Reason::Terminated {
            activity.ends.get().into_iter().for_each(|end| end());
        }
        activity.cancel(reason);
    }
    !found.is_empty()
}

/// The transactions of a database that belong to idle sessions.
pub(crate) fn idle_transactions(db: &Database) -> HashSet<TxnId> {
    let sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let idle = |session: &Weak<Activity>| {
        let activity = session.upgrade()?;
        let state = activity.state();
        let parked = state.parked.as_ref().filter(|_| state.running.is_empty())?;
        parked.transaction.is_of(db).then(|| parked.transaction.id())
    };
    sessions.iter().filter_map(idle).collect()
}

fn expire_idle(activity: &Weak<Activity>, idle: u64) {
    let Some(activity) = activity.upgrade() else { return };
    let mut state = activity.state();
    if state.idle != idle || !state.running.is_empty() || !state.is_in_block || state.expired.is_some() {
        return;
    }
    state.expired = Some(Reason::IdleTimeout);
    let parked = state.parked.take();
    drop(state);
    drop(parked);
    activity.end_transaction(false);
}

fn expire_block(activity: &Weak<Activity>, block: u64) {
    let Some(activity) = activity.upgrade() else { return };
    let mut state = activity.state();
    if state.block != block || state.expired.is_some() {
        return;
    }
    state.expired = Some(Reason::TransactionTimeout);
    let parked = state.parked.take();
    drop(state);
    activity.cancel(Reason::TransactionTimeout);
    drop(parked);
    activity.advisory.back_to(0);
}

/// A statement that runs, or has its rows read, until it is dropped.
pub(crate) struct RunningStatement {
    activity: Arc<Activity>,
    token: Arc<Token>,
    _alarm: Option<Alarm>,
}

impl RunningStatement {
    pub(crate) fn token(&self) -> &Arc<Token> {
        &self.token
    }

    /// The statement has failed outside of a block: it has nothing to tell.
    pub(crate) fn fail_alone(&self) {
        self.activity.notifications.back_to(0);
    }

    /// The block that the statement's rows belong to has failed.
    pub(crate) fn fail_block(&self) {
        self.activity.fail();
    }
}

impl Drop for RunningStatement {
    fn drop(&mut self) {
        self.activity.end(&self.token);
    }
}

/// Stops what a session is doing, from any thread.
#[derive(Clone)]
pub struct CancelHandle(pub(crate) Weak<Activity>);

impl CancelHandle {
    /// Stops the statement that the session runs, or is about to run ([`Session::set_asked`](crate::Session::set_asked)), and
    /// the queries that still give out rows: they end with SQLSTATE 57014. Returns whether there was anything to stop.
    pub fn cancel(&self) -> bool {
        self.0.upgrade().is_some_and(|activity| activity.cancel(Reason::User))
    }
}

impl std::fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelHandle").finish_non_exhaustive()
    }
}
