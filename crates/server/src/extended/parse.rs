//! `Parse`: a statement is prepared, and kept under its name.
use sql::{PreparedStatement, SqlError};
use types::DataType;

use super::counted;
use crate::connection::Connection;
use crate::values::oids;
use crate::wire::frontend::Parse;

/// The name under which the session keeps the statement without a name: none that a client can say.
const UNNAMED: &str = "";

impl Connection<'_> {
    pub(super) fn parse(&mut self, Parse { name, text, types }: Parse) -> Result<(), SqlError> {
        if name == UNNAMED {
            self.session.forget_statement(UNNAMED);
        }
        let mut prepared = self.with_types(&text, &types, |oid| oids::item_of(oid).is_none())?;
        let items: Vec<_> = types.iter().map(|oid| oids::item_of(*oid).and_then(oids::parameter_type)).collect();
        let is_other = |(given, found): (&Option<DataType>, &DataType)| given.is_some() && !is_array_of(*given, *found);
        // Of another type than its place has is an array that goes by its text.
        if items.iter().zip(prepared.parameters()).any(is_other) {
            prepared = self.with_types(&text, &types, |_| true)?;
        }
        for (at, item) in items.iter().enumerate() {
            if let Some(item) = item.filter(|_| !matches!(prepared.parameters().get(at), Some(DataType::Array(_)))) {
                prepared = prepared.with_items(at, item);
            }
        }
        let prepared = self.session.keep_statement(&name, prepared)?;
        self.declared.insert(name, (prepared, types));
        self.output.bare(b'1');
        Ok(())
    }

    /// Prepares a statement, of whose parameters those types are known that are said and taken.
    fn with_types(
        &mut self,
        text: &str,
        types: &[u32],
        is_taken: impl Fn(u32) -> bool,
    ) -> Result<PreparedStatement, SqlError> {
        let known = |oid: &u32| oids::parameter_type(*oid).filter(|_| is_taken(*oid));
        let known: Vec<Option<DataType>> = types.iter().map(known).collect();
        let is_one = |error: &SqlError| error.sqlstate != "42601" || sql::split(text).len() < 2;
        self.session.prepare(text, &known).map_err(|error| match is_one(&error) {
            true => counted(error, text),
            false => SqlError::new("42601", "cannot insert multiple commands into a prepared statement"),
        })
    }
}

/// Whether a parameter that is said to be an array of these items may be of a type: it is an array of them, or is read as a text.
fn is_array_of(items: Option<DataType>, found: DataType) -> bool {
    match found {
        DataType::Array(item) => items.is_some_and(|of| oids::of_type(of) == oids::of_type(item.data_type())),
        DataType::Text { .. } => true,
        _ => false,
    }
}
