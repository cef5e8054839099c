//! Methods of indexes that another one keeps here, and that are told all the same.
//!
//! ```text
//! brin     numbers, dates, texts, ...    in order, as btree does: a brin index of PostgreSQL's passes over what has no match
//!          boxes, ranges, addresses      by what they overlap, as gist does
//! spgist   texts                         in order
//!          points, boxes, ranges, ...    by what they overlap
//! ```
use engine::{DataType, EXTENT_DIMENSIONS_MAX, IndexMethod};

use crate::error::{Result, SqlError};

/// The method that keeps an index of these types that was asked for by one.
///
/// # Errors
/// Shapes stand beside more than a search tree takes.
pub(super) fn keeping(asked: IndexMethod, types: &[DataType]) -> Result<IndexMethod> {
    let has_space = |of: &DataType| matches!(of, DataType::Geometry(_) | DataType::Range(_) | DataType::Network(_));
    let dimensions = |of: &DataType| if matches!(of, DataType::Range(_)) || !has_space(of) { 1 } else { 2 };
    match asked {
        IndexMethod::Brin | IndexMethod::Spgist if types.iter().any(has_space) => {
            // A search tree does not tell which intervals are equal.
            let has_room = types.iter().map(dimensions).sum::<usize>() <= EXTENT_DIMENSIONS_MAX;
            if has_room && !types.contains(&DataType::Interval) {
                return Ok(IndexMethod::Gist);
            }
            if types.iter().any(|of| matches!(of, DataType::Geometry(_))) {
                let what = format!("an index by {} of shapes and so many other columns", asked.name());
                return Err(SqlError::unsupported(what).hint("Make an index of the shapes by themselves."));
            }
            Ok(IndexMethod::Btree)
        }
        IndexMethod::Brin | IndexMethod::Spgist => Ok(IndexMethod::Btree),
        kept => Ok(kept),
    }
}

/// Refuses what an index by a method is not: unique, with columns beside its keys, of so many columns.
pub(super) fn check(asked: IndexMethod, is_unique: bool, includes: bool, count: usize) -> Result<()> {
    let refused = match asked {
        _ if is_unique && !asked.may_be_unique() => "unique indexes",
        IndexMethod::Hash | IndexMethod::Gin | IndexMethod::Brin if includes => "included columns",
        IndexMethod::Spgist if count > 1 => "multicolumn indexes",
        _ => return Ok(()),
    };
    Err(SqlError::new("0A000", format!("access method \"{}\" does not support {refused}", asked.name())))
}
