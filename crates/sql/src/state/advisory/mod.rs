//! Advisory locks: numbers that sessions lock for a purpose of their users' choice.
//!
//! ```text
//! number -> holders: session, mode, times by the session, times by its transaction
//!           queue:   the waiting sessions, in order of arrival; a newcomer that fits the holders waits behind
//!                    those that it conflicts with
//! ```
//!
//! A session holds a lock until it has given it free as often as it took it, or ends; what its transaction took goes with
//! the transaction, or with the part of it that a savepoint takes back. A session that holds a number already does not
//! queue for it, as those in front may wait for itself.
//!
//! A wait that closes a circle fails ([`circles`]).
pub(crate) mod circles;
#[cfg(test)]
mod tests;
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use engine::{Database, Party, SequenceWaits, SessionNumber};
use parking_lot::{Condvar, Mutex};

use crate::error::{Result, SqlError};
use crate::interrupt::cancel::Token;

/// How long a wait goes on without a look at whether its statement is to stop.
const BETWEEN_CHECKS: Duration = Duration::from_millis(10);

/// How long until a wait looks for a circle again, which a wait of another kind may close. It doubles each time.
const UNTIL_SECOND_LOOK: Duration = Duration::from_millis(50);
const BETWEEN_LOOKS_MAX: Duration = Duration::from_secs(1);

/// The name of a lock: one number of eight bytes, or two of four, which are other locks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Number {
    One(i64),
    Two(i32, i32),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mode {
    Exclusive,
    Shared,
}

impl Mode {
    fn conflicts(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }

    /// PostgreSQL's name of it.
    fn name(self) -> &'static str {
        match self {
            Mode::Exclusive => "ExclusiveLock",
            Mode::Shared => "ShareLock",
        }
    }
}

/// For how long a lock is taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Span {
    Session,
    Transaction,
}

/// A number of a database.
type Key = (usize, Number);

#[derive(Clone, Copy)]
struct Hold {
    session: SessionNumber,
    mode: Mode,
    by_session: usize,
    by_transaction: usize,
}

#[derive(Clone, Copy)]
struct Waiter {
    ticket: u64,
    session: SessionNumber,
    mode: Mode,
}

#[derive(Default)]
struct Lock {
    holders: Vec<Hold>,
    queue: VecDeque<Waiter>,
}

impl Lock {
    /// The sessions that a wait of `session` in this mode is for: the holders of the lock, and those in front in
    /// the queue.
    fn in_the_way(&self, session: SessionNumber, mode: Mode, ticket: u64) -> Vec<SessionNumber> {
        let against = |other: SessionNumber, held: Mode| (other != session && mode.conflicts(held)).then_some(other);
        let mut found: Vec<SessionNumber> =
            self.holders.iter().filter_map(|hold| against(hold.session, hold.mode)).collect();
        if !self.holders.iter().any(|hold| hold.session == session) {
            let in_front = self.queue.iter().take_while(|waiter| waiter.ticket != ticket);
            found.extend(in_front.filter_map(|waiter| against(waiter.session, waiter.mode)));
        }
        found
    }

    fn hold(&mut self, session: SessionNumber, mode: Mode) -> &mut Hold {
        let known = self.holders.iter().position(|hold| hold.session == session && hold.mode == mode);
        let at = known.unwrap_or_else(|| {
            self.holders.push(Hold { session, mode, by_session: 0, by_transaction: 0 });
            self.holders.len() - 1
        });
        &mut self.holders[at]
    }
}

/// The locks of all databases of the process.
#[derive(Default)]
struct Table {
    locks: HashMap<Key, Lock>,
    tickets: u64,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);
/// Rung whenever a lock is given free.
static FREED: Condvar = Condvar::new();
static SESSIONS: AtomicU32 = AtomicU32::new(0);

impl Table {
    /// Gives a lock free as often as `times` leaves of it; whether it was held that way.
    fn release(&mut self, key: Key, session: SessionNumber, mode: Mode, give: impl Fn(&mut Hold) -> bool) -> bool {
        let Some(lock) = self.locks.get_mut(&key) else { return false };
        let Some(hold) = lock.holders.iter_mut().find(|hold| hold.session == session && hold.mode == mode) else {
            return false;
        };
        let was_held = give(hold);
        lock.holders.retain(|hold| hold.by_session + hold.by_transaction > 0);
        if lock.holders.is_empty() && lock.queue.is_empty() {
            self.locks.remove(&key);
        }
        FREED.notify_all();
        was_held
    }

    fn leave_queue(&mut self, key: Key, ticket: u64) {
        if let Some(lock) = self.locks.get_mut(&key) {
            lock.queue.retain(|waiter| waiter.ticket != ticket);
            if lock.holders.is_empty() && lock.queue.is_empty() {
                self.locks.remove(&key);
            }
        }
        FREED.notify_all();
    }
}

/// A lock that a session holds or waits for.
pub(crate) struct Held {
    pub(crate) number: Number,
    /// PostgreSQL's name of it
    pub(crate) mode: &'static str,
    pub(crate) session: SessionNumber,
    pub(crate) is_granted: bool,
}

/// The locks of a database, held and waited for.
pub(crate) fn held(db: &Database) -> Vec<Held> {
    let table = TABLE.lock();
    let mut all = Vec::new();
    for ((_, number), lock) in table.locks.iter().filter(|((address, _), _)| *address == db.address()) {
        let held = |session, mode: Mode, is_granted| Held { number: *number, mode: mode.name(), session, is_granted };
        all.extend(lock.holders.iter().map(|hold| held(hold.session, hold.mode, true)));
        all.extend(lock.queue.iter().map(|waiter| held(waiter.session, waiter.mode, false)));
    }
    all
}

/// The advisory locks of one session.
#[derive(Debug)]
pub(crate) struct Advisory {
    session: SessionNumber,
    /// Whether it ever took one: most never do, and need not look at the end of each transaction.
    is_used: AtomicBool,
    /// The locks that the transaction has taken, the oldest first. Its latch is taken after that of the table.
    of_transaction: Mutex<Vec<(Key, Mode)>>,
}

impl Default for Advisory {
    fn default() -> Advisory {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let session = SessionNumber(NonZeroU32::new(number).unwrap_or(NonZeroU32::MAX));
        Advisory { session, is_used: AtomicBool::new(false), of_transaction: Mutex::default() }
    }
}

impl Advisory {
    /// The session's number.
    pub(crate) fn session(&self) -> SessionNumber {
        self.session
    }

    /// How many locks the transaction has taken.
    pub(crate) fn mark(&self) -> usize {
        if self.is_used.load(Ordering::Acquire) { self.of_transaction.lock().len() } else { 0 }
    }

    /// Gives free what the transaction has taken since a mark.
    pub(crate) fn back_to(&self, mark: usize) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let mut table = TABLE.lock();
        let mut taken = self.of_transaction.lock();
        let keep = mark.min(taken.len());
        for (key, mode) in taken.drain(keep..) {
            table.release(key, self.session, mode, |hold| {
                hold.by_transaction = hold.by_transaction.saturating_sub(1);
                true
            });
        }
    }

    /// Gives free what the session has taken, but not what its transaction has.
    fn release_all(&self) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let mut table = TABLE.lock();
        for lock in table.locks.values_mut() {
            lock.holders.iter_mut().filter(|hold| hold.session == self.session).for_each(|hold| hold.by_session = 0);
            lock.holders.retain(|hold| hold.by_session + hold.by_transaction > 0);
        }
        table.locks.retain(|_, lock| !lock.holders.is_empty() || !lock.queue.is_empty());
        FREED.notify_all();
    }

    /// The end of the session, or `DISCARD ALL`.
    pub(crate) fn end(&self) {
        self.back_to(0);
        self.release_all();
    }

    fn note(&self, table: &mut Table, key: Key, mode: Mode, span: Span) {
        let hold = table.locks.entry(key).or_default().hold(self.session, mode);
        match span {
            Span::Session => hold.by_session += 1,
            Span::Transaction => {
                hold.by_transaction += 1;
                self.of_transaction.lock().push((key, mode));
            }
        }
    }
}

/// The advisory locks as a statement may use them, and how it waits for sequences.
#[derive(Clone)]
pub(crate) struct Locks {
    pub(crate) own: Arc<Advisory>,
    pub(crate) token: Arc<Token>,
    /// `lock_timeout`.
    pub(crate) timeout: Option<Duration>,
    db: Database,
}

impl Locks {
    pub(crate) fn of(db: &Database, own: &Arc<Advisory>, token: &Arc<Token>, timeout: Option<Duration>) -> Locks {
        Locks { own: own.clone(), token: token.clone(), timeout, db: db.clone() }
    }

    /// Takes a lock if nobody is in the way.
    pub(crate) fn try_take(&self, number: Number, mode: Mode, span: Span) -> bool {
        self.own.is_used.store(true, Ordering::Release);
        let key = (self.db.address(), number);
        let mut table = TABLE.lock();
        let lock = table.locks.get(&key);
        if lock.is_some_and(|lock| !lock.in_the_way(self.own.session, mode, u64::MAX).is_empty()) {
            return false;
        }
        self.own.note(&mut table, key, mode, span);
        true
    }

    /// Takes a lock, and waits for the sessions that are in the way.
    pub(crate) fn take(&self, number: Number, mode: Mode, span: Span) -> Result<()> {
        if self.try_take(number, mode, span) {
            return Ok(());
        }
        let (key, session) = ((self.db.address(), number), self.own.session);
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let mut table = TABLE.lock();
        table.tickets += 1;
        let ticket = table.tickets;
        table.locks.entry(key).or_default().queue.push_back(Waiter { ticket, session, mode });
        let in_the_way =
            |table: &Table| table.locks.get(&key).map_or_else(Vec::new, |lock| lock.in_the_way(session, mode, ticket));
        let (mut look_at, mut until_next) = (Instant::now(), UNTIL_SECOND_LOOK);
        let done = loop {
            let others = in_the_way(&table);
            if others.is_empty() {
                break Ok(());
            }
            if Instant::now() >= look_at {
                if table.leads_to(&self.db, session, others.into_iter().map(Party::Session).collect()) {
                    break Err(deadlock(number, mode));
                }
                look_at = Instant::now() + until_next;
                until_next = (until_next * 2).min(BETWEEN_LOOKS_MAX);
            }
            if let Err(error) = self.token.check() {
                break Err(error);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break Err(SqlError::from(engine::Error::LockTimeout));
            }
            FREED.wait_for(&mut table, left.map_or(BETWEEN_CHECKS, |left| left.min(BETWEEN_CHECKS)));
        };
        if done.is_ok() {
            self.own.note(&mut table, key, mode, span);
        }
        table.leave_queue(key, ticket);
        done
    }

    /// Gives a lock of the session free once; whether it had it.
    pub(crate) fn release(&self, number: Number, mode: Mode) -> bool {
        TABLE.lock().release((self.db.address(), number), self.own.session, mode, |hold| {
            let was_held = hold.by_session > 0;
            hold.by_session = hold.by_session.saturating_sub(1);
            was_held
        })
    }

    /// Gives all locks of the session free.
    pub(crate) fn release_all(&self) {
        self.own.release_all();
    }
}

impl SequenceWaits for Locks {
    fn session(&self) -> Option<SessionNumber> {
        Some(self.own.session)
    }

    fn limit(&self) -> Option<Duration> {
        self.timeout
    }

    fn look(&self, owner: Party) -> engine::Result<()> {
        if self.token.check().is_err() {
            return Err(engine::Error::Interrupted);
        }
        match TABLE.lock().leads_to(&self.db, self.own.session, vec![owner]) {
            true => Err(engine::Error::Deadlock),
            false => Ok(()),
        }
    }
}

fn deadlock(number: Number, mode: Mode) -> SqlError {
    let number = match number {
        Number::One(number) => number.to_string(),
        Number::Two(first, second) => format!("{first}, {second}"),
    };
    let detail = format!("The wait for the {} on advisory lock [{number}] would never have ended.", mode.name());
    SqlError::from(engine::Error::Deadlock).detail(detail)
}
