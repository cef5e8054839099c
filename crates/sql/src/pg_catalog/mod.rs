//! PostgreSQL's catalog, as far as it says what is true here: what `psql` and drivers ask when they want to know the tables,
//! columns, keys and types of a database.
//!
//! ```text
//! query ──rewrite──▶ names without "pg_catalog", casts to regclass as numbers, empty queries as such (`rewrite`)
//!                    relations made for the statement from what it sees (`objects`, `relations`), functions (`functions`)
//! ```
//!
//! Objects that PostgreSQL has and this database has not (policies, publications, triggers, ...) are not made up: a
//! query that needs a row of such a relation in its FROM gives none, whatever else it says, and need not be
//! planned.
//!
//! | module | subject |
//! |---|---|
//! | `oids` | numbers and what they name |
//! | `objects` | the tables, indexes and sequences with their numbers |
//! | `cells` | the values of rows |
//! | `columns` | the columns of all relations |
//! | `relations`, `types`, `information`, `updatable`, `defaults`, `constraints` | rows of those that have any |
//! | `comments`, `statistics`, `collations` | likewise |
//! | `opclasses` | operator classes and families, and those of indexes |
//! | `dependencies`, `mentions` | `pg_depend`; what texts name |
//! | `hidden`, `view_names` | texts whose names need schemas; queries of views by the names of their columns |
//! | `routines` | functions in SQL: rows and definitions |
//! | `functions`, `properties` | `pg_get_indexdef` and its like; what indexes can do |
//! | `rewrite`, `nothing`, `fields`, `sequence_json`, `tableoid`, `row_places` | queries in other words |
//! | `system`, `devices` | views on the database itself: `lstore_tables` and its kin |
//!
//! Imports functions, `access` and below; planning imports it.
mod asked;
mod calls;
mod cells;
mod collations;
mod columns;
mod comments;
mod constraints;
mod defaults;
mod dependencies;
mod devices;
mod extensions;
mod fields;
mod functions;
mod given_names;
mod hidden;
mod information;
mod mentions;
mod monitoring;
mod nothing;
mod objects;
mod oids;
pub(crate) mod opclasses;
mod properties;
mod relations;
mod rewrite;
mod routines;
mod row_places;
mod sequence_json;
mod statistics;
pub(crate) mod system;
mod tableoid;
mod types;
mod updatable;
mod view_names;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::Statement;

use crate::error::Result;
use crate::names::tables::Tables;
use crate::state::view::View;
use crate::syntax::source::Source;

pub(crate) use oids::{CATALOG_SCHEMA, format_type};

/// Brings a statement into words that the planner knows; returns whether it is about the catalog at all.
pub(crate) fn rewrite(statement: &mut Statement, tables: &Tables, source: &Source) -> Result<bool> {
    rewrite::rewrite(statement, tables, source)
}

/// Makes the functions of the catalog known to the plan of a statement.
pub(crate) fn register(state: &mut SessionState, view: &View) -> DataFusionResult<()> {
    for function in asked::all(view) {
        state.register_udf(Arc::new(function))?;
    }
    Ok(())
}

/// The relation of the catalog that has this name.
pub(crate) fn relation(name: &str, view: &View) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
    relations::relation(name, view)
}

/// Whether there is one.
pub(crate) fn is_relation(name: &str) -> bool {
    columns::columns(name).is_some()
}
