//! Columns of tables that stay on a device: which base pages lie where, and what is left out when there is no room.
//!
//! ```text
//! table ── places: range 0 │ range 1 │ range 3 │ ...      the same rows in every column
//!            column g      │   ▓▓▓   │   ▓▓▓   │   ░░░   │      ▓ the page that the reader has   ░ an older one: brought anew
//!            column v      │   ▓▓▓   │   ▓▓▓   │   ▓▓▓   │
//! ```
//!
//! A base page never changes, and its id tells it from all others. So a reader uses what lies there of its own pages, whatever was merged
//! since, and brings what is missing. It holds the table's lock from the look at the pages until the device has answered. Rows that are
//! not in base pages are none of this.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{BasePage, BasePageId, BaseRowSet};

use super::{Coprocessor, DeviceColumn, DeviceError};

/// Rows of a table begin at multiples of this, so that bits of theirs are whole words.
const WORD_ROWS: usize = 64;

/// Room for ranges to come, by hundred of the rows that there are.
const ROOM_PERCENT: usize = 125;

/// Bytes of a value.
const VALUE_BYTES: u64 = 8;

/// The values of a base page, and the slots with NULL, in order.
pub(crate) type PageNumbers = (Vec<i64>, Vec<u32>);

/// A table, by its number, and its name, which views tell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableKey {
    pub(crate) id: u32,
    pub(crate) name: String,
}

/// A column that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Its place in the table.
    pub(crate) column: usize,
    /// Its name.
    pub(crate) name: Arc<str>,
    /// The place of its page among those of a range.
    pub(crate) page: usize,
}

/// A range of a table as a reader sees it.
pub(crate) struct RangeRows {
    pub(crate) range: usize,
    pub(crate) base: BaseRowSet,
}

/// One column of a table, or one index by its name, which has no ranges, as views tell it.
#[derive(Clone, Debug)]
pub(crate) struct Resident {
    pub(crate) table: String,
    pub(crate) column: String,
    pub(crate) ranges: u64,
    pub(crate) bytes: u64,
    pub(crate) uses: u64,
}

/// All columns on a device.
#[derive(Debug, Default)]
pub(crate) struct Residents {
    tables: Mutex<HashMap<TableKey, Arc<Mutex<TableColumns>>>>,
    /// So many uses there were: the time of what was used last.
    clock: AtomicU64,
    bytes: AtomicU64,
}

/// The columns of one table.
#[derive(Debug, Default)]
pub(crate) struct TableColumns {
    places: HashMap<usize, Place>,
    /// Rows that have a place, and for which there is room.
    rows: usize,
    capacity: usize,
    columns: HashMap<usize, ColumnOnDevice>,
    last_used: u64,
    /// The columns of queries that were asked for before, a bit each.
    asked: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    first: usize,
    slots: usize,
}

#[derive(Debug)]
struct ColumnOnDevice {
    name: Arc<str>,
    memory: Box<dyn DeviceColumn>,
    pages: HashMap<usize, PageOnDevice>,
    uses: u64,
}

/// A base page on the device.
struct PageOnDevice {
    id: BasePageId,
    min: i64,
    max: i64,
    nulls: Vec<u32>,
}

impl std::fmt::Debug for PageOnDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageOnDevice").field("min", &self.min).field("max", &self.max).finish_non_exhaustive()
    }
}

/// What a reader finds on the device.
#[derive(Debug)]
pub(crate) struct Found {
    /// Rows from the first to the last place, whether they count or not.
    pub(crate) rows: usize,
    /// The rows that count, a bit each.
    pub(crate) bits: Vec<u64>,
    /// How many they are.
    pub(crate) count: usize,
    /// The smallest and largest value of each column that was asked for.
    pub(crate) spans: Vec<(i64, i64)>,
    /// The reader's ranges that are there; all others it has to bring itself.
    pub(crate) are_there: Vec<bool>,
    /// Values that were brought.
    pub(crate) brought: u64,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Residents {
    /// The columns of a table, to be locked while the device works on them.
    pub(crate) fn table(&self, key: &TableKey) -> Arc<Mutex<TableColumns>> {
        if let Some(table) = lock(&self.tables).get(key) {
            return table.clone();
        }
        // It may be there in the place of one that was dropped.
        self.give_up(0);
        lock(&self.tables).entry(key.clone()).or_default().clone()
    }

    /// Bytes of the device's memory that all columns take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What there is, as views tell it; tables that are in use are left out.
    pub(crate) fn all(&self) -> Vec<Resident> {
        let tables: Vec<_> = lock(&self.tables).iter().map(|(key, table)| (key.clone(), table.clone())).collect();
        let mut all = Vec::new();
        for (key, table) in tables {
            let Ok(table) = table.try_lock() else { continue };
            let bytes = table.capacity as u64 * VALUE_BYTES;
            all.extend(table.columns.values().map(|of| Resident {
                table: key.name.clone(),
                column: of.name.to_string(),
                ranges: of.pages.len() as u64,
                bytes,
                uses: of.uses,
            }));
        }
        all
    }

    /// Notes that these columns are asked for; whether they were before, so that it is likely to pay to bring them.
    pub(crate) fn is_asked_again(&self, key: &TableKey, columns: &[usize]) -> bool {
        let table = self.table(key);
        // The statement that holds it has asked, too.
        let Ok(mut table) = table.try_lock() else { return true };
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        let is_known = table.asked.contains(&columns);
        if !is_known {
            table.asked.push(columns);
        }
        is_known
    }

    /// Gives up columns that were used longest ago until so many bytes are free or nothing is left that nobody uses; tables of which
    /// all pages have gone go in any case.
    pub(crate) fn give_up(&self, mut bytes: u64) {
        let mut tables: Vec<_> = lock(&self.tables).values().cloned().collect();
        tables.sort_by_cached_key(|table| table.try_lock().map_or(u64::MAX, |table| table.last_used));
        for table in tables {
            let Ok(mut table) = table.try_lock() else { continue };
            if bytes > 0 || table.is_gone() {
                let freed = table.clear();
                self.bytes.fetch_sub(freed, Ordering::Relaxed);
                bytes = bytes.saturating_sub(freed);
            }
        }
    }

    /// Has the columns of a reader's ranges on the device, and tells what is there. `numbers` makes numbers of a page, or says why it
    /// can't; `room` is asked for memory before it is taken.
    ///
    /// # Errors
    /// The device has no room, or does not answer.
    pub(crate) fn bring(
        &self,
        table: &mut TableColumns,
        device: &dyn Coprocessor,
        (ranges, columns): (&[RangeRows], &[Asked]),
        numbers: &dyn Fn(usize, &BasePage) -> Result<PageNumbers, String>,
        room: &dyn Fn(u64) -> Result<(), DeviceError>,
    ) -> Result<Found, DeviceError> {
        table.last_used = self.clock.fetch_add(1, Ordering::Relaxed);
        if !table.find_places(ranges) {
            self.bytes.fetch_sub(table.clear(), Ordering::Relaxed);
            table.find_places(ranges);
            table.capacity = (table.rows * ROOM_PERCENT / 100).next_multiple_of(WORD_ROWS);
        }
        for Asked { column, name, .. } in columns {
            if !table.columns.contains_key(column) {
                let bytes = table.capacity as u64 * VALUE_BYTES;
                room(bytes)?;
                let memory = device.column(table.capacity)?;
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
                let of = ColumnOnDevice { name: name.clone(), memory, pages: HashMap::new(), uses: 0 };
                table.columns.insert(*column, of);
            }
        }
        table.bring_pages(ranges, columns, numbers)
    }
}

impl TableColumns {
    /// The column of this number, which a reader has brought.
    pub(crate) fn column(&self, column: usize) -> Option<&dyn DeviceColumn> {
        self.columns.get(&column).map(|column| column.memory.as_ref())
    }

    /// How much of so many rows' columns is missing, of 1.
    pub(crate) fn missing(&self, columns: &[usize], ranges: u64) -> f64 {
        let here = |column: &usize| self.columns.get(column).map_or(0, |column| column.pages.len() as u64).min(ranges);
        let all = (ranges * columns.len() as u64).max(1);
        1.0 - columns.iter().map(here).sum::<u64>() as f64 / all as f64
    }

    fn is_gone(&self) -> bool {
        let mut pages = self.columns.values().flat_map(|column| column.pages.values());
        pages.all(|page| page.id.is_gone())
    }

    /// Forgets everything; how many bytes that frees.
    fn clear(&mut self) -> u64 {
        let bytes = self.columns.len() as u64 * self.capacity as u64 * VALUE_BYTES;
        self.columns.clear();
        self.places.clear();
        (self.rows, self.capacity) = (0, 0);
        bytes
    }

    /// Gives each range a place; `false` if there is no room for them all, or one has other slots than before.
    fn find_places(&mut self, ranges: &[RangeRows]) -> bool {
        for RangeRows { range, base } in ranges {
            match self.places.get(range) {
                Some(place) if place.slots != base.slots => return false,
                Some(_) => {}
                None => {
                    self.places.insert(*range, Place { first: self.rows, slots: base.slots });
                    self.rows += base.slots.next_multiple_of(WORD_ROWS);
                }
            }
        }
        self.rows <= self.capacity
    }

    fn bring_pages(
        &mut self,
        ranges: &[RangeRows],
        columns: &[Asked],
        numbers: &dyn Fn(usize, &BasePage) -> Result<PageNumbers, String>,
    ) -> Result<Found, DeviceError> {
        let mut found = Found {
            rows: self.rows,
            bits: vec![0; self.rows / WORD_ROWS],
            count: 0,
            spans: vec![(i64::MAX, i64::MIN); columns.len()],
            are_there: vec![true; ranges.len()],
            brought: 0,
        };
        for (RangeRows { range, base }, is_there) in ranges.iter().zip(&mut found.are_there) {
            let place = self.places[range];
            for (i, Asked { column, page, .. }) in columns.iter().enumerate() {
                let (Some(of), page) = (self.columns.get_mut(column), &base.pages[*page]) else { continue };
                if of.pages.get(range).is_none_or(|known| !known.id.is(page)) {
                    // What fails half way is not there.
                    of.pages.remove(range);
                    let Ok((values, nulls)) = numbers(i, page) else {
                        *is_there = false;
                        break;
                    };
                    debug_assert_eq!(values.len(), place.slots, "a value for each slot");
                    of.memory.write(place.first, &values)?;
                    found.brought += values.len() as u64;
                    of.pages.insert(*range, PageOnDevice::of(page.id(), &values, nulls));
                }
                *is_there &= of.pages[range].has_values_of(&base.rows);
            }
            if *is_there {
                let words = &mut found.bits[place.first / WORD_ROWS..];
                words[..base.rows.len()].copy_from_slice(&base.rows);
                found.count += base.rows.iter().map(|word| word.count_ones() as usize).sum::<usize>();
                for (span, Asked { column, .. }) in found.spans.iter_mut().zip(columns) {
                    let page = &self.columns[column].pages[range];
                    *span = (span.0.min(page.min), span.1.max(page.max));
                }
            }
        }
        let used = |asked: &Asked| asked.column;
        columns
            .iter()
            .map(used)
            .for_each(|column| self.columns.get_mut(&column).into_iter().for_each(|of| of.uses += 1));
        Ok(found)
    }
}

impl PageOnDevice {
    fn of(id: BasePageId, values: &[i64], nulls: Vec<u32>) -> PageOnDevice {
        let (mut min, mut max, mut next) = (i64::MAX, i64::MIN, nulls.iter().peekable());
        for (slot, value) in values.iter().enumerate() {
            if next.next_if(|null| **null as usize == slot).is_none() {
                (min, max) = (min.min(*value), max.max(*value));
            }
        }
        PageOnDevice { id, min, max, nulls }
    }

    /// Whether none of these rows is NULL.
    fn has_values_of(&self, rows: &[u64]) -> bool {
        self.nulls.iter().all(|slot| rows[*slot as usize / WORD_ROWS] >> (*slot as usize % WORD_ROWS) & 1 == 0)
    }
}
