//! What makes a name a type that users have made.
//!
//! The engine keeps such a type as it keeps a view: as a table that never has rows, so that it is made, changed, seen and dropped with
//! the transactions and snapshots of tables. Labels of enums are told to the process (`types`) when they are there for all.
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use types::{DataType, EnumDefinition};

/// Whether any database of the process has, or had, such a type.
static ARE_MADE: AtomicBool = AtomicBool::new(false);

/// Whether a name may mean a type that a user has made. So statements look for none where there never was any.
pub fn has_made_types() -> bool {
    ARE_MADE.load(Ordering::Relaxed)
}

/// The definition of a type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeDefinition {
    /// A list of labels.
    Enum(EnumDefinition),
    /// Another type with rules for its values.
    Domain(DomainDefinition),
}

impl TypeDefinition {
    /// Notes that there is such a type. Labels that the process knows already stay as they are.
    pub(crate) fn introduce(&self) {
        ARE_MADE.store(true, Ordering::Relaxed);
        if let TypeDefinition::Enum(labels) = self {
            labels.introduce();
        }
    }
}

/// The definition of a domain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DomainDefinition {
    /// the type of its values
    pub base: DataType,
    /// the number by which PostgreSQL's catalog would name it
    pub number: u32,
    /// what fills a column of it where nothing else is said, as an SQL expression
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// whether NULL is none of its values; the name of that constraint is not kept
    #[serde(default)]
    pub not_null: bool,
    /// the names of the conditions that must not be false for a value, and the conditions in SQL, in which `value` is the value
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<(String, String)>,
}
