//! Stopping a statement from outside: by its user, or when its time is over.
//!
//! Each statement has a token that everything which computes or waits for it looks at. Its caller's thread is woken where
//! it waits for rows, and the engine's wait for a lock ends.
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use engine::Interrupter;

use crate::error::{Result, SqlError};
use crate::interrupt::made_types::Offered;
use crate::interrupt::time_style::TimeStyle;
use crate::interrupt::wait::wait;

/// Why a statement, or a transaction, is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    User = 1,
    StatementTimeout,
    TransactionTimeout,
    IdleTimeout,
    /// Its connection is ended by another session.
    Terminated,
}

impl Reason {
    fn of(number: u8) -> Option<Reason> {
        use Reason::{IdleTimeout, StatementTimeout, Terminated, TransactionTimeout, User};

        let all = [User, StatementTimeout, TransactionTimeout, IdleTimeout, Terminated];
        all.into_iter().find(|reason| *reason as u8 == number)
    }

    /// The error that the user is told, in PostgreSQL's words. The owner of a connection decides whether it is
    /// closed.
    pub(crate) fn error(self) -> SqlError {
        let rolled_back = "The transaction was rolled back, and nothing of it is held any more.";
        match self {
            Reason::User => SqlError::new("57014", "canceling statement due to user request"),
            Reason::Terminated => SqlError::new("57P01", "terminating connection due to administrator command"),
            Reason::StatementTimeout => SqlError::new("57014", "canceling statement due to statement timeout"),
            Reason::TransactionTimeout => {
                SqlError::new("25P04", "terminating connection due to transaction timeout").detail(rolled_back)
            }
            Reason::IdleTimeout => {
                SqlError::new("25P03", "terminating connection due to idle-in-transaction timeout").detail(rolled_back)
            }
        }
    }
}

/// Whether one statement is to stop.
#[derive(Default)]
pub(crate) struct Token {
    /// A [`Reason`], or 0.
    reason: AtomicU8,
    waiting: Mutex<CancelReceivers>,
    /// What finds the types that users have made.
    pub(crate) made_types: Offered,
    /// How the statement writes and reads times.
    pub(crate) times: TimeStyle,
    /// After so many looks at it the statement is cancelled, unless it is 0.
    #[cfg(test)]
    looks_left: std::sync::atomic::AtomicU64,
}

/// The receivers of a cancellation.
#[derive(Default)]
struct CancelReceivers {
    waker: Option<Waker>,
    interrupter: Option<Interrupter>,
}

#[cfg(test)]
impl Token {
    /// A token that cancels its statement at the last of so many looks at it.
    pub(crate) fn of_looks(count: u64) -> Token {
        Token { looks_left: count.into(), ..Token::default() }
    }

    fn count_look(&self) {
        let less = |left: u64| left.checked_sub(1);
        if self.looks_left.fetch_update(Ordering::AcqRel, Ordering::Acquire, less) == Ok(1) {
            self.cancel(Reason::User);
        }
    }
}

impl Token {
    /// The token of a statement that has times in this style.
    pub(crate) fn with_times(times: TimeStyle) -> Token {
        Token { times, ..Token::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, CancelReceivers> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the statement; the first reason is the one that is told.
    pub(crate) fn cancel(&self, reason: Reason) {
        let mut waiting = self.waiting();
        if self.reason.compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        waiting.interrupter.iter().for_each(Interrupter::interrupt);
        let waker = waiting.waker.take();
        drop(waiting);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Why the statement is to stop, if it is.
    pub(crate) fn reason(&self) -> Option<Reason> {
        Reason::of(self.reason.load(Ordering::Acquire))
    }

    /// Whether the statement is to stop. It is asked at every node of a statement and of a plan.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        #[cfg(test)]
        self.count_look();
        self.reason.load(Ordering::Acquire) != 0
    }

    /// An error if the statement is to stop.
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_stopped() {
            true => self.reason().map_or(Ok(()), |reason| Err(reason.error())),
            false => Ok(()),
        }
    }

    /// Has waits of a transaction end with the statement.
    pub(crate) fn interrupts(&self, interrupter: Interrupter) {
        let mut waiting = self.waiting();
        if self.reason().is_some() {
            interrupter.interrupt();
        }
        waiting.interrupter = Some(interrupter);
    }

    /// The statement has no transaction any more, so no wait has to end with it.
    pub(crate) fn interrupts_nothing(&self) {
        self.waiting().interrupter = None;
    }

    /// Blocks until the future is done or the statement is to stop.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        let mut future = pin!(future);
        wait(poll_fn(|context| {
            // Entered first: a cancellation from here on wakes this thread.
            self.waiting().waker = Some(context.waker().clone());
            match self.check() {
                Err(error) => Poll::Ready(Err(error)),
                Ok(()) => future.as_mut().poll(context).map(Ok),
            }
        }))
    }

    /// The error that tells why a statement stopped, in place of what came of stopping it.
    pub(crate) fn explain(&self, error: SqlError) -> SqlError {
        match self.reason() {
            Some(reason) if error.sqlstate == "57014" => reason.error(),
            _ => error,
        }
    }
}
