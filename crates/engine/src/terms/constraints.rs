//! The constraints of a table beyond types, NULLs and unique keys, as its settings keep them.
//!
//! The engine applies them to every row that is written (`state/rules.rs`), whichever way it comes, and never reads the conditions: what
//! works them out is SQL's, as with indexes of expressions.
use serde::{Deserialize, Serialize};

/// A condition that must not be false for any row of a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Check {
    /// the name; no other constraint of the table has it
    pub name: String,
    /// the condition as an SQL expression over the columns of one row
    pub condition: String,
    /// the positions of the columns that it reads, each once
    pub columns: Vec<usize>,
    /// whether it is known of the rows that were there before it
    pub validated: bool,
}

/// What becomes of rows that refer to a row whose key goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Referential {
    /// There must be none, once the statement, or the transaction, is done.
    #[default]
    NoAction,
    /// There must be none, even if another row has got the key by the end of the statement.
    Restrict,
    /// They go as well, or get the new key.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns become what fills them where nothing is given.
    SetDefault,
}

/// Columns whose values must be the key of a row of some table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ForeignKey {
    /// the name; no other constraint of the table has it
    pub name: String,
    /// the positions of the columns
    pub columns: Vec<usize>,
    /// the name of the table that is referred to
    pub table: String,
    /// the positions of the columns there, each for that of `columns` in the same place
    pub referenced: Vec<usize>,
    /// what a delete of the row does that is referred to
    pub on_delete: Referential,
    /// what a change of its key does
    pub on_update: Referential,
    /// of `columns`, those that a delete sets, where it does not set all
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_on_delete: Vec<usize>,
    /// Whether either all columns are NULL or none (`MATCH FULL`); else one NULL suffices to refer to nothing.
    pub is_full: bool,
    /// Whether a transaction may put the check off to its end.
    pub deferrable: bool,
    /// Whether it does so where it says nothing else.
    pub deferred: bool,
    /// Whether it is known of the rows that were there before it.
    pub validated: bool,
}

/// The other end of a [`ForeignKey`], in the settings of the table that is referred to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Referrer {
    /// the name of the table that refers to this one
    pub table: String,
    /// the name of its constraint
    pub constraint: String,
    /// the positions of the columns of this table, in the order of the constraint
    pub columns: Vec<usize>,
}
