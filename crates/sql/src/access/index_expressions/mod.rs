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
//! | `write`, `told`, `text` | expressions as text: written, their constants, and read |
//! | `compiled` | one that can be worked out for rows |
//!
//! Planning one (`index_compile`) and what the engine asks for (`index_define`) stand in `planning`. The engine knows none of this: it
//! asks what is supplied where a database is opened (`session/opening.rs`) and wherever a session begins.
pub(crate) mod compiled;
pub(crate) mod text;
mod told;
pub(crate) mod write;
