//! History pages.
use crate::cell::Cell;
use crate::column_set::ColumnSet;
use crate::tail::Kind;

pub(crate) struct History;
pub(crate) struct Version<'a>(&'a ());
impl History {
    pub(crate) fn empty() -> History {
        History
    }
    pub(crate) fn given_up(&self) -> u64 {
        0
    }
    pub(crate) fn versions(&self, _slot: usize) -> impl Iterator<Item = Version<'_>> {
        std::iter::empty()
    }
}
impl<'a> Version<'a> {
    pub(crate) fn kind(&self) -> Kind {
        Kind::Update
    }
    pub(crate) fn start(&self) -> u64 {
        0
    }
    pub(crate) fn is_explicit(&self, _column: usize) -> bool {
        false
    }
    pub(crate) fn explicit(&self) -> ColumnSet {
        ColumnSet::EMPTY
    }
    pub(crate) fn cell(&self, _column: usize) -> Cell<'a> {
        Cell::Null
    }
}
