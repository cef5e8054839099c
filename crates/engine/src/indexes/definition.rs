//! What an index is of, as the catalog keeps it.
use serde::{Deserialize, Serialize};

/// How an index keeps its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexMethod {
    /// In order, for keys of any kind, in a B+tree.
    #[default]
    Btree,
    /// In order, for one column whose values are numbers of 64 bits at most, in a KISS-Tree.
    Kiss,
    /// Without order, for lookups of whole keys, in a hash table.
    Hash,
}

impl IndexMethod {
    /// The name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            IndexMethod::Btree => "btree",
            IndexMethod::Kiss => "kiss",
            IndexMethod::Hash => "hash",
        }
    }
}

/// What an index is of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IndexDefinition {
    /// Its name, which no other index and no table has.
    pub name: String,
    /// Positions of the columns that make its keys, in key order.
    pub columns: Vec<usize>,
    /// Whether no two rows may have one key. Keys with NULL in them are not compared.
    pub unique: bool,
    /// How it keeps them.
    pub method: IndexMethod,
    /// Whether it stands for a UNIQUE constraint of the table.
    #[serde(default)]
    pub is_constraint: bool,
}

impl IndexDefinition {
    /// An index of columns, given by position, in a B+tree.
    pub fn new(name: impl Into<String>, columns: &[usize]) -> IndexDefinition {
        IndexDefinition {
            name: name.into(),
            columns: columns.to_vec(),
            unique: false,
            method: IndexMethod::Btree,
            is_constraint: false,
        }
    }

    /// The same, refusing a second row with one key.
    pub fn unique(mut self) -> IndexDefinition {
        self.unique = true;
        self
    }

    /// The same with another method.
    pub fn using(mut self, method: IndexMethod) -> IndexDefinition {
        self.method = method;
        self
    }
}

/// An index in the log and in checkpoints.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct KeptIndex {
    pub(crate) definition: IndexDefinition,
    /// Whether a record may have got another key than the one that it was inserted with.
    pub(crate) has_changed_keys: bool,
}
