//! The pages of a range that one scan looks at: in place where they are in memory, and kept by the scan itself where they
//! are not and memory is short.
use std::cell::OnceCell;
use std::sync::Arc;

use sync::Guard;

use crate::content::meta_columns::Times;
use crate::content::meta_columns::UpdateColumns;
use crate::content::row_page::RowPage;
use crate::encoding::EncodedColumn;
use crate::memory::evictable::{Content, Evictable, Loan};
use crate::memory::source::PageError;
use crate::page::base::{MetaColumns, MetaPage, Page, StartTimes, Starts, Values};
use crate::page::insert::InsertPages;
use crate::value::cell::Cell;

/// The pages that a scan keeps for itself, as long as it is in a range.
pub(crate) struct Lent {
    /// by their place among the columns of the scan
    columns: Box<[OnceCell<Loan<EncodedColumn>>]>,
    rows: OnceCell<Loan<RowPage>>,
    updates: OnceCell<Loan<UpdateColumns>>,
    starts: OnceCell<Loan<Times>>,
    /// what was read before the scan came here
    ahead: Option<Box<Lent>>,
}

/// Pages of a range that were read back before a scan comes there; see [`crate::Table::read_ahead`].
pub struct Ahead(Lent);

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
            ahead: None,
        }
    }

    /// For a scan of so many columns to which some pages were lent before. If they are no longer those of the
    /// range, they don't matter.
    pub(crate) fn after(ahead: Option<Ahead>, columns: usize) -> Lent {
        Lent { ahead: ahead.map(|Ahead(lent)| Box::new(lent)), ..Lent::new(columns) }
    }

    pub(crate) fn into_ahead(self) -> Ahead {
        Ahead(self)
    }

    /// A page that is at `place` here, or was there before.
    #[inline]
    fn lend<'g, T: Content>(
        &'g self,
        guard: &'g Guard,
        page: &'g Arc<Evictable<T>>,
        place: impl Fn(&'g Lent) -> Option<&'g OnceCell<Loan<T>>>,
    ) -> Result<&'g T, PageError> {
        let before = self.ahead.as_deref().and_then(|ahead| page.lent(place(ahead)?));
        match (before, place(self)) {
            (Some(content), _) => Ok(content),
            (None, Some(place)) => page.lend(guard, place),
            (None, None) => page.get(guard),
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
            Values::Column(encoded) => BaseValues::Column(self.lend(guard, encoded, |lent| lent.columns.get(i))?),
            Values::Rows(rows) => BaseValues::Rows(self.lend(guard, rows, |lent| Some(&lent.rows))?, column),
            Values::Insert(pages) => BaseValues::Insert(pages, column),
        })
    }

    /// The updates of the merged tail records of a range.
    pub(crate) fn updates<'g>(
        &'g self,
        guard: &'g Guard,
        meta: &'g MetaColumns,
    ) -> Result<Option<&'g UpdateColumns>, PageError> {
        let lend = |updates| self.lend(guard, updates, |lent| Some(&lent.updates));
        meta.updates.as_ref().map(lend).transpose()
    }

    /// When the records of a range were inserted.
    pub(crate) fn starts<'g>(&'g self, guard: &'g Guard, meta: &'g MetaPage) -> Result<Starts<'g>, PageError> {
        Ok(match meta {
            MetaPage::Insert { pages, .. } => Starts::Insert(pages),
            MetaPage::Base(meta) => match &*meta.start {
                StartTimes::One(start) => Starts::One(start),
                StartTimes::Each(starts) => Starts::Each(&self.lend(guard, starts, |lent| Some(&lent.starts))?.0),
            },
        })
    }
}
