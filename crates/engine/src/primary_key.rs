//! Primary keys: how a key is made of a row's cells, where it is indexed, and who has it.
//!
//! A key of one or two columns that fit a word each is these words; any other is a byte string.
use index::{HashIndex, Holder, WordIndex};
use lineage::{Cell, word_of_value};
use sync::Guard;
use types::{DataType, Rid, Schema, Value};

/// A primary key's value in the form that the index hashes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    One([u64; 1]),
    Two([u64; 2]),
    Bytes(Box<[u8]>),
}

/// The index of a table's primary key.
pub(crate) struct PrimaryKey {
    /// the key's columns, in key order
    pub(crate) columns: Box<[usize]>,
    /// a bit for each of them, those beyond the bits of the word sharing some
    bits: u64,
    one: WordIndex<1>,
    two: WordIndex<2>,
    bytes: HashIndex<Box<[u8]>>,
}

impl PrimaryKey {
    /// The index for a schema that has a primary key.
    pub(crate) fn new(schema: &Schema) -> Option<PrimaryKey> {
        let columns = schema.primary_key();
        (!columns.is_empty()).then(|| PrimaryKey {
            columns: columns.into(),
            bits: columns.iter().fold(0, |bits, column| bits | 1 << (column % 64)),
            one: WordIndex::new(),
            two: WordIndex::new(),
            bytes: HashIndex::new(),
        })
    }

    /// Whether one of these columns is one of the key's.
    #[inline]
    pub(crate) fn is_among(&self, mut columns: impl Iterator<Item = usize> + Clone) -> bool {
        let bits = columns.clone().fold(0, |bits, column| bits | 1 << (column % 64));
        self.bits & bits != 0 && columns.any(|column| self.columns.contains(&column))
    }

    /// The key made of these cells, which come in key order and are not NULL.
    pub(crate) fn key(&self, cells: &[Cell<'_>]) -> Key {
        debug_assert_eq!(cells.len(), self.columns.len());
        match *cells {
            [Cell::Word(word)] => Key::One([word]),
            [Cell::Word(first), Cell::Word(second)] => Key::Two([first, second]),
            _ => Key::Bytes(cells.iter().flat_map(bytes_of_cell).collect()),
        }
    }

    /// The key made of these values, if each has exactly its column's type and is stored as a word: the common case.
    #[inline]
    pub(crate) fn key_of_words(&self, schema: &Schema, values: &[Value]) -> Option<Key> {
        if let ([Value::BigInt(value)], [column]) = (values, &*self.columns)
            && schema.columns()[*column].data_type == DataType::BigInt
        {
            return Some(Key::One([*value as u64]));
        }
        let word = |i: usize| word_of_value(&values[i], schema.columns()[self.columns[i]].data_type);
        match self.columns.len() {
            1 => Some(Key::One([word(0)?])),
            2 => Some(Key::Two([word(0)?, word(1)?])),
            _ => None,
        }
    }

    /// The key of a whole row.
    pub(crate) fn key_of_row(&self, row: &[Cell<'_>]) -> Key {
        let cells: smallvec::SmallVec<[Cell<'_>; 4]> = self.columns.iter().map(|column| row[*column]).collect();
        self.key(&cells)
    }

    /// The first record, newest first, that had the key at some time and for which `accept` returns something.
    #[inline]
    pub(crate) fn find<T>(&self, guard: &Guard, key: &Key, accept: impl FnMut(Rid) -> Option<T>) -> Option<T> {
        match key {
            Key::One(key) => self.one.find(guard, key, accept),
            Key::Two(key) => self.two.find(guard, key, accept),
            Key::Bytes(key) => self.bytes.find(key, accept),
        }
    }

    /// Asks for the memory in which the key's entry is.
    pub(crate) fn prefetch(&self, guard: &Guard, key: &Key) {
        match key {
            Key::One(key) => self.one.prefetch(guard, key),
            Key::Two(key) => self.two.prefetch(guard, key),
            Key::Bytes(_) => {}
        }
    }

    /// Bytes of memory, those of long keys estimated.
    pub(crate) fn bytes(&self) -> usize {
        /// What an entry of a byte string takes with its list of Rids, as measured.
        const ENTRY_BYTES: usize = 120;
        self.one.bytes() + self.two.bytes() + self.bytes.len() * ENTRY_BYTES
    }

    /// See [`HashIndex::insert_unique`].
    pub(crate) fn insert_unique(&self, key: Key, rid: Rid, holder: impl FnMut(Rid) -> Holder) -> Result<(), Rid> {
        match key {
            Key::One(key) => self.one.insert_unique(&key, rid, holder),
            Key::Two(key) => self.two.insert_unique(&key, rid, holder),
            Key::Bytes(key) => self.bytes.insert_unique(key, rid, holder),
        }
    }

    /// Adds an entry, whoever else has the key.
    pub(crate) fn insert(&self, key: Key, rid: Rid) {
        match key {
            Key::One(key) => self.one.insert(&key, rid),
            Key::Two(key) => self.two.insert(&key, rid),
            Key::Bytes(key) => self.bytes.insert(key, rid),
        }
    }

    /// Passes on every key with the records that it lists.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&Key, &[Rid])) {
        self.one.for_each(|key, rids| visit(&Key::One(*key), rids));
        self.two.for_each(|key, rids| visit(&Key::Two(*key), rids));
        self.bytes.for_each(|key, rids| visit(&Key::Bytes(key.clone()), rids));
    }

    /// Removes an entry.
    pub(crate) fn remove(&self, key: &Key, rid: Rid) {
        match key {
            Key::One(key) => self.one.remove(key, rid),
            Key::Two(key) => self.two.remove(key, rid),
            Key::Bytes(key) => self.bytes.remove(key, rid),
        }
    }
}

/// A cell's bytes with their length in front, so that no two lists of cells have the same bytes.
fn bytes_of_cell(cell: &Cell<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    match cell {
        Cell::Null => bytes.push(0),
        Cell::Word(word) => {
            bytes.push(1);
            bytes.extend(word.to_le_bytes());
        }
        Cell::Bytes(value) => {
            bytes.push(2);
            bytes.extend((value.len() as u32).to_le_bytes());
            bytes.extend(*value);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Column;

    #[test]
    fn different_rows_have_different_keys() {
        let columns = ["a", "b", "c"].map(|name| Column::new(name, DataType::TEXT)).to_vec();
        let schema = Schema::new(columns, &["a", "c"]).unwrap();
        let primary_key = PrimaryKey::new(&schema).unwrap();
        let key = |a: &'static str, c: &'static str| {
            primary_key.key_of_row(&[Cell::Bytes(a.as_bytes()), Cell::Null, Cell::Bytes(c.as_bytes())])
        };
        assert_eq!(key("x", "y"), key("x", "y"));
        assert_ne!(key("x", "yz"), key("xy", "z"));
        assert_ne!(key("", "x"), key("x", ""));
    }
}
