//! What makes a name a view.
//!
//! The engine keeps a view as a table that never has rows: so it shares the names of tables, their snapshots and their past. It
//! never reads the query, which SQL puts in the place of the name.
use serde::{Deserialize, Serialize};

use crate::terms::type_definition::TypeDefinition;

impl ViewDefinition {
    /// What stands for a type.
    pub fn of_type(definition: TypeDefinition) -> ViewDefinition {
        ViewDefinition { of_type: Some(definition), ..ViewDefinition::default() }
    }
}

/// What has to hold of rows that are changed through a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CheckOption {
    /// the condition of the view itself
    Local,
    /// also those of all views that it reads
    Cascaded,
}

/// The definition of a view; its columns are those of its table's schema.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ViewDefinition {
    /// the query in SQL
    pub query: String,
    /// the columns whose type no table has, which the schema has as text: their positions, and PostgreSQL's number of the
    /// type
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_types: Vec<(usize, u32)>,
    /// whether rows that are changed through it have to be its own afterwards
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckOption>,
    /// the type that stands here in place of a view
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_type: Option<TypeDefinition>,
}
