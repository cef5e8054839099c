//! What a transaction has said of constraints that may be deferred: `SET CONSTRAINTS`.
use std::collections::HashMap;

/// Which constraints that may be deferred are, as far as the transaction has said so.
#[derive(Clone, Default)]
pub(crate) struct Modes {
    all: Option<bool>,
    /// by their names, since it was said of all
    named: HashMap<String, bool>,
}

impl Modes {
    /// Notes what is said of all constraints, or of those with these names.
    pub(super) fn set(&mut self, names: Option<&[String]>, deferred: bool) {
        match names {
            None => *self = Modes { all: Some(deferred), named: HashMap::new() },
            Some(names) => self.named.extend(names.iter().map(|name| (name.clone(), deferred))),
        }
    }

    /// Whether a constraint of this name is deferred, if anything was said of it.
    pub(super) fn said(&self, name: &str) -> Option<bool> {
        self.named.get(name).copied().or(self.all)
    }
}
