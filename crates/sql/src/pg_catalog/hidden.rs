//! What of `public` the search path does not find, and how texts name it then: with its schema. What it finds of other schemas is named
//! without.
//!
//! `pg_dump` asks with an empty path, so that what it writes means the same whatever the path is that reads it. Functions are told by their
//! names and how many arguments they take.
use std::collections::{BTreeMap, BTreeSet};

use engine::name_in_schema;

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
    /// What the path finds of other schemas, by the names of the catalog: relations and types.
    pub(super) found: BTreeSet<String>,
    /// Whether the path has no `public`: then what extensions bring is hidden, too.
    pub(super) is_whole: bool,
}

impl Hidden {
    fn is_empty(&self) -> bool {
        let is_bare = self.relations.is_empty() && self.functions.is_empty() && self.types.is_empty();
        !self.is_whole && is_bare && self.found.is_empty()
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

    /// Whether the path finds what a text calls with its schema.
    fn finds(&self, mention: &Mention) -> bool {
        let Mention { named: Named::Relation | Named::Type, schema: Some(schema), name, .. } = mention else {
            return false;
        };
        self.found.contains(&name_in_schema(schema, name))
    }

    fn with_schemas(&self, text: String, mentions: impl Fn(&str) -> Vec<Mention>) -> String {
        if self.is_empty() {
            return text;
        }
        let edit = |mention: Mention| match () {
            () if self.hides(&mention) => Some((mention.start..mention.start, "public.")),
            () if self.finds(&mention) => Some((mention.whole..mention.start, "")),
            () => None,
        };
        let mut edits: Vec<_> = mentions(&text).into_iter().filter_map(edit).collect();
        edits.sort_by_key(|(part, _)| part.start);
        edits.dedup();
        let mut text = text;
        for (part, instead) in edits.into_iter().rev() {
            if text.get(part.clone()).is_some() {
                text.replace_range(part, instead);
            }
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
