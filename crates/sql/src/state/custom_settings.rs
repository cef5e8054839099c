//! Settings of a program's own, `SET my.name = ...`: texts under names with a dot, which mean nothing to the database; and those of
//! PostgreSQL's that mean nothing here.
//!
//! A name is known to a session from its first `SET` on. Where that is taken back, by `RESET`, a rollback or the end of a
//! block, what stays is an empty text, as in PostgreSQL.
use std::collections::BTreeMap;

use crate::error::Result;
use crate::state::unheeded_settings::Unheeded;

/// The beginnings of our own names, and of those of the library that runs queries: its settings are not to be
/// changed.
const OWN: [&str; 3] = ["lstore.", "gpu.", "datafusion."];

/// The values by name.
#[derive(Clone, Default)]
pub(crate) struct CustomSettings(BTreeMap<String, String>);

impl CustomSettings {
    /// Whether a name may be one: words with dots between them.
    fn may_be(name: &str) -> bool {
        let is_word = |word: &str| {
            let mut signs = word.chars();
            signs.next().is_some_and(|first| first.is_alphabetic() || first == '_')
                && signs.all(|sign| sign.is_alphanumeric() || sign == '_' || sign == '$')
        };
        name.contains('.') && !OWN.iter().any(|own| name.starts_with(own)) && name.split('.').all(is_word)
    }

    /// The value that a `SET` of this name means, if it is one of these settings; what it is by default is what it is here.
    ///
    /// # Errors
    /// Where a setting of PostgreSQL's has no such value.
    pub(crate) fn asked(&self, name: &str, value: &str) -> Result<Option<String>> {
        let is_default = value.eq_ignore_ascii_case("default");
        match Unheeded::find(name) {
            Some(unheeded) => {
                let default = self.get(name).filter(|_| is_default);
                default.map_or_else(|| unheeded.read(value), |value| Ok(value.to_owned())).map(Some)
            }
            None if !CustomSettings::may_be(name) => Ok(None),
            None if is_default => Ok(Some(self.get(name).unwrap_or_default().to_owned())),
            None => Ok(Some(value.to_owned())),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter()
    }

    /// Names that others know, too, are known here, without a value.
    pub(crate) fn know(&mut self, others: &CustomSettings) {
        for name in others.0.keys().filter(|name| !self.0.contains_key(*name)).cloned().collect::<Vec<_>>() {
            let default = Unheeded::find(&name).map(|unheeded| unheeded.default.to_owned());
            self.0.insert(name, default.unwrap_or_default());
        }
    }
}
