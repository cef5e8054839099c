//! Queries of the rows that have a whole number between two in one column, which often lie side by side: they are read column by column
//! then ([`engine::Table::rows_between`]), and no index is chosen.
use std::sync::atomic::{AtomicU32, Ordering};

use engine::WordRows;

use super::condition::Condition;
use super::ordering::SortKey;
use crate::point::bound::Bound;
use crate::point::exact::{integer, is_integer};
use crate::point::scope::Scope;
use crate::point::term::Origin;

/// After so many times in a row that rows did not lie side by side, it is tried less often.
const TRIES: u32 = 8;
/// It is then tried once in so many times.
const SELDOM: u32 = 64;

/// The column and the least and the greatest number that rows may have there.
#[derive(Debug)]
pub(crate) struct Between {
    pub(crate) column: usize,
    /// whether all columns that are read are stored as words
    pub(crate) is_of_words: bool,
    low: Origin,
    high: Origin,
    /// How often in a row the rows were not found in this way.
    missed: AtomicU32,
}

impl Between {
    /// What a query with these conditions is about, if it is about that, and reads these columns.
    pub(super) fn of(conditions: &[Condition], reads: &[usize], scope: &Scope<'_>) -> Option<Between> {
        let [condition] = conditions else { return None };
        let (column, (low, high)) = (condition.column(), condition.extremes()?);
        let is_of_words = || WordRows::default().begin(scope.schema(), reads);
        let (low, high, missed) = (low.clone(), high.clone(), AtomicU32::new(0));
        let fits = is_integer(scope.known(column).data_type);
        fits.then(|| Between { column, is_of_words: is_of_words(), low, high, missed })
    }

    /// Whether rows in the order of the column are in this one, of columns among those that are read.
    pub(super) fn is_order(&self, order: &[SortKey], reads: &[usize]) -> bool {
        order.iter().all(|key| reads.get(key.place) == Some(&self.column) && !key.is_down)
    }

    /// The numbers of one execution, if it is worth a try.
    pub(crate) fn bounds(&self, bound: &Bound<'_>) -> Option<(i64, i64)> {
        let missed = self.missed.load(Ordering::Relaxed);
        if missed >= TRIES && !missed.is_multiple_of(SELDOM) {
            self.note(false);
            return None;
        }
        // One too large for its column is in no row.
        let number = |origin| bound.integer(origin).or_else(|| integer(&bound.value(origin)?));
        Some((number(&self.low)?, number(&self.high)?))
    }

    /// Notes whether the rows were found. Of two notes at once one may be lost.
    pub(crate) fn note(&self, were_found: bool) {
        let missed = self.missed.load(Ordering::Relaxed);
        match were_found {
            true if missed == 0 => {}
            true => self.missed.store(0, Ordering::Relaxed),
            false => self.missed.store(missed.wrapping_add(1), Ordering::Relaxed),
        }
    }
}
