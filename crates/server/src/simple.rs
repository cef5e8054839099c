//! The simple way: statements as text, all in one message, answered one after the other.
use sql::{Outcome, SqlError};

use crate::connection::{Answer, Connection, Failure};
use crate::copy_in::ClientInput;
use crate::rows::PendingRows;

impl Connection<'_> {
    /// Runs the statements of a text. Several are one transaction, unless they say otherwise.
    pub(crate) fn simple(&mut self, text: &str) -> Answer {
        self.portals.close_unnamed();
        let pieces = sql::split(text);
        if pieces.is_empty() {
            self.output.command_complete("");
        }
        for (at, piece) in pieces.iter().enumerate() {
            let (is_one_of_many, is_last) = (pieces.len() > 1, at + 1 == pieces.len());
            match self.statement(piece.text, is_one_of_many, is_last) {
                Ok(()) => {}
                Err(Failure::Statement(error)) => {
                    // Statements that are one transaction are over.
                    let _ = self.session.end_implicit();
                    let position = error.position.map(|position| piece.offset + position);
                    return self.tell(&error, position.map(|position| character(text, position)));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn statement(&mut self, text: &str, is_one_of_many: bool, is_last: bool) -> Answer {
        if is_one_of_many {
            self.session.begin_implicit()?;
        }
        let mut input = ClientInput::new(&mut self.input, &mut self.output);
        let outcome = self.session.execute_with_input(text, &mut input);
        if let Some(lost) = input.lost.take() {
            return Err(lost.into());
        }
        drop(input);
        self.output.speak(self.session.client_encoding());
        let tag = match outcome? {
            Outcome::Rows(rows) => {
                let mut sending = PendingRows::new(rows, &[], &mut self.described)?;
                self.output.row_description(sending.columns());
                let count = sending.send(&mut self.output, usize::MAX)?;
                sending.tag(text, count)
            }
            Outcome::Done(command) => {
                command.notices.iter().for_each(|notice| self.output.notice(notice));
                command.tag
            }
        };
        if is_one_of_many && is_last {
            self.session.end_implicit()?;
        }
        self.output.command_complete(&tag);
        Ok(())
    }
}

/// The place of a byte as PostgreSQL counts: characters, from 1.
pub(crate) fn character(text: &str, position: usize) -> usize {
    let before = text.get(..position).unwrap_or(text);
    before.chars().count() + 1
}

/// An error that a client is told in the words of the protocol.
pub(crate) fn protocol(message: String) -> SqlError {
    SqlError::new("08P01", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        assert_eq!((character("select ä, b", 0), character("select ä, b", 11)), (1, 11));
        assert_eq!(character("ä", 99), 2);
    }
}
