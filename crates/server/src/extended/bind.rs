//! `Bind`: a prepared statement gets values for its parameters, and becomes a portal.
use std::sync::Arc;

use sql::wire::encodings;
use sql::{PreparedStatement, SqlError, TransactionStatus};

use crate::connection::Connection;
use crate::portals::{Portal, PortalState};
use crate::simple::protocol;
use crate::values::{oids, parameters};
use crate::wire::frontend::Bind;

impl Connection<'_> {
    pub(super) fn bind(&mut self, bind: &Bind) -> Result<(), SqlError> {
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
        let _zone = self.session.in_zone();
        let encoding = self.session.client_encoding();
        let declared = self.declared(&bind.statement, &prepared);
        let mut values = Vec::with_capacity(wanted.len());
        for (at, data_type) in wanted.iter().enumerate() {
            let oid = sent_type(&prepared, declared, at);
            values.push(match bind.value(at) {
                (None, _) => types::Value::Null,
                (Some(bytes), format) => {
                    let told = if oid == 0 { oids::of_type(*data_type) } else { oid };
                    match encoding.filter(|_| format == 0 || encodings::is_text(told)) {
                        Some(encoding) => {
                            let text = encoding.decode(bytes)?;
                            parameters::read(text.as_bytes(), format, *data_type, oid, at)?
                        }
                        None => parameters::read(bytes, format, *data_type, oid, at)?,
                    }
                }
            });
        }
        let (result_formats, state) = (bind.result_formats.clone(), PortalState::New);
        self.portals.add(bind.portal.clone(), Portal { prepared, values, result_formats, state, told: None })?;
        self.output.bare(b'2');
        Ok(())
    }

    /// The types that a client has said of a statement's parameters.
    pub(super) fn declared(&self, name: &str, prepared: &Arc<PreparedStatement>) -> &[u32] {
        match self.declared.get(name) {
            Some((known, types)) if Arc::ptr_eq(known, prepared) => types,
            _ => &[],
        }
    }
}

/// The number of the type in which a parameter is sent if its client has said it, or it is an array; else 0.
pub(super) fn sent_type(prepared: &PreparedStatement, declared: &[u32], at: usize) -> u32 {
    match (declared.get(at), prepared.items(at)) {
        (None | Some(&(0 | oids::UNKNOWN)), Some(_)) if prepared.is_oid_array(at) => oids::array_of(oids::OID),
        (None | Some(&(0 | oids::UNKNOWN)), Some(item)) => oids::array_of(oids::of_type(item)),
        (None | Some(&(0 | oids::UNKNOWN)), None) if prepared.is_oid(at) => oids::OID,
        (None | Some(&oids::UNKNOWN), None) => 0,
        (Some(oid), _) => *oid,
    }
}
