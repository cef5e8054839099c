//! What of `public` the search path does not find, and how texts name it then: with its schema.
//!
//! `pg_dump` asks with an empty path, so that what it writes means the same whatever the path is that reads it. Functions are told by their
//! names and how many arguments they take.
use std::collections::{BTreeMap, BTreeSet};

use engine::{PUBLIC_SCHEMA, TypeDefinition, schema_and_name};

use super::mentions::{Mention, Named, of_expression, of_query};
use super::objects::Objects;
use crate::names::schemas::local;
use crate::syntax::identifiers::quoted;
use crate::values::pg_types::{TYPES, extension_of};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    relations: BTreeSet<String>,
    /// With the least and the most arguments of each.
    functions: BTreeMap<String, Vec<[usize; 2]>>,
    types: BTreeSet<String>,
    /// Whether the path has no `public`: then what extensions bring is hidden, too.
    is_whole: bool,
}

fn is_public(key: &str) -> bool {
    schema_and_name(key).0 == PUBLIC_SCHEMA
}

impl Hidden {
    /// What the path of these objects hides.
    pub(super) fn of(objects: &Objects) -> Hidden {
        if objects.path().is_plain() {
            return Hidden::default();
        }
        let visible = objects.visible();
        let relations = objects.names().filter(|(key, oid)| is_public(key) && !visible.contains(oid));
        let found = |name: &str| objects.path().names(name).next().is_some_and(|first| is_public(&first));
        let mut functions: BTreeMap<String, Vec<[usize; 2]>> = BTreeMap::new();
        for object in objects.functions.iter().filter(|object| object.function.schema == PUBLIC_SCHEMA) {
            let arguments = &object.function.definition.arguments;
            let needed = arguments.iter().filter(|argument| argument.default.is_none()).count();
            if !found(&object.function.name) {
                functions.entry(object.function.name.clone()).or_default().push([needed, arguments.len()]);
            }
        }
        let types = objects.types.iter().filter(|(key, _): &&(String, TypeDefinition)| is_public(key));
        let mut types: BTreeSet<String> =
            types.filter(|(key, _)| !objects.is_found_type(key)).map(|(key, _)| local(key).to_owned()).collect();
        let is_whole = !objects.path().names("").any(|name| is_public(&name));
        if is_whole {
            let extended = TYPES.iter().filter(|known| extension_of(known.number).is_some());
            types.extend(extended.map(|known| known.name.to_owned()));
        }
        let relations = relations.map(|(key, _)| local(key).to_owned()).collect();
        Hidden { relations, functions, types, is_whole }
    }

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

    /// The types of extensions with their names, if the path does not find them.
    pub(super) fn extension_types(&self) -> impl Iterator<Item = (i64, String)> {
        let known = TYPES.iter().filter(|known| self.is_whole && extension_of(known.number).is_some());
        known.flat_map(|known| {
            let name = format!("public.{}", known.name);
            [(i64::from(known.array), format!("{name}[]")), (i64::from(known.number), name)]
        })
    }
}
