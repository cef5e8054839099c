//! Functions of arrays.
//!
//! Imports no other folder of functions.
pub(crate) mod assigned;
pub(crate) mod fills;
pub(crate) mod holds;
pub(crate) mod lists;
pub(crate) mod shapes;
