//! Prepared statements, kept by their text, and the values of their parameters.
//!
//! A text has one prepared statement for each set of types that its parameters have taken. They are forgotten together when a
//! statement of the session has changed what names mean, or fails over names or types, as others may have changed that.
use std::collections::HashMap;
use std::sync::Arc;

use engine::{DataType, Value};
use sql::{PreparedStatement, Session, SqlError};

use crate::parameter::Parameter;

/// How many texts are kept, and how long they may be.
const TEXTS_MAX: usize = 512;
const LENGTH_MAX: usize = 16_384;

/// A statement with the values of its parameters.
pub(crate) type Bound = (Arc<PreparedStatement>, Vec<Value>);

/// See the module.
#[derive(Default)]
pub(crate) struct Statements(HashMap<String, Vec<Arc<PreparedStatement>>>);

/// The values of a statement's parameters, and for those that need one the type that they are to get.
enum Binding {
    Values(Vec<Value>),
    Types(Vec<Option<DataType>>),
}

fn bind(statement: &PreparedStatement, parameters: &[Parameter]) -> Result<Binding, SqlError> {
    let types = statement.parameters();
    if types.len() != parameters.len() {
        let message =
            format!("the statement has {} parameters, and {} values were given", types.len(), parameters.len());
        return Err(SqlError::new("07001", message));
    }
    let mut values = Vec::with_capacity(types.len());
    let mut wanted = Vec::new();
    for (at, (parameter, data_type)) in parameters.iter().zip(types).enumerate() {
        match parameter.value(*data_type, statement.items(at).is_some())? {
            Some(value) => values.push(value),
            None => {
                wanted.resize(types.len(), None);
                wanted[at] = parameter.natural();
            }
        }
    }
    Ok(if wanted.is_empty() { Binding::Values(values) } else { Binding::Types(wanted) })
}

impl Statements {
    /// The statement of a text, prepared for these parameters.
    ///
    /// # Errors
    /// What preparing it fails with; 07001 if it has more or fewer parameters.
    pub(crate) fn bound(
        &mut self,
        session: &mut Session,
        text: &str,
        parameters: &[Parameter],
    ) -> Result<Bound, SqlError> {
        if let Some(known) = self.known(text, parameters) {
            return Ok(known);
        }
        let prepared = session.prepare(text, &[])?;
        let (prepared, values) = match bind(&prepared, parameters)? {
            Binding::Values(values) => (prepared, values),
            Binding::Types(types) => {
                let prepared = session.prepare(text, &types)?;
                match bind(&prepared, parameters)? {
                    Binding::Values(values) => (prepared, values),
                    Binding::Types(_) => {
                        let message = "a parameter is of no type that the statement takes in its place";
                        return Err(SqlError::new("42804", message));
                    }
                }
            }
        };
        let prepared = Arc::new(prepared);
        if text.len() <= LENGTH_MAX {
            if self.0.len() >= TEXTS_MAX {
                self.forget();
            }
            self.0.entry(text.to_owned()).or_default().push(prepared.clone());
        }
        Ok((prepared, values))
    }

    /// The statement of a text, if it has been prepared for such parameters.
    pub(crate) fn known(&self, text: &str, parameters: &[Parameter]) -> Option<Bound> {
        self.0.get(text)?.iter().find_map(|known| match bind(known, parameters) {
            Ok(Binding::Values(values)) => Some((known.clone(), values)),
            _ => None,
        })
    }

    /// Forgets all.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// A statement has run with this tag.
    pub(crate) fn note_done(&mut self, tag: &str) {
        let changes_names = ["CREATE", "ALTER", "DROP", "ROLLBACK", "SELECT"];
        if changes_names.iter().any(|word| tag.starts_with(word)) {
            self.forget();
        }
    }

    /// A statement has failed.
    pub(crate) fn note_failed(&mut self, error: &SqlError) {
        if error.sqlstate.starts_with("42") {
            self.forget();
        }
    }
}
