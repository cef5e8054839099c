//! The extended way: statements are parsed, given values, described and run by messages of their own, and what comes up to
//! `Sync` is one transaction.
//!
//! A statement that is followed by `Sync` at once, which is nearly all, runs as a statement outside of a block does: it is
//! its own transaction, and tried again when it loses against others.
//!
//! Each of the three messages that such a statement takes has a file of its own.
mod bind;
mod execute;
mod parse;

use sql::{SqlError, TransactionStatus};
use types::DataType;

use crate::connection::{Answer, Connection};
use crate::portals::PortalState;
use crate::rows;
use crate::simple::{character, protocol};
use crate::values::oids;
use crate::wire::frontend::{NamedObject, Request};
use bind::sent_type;

impl Connection<'_> {
    /// Answers one of the messages of the extended protocol.
    pub(crate) fn extended(&mut self, request: Request) -> Answer {
        match request {
            Request::Parse(parse) => self.parse(parse)?,
            Request::Bind(bind) => self.bind(&bind)?,
            Request::Describe(NamedObject::Statement(name)) => self.describe_statement(&name)?,
            Request::Describe(NamedObject::Portal(name)) => self.describe_portal(&name)?,
            Request::Execute { portal, rows_max } => return self.execute(portal, rows_max),
            Request::Close(named) => {
                match named {
                    NamedObject::Statement(name) => {
                        self.session.forget_statement(&name);
                        self.declared.remove(&name);
                    }
                    NamedObject::Portal(name) => self.portals.close(&name),
                }
                self.output.bare(b'3');
            }
            other => return Err(protocol(format!("{other:?} is no message of the extended protocol")).into()),
        }
        Ok(self.output.flush_if_full()?)
    }

    fn describe_statement(&mut self, name: &str) -> Result<(), SqlError> {
        let prepared = self.session.kept_statement(name)?;
        let columns = self.session.describe(&prepared).map_err(|error| counted(error, prepared.text()))?;
        let declared = self.declared(name, &prepared);
        let oid = |(at, data_type): (usize, &DataType)| match sent_type(&prepared, declared, at) {
            0 => oids::of_type(*data_type),
            oid => oid,
        };
        let oids: Vec<u32> = prepared.parameters().iter().enumerate().map(oid).collect();
        self.output.parameter_description(&oids);
        match columns {
            Some(schema) => {
                self.output.row_description(&rows::describe(&schema, &[])?);
                prepared.note_told(&schema);
            }
            None => self.output.bare(b'n'),
        }
        Ok(())
    }

    /// Describes what a portal gives. A query that is about to run anyway is started for it, so that it is planned once; one whose rows
    /// are passed on, and what changes rows, waits until it is told to run.
    fn describe_portal(&mut self, name: &str) -> Answer {
        let mut portal = match self.portals.take(name) {
            Ok(portal) => portal,
            Err(error) => {
                // It may be a cursor of SQL, whose columns psycopg asks for in this way.
                let columns = self.session.cursor_columns(name).map_err(|_| error)?;
                self.output.row_description(&rows::describe(&columns, &[])?);
                return Ok(());
            }
        };
        let is_query = portal.prepared.gives_rows() && !portal.prepared.changes_rows();
        if is_query && matches!(portal.state, PortalState::New) && self.may_start_early() {
            match portal.prepared.passed_schema().cloned() {
                Some(schema) => portal.told = Some(schema),
                None => drop(self.start(&mut portal)?),
            }
        }
        match &portal.state {
            PortalState::New if let Some(schema) = &portal.told => {
                self.output.row_description(&self.described.describe(schema, &portal.result_formats)?);
            }
            PortalState::Open(sending) => self.output.row_description(sending.columns()),
            _ => match self.session.describe(&portal.prepared).map_err(|e| counted(e, portal.prepared.text()))? {
                Some(schema) => self.output.row_description(&rows::describe(&schema, &portal.result_formats)?),
                None => self.output.bare(b'n'),
            },
        }
        self.portals.put_back(name.to_owned(), portal);
        Ok(())
    }

    /// Whether running a query now is the same as running it a message later.
    fn may_start_early(&self) -> bool {
        self.session.transaction_status() == TransactionStatus::InBlock
            || self.input.next_kinds() == [Some(b'E'), Some(b'S')]
    }
}

/// Converts the position of an error into a count of characters of the client's text.
fn counted(error: SqlError, text: &str) -> SqlError {
    SqlError { position: error.position.map(|position| character(text, position)), ..error }
}
