//! Expressions and predicates of indexes: what they mean, and how they are written.
//!
//! ```text
//! CREATE INDEX ──> checked, planned (`compile`) ──> written out (`write`) ──> the catalog, as text
//! opening      ──> the text parsed, planned ──> worked out for rows, by DataFusion's physical expressions
//! a query      ──> its conditions compared with the planned form (`index_path`)
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `write`, `text` | expressions as text: written and read |
//! | `compiled` | one that can be worked out for rows |
//! | `compile` | planning one |
//! | `define` | that of a new index, and of one that the catalog has |
//!
//! The engine knows none of this: it asks [`Expressions`], which is supplied where a database is opened (`opening`) and
//! wherever a session begins.
mod compile;
mod compiled;
mod define;
mod text;
mod write;

pub(crate) use compile::Kind;
pub(crate) use compiled::{Compiled, comparable};
pub(crate) use define::{Expressions, define};
pub(crate) use text::{parsed, part_names};
pub(crate) use write::{Style, in_list, is_call, written};
