//! From a statement's tree to a plan: the passes over the tree as one ordered list (`rewrite`), the planner with its rules, the
//! names that it finds, and expressions of indexes and defaults.
//!
//! Imports the semantics, the catalog and below; sessions import it.
pub(crate) mod catalog;
pub(crate) mod default_define;
pub(crate) mod domains;
pub(crate) mod functions;
pub(crate) mod index_compile;
pub(crate) mod index_define;
pub(crate) mod kept_plans;
pub(crate) mod planner;
pub(crate) mod rewrite;
pub(crate) mod samples;
pub(crate) mod views;
