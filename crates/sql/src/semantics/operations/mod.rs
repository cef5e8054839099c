//! Operations on values as plans have them: operators, their types, numbers of several types, constants.
//!
//! Imports functions, and no other folder of the semantics.
pub(crate) mod concatenation;
pub(crate) mod constants;
pub(crate) mod decimals;
pub(crate) mod json;
pub(crate) mod library;
pub(crate) mod long_sums;
pub(crate) mod merged;
pub(crate) mod mixed;
pub(crate) mod operand_types;
pub(crate) mod operators;
pub(crate) mod set_operations;
pub(crate) mod spaces;
pub(crate) mod spans;
pub(crate) mod temporal;
pub(crate) mod visible;
