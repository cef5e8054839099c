//! Which names mean queries of `WITH` at a place of a statement, for a walk that enters and leaves its queries in their order.
//!
//! A query's `WITH` is walked through before its body, so that the first queries below it are those that it names: each name is known
//! once its own query has been left, or from the start where they are recursive.
use datafusion::sql::sqlparser::ast::{ObjectName, Query};

use crate::syntax::identifiers::{fold, last_part};

/// See the module.
#[derive(Default)]
pub(crate) struct WithScope {
    frames: Vec<Frame>,
}

/// The names of one query's `WITH`.
struct Frame {
    names: Vec<String>,
    /// How many of them are known.
    known: usize,
}

impl WithScope {
    /// Goes into a query.
    pub(crate) fn enter(&mut self, query: &Query) {
        let with = query.with.as_ref();
        let names: Vec<String> =
            with.into_iter().flat_map(|with| &with.cte_tables).map(|cte| fold(&cte.alias.name)).collect();
        let known = if with.is_some_and(|with| with.recursive) { names.len() } else { 0 };
        self.frames.push(Frame { names, known });
    }

    /// Comes out of the query that was entered last.
    pub(crate) fn leave(&mut self) {
        self.frames.pop();
        if let Some(around) = self.frames.last_mut() {
            around.known = (around.known + 1).min(around.names.len());
        }
    }

    /// Whether a name in FROM is that of a query of `WITH`.
    pub(crate) fn has(&self, name: &ObjectName) -> bool {
        let [_] = &name.0[..] else { return false };
        let Some(name) = last_part(name) else { return false };
        self.frames.iter().any(|frame| frame.names[..frame.known].contains(&name))
    }
}
