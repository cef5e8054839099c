//! Schemas: which a name is in, by which names without a schema are looked up, and how names are shown.
//!
//! The engine knows a table of another schema than `public` by a name that says both (`engine::name_in_schema`), and a schema as a view
//! whose name within the schema is empty: so schemas are made, seen, kept and dropped as views are. Trees of statements say the schema as
//! PostgreSQL does, `s.t`; [`SearchPath`] tells it for names that do not.
use std::sync::{Arc, LazyLock};

use engine::{PUBLIC_SCHEMA, TEMPORARY_SCHEMA, name_in_schema, schema_and_name};

use crate::error::SqlError;
use crate::interrupt::made_types;
use crate::names::tables::Tables;
use crate::syntax::identifiers::quoted;

/// By which name a session calls the schema of its own temporary tables.
pub(crate) const OWN_TEMPORARY: &str = "pg_temp";

/// The name by which the catalog knows a schema.
pub(crate) fn entry(schema: &str) -> String {
    name_in_schema(schema, "")
}

/// Whether the catalog knows a schema by this name.
pub(crate) fn is_entry(name: &str) -> bool {
    schema_and_name(name).1.is_empty()
}

/// What the names begin with by which the catalog keeps types.
pub(crate) const TYPE_MARK: char = '\u{1}';

/// What the names begin with by which the catalog keeps functions.
pub(crate) const FUNCTION_MARK: char = '\u{2}';

/// Whether the catalog knows a relation by this name, and neither a schema, nor a type, nor a function.
pub(crate) fn is_relation(name: &str) -> bool {
    !is_entry(name) && !local(name).starts_with([TYPE_MARK, FUNCTION_MARK])
}

/// The name within its schema.
pub(crate) fn local(name: &str) -> &str {
    schema_and_name(name).1
}

/// A new name in the schema of another.
pub(crate) fn beside(name: &str, new: &str) -> String {
    name_in_schema(schema_of(name), local(new))
}

/// The schema of a name.
pub(crate) fn schema_of(name: &str) -> &str {
    schema_and_name(name).0
}

/// Whether a schema has temporary tables of some session.
pub(crate) fn is_temporary(schema: &str) -> bool {
    schema.starts_with(TEMPORARY_SCHEMA)
}

/// A name as a statement may spell it: with its schema, unless that is `public`.
pub(crate) fn spelled(name: &str) -> String {
    told(name, schema_of(name) == PUBLIC_SCHEMA)
}

/// A name as the catalog tells it: with its schema, unless it is found without.
pub(crate) fn told(name: &str, is_found: bool) -> String {
    match schema_and_name(name) {
        (_, name) if is_found => quoted(name),
        (schema, name) => format!("{}.{}", quoted(schema), quoted(name)),
    }
}

/// A name with its schema, all of it in quotes.
pub(crate) fn with_schema(name: &str) -> String {
    let (schema, name) = schema_and_name(name);
    let quoted = |part: &str| format!("\"{}\"", part.replace('"', "\"\""));
    format!("{}.{}", quoted(schema), quoted(name))
}

/// A text for people, in which names of the catalog are plain ones. Where it says that there is no such relation it names the schema.
pub(crate) fn shown(text: &str) -> String {
    let says_schema = text.starts_with("relation \"") && text.ends_with("does not exist");
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('\0') {
        shown.push_str(before);
        let Some((schema, name)) = after.split_once('\0') else { break };
        if says_schema && !is_temporary(schema) {
            shown.push_str(schema);
            shown.push('.');
        }
        rest = name;
    }
    shown.push_str(rest);
    shown
}

/// An error for people: that of a domain names its schema, unless the statement finds the domain without.
pub(crate) fn shown_error(error: SqlError) -> SqlError {
    let domain =
        error.about.as_ref().and_then(|about| Some(name_in_schema(&about.schema, about.data_type.as_deref()?)));
    let message = match domain {
        Some(known) if !made_types::is_found(&known) => error.message.replace(&known, &engine::shown_name(&known)),
        _ => error.message.clone(),
    };
    SqlError { message, ..error }.shown(shown)
}

/// Whether schemas are that of tables without one alone.
pub(crate) fn is_public(schemas: &[String]) -> bool {
    matches!(schemas, [only] if only == PUBLIC_SCHEMA)
}

/// The schemas in which a name without one is looked for, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchPath {
    schemas: Arc<[String]>,
    /// The schema of the session's temporary tables, once it has had any.
    temporary: Option<Arc<str>>,
}

impl Default for SearchPath {
    fn default() -> SearchPath {
        static PLAIN: LazyLock<Arc<[String]>> = LazyLock::new(|| [PUBLIC_SCHEMA.to_owned()].into());
        SearchPath { schemas: PLAIN.clone(), temporary: None }
    }
}

impl SearchPath {
    /// A path of these schemas, behind that of temporary tables.
    pub(crate) fn new(schemas: Arc<[String]>, temporary: Option<Arc<str>>) -> SearchPath {
        SearchPath { schemas, temporary }
    }

    /// Whether names mean what they do without a path.
    pub(crate) fn is_plain(&self) -> bool {
        self.temporary.is_none() && is_public(&self.schemas)
    }

    /// The schema of the session's temporary tables, once it has had any.
    pub(crate) fn temporary(&self) -> Option<&str> {
        self.temporary.as_deref()
    }

    /// The schemas that there are, in the order in which they are searched.
    pub(crate) fn schemas(&self, tables: &Tables) -> Vec<String> {
        self.schemas.iter().filter(|schema| exists(tables, schema)).cloned().collect()
    }

    /// The name by which the catalog knows what a name without schema means; none where it means nothing.
    pub(crate) fn find(&self, tables: &Tables, name: &str) -> Option<String> {
        self.names(name).find(|name| tables.find(name).is_ok())
    }

    /// The name by which the catalog knows an index.
    pub(crate) fn find_index(&self, tables: &Tables, name: &str) -> Option<String> {
        self.names(name).find(|name| tables.has_index(name))
    }

    /// What a name without a schema may mean, in the order in which that is looked for.
    pub(crate) fn names<'a>(&'a self, name: &'a str) -> impl Iterator<Item = String> + 'a {
        let temporary = self.temporary.iter().map(|schema| &**schema);
        temporary.chain(self.schemas.iter().map(String::as_str)).map(move |schema| name_in_schema(schema, name))
    }

    /// The schema that a name spells, where it calls that of the session's temporary tables by the name that all sessions have for it.
    pub(crate) fn spelled<'a>(&'a self, schema: &'a str) -> &'a str {
        match &self.temporary {
            Some(temporary) if schema == OWN_TEMPORARY => temporary,
            _ => schema,
        }
    }
}

/// Whether there is a schema.
pub(crate) fn exists(tables: &Tables, schema: &str) -> bool {
    schema == PUBLIC_SCHEMA || tables.find(&entry(schema)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_no_names_of_the_catalog() {
        let name = name_in_schema("s", "t");
        assert_eq!((spelled(&name), spelled("T")), ("s.t".to_owned(), "\"T\"".to_owned()));
        assert_eq!(shown(&format!("relation \"{name}\" does not exist")), "relation \"s.t\" does not exist");
        assert_eq!(shown(&format!("relation \"{name}\" already exists")), "relation \"t\" already exists");
        assert_eq!(shown("plain"), "plain");
        assert!(is_entry(&entry("s")) && !is_entry(&name));
    }
}
