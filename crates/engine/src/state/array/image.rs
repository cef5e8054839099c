//! Reading an array table: a snapshot of its array, with what the reader's own transaction has written over it.
use std::sync::Arc;

use lineage::Cell;
use snapshot::Snapshot;
use types::Timestamp;

use super::leaf::{LEAF_KEYS, Leaf, Overlay, Shape, place_of};

/// What was committed at or before [`at`](Self::at), and nothing else.
pub(crate) struct ArrayImage {
    snapshot: Option<Snapshot<u64>>,
    pub(crate) shape: Shape,
    /// The newest commit that had written to the table.
    pub(crate) at: Timestamp,
}

impl ArrayImage {
    pub(super) fn new(snapshot: Option<Snapshot<u64>>, shape: Shape, at: Timestamp) -> ArrayImage {
        debug_assert!(snapshot.as_ref().is_none_or(|snapshot| snapshot.as_slice().is_some()), "it lies elsewhere");
        ArrayImage { snapshot, shape, at }
    }

    /// The words of all leaves.
    pub(crate) fn words(&self) -> &[u64] {
        self.snapshot.as_ref().and_then(Snapshot::as_slice).unwrap_or_default()
    }

    pub(crate) fn leaf_count(&self) -> usize {
        self.words().len() / self.shape.leaf_words()
    }

    fn leaf(&self, number: usize) -> Option<&[u64]> {
        self.words().chunks_exact(self.shape.leaf_words()).nth(number)
    }
}

/// The rows that a statement sees.
#[derive(Clone)]
pub(crate) struct ArrayRows {
    pub(crate) image: Arc<ArrayImage>,
    /// What its transaction has written before.
    pub(crate) own: Option<Overlay>,
}

impl ArrayRows {
    pub(crate) fn leaf_count(&self) -> usize {
        self.image.leaf_count().max(self.own.as_ref().map_or(0, Overlay::leaf_count))
    }

    /// The rows of a leaf.
    pub(crate) fn leaf(&self, number: usize) -> LeafRows<'_> {
        let committed = self.image.leaf(number);
        let own = self.own.as_ref().and_then(|own| own.leaf(number));
        let before = committed.map_or(0, |words| words[0]);
        let (touched, written) = own.map_or((0, 0), |leaf| (leaf.touched, leaf.present));
        let present = before & !touched | written;
        LeafRows { number, shape: self.image.shape, committed: committed.unwrap_or_default(), own, touched, present }
    }

    /// Passes some columns of the row with a key to `take`, if there is such a row.
    pub(crate) fn read<R>(&self, key: u64, columns: &[usize], take: impl FnOnce(&[Cell<'_>]) -> R) -> Option<R> {
        let (number, slot) = place_of(key);
        let leaf = self.leaf(number);
        (leaf.present >> slot & 1 == 1).then(|| {
            let cells: Vec<Cell<'_>> = columns.iter().map(|column| leaf.cell(*column, slot)).collect();
            take(&cells)
        })
    }
}

/// The rows of one leaf.
pub(crate) struct LeafRows<'a> {
    number: usize,
    shape: Shape,
    committed: &'a [u64],
    own: Option<&'a Leaf>,
    touched: u64,
    /// a bit for each key that has a row
    pub(crate) present: u64,
}

impl LeafRows<'_> {
    pub(crate) fn key(&self, slot: usize) -> u64 {
        debug_assert!(slot < LEAF_KEYS, "slot {slot} of a leaf");
        (self.number * LEAF_KEYS + slot) as u64
    }

    /// A value of a row that is there.
    pub(crate) fn cell(&self, column: usize, slot: usize) -> Cell<'static> {
        let Some(place) = self.shape.place(column) else { return Cell::Word(self.key(slot)) };
        Cell::Word(match self.own.filter(|_| self.touched >> slot & 1 == 1) {
            Some(own) => own.word(place, slot),
            None => self.committed[1 + place * LEAF_KEYS + slot],
        })
    }
}
