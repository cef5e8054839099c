//! Statements as they are read: the parser's, and those of our own syntax.
//!
//! Imports names, values and syntax; sessions and the statements that run import it.
pub(crate) mod alter_database;
pub(crate) mod control;
pub(crate) mod copy_options;
pub(crate) mod lock_clauses;
pub(crate) mod maintenance;
pub(crate) mod modes;
pub(crate) mod parse;
pub(crate) mod sequence_options;
pub(crate) mod sequence_statement;
pub(crate) mod table_options;
pub(crate) mod time_limit;
