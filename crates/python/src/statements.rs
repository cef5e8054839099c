//! Prepared statements, kept by their text, and the values of their parameters.
//!
//! A text has one prepared statement for each set of types that its parameters have taken. They are forgotten together when a
//! statement of the session has changed what names mean, or fails over names or types, as others may have changed that.
//!
//! A text with `?` in place of `$1` is found by itself where its statement is short: about rows by keys, or totals that are kept. So the
//! short way ([`session`](crate::session)) numbers no parameters.
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use engine::{DataType, Value};
use sql::{PreparedStatement, Session, SqlError};

use crate::access::Access;
use crate::parameter::Parameter;
use crate::placeholders::number;

/// How many texts are kept, and how long they may be.
const TEXTS_MAX: usize = 512;
const LENGTH_MAX: usize = 16_384;

/// How long the text of a short statement may be.
const SHORT_MAX: usize = 2048;

/// A statement with the values of its parameters.
pub(crate) type Bound = (Arc<PreparedStatement>, Vec<Value>);

/// See the module.
#[derive(Default)]
pub(crate) struct Statements {
    prepared: HashMap<String, Vec<Arc<PreparedStatement>>>,
    /// Texts as callers give them, with their statement where that is short.
    short: HashMap<String, Option<Arc<PreparedStatement>>>,
    /// What typed tables use, for as long as the statements that they stand for.
    accesses: Vec<Arc<Access>>,
}

/// The values of a statement's parameters, and for those that need one the type that they are to get.
enum Binding {
    Values(Vec<Value>),
    Types(Vec<Option<DataType>>),
}

impl Binding {
    fn values(self) -> Option<Vec<Value>> {
        match self {
            Binding::Values(values) => Some(values),
            Binding::Types(_) => None,
        }
    }
}

/// The values of a statement's parameters, if it is prepared for such.
pub(crate) fn values_for(statement: &PreparedStatement, parameters: &[Parameter]) -> Option<Vec<Value>> {
    bind(statement, parameters).ok()?.values()
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
            if self.prepared.len() >= TEXTS_MAX {
                self.forget();
            }
            self.short.retain(|_, known| known.is_some());
            self.prepared.entry(text.to_owned()).or_default().push(prepared.clone());
        }
        Ok((prepared, values))
    }

    /// The statement of a text, if it has been prepared for such parameters.
    pub(crate) fn known(&self, text: &str, parameters: &[Parameter]) -> Option<Bound> {
        let known = self.prepared.get(text)?;
        known.iter().find_map(|known| values_for(known, parameters).map(|values| (known.clone(), values)))
    }

    /// The short statement of a text as a caller gives it, if it has been run before; `has_marks` says that its parameters are `?`.
    pub(crate) fn short(&mut self, text: &str, has_marks: bool) -> Option<Arc<PreparedStatement>> {
        if let Some(known) = self.short.get(text) {
            return known.clone();
        }
        if text.len() > SHORT_MAX || self.prepared.is_empty() {
            return None;
        }
        let numbered = has_marks.then(|| number(text, false)).filter(|numbered| numbered.marks > 0);
        let known = self.prepared.get(numbered.as_ref().map_or(text, |numbered| &numbered.text));
        let short = known
            .and_then(|known| known.last())
            .filter(|known| known.row_schema().is_some() || known.is_short_change());
        if self.short.len() >= 2 * TEXTS_MAX {
            self.short.clear();
        }
        self.short.insert(text.to_owned(), short.cloned());
        short.cloned()
    }

    /// The values of a short statement were of other types than it is prepared for: it is looked up again.
    pub(crate) fn is_other(&mut self, text: &str) {
        self.short.remove(text);
    }

    /// The statement that was prepared last for a text.
    pub(crate) fn last(&self, text: &str) -> Option<&Arc<PreparedStatement>> {
        self.prepared.get(text)?.last()
    }

    /// Keeps an access until the statements are forgotten.
    pub(crate) fn keep(&mut self, access: Access) -> Weak<Access> {
        if self.accesses.len() >= TEXTS_MAX {
            self.accesses.clear();
        }
        let access = Arc::new(access);
        let kept = Arc::downgrade(&access);
        self.accesses.push(access);
        kept
    }

    /// Forgets all.
    pub(crate) fn forget(&mut self) {
        self.prepared.clear();
        self.short.clear();
        self.accesses.clear();
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
