//! Functions that a program computes and gives its session, to be called by name in the session's statements.
//!
//! They belong to the session and to no transaction, as the tables of `registered` do. Nothing that other sessions read names them:
//! defaults, checks and expressions of indexes are planned without them. A view may; a session without the function can't read it.
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::ArrayRef;
use engine::DataType;

use crate::error::Result;
use crate::interrupt::cancel::Token;

/// A function that a program computes, batch by batch. Several threads call it at the same time.
pub trait UserFunction: Send + Sync {
    /// The types of its arguments.
    fn parameters(&self) -> &[DataType];

    /// The type of its results.
    fn returns(&self) -> DataType;

    /// Whether equal arguments always have the same result, so that calls may be left out, moved and made ahead of time.
    fn is_pure(&self) -> bool;

    /// The results for so many rows, in their order. An argument has the Arrow type of its parameter, but that a numeric has its own
    /// precision and scale. What takes long asks `stop` from time to time, and gives its error back.
    ///
    /// # Errors
    /// Why there are no results; it ends the statement.
    fn compute(&self, arguments: &[ArrayRef], rows: usize, stop: &StopCheck) -> Result<ArrayRef>;
}

/// Whether a statement is to stop.
#[derive(Clone)]
pub struct StopCheck(pub(crate) Arc<Token>);

impl StopCheck {
    /// # Errors
    /// 57014, or the SQLSTATE of the limit of time that has passed, if the statement is to stop.
    pub fn check(&self) -> Result<()> {
        self.0.check()
    }
}

/// The functions by their names.
#[derive(Clone, Default)]
pub(crate) struct UserFunctions(Arc<BTreeMap<String, Arc<dyn UserFunction>>>);

impl UserFunctions {
    /// Adds a function, in place of one of this name.
    pub(crate) fn add(&mut self, name: &str, function: Arc<dyn UserFunction>) {
        Arc::make_mut(&mut self.0).insert(name.to_owned(), function);
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes a function; whether there was one.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        Arc::make_mut(&mut self.0).remove(name).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Arc<dyn UserFunction>)> {
        self.0.iter()
    }
}
