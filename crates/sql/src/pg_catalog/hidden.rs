//! What of `public` the search path does not find, and how texts name it then: with its schema.
//!
//! `pg_dump` asks with an empty path, so that what it writes means the same whatever the path is that reads it. Functions are told by their
//! names and how many arguments they take.
use std::collections::{BTreeMap, BTreeSet};

use super::mentions::{Mention, Named, of_expression, of_query};
use crate::names::schemas::{schema_of, spelled};
use crate::syntax::identifiers::quoted;
use crate::values::collated::is_built_in;
use crate::values::pg_types::{TYPES, extension_of};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    pub(super) relations: BTreeSet<String>,
    /// With the least and the most arguments of each.
    pub(super) functions: BTreeMap<String, Vec<[usize; 2]>>,
    pub(super) types: BTreeSet<String>,
    /// Whether the path has no `public`: then what extensions bring is hidden, too.
    pub(super) is_whole: bool,
}

impl Hidden {
    fn is_empty(&self) -> bool {
        !self.is_whole && self.relations.is_empty() && self.functions.is_empty() && self.types.is_empty()
    }

    fn hides(&self, mention: &Mention) -> bool {
        let Mention { named, schema: None, name, .. } = mention else { return false };
        match named {
            Named::Relation => self.relations.contains(name),
            Named::Type => self.types.contains(name),
            Named::Function(count) => {
                let known = self.functions.get(name).into_iter().flatten();
                known.into_iter().any(|[least, most]| (least..=most).contains(&count))
            }
        }
    }

    fn with_schemas(&self, text: String, mentions: impl Fn(&str) -> Vec<Mention>) -> String {
        if self.is_empty() {
            return text;
        }
        let found = mentions(&text).into_iter().filter(|mention| self.hides(mention));
        let mut places: Vec<usize> = found.map(|mention| mention.start).collect();
        places.sort_unstable();
        places.dedup();
        let mut text = text;
        for place in places.into_iter().rev().filter(|place| *place <= text.len()).collect::<Vec<_>>() {
            text.insert_str(place, "public.");
        }
        text
    }

    /// A query as this path needs it.
    pub(super) fn query(&self, text: String) -> String {
        self.with_schemas(text, of_query)
    }

    /// An expression as this path needs it.
    pub(super) fn expression(&self, text: String) -> String {
        self.with_schemas(text, of_expression)
    }

    /// A type that is told by its name.
    pub(super) fn type_name(&self, name: String) -> String {
        let item = name.trim_end_matches("[]");
        let is_hidden = self.types.iter().any(|known| quoted(known) == item);
        if is_hidden { format!("public.{name}") } else { name }
    }

    /// The name of a relation that is told without a schema where it is of `public`.
    pub(super) fn relation(&self, name: String) -> String {
        let is_hidden = self.relations.iter().any(|known| quoted(known) == name);
        if is_hidden { format!("public.{name}") } else { name }
    }

    /// What an extension has brought.
    pub(super) fn of_extension(&self, name: &str) -> String {
        if self.is_whole { format!("public.{name}") } else { name.to_owned() }
    }

    /// A collation as a definition says it.
    pub(super) fn collation(&self, name: &str) -> String {
        match name {
            _ if is_built_in(name) => quoted(name),
            _ if schema_of(name) == engine::PUBLIC_SCHEMA => self.of_extension(&quoted(name)),
            _ => spelled(name),
        }
    }

    /// The types of extensions with their names, if the path does not find them.
    pub(super) fn extension_types(&self) -> impl Iterator<Item = (i64, String)> {
        let known = TYPES.iter().filter(|known| self.is_whole && extension_of(known.number).is_some());
        known.flat_map(|known| {
            let name = format!("public.{}", known.name);
            [(i64::from(known.array), format!("{name}[]")), (i64::from(known.number), name)]
        })
    }
}
