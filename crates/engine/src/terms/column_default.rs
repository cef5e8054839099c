//! What fills a column where a statement gives no value for it.
//!
//! The engine keeps this with the settings of a table and never reads the expressions: whole rows come to it, which SQL has
//! filled.
use serde::{Deserialize, Serialize};

/// The default of a column, and the sequences that belong to the column.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ColumnDefault {
    /// the position of the column
    pub column: usize,
    /// whether the expression is that of a generated column, over the columns of its row
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_generated: bool,
    /// the domain that the column is of
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<ColumnDomain>,
    /// the value as an SQL expression; NULL without one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// whether the column is an identity column
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// the names of the sequences that go when the column does
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<String>,
}

/// The domain of a column.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ColumnDomain {
    /// its name
    pub name: String,
    /// whether the column's default is the domain's
    pub fills: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// How strictly the values of an identity column come from its sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// A statement that gives a value of its own is refused, unless it says otherwise.
    Always,
    /// A statement may give a value of its own.
    ByDefault,
}
