//! The statements that run on a session: changes of rows and of the catalog, `COPY`, locks, settings.
//!
//! Imports sessions and below; only `dispatch` imports it.
pub(crate) mod add_key;
pub(crate) mod alter_table;
pub(crate) mod change;
pub(crate) mod constants;
pub(crate) mod copy;
pub(crate) mod create_as;
pub(crate) mod ddl;
pub(crate) mod explain;
pub(crate) mod indexes;
pub(crate) mod insert;
pub(crate) mod locking;
pub(crate) mod point;
pub(crate) mod sequences;
pub(crate) mod set;
pub(crate) mod set_config;
pub(crate) mod vacuum;
pub(crate) mod values_list;
