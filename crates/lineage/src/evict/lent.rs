//! The pages of a range that one scan looks at: in place where they are in memory, and kept by the scan itself where they
//! are not and memory is short.
use std::cell::OnceCell;

use sync::Guard;

use super::{PageError, Resident, Times};
use crate::base::{MetaColumns, MetaPage, Page, StartTimes, Starts, UpdateColumns, Values};
use crate::cell::Cell;
use crate::encoding::EncodedColumn;
use crate::insert::InsertPages;
use crate::row_page::RowPage;

/// What a scan keeps for itself, as long as it is in a range.
pub(crate) struct Lent {
    /// by their place among the columns of the scan
    columns: Box<[OnceCell<Resident<EncodedColumn>>]>,
    rows: OnceCell<Resident<RowPage>>,
    updates: OnceCell<Resident<UpdateColumns>>,
    starts: OnceCell<Resident<Times>>,
}

/// The base values of a column.
#[derive(Clone, Copy)]
pub(crate) enum BaseValues<'g> {
    Column(&'g EncodedColumn),
    /// of this column
    Rows(&'g RowPage, usize),
    Insert(&'g InsertPages, usize),
}

impl<'g> BaseValues<'g> {
    /// The value of a record that is there.
    #[inline]
    pub(crate) fn cell(self, slot: usize) -> Cell<'g> {
        match self {
            BaseValues::Column(encoded) => encoded.cell(slot),
            BaseValues::Rows(rows, column) => rows.cell(column, slot),
            BaseValues::Insert(pages, column) => pages.cell(column, slot),
        }
    }
}

impl Lent {
    /// Nothing yet, for a scan of so many columns.
    pub(crate) fn new(columns: usize) -> Lent {
        Lent {
            columns: (0..columns).map(|_| OnceCell::new()).collect(),
            rows: OnceCell::new(),
            updates: OnceCell::new(),
            starts: OnceCell::new(),
        }
    }

    /// The page of the scan's column `i`, which is `column` of the table.
    #[inline]
    pub(crate) fn values<'g>(
        &'g self,
        guard: &'g Guard,
        page: &'g Page,
        (i, column): (usize, usize),
    ) -> Result<BaseValues<'g>, PageError> {
        Ok(match &page.values {
            Values::Column(encoded) => BaseValues::Column(encoded.lend(guard, &self.columns[i])?),
            Values::Rows(rows) => BaseValues::Rows(rows.lend(guard, &self.rows)?, column),
            Values::Insert(pages) => BaseValues::Insert(pages, column),
        })
    }

    /// What the merged tail records of a range did.
    pub(crate) fn updates<'g>(
        &'g self,
        guard: &'g Guard,
        meta: &'g MetaColumns,
    ) -> Result<Option<&'g UpdateColumns>, PageError> {
        meta.updates.as_ref().map(|updates| updates.lend(guard, &self.updates)).transpose()
    }

    /// When the records of a range were inserted.
    pub(crate) fn starts<'g>(&'g self, guard: &'g Guard, meta: &'g MetaPage) -> Result<Starts<'g>, PageError> {
        Ok(match meta {
            MetaPage::Insert { pages, .. } => Starts::Insert(pages),
            MetaPage::Base(meta) => match &*meta.start {
                StartTimes::One(start) => Starts::One(start),
                StartTimes::Each(starts) => Starts::Each(&starts.lend(guard, &self.starts)?.0),
            },
        })
    }
}
