//! The words that all of the engine uses: what tables are called, how they and transactions are set up, the locks of tables, what
//! a time means.
//!
//! Imports nothing but errors; every other room imports it.
pub(crate) mod column_default;
pub(crate) mod constraints;
pub(crate) mod former;
pub(crate) mod function_definition;
pub(crate) mod isolation;
pub(crate) mod materialized_query;
pub(crate) mod outcomes;
pub(crate) mod row;
pub(crate) mod sequence_options;
pub(crate) mod settings;
pub(crate) mod share_locks;
pub(crate) mod shown_row;
pub(crate) mod table_lock;
pub(crate) mod table_modes;
pub(crate) mod table_name;
pub(crate) mod texts;
pub(crate) mod type_definition;
pub(crate) mod view_definition;
pub(crate) mod wall_clock;
