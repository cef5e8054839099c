//! Rows of an array table that a transaction has written and not committed: leaves of 64 keys, each with what is changed there.
use std::collections::BTreeMap;
use std::sync::Arc;

use lineage::{Cell, MemoryBudget};

use crate::terms::table_name::TableId;

/// Keys in a leaf, one for each bit of its first word.
pub(crate) const LEAF_KEYS: usize = 64;

/// How rows lie in the leaves of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    key: usize,
    columns: usize,
}

impl Shape {
    /// Of so many columns, one of which is the key.
    pub(crate) fn new(key: usize, columns: usize) -> Shape {
        debug_assert!(key < columns, "the key is column {key} of {columns}");
        Shape { key, columns }
    }

    /// The position of the key among the columns.
    pub(crate) fn key(&self) -> usize {
        self.key
    }

    /// How many columns are stored: all but the key.
    pub(crate) fn width(&self) -> usize {
        self.columns - 1
    }

    /// Where a column is stored; `None` for the key.
    pub(crate) fn place(&self, column: usize) -> Option<usize> {
        debug_assert!(column < self.columns, "column {column} of {}", self.columns);
        match column.cmp(&self.key) {
            std::cmp::Ordering::Less => Some(column),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(column - 1),
        }
    }

    /// The words of a leaf.
    pub(crate) fn leaf_words(&self) -> usize {
        1 + self.width() * LEAF_KEYS
    }

    /// The key and the stored words of a whole row.
    pub(crate) fn row(&self, cells: &[Cell<'_>]) -> (i64, Vec<u64>) {
        debug_assert_eq!(cells.len(), self.columns, "a cell for each column");
        let word = |column: usize| match cells[column] {
            Cell::Word(word) => word,
            Cell::Null | Cell::Bytes(_) => unreachable!("columns of arrays are words, and never NULL"),
        };
        let stored = (0..self.columns).filter(|column| *column != self.key).map(word).collect();
        (word(self.key) as i64, stored)
    }
}

/// The leaf and the slot in it of a key.
pub(crate) fn place_of(key: u64) -> (usize, usize) {
    let at = usize::try_from(key).unwrap_or(usize::MAX);
    (at / LEAF_KEYS, at % LEAF_KEYS)
}

/// The numbers of the bits that are set, upward.
pub(crate) fn slots(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (slot < LEAF_KEYS).then_some(slot)
    })
}

/// What a leaf takes beyond its words: itself, the counters of those that share it, its place in an overlay.
const LEAF_BYTES: usize = size_of::<Leaf>() + 4 * size_of::<usize>();

/// Words that count in a memory budget for as long as they are there.
struct Charged {
    words: Box<[u64]>,
    budget: Arc<MemoryBudget>,
}

impl Charged {
    fn new(words: Box<[u64]>, budget: &Arc<MemoryBudget>) -> Charged {
        let charged = Charged { words, budget: budget.clone() };
        budget.add(charged.bytes());
        charged
    }

    fn bytes(&self) -> i64 {
        (LEAF_BYTES + size_of_val(&*self.words)) as i64
    }
}

impl Clone for Charged {
    fn clone(&self) -> Charged {
        Charged::new(self.words.clone(), &self.budget)
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.budget.add(-self.bytes());
    }
}

/// What a transaction makes of 64 neighbouring keys.
#[derive(Clone)]
pub(crate) struct Leaf {
    /// a bit for each key that it has written
    pub(crate) touched: u64,
    /// of these, a bit for each that has a row; the others are deleted
    pub(crate) present: u64,
    /// 64 words for each stored column
    own: Charged,
}

impl Leaf {
    pub(crate) fn new(width: usize, budget: &Arc<MemoryBudget>) -> Leaf {
        Leaf { touched: 0, present: 0, own: Charged::new(vec![0; width * LEAF_KEYS].into(), budget) }
    }

    /// The word of a row that it has, in the stored column `place`.
    pub(crate) fn word(&self, place: usize, slot: usize) -> u64 {
        debug_assert!(self.present >> slot & 1 == 1, "invariant 4: a row is read that was not written");
        self.own.words[place * LEAF_KEYS + slot]
    }

    pub(crate) fn set(&mut self, slot: usize, row: &[u64]) {
        debug_assert_eq!(row.len() * LEAF_KEYS, self.own.words.len(), "a word for each stored column");
        (self.touched, self.present) = (self.touched | 1 << slot, self.present | 1 << slot);
        for (place, word) in row.iter().enumerate() {
            self.own.words[place * LEAF_KEYS + slot] = *word;
        }
    }

    pub(crate) fn delete(&mut self, slot: usize) {
        (self.touched, self.present) = (self.touched | 1 << slot, self.present & !(1 << slot));
        debug_assert_eq!(self.present & !self.touched, 0, "a row is there that was not written");
    }
}

/// What a transaction has written to array tables, by their numbers.
pub(crate) type Overlays = BTreeMap<TableId, Overlay>;

/// What a transaction has written to one array table. A copy shares the leaves, each of which counts once in the memory budget.
#[derive(Clone, Default)]
pub(crate) struct Overlay {
    pub(crate) leaves: BTreeMap<usize, Arc<Leaf>>,
    /// how many rows more there are once it has committed
    pub(crate) grows: i64,
}

impl Overlay {
    pub(crate) fn leaf(&self, number: usize) -> Option<&Leaf> {
        self.leaves.get(&number).map(|leaf| &**leaf)
    }

    /// The leaf with this number, to be written to.
    pub(crate) fn leaf_mut(&mut self, number: usize, width: usize, budget: &Arc<MemoryBudget>) -> &mut Leaf {
        debug_assert!(
            self.leaf(number).is_none_or(|leaf| leaf.own.words.len() == width * LEAF_KEYS),
            "one table, one width"
        );
        Arc::make_mut(self.leaves.entry(number).or_insert_with(|| Arc::new(Leaf::new(width, budget))))
    }

    /// How many leaves there are at least, with those of the table before.
    pub(crate) fn leaf_count(&self) -> usize {
        self.leaves.last_key_value().map_or(0, |(last, _)| last + 1)
    }
}
