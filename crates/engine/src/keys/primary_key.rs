//! Primary keys: an index of their own, how a key is made of a row's cells, and which record has it.
//!
//! Keys of one integer column are kept in a KISS-Tree, all others in a B+tree: both in order, so that ranges of the primary key
//! are read like those of any other index ([`crate::indexes`]).
use std::sync::Arc;

use index::KissIndex;
use lineage::{Cell, word_of_value};
use smallvec::SmallVec;
use sync::Guard;
use types::{Rid, Schema, Value};

use crate::error::Result;
use crate::keys::data::IndexData;
use crate::keys::definition::{IndexDefinition, IndexMethod, KeptIndex};
use crate::keys::order::IndexKey;

/// The index of a table's primary key.
pub(crate) struct PrimaryKey {
    /// the key's columns, in key order
    pub(crate) columns: Box<[usize]>,
    pub(crate) index: Arc<IndexData>,
}

impl PrimaryKey {
    /// The index for a schema that has a primary key.
    pub(crate) fn new(table: &str, schema: &Schema) -> Result<Option<PrimaryKey>> {
        let columns = schema.primary_key();
        if columns.is_empty() {
            return Ok(None);
        }
        let made = |method| {
            let definition = IndexDefinition::new(format!("{table}_pkey"), columns).unique().using(method);
            IndexData::new(schema, KeptIndex { definition, has_changed_keys: false }, None)
        };
        let index = match columns {
            // Where the process gets no more address space, there is still memory.
            [column] if is_integer(schema, *column) => made(IndexMethod::Kiss).or_else(|_| made(IndexMethod::Btree))?,
            _ => made(IndexMethod::Btree)?,
        };
        debug_assert!(index.entries().is_ordered(), "ranges of a primary key are read in order");
        Ok(Some(PrimaryKey { columns: columns.into(), index: Arc::new(index) }))
    }

    /// Whether one of these columns is one of the key's.
    #[inline]
    pub(crate) fn is_among(&self, columns: impl Iterator<Item = usize> + Clone) -> bool {
        self.index.is_among(columns)
    }

    /// The key made of these cells, which come in key order and are not NULL.
    #[inline]
    pub(crate) fn key(&self, cells: &[Cell<'_>]) -> IndexKey {
        self.index.plain_key(cells)
    }

    /// The key made of these values, if each has exactly its column's type and is stored as a word: the common case.
    #[inline]
    pub(crate) fn key_of_words(&self, schema: &Schema, values: &[Value]) -> Option<IndexKey> {
        let mut cells = SmallVec::<[Cell<'_>; 4]>::new();
        for (value, column) in values.iter().zip(&self.columns) {
            cells.push(Cell::Word(word_of_value(value, schema.columns()[*column].data_type)?));
        }
        (cells.len() == self.columns.len()).then(|| self.key(&cells))
    }

    /// The key of a row, whose cell of a column `cell` returns.
    #[inline]
    pub(crate) fn key_of_row<'r>(&self, cell: impl Fn(usize) -> Cell<'r>) -> IndexKey {
        if let [column] = *self.columns {
            debug_assert!(cell(column) != Cell::Null, "invariant 7: a key without a value");
            return self.key(&[cell(column)]);
        }
        let cells: SmallVec<[Cell<'_>; 4]> = self.columns.iter().map(|column| cell(*column)).collect();
        debug_assert!(!cells.contains(&Cell::Null), "invariant 7: a key without a value");
        self.key(&cells)
    }

    /// The first record, newest first, that had the key at some time and for which `accept` returns something.
    ///
    /// # Errors
    /// As [`IndexData::at`].
    #[inline]
    pub(crate) fn find<T>(
        &self,
        guard: &Guard,
        key: &IndexKey,
        accept: impl FnMut(Rid) -> Option<T>,
    ) -> Result<Option<T>> {
        Ok(self.index.at(guard, key)?.find_pinned(guard, key, accept))
    }

    /// Whether keys are whole numbers.
    pub(crate) fn is_one_integer(&self, schema: &Schema) -> bool {
        matches!(&*self.columns, [column] if is_integer(schema, *column))
    }

    /// The KISS-Tree of keys that are whole numbers, where it is whole, which it is for this caller as long as the epoch is pinned.
    #[inline]
    pub(crate) fn kiss<'g>(&'g self, guard: &'g Guard) -> Option<&'g KissIndex> {
        if self.index.blocks(guard).is_some() { None } else { self.index.entries().kiss() }
    }

    /// The newest record of each key that is in memory, all keys being looked up at a time.
    pub(crate) fn newest(&self, guard: &Guard, keys: &[IndexKey]) -> Vec<Option<Rid>> {
        self.index.entries().newest(guard, keys)
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.index.bytes()
    }

    /// Removes an entry.
    pub(crate) fn remove(&self, key: &IndexKey, rid: Rid) {
        self.index.entries().remove(key, rid);
    }
}

fn is_integer(schema: &Schema, column: usize) -> bool {
    schema.columns()[column].data_type.is_integer()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Column, DataType};

    #[test]
    fn different_rows_have_different_keys() {
        let columns = ["a", "b", "c"].map(|name| Column::new(name, DataType::TEXT)).to_vec();
        let schema = Schema::new(columns, &["a", "c"]).unwrap();
        let primary_key = PrimaryKey::new("t", &schema).unwrap().unwrap();
        let key = |a: &'static str, c: &'static str| {
            let row = [Cell::Bytes(a.as_bytes()), Cell::Null, Cell::Bytes(c.as_bytes())];
            primary_key.key_of_row(|column| row[column])
        };
        assert_eq!(key("x", "y"), key("x", "y"));
        assert_ne!(key("x", "yz"), key("xy", "z"));
        assert_ne!(key("", "x"), key("x", ""));
    }

    #[test]
    fn an_index_is_counted_again_once_it_has_grown_by_an_eighth() {
        let schema = Schema::new(vec![Column::new("a", DataType::TEXT)], &["a"]).unwrap();
        let primary_key = PrimaryKey::new("t", &schema).unwrap().unwrap();
        let index = &primary_key.index;
        let enter = |numbers: std::ops::Range<usize>| {
            for number in numbers {
                let text = format!("a key of more than a few bytes: {number}");
                let key = primary_key.key_of_row(|_| Cell::Bytes(text.as_bytes()));
                assert_eq!(index.entries().insert_new(&[key], Rid::base(0, number)), 1);
            }
        };
        enter(0..800);
        let bytes = index.bytes() as u64;
        assert_eq!(index.count(800), (bytes, 0));
        enter(800..900);
        assert_eq!(index.count(900), (bytes, 0), "an eighth more at most is not counted");
        enter(900..1_000);
        let grown = index.bytes() as u64;
        assert_eq!((index.count(1_000), grown > bytes), ((grown, 0), true));
        enter(1_000..1_050);
        index.charge(&lineage::MemoryBudget::default(), 50);
        assert_eq!(index.count(1_050), (index.bytes() as u64, 50), "what was charged meanwhile is in the count");
    }
}
