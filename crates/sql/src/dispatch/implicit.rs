//! Statements that a client sends together, in one message or before it asks for an answer, are one transaction
//! without `BEGIN`, as in PostgreSQL: all of them take effect, or none.
use crate::dispatch::Request;
use crate::error::{Result, SqlError};
use crate::parsing::ParsedStatement;
use crate::parsing::control::Control;
use crate::session::Session;
use crate::session::block::Block;
use crate::statements::copy::input::NoInput;

impl Session {
    /// Has the statements from here on be one transaction, up to [`Session::end_implicit`]. Within a block nothing changes.
    ///
    /// # Errors
    /// If no transaction can begin.
    pub fn begin_implicit(&mut self) -> Result<(), SqlError> {
        if self.block.is_none() {
            self.begin(self.settings.modes())?;
            self.block.iter_mut().for_each(|block| block.set_implicit(true));
        }
        Ok(())
    }

    /// Whether a transaction is open that no statement has begun.
    pub fn is_implicit(&self) -> bool {
        self.block.as_ref().is_some_and(Block::is_implicit)
    }

    /// Ends the transaction of [`Session::begin_implicit`], if it is still one: commits it, or rolls it back if it failed.
    ///
    /// # Errors
    /// What the commit fails with.
    pub fn end_implicit(&mut self) -> Result<(), SqlError> {
        if !self.is_implicit() {
            return Ok(());
        }
        self.block.iter_mut().for_each(|block| block.set_implicit(false));
        let commit = |_: &str| Ok(Request::from(ParsedStatement::Control(Control::Commit { chain: false })));
        self.run_statement("", commit, &mut NoInput).map(drop)
    }
}
