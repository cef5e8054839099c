//! The extended way: statements are parsed, given values, described and run by messages of their own, and what comes up to
//! `Sync` is one transaction.
//!
//! A statement that is followed by `Sync` at once, which is nearly all, runs as a statement outside of a block does: it is
//! its own transaction, and tried again when it loses against others.
use std::sync::Arc;

use sql::{Outcome, PreparedStatement, SqlError, TransactionStatus};
use types::DataType;

use crate::connection::{Answer, Connection};
use crate::copy_in::ClientInput;
use crate::portals::{Portal, PortalState};
use crate::rows::{self, PendingRows};
use crate::simple::{character, protocol, tag_of_rows};
use crate::values::{oids, parameters};
use crate::wire::frontend::{Bind, NamedObject, Parse, Request};

/// The name under which the session keeps the statement without a name: none that a client can say.
const UNNAMED: &str = "";

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

    fn parse(&mut self, Parse { name, text, types }: Parse) -> Result<(), SqlError> {
        let known: Vec<Option<DataType>> = types.iter().map(|oid| oids::parameter_type(*oid)).collect();
        if name == UNNAMED {
            self.session.forget_statement(UNNAMED);
        }
        let mut prepared = self.session.prepare(&text, &known).map_err(|error| counted(error, &text))?;
        for (at, oid) in types.iter().enumerate() {
            if let Some(item) = oids::item_of(*oid).and_then(oids::parameter_type) {
                prepared = prepared.with_items(at, item);
            }
        }
        let prepared = self.session.keep_statement(&name, prepared)?;
        self.declared.insert(name, (prepared, types));
        self.output.bare(b'1');
        Ok(())
    }

    /// The types that a client has said of a statement's parameters.
    fn declared(&self, name: &str, prepared: &Arc<PreparedStatement>) -> &[u32] {
        match self.declared.get(name) {
            Some((known, types)) if Arc::ptr_eq(known, prepared) => types,
            _ => &[],
        }
    }

    fn bind(&mut self, bind: &Bind) -> Result<(), SqlError> {
        bind.check()?;
        let prepared = self.session.kept_statement(&bind.statement)?;
        let wanted = prepared.parameters();
        if bind.len() != wanted.len() {
            let (count, name) = (bind.len(), &bind.statement);
            return Err(protocol(format!(
                "bind message supplies {count} parameters, but prepared statement \"{name}\" requires {}",
                wanted.len()
            )));
        }
        if self.session.transaction_status() == TransactionStatus::Failed && !prepared.ends_block() {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(SqlError::new("25P02", message));
        }
        let declared = self.declared(&bind.statement, &prepared);
        let mut values = Vec::with_capacity(wanted.len());
        for (at, data_type) in wanted.iter().enumerate() {
            let oid = sent_type(&prepared, declared, at);
            values.push(match bind.value(at) {
                (None, _) => types::Value::Null,
                (Some(bytes), format) => parameters::read(bytes, format, *data_type, oid, at)?,
            });
        }
        let result_formats = bind.result_formats.clone();
        self.portals.add(bind.portal.clone(), Portal { prepared, values, result_formats, state: PortalState::New })?;
        self.output.bare(b'2');
        Ok(())
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
            Some(schema) => self.output.row_description(&rows::describe(&schema, &[])?),
            None => self.output.bare(b'n'),
        }
        Ok(())
    }

    /// Describes what a portal gives. A query that is about to run anyway is started for it, so that it is planned once.
    fn describe_portal(&mut self, name: &str) -> Answer {
        let mut portal = self.portals.take(name)?;
        if portal.prepared.gives_rows() && matches!(portal.state, PortalState::New) && self.may_start_early() {
            self.start(&mut portal)?;
        }
        match &portal.state {
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

    /// Runs a portal up to where its rows can be read. `None` if it gives none: then it has run, and this is its tag.
    fn start(&mut self, portal: &mut Portal) -> Answer<Option<String>> {
        let mut input = ClientInput::new(&mut self.input, &mut self.output);
        let outcome = self.session.execute_prepared(&portal.prepared, &portal.values, &mut input);
        if let Some(lost) = input.lost.take() {
            return Err(lost.into());
        }
        drop(input);
        match outcome.map_err(|error| counted(error, portal.prepared.text()))? {
            Outcome::Rows(rows) => {
                portal.state = PortalState::Open(PendingRows::new(rows, &portal.result_formats)?);
                Ok(None)
            }
            Outcome::Done(command) => {
                command.notices.iter().for_each(|notice| self.output.notice(notice));
                portal.state = PortalState::Done;
                Ok(Some(command.tag))
            }
        }
    }

    fn execute(&mut self, name: String, rows_max: u32) -> Answer {
        let mut portal = self.portals.take(&name)?;
        if self.input.next_kinds()[0] != Some(b'S') && !portal.prepared.is_control() {
            self.session.begin_implicit()?;
        }
        let mut tag = match portal.state {
            PortalState::New => self.start(&mut portal)?,
            PortalState::Open(_) => None,
            // The rows of a query are all there were.
            PortalState::Done if portal.prepared.gives_rows() => Some(tag_of_rows(portal.prepared.text(), 0)),
            PortalState::Done => {
                return Err(SqlError::new("55000", format!("portal \"{name}\" cannot be run")).into());
            }
        };
        if let PortalState::Open(sending) = &mut portal.state {
            let wanted = if rows_max == 0 { usize::MAX } else { rows_max as usize };
            let sent = sending.send(&mut self.output, wanted)?;
            if sent == wanted {
                self.output.bare(b's');
            } else {
                tag = Some(tag_of_rows(portal.prepared.text(), sent));
                portal.state = PortalState::Done;
            }
        }
        if let Some(tag) = tag {
            self.output.command_complete(&tag);
        }
        self.portals.put_back(name, portal);
        Ok(self.output.flush_if_full()?)
    }
}

/// The number of the type in which a parameter is sent if its client has said it, or it is an array; else 0.
fn sent_type(prepared: &PreparedStatement, declared: &[u32], at: usize) -> u32 {
    match (declared.get(at), prepared.items(at)) {
        (None | Some(&(0 | oids::UNKNOWN)), Some(_)) if prepared.is_oid_array(at) => oids::array_of(oids::OID),
        (None | Some(&(0 | oids::UNKNOWN)), Some(item)) => oids::array_of(oids::of_type(item)),
        (None | Some(&oids::UNKNOWN), None) => 0,
        (Some(oid), _) => *oid,
    }
}

/// Converts the position of an error into a count of characters of the client's text.
fn counted(error: SqlError, text: &str) -> SqlError {
    SqlError { position: error.position.map(|position| character(text, position)), ..error }
}
