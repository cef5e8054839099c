//! Functions in FROM, and those that give rows.
//!
//! Imports no other folder of functions.
pub(crate) mod arguments;
pub(crate) mod catalog_in_from;
pub(crate) mod changes;
pub(crate) mod generate;
pub(crate) mod history;
pub(crate) mod in_from;
pub(crate) mod json_records;
pub(crate) mod json_rows;
pub(crate) mod keywords;
mod named_values;
pub(crate) mod rows;
pub(crate) mod series;
pub(crate) mod set_returning;
mod time_constants;
