//! Values on the wire: how columns are described; the forms of values are those of `sql::wire`.
pub(crate) mod oids;
pub(crate) use sql::wire::{parameters, rows};
