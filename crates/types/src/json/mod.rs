//! JSON: texts checked and read, and the form in which `jsonb` is kept.
//!
//! | file | subject |
//! |---|---|
//! | `fault` | what is wrong with a text, in PostgreSQL's words |
//! | `lexer` | a text as tokens |
//! | `parse` | tokens as a tree, or checked only |
//! | `tree` | a value and its parts |
//! | `number` | numbers of any length, exact |
//! | `jsonb` | a tree as bytes that compare as the values do |
//! | `walk` | members of a value found in those bytes, without a tree |
//! | `write` | a tree as text |
//! | `contain` | whether a value contains another one, or has a key |
//! | `terms` | what an inverted index knows a value by |
//!
//! A `json` is its text, as it was written. A `jsonb` is the value alone: blanks are gone, each key is there once, keys are in
//! order of their lengths and then their bytes, numbers are as `numeric` shows them.
mod contain;
mod fault;
mod jsonb;
mod lexer;
mod number;
mod parse;
mod terms;
mod tree;
mod walk;
mod write;

pub use fault::{JsonFault, What};
pub use jsonb::Jsonb;
pub use number::JsonNumber;
pub use parse::{Members, check_json, members};
pub use terms::JsonTerms;
pub use tree::Json;
pub use walk::JsonbKind;

#[cfg(test)]
mod tests;
