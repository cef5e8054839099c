//! Types that users have made: by which names the catalog of the engine knows them, and how statements find them.
//!
//! The engine keeps them as it keeps schemas: as views, here by a name that no relation has. A type and a relation of one name
//! exclude each other, as in PostgreSQL, where each relation has a type of its name.
use engine::{Collation, Table, TypeDefinition, has_made_functions, has_made_types, name_in_schema, schema_and_name};

use crate::interrupt::cancel::Token;
use crate::interrupt::made_types::{MadeFunction, MadeTypes};
use crate::names::schemas::TYPE_MARK;
use crate::names::tables::Tables;
use crate::names::{made_collations, made_functions};

/// The name by which the catalog of the engine keeps a type.
pub(crate) fn entry(name: &str) -> String {
    let (schema, local) = schema_and_name(name);
    name_in_schema(schema, &format!("{TYPE_MARK}{local}"))
}

/// The name of the type that the catalog keeps by such a name.
pub(crate) fn name_of(entry: &str) -> Option<String> {
    let (schema, local) = schema_and_name(entry);
    Some(name_in_schema(schema, local.strip_prefix(TYPE_MARK)?))
}

/// What a type is, as the catalog keeps it.
pub(crate) fn definition(kept: &Table) -> Option<&TypeDefinition> {
    kept.view()?.of_type.as_ref()
}

/// All types with their names, sorted by these.
pub(crate) fn all(tables: &Tables) -> Vec<(String, TypeDefinition)> {
    let kept = tables.kept_types().into_iter();
    kept.filter_map(|(entry, table)| Some((name_of(&entry)?, definition(&table)?.clone()))).collect()
}

/// Finds types among the names that a statement sees.
struct Finder(Tables);

impl MadeTypes for Finder {
    fn find(&self, schema: Option<&str>, name: &str) -> Option<(String, TypeDefinition)> {
        let marked = format!("{TYPE_MARK}{name}");
        let found = match schema {
            Some(schema) => name_in_schema(self.0.path().spelled(schema), &marked),
            None => self.0.path().find(&self.0, &marked)?,
        };
        let table = self.0.find(&found).ok()?;
        Some((name_of(&found)?, definition(&table)?.clone()))
    }

    fn numbered(&self, number: u32) -> Option<String> {
        let is_it =
            |of_type: &TypeDefinition| matches!(of_type, TypeDefinition::Domain(domain) if domain.number == number);
        all(&self.0).into_iter().find(|(_, of_type)| is_it(of_type)).map(|(name, _)| name)
    }

    fn functions(&self) -> Vec<MadeFunction> {
        made_functions::all(&self.0).into_iter().map(|(function, _)| function).collect()
    }

    fn collation(&self, schema: Option<&str>, name: &str) -> Option<Collation> {
        if !made_collations::are_made() {
            return None;
        }
        let remembered = self.0.remembered().ok()?;
        let path = self.0.path();
        let schemas = match schema {
            Some(schema) => vec![path.spelled(schema).to_owned()],
            None => path.schemas(&self.0),
        };
        schemas.into_iter().find_map(|schema| {
            let name = name_in_schema(&schema, name);
            let locale = made_collations::find(&remembered, &name)?.locale();
            Some(Collation { name, locale })
        })
    }
}

/// Has a statement find the types among these names.
pub(crate) fn offer(tables: &Tables, token: &Token) {
    if has_made_types() || has_made_functions() || made_collations::are_made() {
        token.made_types.set(Finder(tables.clone()));
    }
}
