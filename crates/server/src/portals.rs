//! Portals: prepared statements with values, run or about to be.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use sql::{PreparedStatement, SqlError};
use types::Value;

use crate::rows::PendingRows;
use crate::wire::frontend::Formats;

/// A prepared statement with the values for its parameters.
pub(crate) struct Portal {
    pub(crate) prepared: Arc<PreparedStatement>,
    pub(crate) values: Vec<Value>,
    pub(crate) result_formats: Formats,
    pub(crate) state: PortalState,
    /// The columns of which its client was told before it has run.
    pub(crate) told: Option<SchemaRef>,
}

/// How far a portal has got.
pub(crate) enum PortalState {
    New,
    /// Its rows are there to be sent.
    Open(PendingRows),
    /// The statement has run to its end. The tag for no more rows, if it has changed rows and given them back.
    Done(Option<String>),
}

/// The portals of a connection.
#[derive(Default)]
pub(crate) struct Portals {
    /// the one without a name, by which most statements go
    unnamed: Option<Portal>,
    by_name: HashMap<String, Portal>,
}

impl Portals {
    /// Makes a portal. The unnamed one takes the place of the one before.
    pub(crate) fn add(&mut self, name: String, portal: Portal) -> Result<(), SqlError> {
        if !name.is_empty() && self.by_name.contains_key(&name) {
            return Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        self.put_back(name, portal);
        Ok(())
    }

    /// Takes a portal out, to be put back if it goes on.
    pub(crate) fn take(&mut self, name: &str) -> Result<Portal, SqlError> {
        let missing = || SqlError::new("34000", format!("portal \"{name}\" does not exist"));
        self.removed(name).ok_or_else(missing)
    }

    fn removed(&mut self, name: &str) -> Option<Portal> {
        if name.is_empty() { self.unnamed.take() } else { self.by_name.remove(name) }
    }

    pub(crate) fn put_back(&mut self, name: String, portal: Portal) {
        match name.is_empty() {
            true => self.unnamed = Some(portal),
            false => drop(self.by_name.insert(name, portal)),
        }
    }

    pub(crate) fn close(&mut self, name: &str) {
        drop(self.removed(name));
    }

    pub(crate) fn close_unnamed(&mut self) {
        self.unnamed = None;
    }

    /// The end of a transaction is the end of its portals.
    pub(crate) fn close_all(&mut self) {
        self.unnamed = None;
        self.by_name.clear();
    }
}
