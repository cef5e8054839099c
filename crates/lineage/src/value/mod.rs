//! Nouns that all of the storage shares: values, sets of columns, what a tail record is, which snapshots are kept.
pub(crate) mod cell;
pub(crate) mod column_builder;
pub(crate) mod column_set;
pub(crate) mod kept;
pub(crate) mod kind;
pub(crate) mod sketch;
pub(crate) mod slots;
mod uuid_text;
mod views;
pub(crate) mod word_rows;
