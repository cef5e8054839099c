//! `Parse`: a statement is prepared, and kept under its name.
use sql::SqlError;
use types::DataType;

use super::counted;
use crate::connection::Connection;
use crate::values::oids;
use crate::wire::frontend::Parse;

/// The name under which the session keeps the statement without a name: none that a client can say.
const UNNAMED: &str = "";

impl Connection<'_> {
    pub(super) fn parse(&mut self, Parse { name, text, types }: Parse) -> Result<(), SqlError> {
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
}
