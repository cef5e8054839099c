//! `Execute`: a portal is run, as far as its client wants rows of it.
use arrow_schema::{FieldRef, SchemaRef};
use sql::{Outcome, PreparedStatement, SqlError};

use super::counted;
use crate::connection::{Answer, Connection};
use crate::copy_in::ClientInput;
use crate::portals::{Portal, PortalState};
use crate::rows::{PassedRows, PendingRows, tag_of_rows};
use crate::values::oids;
use crate::wire::output::CHANGED_RESULT;

impl Connection<'_> {
    pub(super) fn execute(&mut self, name: String, rows_max: u32) -> Answer {
        let mut portal = self.portals.take(&name)?;
        if self.input.next_kinds()[0] != Some(b'S') && !portal.prepared.is_control() {
            self.session.begin_implicit()?;
        }
        let mut tag = match portal.state {
            PortalState::New => self.begin(&mut portal, rows_max)?,
            PortalState::Open(_) => None,
            PortalState::Done(Some(ref none)) => Some(none.clone()),
            // The rows of a query are all there were.
            PortalState::Done(None) if portal.prepared.gives_rows() => Some(tag_of_rows(portal.prepared.text(), 0)),
            PortalState::Done(None) => {
                return Err(SqlError::new("55000", format!("portal \"{name}\" cannot be run")).into());
            }
        };
        if let PortalState::Open(sending) = &mut portal.state {
            let wanted = if rows_max == 0 { usize::MAX } else { rows_max as usize };
            let sent = sending.send(&mut self.output, wanted)?;
            if sent == wanted {
                self.output.bare(b's');
            } else {
                let text = portal.prepared.text();
                tag = Some(sending.tag(text, sent));
                let none = portal.prepared.changes_rows().then(|| sending.tag(text, 0));
                portal.state = PortalState::Done(none);
            }
        }
        if let Some(tag) = tag {
            self.output.command_complete(&tag);
        }
        self.portals.put_back(name, portal);
        Ok(self.output.flush_if_full()?)
    }

    /// Runs a portal of which all rows or so many are wanted, as [`start`](Self::start) does. Rows that are passed on are messages then,
    /// and it has run.
    fn begin(&mut self, portal: &mut Portal, rows_max: u32) -> Answer<Option<String>> {
        let (prepared, formats) = (&portal.prepared, &portal.result_formats);
        let is_wanted = |schema: &&SchemaRef| {
            rows_max == 0 && self.output.encoding().is_none() && prepared.told_other_than(schema).is_none()
        };
        let forms = match prepared.passed_schema().filter(is_wanted) {
            Some(schema) => self.described.forms(schema, formats)?,
            None => None,
        };
        let Some(forms) = forms else { return self.start(portal) };
        let mut sink = PassedRows { output: &mut self.output, forms: &forms };
        let outcome = self.session.execute_passing(prepared, &portal.values, &mut sink);
        self.begun(portal, outcome)
    }

    /// Runs a portal up to where its rows can be read. `None` if it gives some; else it has run, and this is its tag.
    pub(super) fn start(&mut self, portal: &mut Portal) -> Answer<Option<String>> {
        let mut input = ClientInput::new(&mut self.input, &mut self.output);
        let outcome = self.session.execute_prepared(&portal.prepared, &portal.values, &mut input);
        if let Some(lost) = input.lost.take() {
            return Err(lost.into());
        }
        drop(input);
        self.output.speak(self.session.client_encoding());
        self.begun(portal, outcome)
    }

    /// What has become of a portal that was run.
    fn begun(&mut self, portal: &mut Portal, outcome: Result<Outcome, SqlError>) -> Answer<Option<String>> {
        match outcome.map_err(|error| counted(error, portal.prepared.text()))? {
            Outcome::Rows(rows) => {
                self.check_told(&portal.prepared, &rows.schema())?;
                if portal.told.as_ref().is_some_and(|told| !is_told_alike(told, &rows.schema())) {
                    return Err(SqlError::new("0A000", CHANGED_RESULT).into());
                }
                portal.state = PortalState::Open(PendingRows::new(rows, &portal.result_formats, &mut self.described)?);
                Ok(None)
            }
            Outcome::Done(command) => {
                command.notices.iter().for_each(|notice| self.output.notice(notice));
                portal.state = PortalState::Done(None);
                Ok(Some(command.tag))
            }
        }
    }

    /// Checks that the rows of a query have the columns of which its client was told when it prepared the statement: it reads them as
    /// these. Of a statement that changes rows they are as they come, as it has run.
    fn check_told(&mut self, prepared: &PreparedStatement, given: &SchemaRef) -> Result<(), SqlError> {
        let Some(told) = prepared.told_other_than(given).filter(|_| !prepared.changes_rows()) else {
            return Ok(());
        };
        if is_told_alike(told, given) {
            prepared.note_alike(given);
            return Ok(());
        }
        // A value may have a type of its own where the description knew none: the tables decide.
        match self.session.describe(prepared)? {
            Some(columns) if is_told_alike(told, &columns) => Ok(()),
            _ => Err(SqlError::new("0A000", CHANGED_RESULT)),
        }
    }
}

/// Whether clients are told of two lists of columns in one way.
fn is_told_alike(told: &SchemaRef, given: &SchemaRef) -> bool {
    let alike = |(one, other): (&FieldRef, &FieldRef)| oids::of_field(one) == oids::of_field(other);
    told.fields().len() == given.fields().len() && told.fields().iter().zip(given.fields()).all(alike)
}
