//! The state of a database that its background threads share: tables, the catalog, the clock, the account of memory and
//! what is beside it.
//!
//! Imports keys and what is below them; the background and all handles import it.
pub(crate) mod array;
pub(crate) mod catalog;
pub(crate) mod core;
pub(crate) mod index_build;
pub(crate) mod numbers;
pub(crate) mod options;
pub(crate) mod resident;
pub(crate) mod rules;
pub(crate) mod share_out;
pub(crate) mod table_data;
