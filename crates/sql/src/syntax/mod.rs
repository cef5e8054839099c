//! The text of statements: where one ends, its tokens, its tree, walks through trees, templates that are filled in.
//!
//! Imports `interrupt` alone; every room above it reads or writes statements with it.
pub(crate) mod alter_tokens;
pub(crate) mod chains;
pub(crate) mod check;
pub(crate) mod composed;
pub(crate) mod conflict_tokens;
pub(crate) mod constraint_tokens;
pub(crate) mod create_as_tokens;
pub(crate) mod cursor_tokens;
pub(crate) mod dialect;
pub(crate) mod exclude_tokens;
pub(crate) mod explain_tokens;
pub(crate) mod fetch_tokens;
pub(crate) mod identifiers;
pub(crate) mod identity_tokens;
pub(crate) mod infix;
pub(crate) mod like_tokens;
pub(crate) mod limits;
pub(crate) mod operators;
pub(crate) mod parameter;
pub(crate) mod reserved;
pub(crate) mod row_tokens;
pub(crate) mod set_queries;
pub(crate) mod source;
pub(crate) mod split;
pub(crate) mod stack;
pub(crate) mod subscript_tokens;
pub(crate) mod tablespace_tokens;
pub(crate) mod template;
pub(crate) mod text_tokens;
pub(crate) mod tokens;
pub(crate) mod type_tokens;
pub(crate) mod value_tokens;
pub(crate) mod visit;
pub(crate) mod walk;
pub(crate) mod with_scope;
