//! Many windows of an index at once: the rows that they may find, each read once.
//!
//! ```text
//! windows ─▶ the index's batch search, level by level ─▶ (window, Rid), each pair once ─▶ rows of the Rids, as the view sees them
//!                                                                                           └─▶ (window, place of the row)
//! ```
//!
//! A record may have entries of several versions in a window, so that a pair says that some version may be there. The caller asks the
//! condition itself of the row, as it does of what one window finds.
use arrow_array::RecordBatch;
use index::SearchDevice;
use types::Rid;

use crate::error::{Error, Result};
use crate::keys::data::{Index, IndexData};
use crate::keys::range::IndexRange;
use crate::keys::space::{Asked, IndexWindow, Window};
use crate::state::table_data::{ScanOptions, TableData};
use crate::table::read_view::Sight;
use crate::table::{Rows, Table};

/// Rows that windows of an index may find, and which window finds which.
#[derive(Clone, Debug)]
pub struct IndexPairs {
    /// The rows, each once, shaped as a scan's are, in the order of their records.
    pub rows: RecordBatch,
    /// The place of a window and that of a row, each pair once, in their order.
    pub pairs: Vec<(u32, u32)>,
}

impl TableData {
    /// The windows as the index looks for them, with their places; those in which no row can be are left out.
    fn batch_of(&self, index: &IndexData, windows: &[IndexWindow]) -> Result<Vec<(u32, Window)>> {
        let mut asked = Vec::with_capacity(windows.len());
        for (at, window) in (0..).zip(windows) {
            match self.index_bounds(index, &IndexRange::within(window.clone()))? {
                Some(Asked::Space(window)) => asked.push((at, window)),
                Some(Asked::Keys(_) | Asked::Terms(_)) => return Err(index.refuse_range("is asked for parts of space")),
                None => {}
            }
        }
        Ok(asked)
    }
}

impl Table {
    /// The rows that the view sees, that pass the tests, and that may be in one of the windows of an index of all rows: there may be
    /// pairs of a window and a row that is outside of it. All windows go through the index together.
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`] if the index was dropped before the view was taken, or made so late that what the view holds was given up
    /// but for the view; [`Error::BadIndexRange`] if it can't serve such a window or is of a part of the table;
    /// [`Error::SnapshotTooOld`] if the table does not keep what the view sees; [`Error::TooManyTransactions`] if as many run as there
    /// may be.
    ///
    /// # Panics
    /// If there are more than 2^32 windows.
    pub fn index_pairs<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        index: &Index,
        windows: &[IndexWindow],
        options: &ScanOptions,
    ) -> Result<IndexPairs> {
        self.index_pairs_on(None, view, index, windows, options)
    }

    /// [`index_pairs`](Self::index_pairs) with a device beside the processor, which may search the index.
    ///
    /// # Errors
    /// Those of `index_pairs`: where the device gives no answer, the processor does.
    ///
    /// # Panics
    /// If there are more than 2^32 windows.
    pub fn index_pairs_on<'v>(
        &self,
        device: Option<&dyn SearchDevice>,
        view: impl Into<Sight<'v>>,
        index: &Index,
        windows: &[IndexWindow],
        options: &ScanOptions,
    ) -> Result<IndexPairs> {
        self.data.check_no_array("reading by an index", "Read it by scans.")?;
        if index.data.definition.predicate.is_some() {
            return Err(index.data.refuse_range("is of a part of the table"));
        }
        let sight @ Sight { snapshot, reads, .. } = view.into();
        let _held = self.hold_for_a_moment(sight)?;
        if !index.data.serves(snapshot.at) {
            return Err(Error::NoSuchIndex(index.data.definition.name.clone()));
        }
        let asked = self.data.batch_of(&index.data, windows)?;
        if let Some(reads) = reads {
            for (_, window) in &asked {
                reads.note_entries(&self.data, &index.data, &Asked::Space(window.clone()));
            }
        }
        let mut found: Vec<(u32, Rid)> = Vec::new();
        if let Some(space) = index.data.entries().space() {
            space.search_batch(&asked, device, &mut found);
        }
        found.sort_unstable_by_key(|(window, rid)| (*window, rid.word()));
        found.dedup();
        let mut rids: Vec<Rid> = found.iter().map(|(_, rid)| *rid).collect();
        rids.sort_unstable_by_key(|rid| rid.word());
        rids.dedup();
        let mut rows = Rows::with_room(self, options, rids.len());
        let (columns, guard) = (rows.columns.clone(), sync::pin());
        let view = self.database.shared.core.transactions.view(snapshot);
        // Where the row of each record is, if there is one.
        let mut places: Vec<Option<u32>> = Vec::with_capacity(rids.len());
        for rid in &rids {
            let before = rows.len();
            self.data.storage.read_pinned(&guard, view, *rid, &columns, |cells| rows.push(*rid, cells))?;
            places.push((rows.len() > before).then_some(before as u32));
        }
        let place =
            |rid: Rid| rids.binary_search_by_key(&rid.word(), |known| known.word()).ok().and_then(|at| places[at]);
        let pairs: Vec<(u32, u32)> = found.into_iter().filter_map(|(at, rid)| Some((at, place(rid)?))).collect();
        debug_assert!(pairs.is_sorted(), "pairs come by window, and by record within");
        Ok(IndexPairs { rows: rows.finish(self.data.projection(options).schema), pairs })
    }
}
