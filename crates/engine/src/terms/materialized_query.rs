//! What makes a table a materialized view.
//!
//! Its rows are those that a query gave when it was last refreshed. The engine keeps the query and never reads it; SQL puts the rows
//! in.
use serde::{Deserialize, Serialize};

/// The query of a materialized view; its columns are those of its table.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MaterializedQuery {
    /// the query in SQL
    pub query: String,
    /// whether the table has the query's rows; where not, it has none, and is not to be read
    pub is_populated: bool,
}
