//! What a schema has.
use engine::{Transaction, TypeDefinition};

use crate::error::Result;
use crate::interrupt::made_types::MadeFunction;
use crate::names::schemas::{is_relation, schema_of};
use crate::statements::{function_users, held_collations, held_types};

/// What a schema has.
pub(crate) struct Contents {
    pub(crate) tables: Vec<String>,
    pub(crate) views: Vec<String>,
    /// Those that belong to no column.
    pub(crate) sequences: Vec<String>,
    pub(crate) types: Vec<(String, TypeDefinition)>,
    /// The functions, each with the name by which the engine keeps it.
    pub(crate) functions: Vec<(String, MadeFunction)>,
    pub(crate) collations: Vec<String>,
}

impl Contents {
    pub(crate) fn of(transaction: &Transaction, schema: &str) -> Result<Contents> {
        let own = |names: Vec<String>| -> Vec<String> {
            names.into_iter().filter(|name| schema_of(name) == schema && is_relation(name)).collect()
        };
        let tables = own(transaction.table_names());
        let owned = |name: &String| {
            let settings = tables.iter().filter_map(|table| transaction.table(table).ok());
            let mut defaults = settings.flat_map(|table| transaction.settings(&table).defaults);
            defaults.any(|default| default.sequences.contains(name))
        };
        let sequences = own(transaction.sequence_names()).into_iter().filter(|name| !owned(name)).collect();
        let types = held_types::all_of(transaction, schema);
        let mut functions = function_users::all(transaction);
        functions.retain(|(_, function)| function.schema == schema);
        let collations = held_collations::of_schema(transaction, schema)?;
        Ok(Contents { views: own(transaction.view_names()), sequences, tables, types, functions, collations })
    }
}
