//! The index along which a query's rows are found, chosen by what its values leave of each.
//!
//! A query that wants the first of many rows in some order takes an index that has them in this order, as long as the values
//! leave only a part of that index. Any other takes the index that leads to the fewest rows, found out by counting its entries. Where
//! no index leads to few, one in the wanted order may be walked for a while.
use std::ops::Bound;

use engine::{Comparison, Direction, Few, Index, IndexPart, IndexRange, Table, Test, Value};

use super::ordering::SortKey;
use crate::access::index_path::plain_ranges;
use crate::access::overlaps::ColumnOverlap;

/// The most entries that are looked at for a query; one of more rows is the planner's.
pub(crate) const ENTRIES_MAX: usize = 1024;
/// As [`ENTRIES_MAX`], of an index without order: the planner would find rows in a part of space by that index, too.
const ENTRIES_IN_SPACE_MAX: usize = 4 * ENTRIES_MAX;
/// So few rows are found and sorted rather than met in order.
const SORTED_MAX: usize = 16;
/// Entries that are walked for each row that is wanted, where an index is taken for its order alone.
const ENTRIES_PER_ROW: usize = 8;

/// The way to a query's rows.
pub(crate) struct Path {
    pub(crate) index: Index,
    pub(crate) ranges: Vec<IndexRange>,
    /// The direction in which the rows come in the wanted order, if they do.
    ordered: Option<Direction>,
    /// how far it is walked
    entries: usize,
    /// about how many entries it leads to
    pub(crate) count: usize,
}

/// How rows are counted beforehand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Where there are several ways to them. One way alone is tried, and given up if it turns out long.
    AmongWays,
    /// In any case.
    Always,
}

/// What is wanted of the rows: their order, as columns and whether they go down, and how many.
struct Wanted<'a> {
    /// `None` if it is none that an index may have.
    order: Option<Vec<(usize, bool)>>,
    asked: Asked<'a>,
    end: usize,
    counting: Counting,
}

/// What is known of the rows.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) tests: &'a [(usize, Test)],
    pub(crate) overlaps: &'a [ColumnOverlap<'a>],
}

impl<'a> Asked<'a> {
    /// Tests alone.
    pub(crate) fn of(tests: &'a [(usize, Test)]) -> Asked<'a> {
        Asked { tests, overlaps: &[] }
    }

    fn ranges(&self, index: &Index) -> Option<Vec<IndexRange>> {
        plain_ranges(index, self.tests, self.overlaps)
    }
}

impl Path {
    /// The best way to rows that pass, of which the first `end` are wanted; `None` if none leads to few rows.
    pub(crate) fn find(
        table: &Table,
        asked: Asked<'_>,
        (order, reads): (&[SortKey], &[usize]),
        end: usize,
        counting: Counting,
    ) -> Option<Path> {
        if table.is_array() {
            return None;
        }
        let wanted = Wanted { order: order_by_index(order, reads), asked, end, counting };
        let indexes = table.primary_index().into_iter().chain(table.indexes());
        let plain: Vec<Index> = indexes.filter(|index| !index.definition().is_computed()).collect();
        if let Some(walk) = plain.iter().find_map(|index| wanted.walk(index, true)) {
            return wanted.fewest(table, &plain, SORTED_MAX).or(Some(walk));
        }
        let fewest = wanted.fewest(table, &plain, ENTRIES_MAX);
        fewest.or_else(|| plain.iter().find_map(|index| wanted.walk(index, false)))
    }

    /// The direction in which it is walked.
    pub(crate) fn direction(&self) -> Direction {
        self.ordered.unwrap_or(Direction::Upward)
    }

    /// Whether the rows come in the wanted order.
    pub(crate) fn is_ordered(&self) -> bool {
        self.ordered.is_some()
    }

    /// How much of it is walked for so many rows.
    pub(crate) fn few(&self, rows: usize) -> Few {
        Few { rows, entries: self.entries }
    }
}

impl Wanted<'_> {
    /// The index that leads to the fewest rows, if these are fewer than `limit`.
    fn fewest(&self, table: &Table, indexes: &[Index], limit: usize) -> Option<Path> {
        let mut ways: Vec<(&Index, Vec<IndexRange>)> =
            indexes.iter().filter_map(|index| Some((index, self.asked.ranges(index)?))).collect();
        let path = |(index, ranges): (&Index, Vec<IndexRange>), count| {
            let ordered = self.direction(index, &ranges);
            let entries = if index.is_ordered() { ENTRIES_MAX } else { ENTRIES_IN_SPACE_MAX };
            Path { index: index.clone(), ranges, ordered, entries, count }
        };
        if ways.len() == 1 && self.counting == Counting::AmongWays && limit == ENTRIES_MAX {
            return ways.pop().map(|way| path(way, ENTRIES_MAX));
        }
        let mut best: Option<(usize, Path)> = None;
        for (index, ranges) in ways {
            let below = best.as_ref().map_or(limit, |(count, _)| *count);
            let count = count(table, index, &ranges, below);
            if count < below {
                best = Some((count, path((index, ranges), count)));
            }
        }
        best.map(|(_, path)| path)
    }

    /// A walk through an index in the wanted order, until there are enough rows: through a part of it, or all.
    fn walk(&self, index: &Index, is_partial: bool) -> Option<Path> {
        let is_first_of_many = self.end < ENTRIES_MAX && self.order.as_ref().is_some_and(|order| !order.is_empty());
        if !is_first_of_many || !index.is_ordered() {
            return None;
        }
        let (ranges, entries) = match self.asked.ranges(index) {
            Some(ranges) if is_partial => (ranges, ENTRIES_MAX),
            Some(_) => return None,
            None if is_partial => return None,
            None => (vec![IndexRange::all()], self.end.saturating_mul(ENTRIES_PER_ROW).max(ENTRIES_MAX / 8)),
        };
        let ordered = Some(self.direction(index, &ranges)?);
        let entries = entries.min(ENTRIES_MAX);
        Some(Path { index: index.clone(), ranges, ordered, entries, count: entries })
    }

    /// The direction in which the rows of an index's ranges come in the wanted order.
    fn direction(&self, index: &Index, ranges: &[IndexRange]) -> Option<Direction> {
        let ([range], true) = (ranges, index.is_ordered()) else { return None };
        let pinned = range.equal.len();
        let parts = index.definition().parts.iter().enumerate();
        let mut parts = parts.skip_while(|(at, _)| *at < pinned).map(|(_, part)| part);
        let mut direction = None;
        let is_pinned = |column: usize| {
            self.asked.tests.iter().any(|test| matches!(test, (at, Test::Compare(Comparison::Eq, _)) if *at == column))
        };
        for (column, is_down) in self.order.as_ref()?.iter().filter(|(column, _)| !is_pinned(*column)) {
            let wanted = if *is_down { Direction::Downward } else { Direction::Upward };
            if parts.next() != Some(&IndexPart::Column(*column)) || direction.is_some_and(|known| known != wanted) {
                return None;
            }
            direction = Some(wanted);
        }
        Some(direction.unwrap_or(Direction::Upward))
    }
}

/// The order as columns and whether they go down, if NULLs stand where an index has them: at its end.
fn order_by_index(order: &[SortKey], reads: &[usize]) -> Option<Vec<(usize, bool)>> {
    let key = |key: &SortKey| {
        // What is worked out of columns is in no index of them.
        let column = reads.get(key.place).filter(|_| key.is_down == key.nulls_first)?;
        Some((*column, key.is_down))
    };
    order.iter().map(key).collect()
}

/// How many keys fit in a range of a unique index, where these are whole numbers and so few that there is no use in counting.
fn keys_at_most(index: &Index, range: &IndexRange) -> Option<usize> {
    let whole = |bound: &Bound<Value>, inward: i64| match bound {
        Bound::Included(value) => whole_number(value),
        Bound::Excluded(value) => whole_number(value)?.checked_add(inward),
        Bound::Unbounded => None,
    };
    let is_last = index.definition().unique && range.equal.len() + 1 == index.definition().parts.len();
    let (low, high) = (whole(&range.low, 1)?, whole(&range.high, -1)?);
    let keys = usize::try_from(high.checked_sub(low)?.max(-1).checked_add(1)?).ok()?;
    (is_last && keys < ENTRIES_MAX).then_some(keys)
}

fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::SmallInt(number) => Some(i64::from(*number)),
        Value::Integer(number) => Some(i64::from(*number)),
        Value::BigInt(number) => Some(*number),
        _ => None,
    }
}

/// How many entries stand in ranges of an index, up to `limit`.
fn count(table: &Table, index: &Index, ranges: &[IndexRange], limit: usize) -> usize {
    let width = index.definition().parts.len();
    let mut count = 0;
    for range in ranges {
        let is_key = index.definition().unique && range.equal.len() == width;
        count += match if is_key { Some(1) } else { keys_at_most(index, range) } {
            Some(keys) => keys,
            None => table.index_estimate(index, range, limit.saturating_sub(count)).unwrap_or(limit),
        };
        if count >= limit {
            return limit;
        }
    }
    count
}
