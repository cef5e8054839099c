//! `DECLARE`, `FETCH`, `MOVE` and `CLOSE`.
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::{Result, SqlError};
use crate::parsing::cursor_statement::{CursorStatement, Direction};
use crate::session::Session;
use crate::session::block::Block;
use crate::session::cursors::Cursor;
use crate::state::outcome::{Command, Outcome, Rows};
use crate::statements::locking;
use crate::syntax::source::Source;

impl Session {
    /// Runs a statement about cursors.
    pub(super) fn cursor(&mut self, statement: CursorStatement, source: &Source) -> Result<Outcome> {
        match statement {
            CursorStatement::Declare { name, is_scrollable, is_holdable, query, locks } => {
                if self.block.is_none() && !is_holdable {
                    let message = "DECLARE CURSOR can only be used in transaction blocks";
                    return Err(SqlError::new("25P01", message));
                }
                self.cursors.check_free(&name)?;
                let (rows, places) = match locks.is_empty() {
                    true => (self.rows_of(query, source)?, Vec::new()),
                    false => locking::for_cursor(self, &query, &locks, source)?,
                };
                let savepoints = self.block.as_ref().map_or(0, Block::savepoints);
                let cursor = Cursor::new(source.text, rows, (is_scrollable, is_holdable), savepoints);
                let mut cursor = cursor.with_places(places);
                if self.block.is_none() {
                    cursor.keep(&self.token)?;
                }
                self.cursors.add(name, cursor);
                Ok(Command::new("DECLARE CURSOR").into())
            }
            CursorStatement::Fetch { name, direction } => {
                let (schema, batches) = self.go(&name, direction)?;
                let tag = format!("FETCH {}", count(&batches));
                Ok(Outcome::Rows(Rows::all(schema, batches).with_tag(tag)))
            }
            CursorStatement::Move { name, direction } => {
                let (_, batches) = self.go(&name, direction)?;
                Ok(Command::new(format!("MOVE {}", count(&batches))).into())
            }
            CursorStatement::Close { name: Some(name) } => {
                self.cursors.close(&name)?;
                Ok(Command::new("CLOSE CURSOR").into())
            }
            CursorStatement::Close { name: None } => {
                self.cursors.close_all();
                Ok(Command::new("CLOSE CURSOR ALL").into())
            }
        }
    }

    fn go(&mut self, name: &str, direction: Direction) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let token = self.token.clone();
        let cursor = self.cursors.get(name)?;
        if cursor.has_failed() {
            return Err(SqlError::new("55000", format!("portal \"{name}\" cannot be run")));
        }
        Ok((cursor.schema(), cursor.go(direction, &token)?))
    }

    /// The columns of a cursor, which a client may ask for as it does for those of a portal.
    ///
    /// # Errors
    /// 34000 if there is no cursor of this name.
    pub fn cursor_columns(&self, name: &str) -> Result<SchemaRef, SqlError> {
        self.cursors.schema(name)
    }
}

fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}
