//! The zone of the session for which a thread works, and the style of its intervals.
//!
//! Moments (`timestamptz`) are microseconds since 1970 in UTC wherever they are kept, compared or sent in binary form. The session's
//! zone counts where one becomes a text, a date or a time without a zone, or the other way round, and where days are added to one. That
//! happens in many rooms and on several threads, so the zone goes with the statement's token, which all of them have ([`current`]).
//!
//! ```text
//! moment ──shown──▶ what the zone's clocks show ──▶ text, date, time, fields, days added
//!        ◀─moment──
//! ```
//!
//! What outlives a session, the entries of an index and what a `CHECK` says, is worked out in UTC ([`in_utc`]).
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Once};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::future::BoxFuture;

use crate::interrupt::cancel::Token;
use crate::interrupt::time_style::TimeStyle;
use crate::interrupt::zone::Zone;
use crate::interrupt::{CURRENT, Scope, enter, watched};

/// How the session writes times for which the thread works; in UTC and PostgreSQL's style where it works for none.
pub(crate) fn style() -> TimeStyle {
    CURRENT.with_borrow(|token| token.as_ref().map_or_else(TimeStyle::default, |token| token.times))
}

/// The zone of the session for which the thread works.
pub(crate) fn current() -> Zone {
    style().zone
}

/// Until it is dropped, the thread writes and reads times in the style of a session.
pub struct ZoneScope {
    _scope: Option<Scope>,
}

impl fmt::Debug for ZoneScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ZoneScope").field(&style()).finish()
    }
}

impl ZoneScope {
    /// From here on the thread writes and reads times in this style.
    pub(crate) fn of(times: TimeStyle) -> ZoneScope {
        let differs = times != style();
        ZoneScope { _scope: differs.then(|| enter(&Arc::new(Token::with_times(times)))) }
    }
}

/// From here on the thread works out what holds for every session: in UTC, with the types that the statement finds.
pub(crate) fn in_utc() -> Option<Scope> {
    let of_statement = CURRENT.with_borrow(Option::clone).filter(|token| token.times != TimeStyle::default())?;
    let token = Token::default();
    token.made_types.take_over(&of_statement.made_types);
    Some(enter(&Arc::new(token)))
}

/// Has the tasks that a query starts by itself work for its statement, too. A program that has traced such tasks in its own way
/// before keeps its way.
pub(crate) fn follow_into_tasks() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let _ = set_join_set_tracer(&Follower);
    });
}

/// Gives tasks the token of the thread that starts them.
struct Follower;

impl JoinSetTracer for Follower {
    fn trace_future(&self, task: BoxFuture<'static, Box<dyn Any + Send>>) -> BoxFuture<'static, Box<dyn Any + Send>> {
        match CURRENT.with_borrow(Option::clone) {
            Some(token) => Box::pin(watched(token, task)),
            None => task,
        }
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        match CURRENT.with_borrow(Option::clone) {
            Some(token) => Box::new(move || {
                let _scope = enter(&token);
                work()
            }),
            None => work,
        }
    }
}
