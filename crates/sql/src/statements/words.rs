//! Rows of few columns that are stored as words, read at once and passed on as values: no statement is begun, and no array is made.
//!
//! ```text
//! SELECT ... WHERE key = ?                       the newest row of the key      (engine::Database::newest_values)
//! SELECT ... WHERE n BETWEEN ? AND ?             the rows side by side          (engine::Database::newest_words_between)
//! ```
//!
//! Where there is more to it, nothing is passed on, and the caller goes another way.
use engine::{SeenTables, Value, WordRows};

use crate::error::Result;
use crate::point::bound::{Bound, Now};
use crate::point::search::answer::Answer;
use crate::point::{Action, Point};
use crate::session::Session;

impl Point {
    /// Puts the row that a `SELECT` by a key finds, as it was committed last, into `row`, whose values are used again; whether there is
    /// one. `None` where that is not told at once.
    pub(crate) fn newest(&self, session: &Session, bound: &Bound<'_>, row: &mut Vec<Value>) -> Result<Option<bool>> {
        let Action::Select { key, words: Some(read), .. } = &self.action else { return Ok(None) };
        let [origin] = &key[..] else { return Ok(None) };
        let Some(key) = bound.integer(origin) else { return Ok(None) };
        Ok(session.with_seen(|seen| session.db.newest_values(seen, &self.table, read, key, row))?)
    }

    /// The rows of a query of few that lie side by side, in a session that sees the newest commit, put into `rows`; the places among
    /// their columns of those that the query gives. `None` where they do not lie so, or are not of words.
    pub(crate) fn words_at_once(
        &self,
        session: &Session,
        values: &[Value],
        rows: &mut WordRows,
    ) -> Result<Option<&[usize]>> {
        let Action::Search(search) = &self.action else { return Ok(None) };
        let (Some(between), Answer::Columns { places, .. }) = (&search.between, &search.answer) else {
            return Ok(None);
        };
        if !between.is_of_words {
            return Ok(None);
        }
        let Some((low, high)) = between.bounds(&Bound { values, now: Now::default() }) else { return Ok(None) };
        let table = (self.table.as_str(), self.id);
        let numbers = (between.column, low, high);
        let look = |seen: &mut SeenTables| session.db.newest_words_between(seen, table, numbers, &search.reads, rows);
        let is_found = session.with_seen(look)?;
        if is_found {
            // Where they are not, the next way to them notes it.
            between.note(true);
        }
        Ok(is_found.then_some(places))
    }
}
