//! Cursors: queries whose rows a session reads bit by bit, by statements.
//!
//! ```text
//! position   0        before the first row
//!            1 ..= n  on a row
//!            n + 1    after the last one
//! ```
//!
//! A cursor reads its query as far as rows are asked for; the query itself is no further ahead than some batches. One that may go back
//! keeps what it has read. At the end of its transaction a cursor goes, or is read to its end and stays, if it was declared so and the
//! transaction commits.
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::{Result, SqlError};
use crate::interrupt::cancel::Token;
use crate::parsing::cursor_statement::Direction;
use crate::state::outcome::Rows;
use crate::state::view::CursorFacts;
use crate::values::datetime::wall_time;

/// The cursors of a session by their names.
#[derive(Default)]
pub(crate) struct Cursors {
    by_name: BTreeMap<String, Cursor>,
}

/// See the module.
pub(crate) struct Cursor {
    statement: String,
    /// When it was declared, in microseconds since 1970.
    made: i64,
    is_scrollable: bool,
    is_holdable: bool,
    /// How many savepoints there were when it was declared; none once its transaction has committed.
    depth: Option<usize>,
    schema: SchemaRef,
    rows: Rows,
    /// What is kept of the rows that were read.
    batches: VecDeque<RecordBatch>,
    /// How many rows before those are not.
    dropped: usize,
    /// How many rows were read.
    read: usize,
    has_ended: bool,
    has_failed: bool,
    position: usize,
    /// The rows of tables behind its rows, which it has locked.
    places: Vec<Places>,
}

/// Rows of a table by their ids, each behind the row of that number of a cursor; none where an outer join gave none.
pub(crate) struct Places {
    /// The number of the table.
    pub(crate) table: u32,
    pub(crate) ids: Vec<Option<u64>>,
}

impl Cursors {
    fn missing(name: &str) -> SqlError {
        SqlError::new("34000", format!("cursor \"{name}\" does not exist"))
    }

    /// Refuses a name that a cursor has.
    pub(crate) fn check_free(&self, name: &str) -> Result<()> {
        match self.by_name.contains_key(name) {
            true => Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists"))),
            false => Ok(()),
        }
    }

    pub(crate) fn add(&mut self, name: String, cursor: Cursor) {
        self.by_name.insert(name, cursor);
    }

    /// The cursor of a name.
    pub(crate) fn get(&mut self, name: &str) -> Result<&mut Cursor> {
        self.by_name.get_mut(name).ok_or_else(|| Cursors::missing(name))
    }

    /// The row of a table on which a cursor stands.
    ///
    /// # Errors
    /// PostgreSQL's, where there is none.
    pub(crate) fn current(&self, name: &str, (table, shown): (u32, &str)) -> Result<Option<u64>> {
        let cursor = self.by_name.get(name).ok_or_else(|| Cursors::missing(name))?;
        let wrong = |message: String| SqlError::new("24000", message);
        if cursor.depth.is_none() {
            return Err(wrong(format!("cursor \"{name}\" is held from a previous transaction")));
        }
        let mut places = cursor.places.iter().filter(|places| places.table == table);
        let found = match (places.next(), places.next(), cursor.places.is_empty()) {
            (Some(found), None, _) => found,
            (Some(_), Some(_), _) => {
                let message = "has multiple FOR UPDATE/SHARE references to table";
                return Err(wrong(format!("cursor \"{name}\" {message} \"{shown}\"")));
            }
            (None, _, true) => {
                let message = format!("cursor \"{name}\" is not a simply updatable scan of table \"{shown}\"");
                return Err(wrong(message).hint("Declare it FOR UPDATE."));
            }
            (None, _, false) => {
                let message = "does not have a FOR UPDATE/SHARE reference to table";
                return Err(wrong(format!("cursor \"{name}\" {message} \"{shown}\"")));
            }
        };
        let row = cursor.position.checked_sub(1).and_then(|at| found.ids.get(at));
        row.copied().ok_or_else(|| wrong(format!("cursor \"{name}\" is not positioned on a row")))
    }

    /// The columns of a cursor, if there is one of this name.
    pub(crate) fn schema(&self, name: &str) -> Result<SchemaRef> {
        self.by_name.get(name).map(|cursor| cursor.schema.clone()).ok_or_else(|| Cursors::missing(name))
    }

    pub(crate) fn close(&mut self, name: &str) -> Result<()> {
        self.by_name.remove(name).map(drop).ok_or_else(|| Cursors::missing(name))
    }

    pub(crate) fn close_all(&mut self) {
        self.by_name.clear();
    }

    /// Reads those to their end that outlive their transaction, which is about to commit.
    pub(crate) fn hold(&mut self, token: &Arc<Token>) -> Result<()> {
        let held = self.by_name.values_mut().filter(|cursor| cursor.is_holdable && cursor.depth.is_some());
        held.into_iter().try_for_each(|cursor| cursor.read_all(token))
    }

    /// A transaction is over: with it go its cursors, but for those that were to be held if it has committed.
    pub(crate) fn end_transaction(&mut self, has_committed: bool) {
        self.by_name.retain(|_, cursor| match cursor.depth {
            None => true,
            Some(_) if has_committed && cursor.is_holdable => {
                cursor.depth = None;
                true
            }
            Some(_) => false,
        });
    }

    /// Those that were declared with so many savepoints or more are gone.
    pub(crate) fn back_to(&mut self, savepoints: usize) {
        self.by_name.retain(|_, cursor| cursor.depth.is_none_or(|depth| depth < savepoints));
    }

    /// No more savepoints are there than so many.
    pub(crate) fn released(&mut self, savepoints: usize) {
        for cursor in self.by_name.values_mut() {
            cursor.depth = cursor.depth.map(|depth| depth.min(savepoints));
        }
    }

    /// What the catalog says of them.
    pub(crate) fn facts(&self) -> Vec<CursorFacts> {
        let facts = |(name, cursor): (&String, &Cursor)| CursorFacts {
            name: name.clone(),
            statement: cursor.statement.clone(),
            is_holdable: cursor.is_holdable,
            is_scrollable: cursor.is_scrollable,
            made: cursor.made,
        };
        self.by_name.iter().map(facts).collect()
    }
}

impl Cursor {
    /// A cursor before the first of these rows, which were asked for by a statement, in a transaction with so many savepoints.
    pub(crate) fn new(
        statement: &str,
        rows: Rows,
        (is_scrollable, is_holdable): (bool, bool),
        savepoints: usize,
    ) -> Cursor {
        Cursor {
            statement: statement.to_owned(),
            made: wall_time(),
            is_scrollable,
            is_holdable,
            depth: Some(savepoints),
            schema: rows.schema(),
            rows,
            batches: VecDeque::new(),
            dropped: 0,
            read: 0,
            has_ended: false,
            has_failed: false,
            position: 0,
            places: Vec::new(),
        }
    }

    /// One that has locked these rows of tables.
    pub(crate) fn with_places(self, places: Vec<Places>) -> Cursor {
        Cursor { places, ..self }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Whether its query has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Goes on for good without the transaction that it was declared in.
    pub(crate) fn keep(&mut self, token: &Arc<Token>) -> Result<()> {
        self.read_all(token)?;
        self.depth = None;
        Ok(())
    }

    fn read_all(&mut self, token: &Arc<Token>) -> Result<()> {
        self.rows.read_by(token);
        self.read_to(usize::MAX)?;
        self.rows = Rows::all(self.schema.clone(), Vec::new());
        Ok(())
    }

    /// Goes in a direction; returns the rows that it comes by.
    pub(crate) fn go(&mut self, direction: Direction, token: &Arc<Token>) -> Result<Vec<RecordBatch>> {
        self.rows.read_by(token);
        let rows = match direction {
            Direction::Forward(count) => self.forward(count),
            Direction::Backward(count) => self.backward(count),
            Direction::Absolute(to @ 0..) => self.to(usize::try_from(to).unwrap_or(usize::MAX)),
            Direction::Absolute(from_end) => {
                self.check_may_go_back(true)?;
                self.read_to(usize::MAX)?;
                let back = usize::try_from(from_end.unsigned_abs()).unwrap_or(usize::MAX);
                self.to((self.read + 1).saturating_sub(back))
            }
            Direction::Relative(by) => {
                let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
                match by {
                    0.. => self.to(self.position.saturating_add(distance)),
                    _ => self.to(self.position.saturating_sub(distance)),
                }
            }
        }?;
        self.give_up();
        Ok(rows)
    }

    fn forward(&mut self, count: usize) -> Result<Vec<RecordBatch>> {
        let (first, last) = (self.position.saturating_add(1), self.position.saturating_add(count));
        self.read_to(last)?;
        self.position = last.min(self.read + 1);
        Ok(self.between(first, last))
    }

    fn backward(&mut self, count: usize) -> Result<Vec<RecordBatch>> {
        self.check_may_go_back(true)?;
        let (first, last) = (self.position.saturating_sub(count).max(1), self.position.saturating_sub(1));
        self.position = self.position.saturating_sub(count);
        let rows = (first..=last).rev().flat_map(|row| self.between(row, row));
        Ok(rows.collect())
    }

    /// Goes to a row by its number.
    fn to(&mut self, row: usize) -> Result<Vec<RecordBatch>> {
        self.check_may_go_back(row <= self.position)?;
        self.read_to(row)?;
        self.position = row.min(self.read + 1);
        Ok(self.between(row.max(1), row))
    }

    fn check_may_go_back(&self, goes_back: bool) -> Result<()> {
        match goes_back && !self.is_scrollable {
            true => {
                let error = SqlError::new("55000", "cursor can only scan forward");
                Err(error.hint("Declare it with SCROLL option to enable backward scan."))
            }
            false => Ok(()),
        }
    }

    /// Reads the query until so many rows are known, or all.
    fn read_to(&mut self, rows: usize) -> Result<()> {
        while self.read < rows && !self.has_ended {
            match self.rows.next() {
                Some(Ok(batch)) => {
                    self.read += batch.num_rows();
                    self.batches.push_back(batch);
                }
                Some(Err(error)) => {
                    self.has_failed = true;
                    return Err(error);
                }
                None => self.has_ended = true,
            }
        }
        Ok(())
    }

    /// Rows by their numbers, as far as there are any.
    fn between(&self, first: usize, last: usize) -> Vec<RecordBatch> {
        let (mut found, mut before) = (Vec::new(), self.dropped);
        for batch in &self.batches {
            // The numbers of its rows.
            let (from, to) = ((before + 1).max(first), (before + batch.num_rows()).min(last));
            if from <= to {
                found.push(batch.slice(from - before - 1, to - from + 1));
            }
            before += batch.num_rows();
        }
        found
    }

    /// Gives up rows to which it does not come again.
    fn give_up(&mut self) {
        while !self.is_scrollable
            && let Some(batch) = self.batches.pop_front_if(|first| self.dropped + first.num_rows() <= self.position)
        {
            self.dropped += batch.num_rows();
        }
    }
}
