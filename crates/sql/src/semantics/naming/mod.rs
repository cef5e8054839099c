//! Names in a statement's tree: whose column each is, and columns, queries and keys that have one name.
//!
//! Imports `spelling` and aggregates of outer queries; only the list of passes imports it.
pub(crate) mod cast_names;
pub(crate) mod columns;
pub(crate) mod distinct_orders;
pub(crate) mod duplicates;
pub(crate) mod grouping;
pub(crate) mod keys;
pub(crate) mod numbered_sets;
pub(crate) mod references;
pub(crate) mod unused_with;
pub(crate) mod using;
pub(crate) mod whole_rows;
pub(crate) mod with_names;
