//! Counts, sums and extremes of a table's columns.
use std::sync::atomic::{AtomicUsize, Ordering};

use lineage::{Request, Test, Totals, View};

use crate::error::Result;
use crate::table::Table;
use crate::table::read_view::Sight;
use crate::terms::outcomes::Transactions;

/// An aggregate is not spread over more threads than there are so many ranges: starting one takes as long as some ranges.
const RANGES_A_THREAD: usize = 16;

impl Table {
    /// Count, sum and extremes of columns over the rows that the view sees and that pass every test, worked out on the
    /// encoded pages by as many threads as there are processors for it.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld) if the table does not keep what the view sees;
    /// [`Error::TooManyTransactions`](crate::Error::TooManyTransactions) if nothing holds it yet, and as many
    /// transactions run as there may be; [`Error::Page`](crate::Error::Page) if an evicted page cannot be read back.
    pub fn aggregate<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        tests: &[(usize, Test)],
        columns: &[usize],
    ) -> Result<Totals> {
        let view = view.into();
        if self.data.array.is_some() {
            return self.aggregate_array(view, tests, columns);
        }
        let request = Request { columns: columns.to_vec(), tests: tests.to_vec() };
        let storage = &self.data.storage;
        self.add_up(view, tests, columns, |range, view| Ok(storage.aggregate_range(range, view, &request)?))
    }

    /// How many rows the view sees, and of some columns how many values they have and the sums of these; extremes are not told. What
    /// was added up before is kept, so that this takes as long as there are changes since the last time, and not merged
    /// meanwhile.
    ///
    /// # Errors
    /// As [`aggregate`](Self::aggregate).
    pub fn sums<'v>(&self, view: impl Into<Sight<'v>>, columns: &[usize]) -> Result<Totals> {
        let view = view.into();
        if self.data.array.is_some() {
            return self.aggregate_array(view, &[], columns);
        }
        let storage = &self.data.storage;
        self.add_up(view, &[], columns, |range, view| Ok(storage.sum_range(range, view, columns)?))
    }

    /// Adds up what `of_range` tells of each range.
    fn add_up(
        &self,
        sight: Sight<'_>,
        tests: &[(usize, Test)],
        columns: &[usize],
        of_range: impl Fn(usize, View<'_, Transactions>) -> Result<Totals> + Sync,
    ) -> Result<Totals> {
        let Sight { snapshot, reads, .. } = sight;
        if let Some(reads) = reads {
            reads.note_rows(&self.data, tests, columns);
        }
        let _held = self.hold_for_a_moment(sight)?;
        let view = self.database.shared.core.transactions.view(snapshot);
        let types = || columns.iter().map(|column| self.schema().columns()[*column].data_type);
        let (ranges, next) = (self.data.storage.range_count(), AtomicUsize::new(0));
        let work = || -> Result<Totals> {
            let mut totals = Totals::new(types());
            loop {
                let range = next.fetch_add(1, Ordering::Relaxed);
                if range >= ranges {
                    return Ok(totals);
                }
                totals.merge(&of_range(range, view)?);
            }
        };
        if ranges < 2 * RANGES_A_THREAD {
            return work();
        }
        debug_assert!(ranges / RANGES_A_THREAD >= 2, "a thread more would take longer than its ranges");
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(ranges / RANGES_A_THREAD);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut totals = work();
            for other in others {
                let theirs = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                if let Ok(totals) = &mut totals {
                    totals.merge(&theirs?);
                }
            }
            totals
        })
    }
}
