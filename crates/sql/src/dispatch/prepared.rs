//! Running prepared statements, and keeping them under names.
//!
//! Statements that touch a row by its key go a shorter way (`point`), unless a value keeps them from it; the others go the way
//! of any other statement, with literals in place of their parameters (`substitute`).

use std::sync::Arc;

use engine::Value;

use crate::dispatch::Request;
use crate::error::Result;
use crate::session::Session;
use crate::session::kept_statements::Statements;
use crate::session::prepared::PreparedStatement;
use crate::session::substitute;
use crate::state::outcome::{Command, Outcome};
use crate::statements::copy::input::CopyInput;
use crate::syntax::source::Source;
use crate::syntax::stack;

impl Session {
    /// Runs a prepared statement with a value for each parameter.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn execute_prepared(
        &mut self,
        prepared: &Arc<PreparedStatement>,
        values: &[Value],
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        let read = |_: &str| match &prepared.point {
            Some(_) => Ok(Request::Point(prepared.clone(), values.to_vec())),
            None => substitute::parameters(prepared.parsed.clone(), prepared.types(), values).map(Request::from),
        };
        self.run_statement(&prepared.text, read, input)
    }

    /// The row that a prepared `SELECT` by a key finds, as values: the cheapest way to read one, as nothing of a statement is begun.
    /// `None` where it has to be run: where it is of another kind, in a block, of the past, or names are looked up in other schemas.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn row_by_key(&self, prepared: &PreparedStatement, values: &[Value]) -> Result<Option<Option<Vec<Value>>>> {
        let is_bare = self.block.is_none() && self.settings.as_of().is_none() && self.path().is_plain();
        match &prepared.point {
            Some(point) if is_bare => point.row(self, values),
            _ => Ok(None),
        }
    }

    /// Runs it within a statement.
    pub(crate) fn execute_bound(
        &mut self,
        prepared: &PreparedStatement,
        values: &[Value],
        input: &mut dyn CopyInput,
    ) -> Result<Outcome> {
        if let Some(point) = &prepared.point
            && self.tables.path().is_plain()
            && let Some(done) = point.run(self, values)?
        {
            return Ok(done);
        }
        stack::with_room(prepared.text.len(), || {
            let parsed = substitute::parameters(prepared.parsed.clone(), prepared.types(), values)?;
            self.dispatch(parsed, &Source::new(&prepared.text), input)
        })
    }

    /// Keeps a prepared statement under a name of the session, as `PREPARE` does.
    ///
    /// # Errors
    /// 42P05 if the name is taken.
    pub fn keep_statement(&mut self, name: &str, prepared: PreparedStatement) -> Result<Arc<PreparedStatement>> {
        self.statements.add(name, prepared)
    }

    /// The prepared statement of a name.
    ///
    /// # Errors
    /// 26000 if there is none.
    pub fn kept_statement(&self, name: &str) -> Result<Arc<PreparedStatement>> {
        self.statements.get(name)
    }

    /// Forgets the prepared statement of a name, if there is one.
    pub fn forget_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Runs `DEALLOCATE` of one statement, or of all.
    pub(crate) fn deallocate(&mut self, name: Option<&str>) -> Result<Command> {
        match name {
            None => {
                self.statements = Statements::default();
                Ok(Command::new("DEALLOCATE ALL"))
            }
            Some(name) => {
                self.statements.get(name)?;
                self.statements.remove(name);
                Ok(Command::new("DEALLOCATE"))
            }
        }
    }
}
