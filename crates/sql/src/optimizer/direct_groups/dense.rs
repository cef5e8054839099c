//! Groups by one key of integers or dates: a key is the place of its group's number in a table.
//!
//! ```text
//! key     ..... page .....|.. within ..        pages     n: the n-th stretch of the table    FAR + n: n keys, in the map
//!               │              │               table     4096 numbers a stretch, 0: no group yet
//!               └─▶ pages ─────┴─▶ table
//! ```
//!
//! Nothing is hashed or compared, and keys that come in about the order of their values are in the cache. The pages reach around the
//! first key; keys beyond them are in a map. So are those of a page, but for the first pages, until they are enough for a stretch.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Date32Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::DataType;

/// The numbers of a page.
const PAGE: usize = 1 << 12;
/// How many pages there are.
const PAGES: usize = 1 << 14;
/// The bit of a page whose keys are in the map.
const FAR: u32 = 1 << 31;
/// So many keys of a page get a stretch of the table.
const KEYS_OF_STRETCH: u32 = 128;
/// So many pages get one with their first key.
const STRETCHES_FREE: usize = 16;

/// Numbers groups by a key.
pub(super) struct DenseKeys {
    data_type: DataType,
    /// the page of the first key; `None` before it
    middle: Option<i64>,
    pages: Vec<u32>,
    table: Vec<u32>,
    far: HashMap<i64, u32, foldhash::fast::FixedState>,
    /// by group; of the group of NULL anything
    keys: Vec<i64>,
    null_group: Option<usize>,
}

impl DenseKeys {
    /// Whether groups of keys of this type are numbered in this way.
    pub(super) fn takes(data_type: &DataType) -> bool {
        matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
    }

    pub(super) fn new(data_type: DataType) -> DenseKeys {
        DenseKeys {
            data_type,
            middle: None,
            pages: Vec::new(),
            table: Vec::new(),
            far: HashMap::default(),
            keys: Vec::new(),
            null_group: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The bytes that it takes.
    pub(super) fn size(&self) -> usize {
        let words = self.pages.capacity() + self.table.capacity();
        words * size_of::<u32>() + self.keys.capacity() * size_of::<i64>() + self.far.capacity() * 16
    }

    /// Appends the group of each row.
    pub(super) fn number(&mut self, column: &ArrayRef, groups: &mut Vec<usize>) {
        match self.data_type {
            DataType::Int16 => self.number_all(column.as_primitive::<Int16Type>(), groups),
            DataType::Int32 => self.number_all(column.as_primitive::<Int32Type>(), groups),
            DataType::Int64 => self.number_all(column.as_primitive::<Int64Type>(), groups),
            _ => self.number_all(column.as_primitive::<Date32Type>(), groups),
        }
    }

    fn number_all<T: ArrowPrimitiveType>(&mut self, column: &PrimitiveArray<T>, groups: &mut Vec<usize>)
    where
        T::Native: Into<i64>,
    {
        if column.null_count() == 0 {
            groups.extend(column.values().iter().map(|key| self.group((*key).into())));
            return;
        }
        groups.extend(column.iter().map(|key| match key {
            Some(key) => self.group(key.into()),
            None => self.null_group(),
        }));
    }

    #[inline]
    fn group(&mut self, key: i64) -> usize {
        let page = key >> PAGE.trailing_zeros();
        let middle = self.middle.unwrap_or(page);
        let at = page.wrapping_sub(middle).wrapping_add(PAGES as i64 / 2) as usize;
        if let Some(stretch) = self.pages.get(at).copied()
            && stretch != 0
            && stretch & FAR == 0
        {
            let place = (stretch as usize - 1) * PAGE + (key & (PAGE as i64 - 1)) as usize;
            let known = self.table[place];
            if known != 0 {
                return known as usize - 1;
            }
            self.keys.push(key);
            self.table[place] = self.keys.len() as u32;
            return self.keys.len() - 1;
        }
        self.group_of_new_page(key, at)
    }

    /// The group of a key whose page has no stretch of the table.
    #[cold]
    fn group_of_new_page(&mut self, key: i64, at: usize) -> usize {
        if self.middle.is_none() {
            self.middle = Some(key >> PAGE.trailing_zeros());
            self.pages = vec![0; PAGES];
        }
        let page = self.pages.get(at).copied();
        if page == Some(0) && self.table.len() < STRETCHES_FREE * PAGE {
            self.give_stretch(key, at);
            return self.group(key);
        }
        let next = self.keys.len();
        let group = *self.far.entry(key).or_insert(next as u32) as usize;
        if group == next {
            self.keys.push(key);
            match page {
                Some(page) if page & !FAR == KEYS_OF_STRETCH => self.give_stretch(key, at),
                Some(page) => self.pages[at] = FAR | ((page & !FAR) + 1),
                None => {}
            }
        }
        group
    }

    /// Makes a stretch of the table for the page of a key, with the keys that are in the map so far.
    fn give_stretch(&mut self, key: i64, at: usize) {
        let start = self.table.len();
        self.table.resize(start + PAGE, 0);
        if self.pages[at] != 0 {
            let first = key & !(PAGE as i64 - 1);
            for (key, known) in (first..=first + (PAGE as i64 - 1)).zip(&mut self.table[start..]) {
                *known = self.far.remove(&key).map_or(0, |group| group + 1);
            }
        }
        self.pages[at] = (self.table.len() / PAGE) as u32;
    }

    fn null_group(&mut self) -> usize {
        *self.null_group.get_or_insert_with(|| {
            self.keys.push(0);
            self.keys.len() - 1
        })
    }

    /// The keys by group; it has no groups any more.
    pub(super) fn take(&mut self) -> ArrayRef {
        let taken = std::mem::replace(self, DenseKeys::new(self.data_type.clone()));
        match taken.data_type {
            DataType::Int16 => taken.array::<Int16Type>(|key| key as i16),
            DataType::Int32 => taken.array::<Int32Type>(|key| key as i32),
            DataType::Int64 => taken.array::<Int64Type>(|key| key),
            _ => taken.array::<Date32Type>(|key| key as i32),
        }
    }

    fn array<T: ArrowPrimitiveType>(self, native: impl Fn(i64) -> T::Native) -> ArrayRef {
        let null = self.null_group;
        match null {
            None => Arc::new(PrimitiveArray::<T>::from_iter_values(self.keys.into_iter().map(native))),
            Some(_) => {
                let keys = self.keys.into_iter().enumerate();
                let keys = keys.map(|(group, key)| (null != Some(group)).then(|| native(key)));
                Arc::new(keys.collect::<PrimitiveArray<T>>())
            }
        }
    }
}
