//! Functions that ask the statement, its session or the database.
//!
//! Imports no other folder of functions.
pub(crate) mod advisory;
pub(crate) mod commit;
pub(crate) mod sample;
pub(crate) mod sequences;
pub(crate) mod session;
pub(crate) mod user;
