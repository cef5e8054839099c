//! JSON: parts of values, tests, changes, and values made of others.
//!
//! A `json` is worked on as its text, so that its parts are as they were written; a `jsonb` as its bytes, or as a tree where it
//! changes. What PostgreSQL has as operators are functions here, which the planner calls.
pub(crate) mod access;
pub(crate) mod build;
mod cells;
pub(crate) mod change;
mod contain;
mod parts;
pub(crate) mod path;
pub(crate) mod predicate;
pub(crate) mod records;
pub(crate) mod subscripts;
pub(crate) mod written;

use datafusion::logical_expr::ScalarUDF;

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    access::functions()
        .chain(parts::functions())
        .chain(change::functions())
        .chain(contain::functions())
        .chain(build::functions())
        .chain(path::functions())
        .chain(predicate::functions())
        .chain(records::functions())
}
