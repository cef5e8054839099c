//! JSON in the cells of a row, and the errors of its functions.
use engine::json::{Json, JsonFault, Jsonb};

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, octets};

/// What a row of a function gives.
pub(super) type Given = Result<Option<Cell>, SqlError>;

/// A text that is no JSON.
pub(super) fn faulty(fault: JsonFault, text: &str) -> SqlError {
    let (sqlstate, message) = fault.error();
    SqlError::new(sqlstate, message).detail(fault.detail(text))
}

pub(super) fn kept(json: &Json) -> Cell {
    Cell::Bytes(Jsonb::of(json).as_bytes().to_vec())
}

pub(super) fn bytes_of(value: Jsonb) -> Cell {
    Cell::Bytes(value.as_bytes().to_vec())
}

/// The tree of a cell.
pub(super) fn tree(cell: Option<&Option<Cell>>) -> Json {
    Jsonb::tree_of(octets(cell))
}

/// An error of a call with a value of the wrong kind.
pub(super) fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new("22023", message)
}
