//! Reading rows through an index: in the order of their keys, each checked on the version that the view sees.
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use lineage::{Cell, View};
use smallvec::SmallVec;
use types::{Rid, Snapshot, Timestamp, Value};

use crate::error::{Error, Result};
use crate::keys::computed::KeysOfRows;
use crate::keys::data::{Index, IndexData};
use crate::keys::definition::IndexMethod;
use crate::keys::entries::Entry;
use crate::keys::order::{Direction, IndexKey, Keyed, beside_all};
use crate::keys::range::IndexRange;
use crate::keys::space::Asked;
use crate::state::table_data::{ScanOptions, TableData};
use crate::table::index_walk::{Cursor, ENTRIES_FIRST, Used};
use crate::table::read_set::ReadSet;
use crate::table::read_view::{ReadView, Sight};
use crate::table::{Rows, Table};
use crate::terms::outcomes::Transactions;

/// How much of an index is walked for the sake of few rows.
#[derive(Clone, Copy, Debug)]
pub struct Few {
    /// Rows that are wanted at most.
    pub rows: usize,
    /// Entries that are looked at at most.
    pub entries: usize,
}

/// Columns, some of them asked for more than once, of which each is read once: a column that is given is often tested too, and stands
/// in the key.
struct EachOnce {
    columns: Vec<usize>,
    /// where each that is asked for is among the columns
    places: Vec<usize>,
}

impl EachOnce {
    fn of(asked: impl Iterator<Item = usize>) -> EachOnce {
        let mut columns = Vec::new();
        let places = asked.map(|column| match columns.iter().position(|known| *known == column) {
            Some(place) => place,
            None => {
                columns.push(column);
                columns.len() - 1
            }
        });
        EachOnce { places: places.collect(), columns }
    }
}

impl TableData {
    /// Asks for the memory of the records of entries.
    fn prefetch_entries(&self, entries: &[Entry], columns: &[usize]) {
        let guard = &sync::pin();
        entries.iter().for_each(|(_, rid)| self.storage.prefetch_base(guard, *rid, columns));
        entries.iter().for_each(|(_, rid)| self.storage.prefetch_newest(guard, *rid));
    }

    /// Passes the rows of some entries to `take` if their visible version has the entry's key: the cells of `columns`. Tells
    /// which entries these were.
    pub(crate) fn read_entries(
        &self,
        view: View<'_, Transactions>,
        index: &IndexData,
        entries: &[Entry],
        columns: &[usize],
        mut take: impl FnMut(Rid, &[Cell<'_>]),
    ) -> Result<Used> {
        let mut used = Used::default();
        if index.definition.method == IndexMethod::Gin {
            self.read_records(view, entries, columns, take)?;
            return Ok(used);
        }
        if index.definition.is_computed() {
            let mut found = Vec::new();
            self.read_computed(view, index, entries, columns, |rid, cells| {
                found.push(rid);
                take(rid, cells);
            })?;
            let at = |rid: Rid| entries.iter().position(|(_, known)| *known == rid);
            let mut places: Vec<usize> = found.into_iter().filter_map(at).collect();
            places.sort_unstable();
            places.into_iter().for_each(|at| used.note(at));
            return Ok(used);
        }
        let asked = EachOnce::of(columns.iter().chain(index.columns()).copied());
        for (chunk, entries) in entries.chunks(ENTRIES_FIRST).enumerate() {
            self.prefetch_entries(entries, &asked.columns);
            let guard = &sync::pin();
            for (at, (key, rid)) in entries.iter().enumerate() {
                self.storage.read_pinned(guard, view, *rid, &asked.columns, |cells| {
                    let cells = asked.places.iter().map(|place| cells[*place]).collect::<SmallVec<[Cell<'_>; 16]>>();
                    let (cells, key_cells) = cells.split_at(columns.len());
                    debug_assert_eq!(key_cells.len(), index.columns().len(), "a cell for each column of the key");
                    if index.plain_key(key_cells) == *key {
                        used.note(chunk * ENTRIES_FIRST + at);
                        take(*rid, cells);
                    }
                })?;
            }
        }
        Ok(used)
    }

    /// Passes the visible versions of records that may answer to `take`. The caller asks each for the condition itself.
    fn read_records(
        &self,
        view: View<'_, Transactions>,
        entries: &[Entry],
        columns: &[usize],
        mut take: impl FnMut(Rid, &[Cell<'_>]),
    ) -> Result<()> {
        debug_assert!(entries.is_sorted_by_key(|(_, rid)| *rid), "invariant 7: a record comes twice");
        for entries in entries.chunks(ENTRIES_FIRST) {
            self.prefetch_entries(entries, columns);
            let guard = &sync::pin();
            for (_, rid) in entries {
                self.storage.read_pinned(guard, view, *rid, columns, |cells| take(*rid, cells))?;
            }
        }
        Ok(())
    }

    /// Passes the rows of some entries to `take` where keys have to be worked out, which is done for many rows at a
    /// time. A view sees the same version both times that it is looked at.
    fn read_computed(
        &self,
        view: View<'_, Transactions>,
        index: &IndexData,
        entries: &[Entry],
        columns: &[usize],
        mut take: impl FnMut(Rid, &[Cell<'_>]),
    ) -> Result<()> {
        let mut found: Vec<Rid> = Vec::new();
        let mut keys = KeysOfRows::new(index, |(key, rid): (&IndexKey, Rid), keyed: Result<Keyed>| {
            // A version for which an expression fails has no key.
            if keyed.is_ok_and(|keyed| keyed.key == *key) {
                found.push(rid);
            }
        });
        for entries in entries.chunks(ENTRIES_FIRST) {
            self.prefetch_entries(entries, index.columns());
            let guard = &sync::pin();
            for (key, rid) in entries {
                self.storage.read_pinned(guard, view, *rid, index.columns(), |cells| keys.push((key, *rid), cells))?;
            }
        }
        keys.finish();
        debug_assert!(found.len() <= entries.len(), "invariant 7: a record comes twice");
        for rid in found {
            self.storage.read(view, rid, columns, |cells| take(rid, cells))?;
        }
        Ok(())
    }
}

impl IndexData {
    pub(crate) fn refuse_range(&self, why: &str) -> Error {
        Error::BadIndexRange { index: self.definition.name.clone(), why: why.into() }
    }

    /// Whether a serializable transaction that has read these entries in `asked.from` would read the same at `asked.to`:
    /// every record that came into the range, left it or changed within it has an entry there.
    pub(crate) fn has_changed(
        &self,
        table: &TableData,
        range: &Asked,
        asked: lineage::Validation<'_, Transactions>,
    ) -> Result<bool> {
        let is_within = |rid: Rid, at| -> Result<bool> {
            let view = View { snapshot: Snapshot::at(at), outcomes: asked.outcomes };
            let is_held = |cells: &[Cell<'_>]| range.holds(&self.keys(cells), rid);
            Ok(table.storage.read(view, rid, self.columns(), is_held)? == Some(true))
        };
        let mut cursor = Cursor::new(Some(range.clone()), Direction::Upward);
        while cursor.advance(self, None)? {
            for (_, rid) in &cursor.entries {
                if table.storage.changed_between(*rid, asked)?
                    && (is_within(*rid, asked.from)? || is_within(*rid, asked.to)?)
                {
                    return Ok(true);
                }
            }
        }
        Ok(!self.serves(asked.to))
    }
}

impl Table {
    /// The indexes that are open for all.
    pub fn indexes(&self) -> Vec<Index> {
        let is_there = |index: &IndexData| index.standing.standing() == crate::terms::table_lock::Standing::Open;
        self.data.indexes.which(is_there).into_iter().map(|data| Index { data }).collect()
    }

    /// About how many rows are in a range of an index: those that were there at some time are counted, `limit` at most.
    ///
    /// # Errors
    /// [`Error::BadIndexRange`] if the index can't serve such a range.
    pub fn index_estimate(&self, index: &Index, range: &IndexRange, limit: usize) -> Result<usize> {
        let asked = self.data.index_bounds(&index.data, range)?;
        match &asked {
            Some(Asked::Space(window)) => {
                return Ok(index.data.entries().space().map_or(0, |space| space.estimate(window, limit)));
            }
            Some(Asked::Terms(groups)) => return index.data.estimate_with_terms(groups, limit),
            Some(Asked::Keys(_)) | None => {}
        }
        let mut cursor = Cursor::new(asked, Direction::Upward);
        let mut count = 0;
        while count < limit && cursor.advance(&index.data, Some(Timestamp::MAX))? {
            count += cursor.entries.len();
        }
        Ok(count.min(limit))
    }

    /// The rows of a range that the view sees, in the order of the index, or against it.
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`] if the index was dropped before the view was taken, or made so late that what the view holds was
    /// given up but for the view; [`Error::BadIndexRange`] if it can't serve such a range; [`Error::SnapshotTooOld`] if the
    /// table does not keep what the view sees; [`Error::TooManyTransactions`] if as many run as there may be.
    pub fn index_scan<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        index: &Index,
        range: &IndexRange,
        direction: Direction,
        options: ScanOptions,
    ) -> Result<IndexScan> {
        self.data.check_no_array("reading by an index", "Read it by key, or by scans.")?;
        let sight = view.into();
        let (snapshot, reads) = (sight.snapshot, sight.shared_reads());
        let held = self.hold(snapshot)?;
        if !index.data.serves(snapshot.at) {
            return Err(Error::NoSuchIndex(index.data.definition.name.clone()));
        }
        let bounds = self.data.index_bounds(&index.data, range)?;
        let unread = reads.zip(bounds.clone());
        let (schema, cursor) = (self.data.projection(&options).schema, Cursor::new(bounds, direction));
        let (table, index, left) = (self.clone(), index.data.clone(), usize::MAX);
        Ok(IndexScan { table, index, view: held, cursor, options, schema, left, unread })
    }

    /// The visible rows of some ranges of an index that pass the tests, if they are few: one batch, shaped as a scan's are, range
    /// after range, each in the order of the index or against it. `None` if there are more entries than are looked at.
    ///
    /// # Errors
    /// As [`index_scan`](Self::index_scan).
    pub fn index_rows<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        (index, ranges): (&Index, &[IndexRange]),
        direction: Direction,
        options: &ScanOptions,
        few: Few,
    ) -> Result<Option<RecordBatch>> {
        let found = self.index_rows_by_range(view, (index, ranges), direction, options, few)?;
        Ok(found.map(|(rows, _)| rows))
    }

    /// As [`index_rows`](Self::index_rows), and where the rows of each range end in the batch.
    ///
    /// # Errors
    /// As [`index_scan`](Self::index_scan).
    pub fn index_rows_by_range<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        (index, ranges): (&Index, &[IndexRange]),
        direction: Direction,
        options: &ScanOptions,
        few: Few,
    ) -> Result<Option<(RecordBatch, Vec<usize>)>> {
        self.data.check_no_array("reading by an index", "Read it by key, or by scans.")?;
        let sight @ Sight { snapshot, reads, .. } = view.into();
        let _held = self.hold_for_a_moment(sight)?;
        if !index.data.serves(snapshot.at) {
            return Err(Error::NoSuchIndex(index.data.definition.name.clone()));
        }
        let transactions = &self.database.shared.core.transactions;
        let view = transactions.view(snapshot);
        let only = (ranges.len() == 1).then(|| self.data.index_bounds(&index.data, &ranges[0]));
        let mut known = only.transpose()?;
        if let (Some(Some(asked)), Direction::Upward) = (&known, direction)
            && let Some((rows, read)) = self.rows_upward(view, (&index.data, asked), options, few)?
        {
            reads.into_iter().for_each(|reads| reads.note_entries(&self.data, &index.data, &read));
            let count = rows.num_rows();
            return Ok(Some((rows, vec![count])));
        }
        let (mut rows, mut left, mut ends) = (FoundRows::new(self, options, few), few.entries, Vec::new());
        for range in ranges {
            let bounds = known.take().map_or_else(|| self.data.index_bounds(&index.data, range), Ok)?;
            if rows.len() >= few.rows {
                break;
            }
            let Some(bounds) = bounds else {
                ends.push(rows.len());
                continue;
            };
            let (asked, mut cursor) = (reads.is_some().then(|| bounds.clone()), Cursor::new(Some(bounds), direction));
            while rows.len() < few.rows && cursor.advance(&index.data, Some(snapshot.at))? {
                let Some(less) = left.checked_sub(cursor.entries.len()) else {
                    cursor.end_idle(&self.data, &index.data, transactions);
                    return Ok(None);
                };
                left = less;
                let is_whole = ranges.len() == 1 && rows.len() == 0 && cursor.is_through();
                if is_whole
                    && direction == Direction::Upward
                    && let Some(whole) = self.rows_of_entries(view, &index.data, &cursor.entries, options)?
                {
                    let noted = reads.zip(asked.as_ref());
                    noted.into_iter().for_each(|(reads, asked)| reads.note_entries(&self.data, &index.data, asked));
                    let wanted = whole.num_rows().min(few.rows);
                    return Ok(Some((first_of(whole, wanted), vec![wanted])));
                }
                let rows = rows.begun();
                let columns = rows.columns.clone();
                let take = |rid: Rid, cells: &[Cell<'_>]| rows.push(rid, cells);
                let used = self.data.read_entries(view, &index.data, &cursor.entries, &columns, take)?;
                cursor.note_used(&self.data, &index.data, transactions, used);
            }
            if let Some((reads, asked)) = reads.zip(asked) {
                let end = rows.last_of(few.rows).and_then(|last| cursor.end_behind(&index.data, last));
                let read = end.map_or_else(|| asked.clone(), |end| asked.clone().up_to(end, direction));
                reads.note_entries(&self.data, &index.data, &read);
            }
            cursor.end_idle(&self.data, &index.data, transactions);
            ends.push(rows.len());
        }
        ends.resize(ranges.len(), rows.len());
        debug_assert!(rows.len() <= few.entries, "invariant 7: a record comes twice");
        Ok(Some(first_of_ranges(rows.finish(), ends, few.rows)))
    }

    /// The rows of a range of keys, upward, where runs of keys tell their records, and the part of the index that this has read.
    fn rows_upward(
        &self,
        view: View<'_, Transactions>,
        (index, asked): (&IndexData, &Asked),
        options: &ScanOptions,
        few: Few,
    ) -> Result<Option<(RecordBatch, Asked)>> {
        let Asked::Keys(bounds) = asked else { return Ok(None) };
        let found = self.rows_of_runs(view, (index, bounds), options, few)?;
        debug_assert!(found.as_ref().is_none_or(|(rows, _)| rows.num_rows() <= few.rows), "more rows than are wanted");
        Ok(found.map(|(rows, last)| (rows, asked.clone().up_to(beside_all(&last, true), Direction::Upward))))
    }
}

/// The first rows of some ranges, each of which ends where the next begins.
fn first_of_ranges(rows: RecordBatch, mut ends: Vec<usize>, wanted: usize) -> (RecordBatch, Vec<usize>) {
    debug_assert!(ends.is_sorted(), "each range ends where the next begins");
    let wanted = rows.num_rows().min(wanted);
    ends.iter_mut().for_each(|end| *end = wanted.min(*end));
    (first_of(rows, wanted), ends)
}

/// The first rows of a batch.
fn first_of(rows: RecordBatch, wanted: usize) -> RecordBatch {
    if rows.num_rows() == wanted { rows } else { rows.slice(0, wanted) }
}

/// Rows that are put together one by one, once there is a first.
struct FoundRows<'a> {
    table: &'a Table,
    options: &'a ScanOptions,
    room: usize,
    rows: Option<Rows<'a>>,
}

impl<'a> FoundRows<'a> {
    fn new(table: &'a Table, options: &'a ScanOptions, few: Few) -> FoundRows<'a> {
        FoundRows { table, options, room: few.rows.min(ENTRIES_FIRST), rows: None }
    }

    fn len(&self) -> usize {
        self.rows.as_ref().map_or(0, Rows::len)
    }

    /// The last of the rows that are wanted, once they are there.
    fn last_of(&self, wanted: usize) -> Option<Rid> {
        let rids = self.rows.as_ref().map_or(&[][..], |rows| &rows.rids);
        wanted.checked_sub(1).and_then(|last| rids.get(last)).map(|rid| Rid::from_word(*rid))
    }

    fn begun(&mut self) -> &mut Rows<'a> {
        self.rows.get_or_insert_with(|| Rows::with_room(self.table, self.options, self.room))
    }

    fn finish(self) -> RecordBatch {
        let rows = self.rows.unwrap_or_else(|| Rows::new(self.table, self.options));
        rows.finish(self.table.data.projection(self.options).schema)
    }
}

/// A scan of an index in progress: an iterator over batches, shaped as a table scan's batches are.
pub struct IndexScan {
    table: Table,
    index: Arc<IndexData>,
    view: ReadView,
    cursor: Cursor,
    options: ScanOptions,
    schema: SchemaRef,
    /// the entries that it may still look at
    left: usize,
    /// what it has not noted yet as read, if its transaction is serializable
    unread: Option<(Arc<ReadSet>, Asked)>,
}

impl IndexScan {
    /// This scan with an end after so many entries, whatever is left then; see [`is_cut`](Self::is_cut).
    pub fn up_to(mut self, entries: usize) -> IndexScan {
        self.left = entries;
        self
    }

    /// This scan for the sake of so many rows: it begins with as many entries, so that a serializable transaction that takes no more
    /// rows has read nothing behind them.
    pub fn wanting(mut self, rows: usize) -> IndexScan {
        self.cursor.begin_with(rows);
        self
    }

    /// Whether it has ended before its range did.
    pub fn is_cut(&self) -> bool {
        self.left == 0
    }

    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Iterator for IndexScan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let table = self.table.clone();
        let mut rows = Rows::new(&table, &self.options);
        let columns = rows.columns.clone();
        let transactions = &table.database.shared.core.transactions;
        while rows.len() == 0 && self.left > 0 {
            let has_found = match self.cursor.advance(&self.index, Some(self.view.at())) {
                Ok(has_found) => has_found,
                Err(error) => return Some(Err(error)),
            };
            note_read(&mut self.unread, &table.data, &self.index, &self.cursor);
            if !has_found {
                break;
            }
            self.left = self.left.saturating_sub(self.cursor.entries.len());
            let entries = &self.cursor.entries;
            let take = |rid: Rid, cells: &[Cell<'_>]| rows.push(rid, cells);
            let view = transactions.view(self.view.snapshot());
            match table.data.read_entries(view, &self.index, entries, &columns, take) {
                Ok(used) => self.cursor.note_used(&table.data, &self.index, transactions, used),
                Err(error) => return Some(Err(error)),
            }
        }
        if rows.len() == 0 {
            self.cursor.end_idle(&table.data, &self.index, transactions);
            return None;
        }
        Some(Ok(rows.finish(self.schema.clone())))
    }
}

/// Rows of a table in the order of an index, each with its Rid; see [`Transaction::index_scan`](crate::Transaction::index_scan).
pub struct IndexRows {
    pub(crate) scan: IndexScan,
    pub(crate) found: std::vec::IntoIter<(Rid, Vec<Value>)>,
}

impl Iterator for IndexRows {
    type Item = Result<(Rid, Vec<Value>)>;

    fn next(&mut self) -> Option<Result<(Rid, Vec<Value>)>> {
        loop {
            if let Some(row) = self.found.next() {
                return Some(Ok(row));
            }
            let scan = &mut self.scan;
            let has_found = match scan.cursor.advance(&scan.index, Some(scan.view.at())) {
                Ok(has_found) => has_found,
                Err(error) => return Some(Err(error)),
            };
            note_read(&mut scan.unread, &scan.table.data, &scan.index, &scan.cursor);
            if !has_found {
                return None;
            }
            let table = &scan.table;
            let all: Vec<usize> = (0..table.schema().columns().len()).collect();
            let view = table.database.shared.core.transactions.view(scan.view.snapshot());
            let mut found = Vec::new();
            let take = |rid: Rid, cells: &[Cell<'_>]| found.push((rid, table.values_of(&all, cells)));
            let entries = &scan.cursor.entries;
            if let Err(error) = table.data.read_entries(view, &scan.index, entries, &all, take) {
                return Some(Err(error));
            }
            self.found = found.into_iter();
        }
    }
}

/// Notes the entries that are looked at, and what was passed before them: a reader that stops there depends on nothing behind it. Where
/// there are none, it has read all that was left.
fn note_read(
    unread: &mut Option<(Arc<ReadSet>, Asked)>,
    table: &Arc<TableData>,
    index: &Arc<IndexData>,
    cursor: &Cursor,
) {
    let Some((reads, asked)) = unread.take() else { return };
    let Some((end, left)) = cursor.end_and_rest(index) else { return reads.note_entries(table, index, &asked) };
    reads.note_entries(table, index, &asked.up_to(end, cursor.direction()));
    *unread = Some((reads, left));
}
