//! A view for reading: a snapshot, and its hold.
use std::sync::Arc;

use parking_lot::Mutex;
use txn::Handle;
use types::{Snapshot, Timestamp};

use crate::database::handle::Anchor;
use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::state::array::image::{ArrayImage, ArrayRows};
use crate::state::array::leaf::Overlays;
use crate::state::table_data::TableData;
use crate::table::read_set::ReadSet;
use crate::terms::table_name::TableId;

/// A snapshot in use; cheap to clone. While a clone lives, no version that it sees is given up, whatever the retention of a
/// table; the view of a transaction that reads one snapshot is held by that transaction.
///
/// A transaction's view also shows what the transaction wrote before the view was taken, and nothing that it writes later.
#[derive(Clone)]
pub struct ReadView {
    snapshot: Snapshot,
    /// `None` where the transaction holds the snapshot.
    held: Option<Arc<Held>>,
    /// Counts the views of a transaction since it last began a command.
    _open: Option<Arc<()>>,
    /// The reads of a serializable transaction.
    reads: Option<Arc<ReadSet>>,
    /// What the transaction had written to array tables.
    own: Option<Arc<Overlays>>,
}

/// A place in the transaction table, for the sake of its snapshot.
struct Held {
    anchor: Anchor,
    /// `None` once it has ended.
    handle: Option<Handle>,
    /// Whether what has committed since may be seen as well, where there is no history.
    may_see_later: bool,
    /// The array tables that were read: each is read as of one instant.
    images: Mutex<Vec<(TableId, Arc<ArrayImage>)>>,
}

impl Held {
    fn new(anchor: Anchor, handle: Handle, may_see_later: bool) -> Held {
        Held { anchor, handle: Some(handle), may_see_later, images: Mutex::default() }
    }
}

impl ReadView {
    /// Holds the snapshot of everything committed so far.
    pub(crate) fn now(anchor: Anchor) -> Result<ReadView> {
        let begun = anchor.core.transactions.0.begin();
        let (handle, at) = begun.map_err(|error| Error::TooManyTransactions(error.limit))?;
        debug_assert!(
            at <= anchor.core.transactions.0.now(),
            "invariant 4: the view sees {at:?}, which is still to come"
        );
        Ok(ReadView::new(Snapshot::at(at), Some(Held::new(anchor, handle, true))))
    }

    /// Holds a snapshot. The caller asks afterwards whether a table still has what it sees.
    pub(crate) fn of(database: &Database, snapshot: Snapshot) -> Result<ReadView> {
        let anchor = database.shared.anchor();
        let begun = anchor.core.transactions.0.begin_at(snapshot.at);
        let handle = begun.map_err(|error| Error::TooManyTransactions(error.limit))?;
        Ok(ReadView::new(snapshot, Some(Held::new(anchor, handle, false))))
    }

    /// A transaction's snapshot, which the transaction holds.
    pub(crate) fn of_transaction(snapshot: Snapshot) -> ReadView {
        ReadView::new(snapshot, None)
    }

    fn new(snapshot: Snapshot, held: Option<Held>) -> ReadView {
        ReadView { snapshot, held: held.map(Arc::new), _open: None, reads: None, own: None }
    }

    /// The view as a transaction sees it: with its own writes so far.
    pub(crate) fn within(mut self, snapshot: Snapshot, open: Arc<()>, reads: Option<Arc<ReadSet>>) -> ReadView {
        self.snapshot = Snapshot { at: self.snapshot.at, ..snapshot };
        debug_assert_eq!(self.snapshot.at, snapshot.at, "invariant 4: the view would not be the one that is held");
        (self._open, self.reads) = (Some(open), reads);
        self
    }

    /// The view with what its transaction has written to array tables; one that is `strict` sees nothing there that is newer than
    /// itself.
    pub(crate) fn with_arrays(mut self, own: Option<Arc<Overlays>>, strict: bool) -> ReadView {
        self.own = own;
        if let Some(held) = self.held.as_mut().and_then(Arc::get_mut) {
            held.may_see_later &= !strict;
        }
        self
    }

    /// The rows of an array table.
    ///
    /// # Errors
    /// [`Error::ArrayChanged`] if the table was changed after the snapshot, and the view is to see nothing newer;
    /// [`Error::ArrayMemory`] where the system has no memory for a snapshot.
    pub(crate) fn array_rows(&self, data: &TableData) -> Result<ArrayRows> {
        let own = self.own.as_ref().and_then(|own| own.get(&data.id).cloned());
        let Some(held) = &self.held else {
            return Ok(ArrayRows { image: image_at(data, self.snapshot.at, false)?, own });
        };
        let mut images = held.images.lock();
        if let Some((_, image)) = images.iter().find(|(id, _)| *id == data.id) {
            return Ok(ArrayRows { image: image.clone(), own });
        }
        let image = image_at(data, self.snapshot.at, held.may_see_later)?;
        images.push((data.id, image.clone()));
        Ok(ArrayRows { image, own })
    }

    /// The view, with no more of the transaction's own writes than an earlier one shows.
    pub(crate) fn with_own_of(mut self, earlier: &ReadView) -> ReadView {
        self.own.clone_from(&earlier.own);
        debug_assert!(earlier.snapshot.before <= self.snapshot.before, "invariant 4: the earlier view shows more");
        self.snapshot.before = earlier.snapshot.before;
        self
    }

    /// The view for the sake of its moment: nothing is read through it any more, and what the transaction writes
    /// next need not be kept from it.
    pub fn closed(mut self) -> ReadView {
        self._open = None;
        self
    }

    /// The snapshot that it sees.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    /// Whether what is read through it is noted, as the transaction is serializable.
    pub fn notes_reads(&self) -> bool {
        self.reads.is_some()
    }

    /// The newest commit that it sees.
    pub fn at(&self) -> Timestamp {
        self.snapshot.at
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.anchor.core.transactions.0.release(handle);
        }
    }
}

/// The view of one read: a [`ReadView`], or a bare snapshot that only the read itself holds.
#[derive(Clone, Copy)]
pub struct Sight<'v> {
    pub(crate) snapshot: Snapshot,
    /// Whether the view holds the snapshot, whatever becomes of its transaction.
    pub(crate) is_held: bool,
    pub(crate) reads: Option<&'v ReadSet>,
    view: Option<&'v ReadView>,
}

impl Sight<'_> {
    /// Of a snapshot that the caller holds.
    pub(crate) fn held(snapshot: Snapshot) -> Self {
        Sight { snapshot, is_held: true, reads: None, view: None }
    }

    /// Where a read that goes on notes what it reads.
    pub(crate) fn shared_reads(&self) -> Option<Arc<ReadSet>> {
        self.view.and_then(|view| view.reads.clone())
    }

    /// The rows of an array table.
    ///
    /// # Errors
    /// As [`ReadView::array_rows`].
    pub(crate) fn array_rows(&self, data: &Arc<TableData>) -> Result<ArrayRows> {
        if let Some(reads) = self.reads {
            reads.note_rows(data, &[], &[]);
        }
        match self.view {
            Some(view) => view.array_rows(data),
            None => Ok(ArrayRows { image: image_at(data, self.snapshot.at, false)?, own: None }),
        }
    }
}

/// The rows of an array table as of a snapshot, or as of now where later commits may be seen.
fn image_at(data: &TableData, at: Timestamp, may_see_later: bool) -> Result<Arc<ArrayImage>> {
    let (image, ()) = data.array().image(&data.name, || ())?;
    match image.at <= at || may_see_later {
        true => Ok(image),
        false => Err(Error::ArrayChanged(data.name.to_string())),
    }
}

impl From<Snapshot> for Sight<'_> {
    fn from(snapshot: Snapshot) -> Self {
        Sight { snapshot, is_held: false, reads: None, view: None }
    }
}

impl<'v> From<&'v ReadView> for Sight<'v> {
    fn from(view: &'v ReadView) -> Self {
        let (snapshot, is_held) = (view.snapshot, view.held.is_some());
        Sight { snapshot, is_held, reads: view.reads.as_deref(), view: Some(view) }
    }
}
