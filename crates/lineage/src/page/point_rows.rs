//! Point rows: the values of a range's base pages once more, row by row, for readers by key.
//!
//! A reader by key wants a few columns of one record. In base pages these are as many cache lines, and at low contention the wait
//! for them is most of a short transaction. So a range whose base records are often read by key gets its values a second time,
//! those of a record side by side, each where the number of its column says:
//!
//! ```text
//! base pages   column a: | 4 bytes | 4 bytes | ...      point rows   slot 0: | a | b | c |
//!              column b: | 2 bytes | 2 bytes | ...                   slot 1: | a | b | c |
//!              column c: | 4 bytes | 4 bytes | ...                   ...
//!
//! narrow: distances of 4 bytes from the bases of the pages, if these take no more      wide: words of 8 bytes
//! ```
//!
//! Scans go on with the columns. The rows are derived: no file has them, and they are the first to go where memory is
//! short. They belong to the pages from which they were made, so what a reader finds in them is what it would find in
//! these; a merge that makes new pages takes over the rows and puts the merged records anew, if somebody has read them since the
//! merge before.
//!
//! Columns are there whose values are found by slot (see `flat`): whole numbers, dates and times without NULL. The others are read
//! from their pages.
use std::sync::Arc;

use sync::atomic::{AtomicBool, Ordering};
use sync::{EpochCell, Guard};

use crate::memory::budget::{Charge, MemoryKind, Meter};
use crate::memory::clock::{End, Evict, Turn};
use crate::memory::flat::Flat;
use crate::value::column_set::{WORD_COLUMNS, columns_of};

/// A range gets point rows once readers by key have looked at one base record for every so many that it has, since it was last
/// merged.
const RECORDS_A_READ: usize = 8;

/// Looks at the records in one of so many slots are counted for that, and no others, so that readers seldom write.
pub(crate) const SAMPLED: usize = 64;

/// The values of smaller ranges lie close together as they are. Tests and models have small ranges.
const RECORDS_MIN: usize = if cfg!(any(test, shuttle)) { 1 } else { 1 << 9 };

/// Rows of which a column is put at a time, so that they stay in the processor's cache.
const AT_ONCE: usize = 256;

/// See the module.
pub(crate) struct PointRows {
    /// the columns that are here, of the first 64, a bit each
    mask: u64,
    /// of each column, what is added to its distance
    bases: Box<[u64]>,
    /// `None` once they were evicted
    values: EpochCell<Option<RowValues>>,
    /// Whether a row was read since this was last asked.
    is_recent: AtomicBool,
    meter: Arc<Meter>,
}

struct RowValues {
    distances: Distances,
    charge: Charge,
}

/// All rows, one behind the other, with a place for each column.
#[derive(Clone)]
enum Distances {
    Narrow(Box<[u32]>),
    Wide(Box<[u64]>),
}

/// One row.
#[derive(Clone, Copy)]
pub(crate) enum PointRow<'g> {
    Narrow(Row<'g, u32>),
    Wide(Row<'g, u64>),
}

/// Distances, to each of which its base is added: as many of both.
#[derive(Clone, Copy)]
pub(crate) struct Row<'g, T> {
    distances: &'g [T],
    bases: &'g [u64],
}

/// The most bytes of a narrow distance.
const NARROW: usize = size_of::<u32>();

/// Whether a range of so many records is worth its point rows after so many reads that were counted.
pub(crate) fn are_worthwhile(records: usize, counted: usize) -> bool {
    records >= RECORDS_MIN && counted > records / SAMPLED / RECORDS_A_READ
}

impl PointRows {
    /// The rows of a range with so many records and these values, a `None` for a column that is not found by slot. `None`
    /// if there are not two that are, or memory is short.
    pub(crate) fn build(flat: &[Option<Flat<'_>>], records: usize, meter: &Arc<Meter>) -> Option<Arc<PointRows>> {
        let shape = Shape::of(flat, records)?;
        let len = records * flat.len();
        if !meter.budget().has_room_for_copies((len * shape.width) as u64) {
            return None;
        }
        let distances = match shape.width {
            NARROW => Distances::Narrow(built(flat, shape.mask, len, |distance| distance as u32)),
            _ => Distances::Wide(built(flat, shape.mask, len, |distance| distance)),
        };
        Some(PointRows::new(shape, distances, meter))
    }

    /// The rows with those at some slots anew. `None` where the values have other bases now, or memory is short.
    pub(crate) fn patched(
        &self,
        guard: &Guard,
        flat: &[Option<Flat<'_>>],
        slots: impl Iterator<Item = usize>,
    ) -> Option<Arc<PointRows>> {
        let RowValues { distances, charge } = self.values.load(guard).as_ref()?;
        let shape = Shape::of(flat, distances.len() / self.bases.len())?;
        let is_same = shape.mask == self.mask && shape.bases == self.bases && shape.width == distances.width();
        if !is_same || !self.meter.budget().has_room_for_copies(charge.bytes()) {
            return None;
        }
        let mut distances = distances.clone();
        match &mut distances {
            Distances::Narrow(values) => patch(values, flat, shape.mask, slots, |distance| distance as u32),
            Distances::Wide(values) => patch(values, flat, shape.mask, slots, |distance| distance),
        }
        Some(PointRows::new(shape, distances, &self.meter))
    }

    fn new(shape: Shape, distances: Distances, meter: &Arc<Meter>) -> Arc<PointRows> {
        let charge = Charge::new(meter, MemoryKind::Base, distances.len() * distances.width());
        let rows = Arc::new(PointRows {
            mask: shape.mask,
            bases: shape.bases,
            values: EpochCell::new(Some(RowValues { distances, charge })),
            is_recent: AtomicBool::new(false),
            meter: meter.clone(),
        });
        let entry: std::sync::Weak<PointRows> = Arc::downgrade(&rows);
        meter.budget().clock().enter(entry, End::Front);
        rows
    }

    /// The row at `slot`, for a reader by key, whose use counts; it has the `columns`, a bit each. `None` where these are not all
    /// here, or the rows were evicted.
    #[inline(always)]
    pub(crate) fn row<'g>(&'g self, guard: &'g Guard, slot: usize, columns: u64) -> Option<PointRow<'g>> {
        if columns & !self.mask != 0 {
            return None;
        }
        let width = self.bases.len();
        let row = match &self.values.load(guard).as_ref()?.distances {
            Distances::Narrow(values) => PointRow::Narrow(Row::new(values, slot * width, &self.bases)?),
            Distances::Wide(values) => PointRow::Wide(Row::new(values, slot * width, &self.bases)?),
        };
        if !self.is_recent.load(Ordering::Relaxed) {
            self.is_recent.store(true, Ordering::Relaxed);
        }
        Some(row)
    }

    /// Whether a row was read since this was last asked.
    pub(crate) fn take_recent(&self) -> bool {
        self.is_recent.swap(false, Ordering::Relaxed)
    }
}

impl PointRow<'_> {
    /// The value of a column that is here.
    ///
    /// # Safety
    /// The row was asked for with this column.
    #[inline]
    pub(crate) unsafe fn word_unchecked(self, column: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                PointRow::Narrow(row) => row.word_unchecked(column),
                PointRow::Wide(row) => row.word_unchecked(column),
            }
        }
    }

    /// Asks for its memory.
    #[inline(always)]
    pub(crate) fn prefetch(self) {
        match self {
            PointRow::Narrow(row) => row.prefetch(),
            PointRow::Wide(row) => row.prefetch(),
        }
    }
}

impl<'g, T: Copy + Into<u64>> Row<'g, T> {
    /// The row that begins at this place; `None` where the values end before it does.
    #[inline(always)]
    fn new(values: &'g [T], first: usize, bases: &'g [u64]) -> Option<Self> {
        Some(Row { distances: values.get(first..first + bases.len())?, bases })
    }

    /// The value of a column that is here.
    ///
    /// # Safety
    /// The row was asked for with this column.
    #[inline(always)]
    pub(crate) unsafe fn word_unchecked(self, column: usize) -> u64 {
        debug_assert!(column < self.bases.len() && self.bases.len() == self.distances.len());
        // SAFETY: `Shape` marks as being here what is a column, and there are as many distances and bases as columns.
        unsafe { self.bases.get_unchecked(column).wrapping_add((*self.distances.get_unchecked(column)).into()) }
    }

    #[inline(always)]
    fn prefetch(self) {
        sync::prefetch(self.distances.as_ptr());
        sync::prefetch(self.distances.as_ptr().wrapping_add(self.distances.len()).wrapping_sub(1));
    }
}

impl Distances {
    fn len(&self) -> usize {
        match self {
            Distances::Narrow(values) => values.len(),
            Distances::Wide(values) => values.len(),
        }
    }

    /// Bytes of each.
    fn width(&self) -> usize {
        match self {
            Distances::Narrow(_) => NARROW,
            Distances::Wide(_) => size_of::<u64>(),
        }
    }
}

/// Rows of so many values in all, with those of the columns in `mask` at their places.
fn built<T: Copy + Default>(flat: &[Option<Flat<'_>>], mask: u64, len: usize, value: impl Fn(u64) -> T) -> Box<[T]> {
    let mut values = vec![T::default(); len].into_boxed_slice();
    let width = flat.len();
    for (at, rows) in values.chunks_mut(width * AT_ONCE).enumerate() {
        for (column, flat) in columns_in(flat, mask) {
            for (row, distance) in rows.chunks_exact_mut(width).zip(flat.from(at * AT_ONCE)) {
                row[column] = value(distance);
            }
        }
    }
    values
}

fn patch<T>(
    values: &mut [T],
    flat: &[Option<Flat<'_>>],
    mask: u64,
    slots: impl Iterator<Item = usize>,
    value: impl Fn(u64) -> T,
) {
    let width = flat.len();
    for slot in slots {
        let row = &mut values[slot * width..][..width];
        for (column, flat) in columns_in(flat, mask) {
            if let Some(distance) = flat.distance(slot) {
                row[column] = value(distance);
            }
        }
    }
}

fn columns_in<'f>(flat: &[Option<Flat<'f>>], mask: u64) -> impl Iterator<Item = (usize, Flat<'f>)> {
    columns_of(mask).filter_map(|column| Some((column, flat[column]?)))
}

/// How the rows of some columns are laid out.
struct Shape {
    mask: u64,
    bases: Box<[u64]>,
    /// bytes of a distance
    width: usize,
}

impl Shape {
    /// That of the columns that are found by slot, of a range with so many records.
    fn of(flat: &[Option<Flat<'_>>], records: usize) -> Option<Shape> {
        let is_there = |flat: &Option<Flat<'_>>| flat.is_some_and(|flat| flat.len() >= records);
        let mask = flat
            .iter()
            .take(WORD_COLUMNS)
            .enumerate()
            .fold(0, |mask, (column, flat)| mask | u64::from(is_there(flat)) << column);
        if records == 0 || mask.count_ones() < 2 {
            return None;
        }
        let bases = flat.iter().map(|flat| flat.map_or(0, |flat| flat.base)).collect();
        let is_narrow = columns_in(flat, mask).all(|(_, flat)| flat.bytes <= NARROW);
        Some(Shape { mask, bases, width: if is_narrow { NARROW } else { size_of::<u64>() } })
    }
}

impl Evict for PointRows {
    fn try_evict(&self) -> Turn {
        if self.take_recent() {
            return Turn::Recent;
        }
        let guard = &sync::pin();
        let Some(values) = self.values.load(guard) else { return Turn::Away };
        let bytes = values.charge.bytes();
        values.charge.retire();
        self.values.replace(None, guard);
        Turn::Evicted(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::budget::MemoryBudget;

    fn bytes_of(values: &[u64], width: usize) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()[..width].to_vec()).collect()
    }

    /// Values of a column, and their bytes in a page.
    type Column = (Vec<u64>, Vec<u8>);

    fn column(seed: u64, width: usize) -> Column {
        let mask = u64::MAX >> (64 - 8 * width);
        let values: Vec<u64> =
            (0..700_u64).map(|slot| (slot + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
        let bytes = bytes_of(&values, width);
        (values, bytes)
    }

    /// Columns as pages show them; the one at 3 is not found by slot.
    fn flat_of<'a>(columns: &'a [Column], widths: &[usize], base: u64) -> Vec<Option<Flat<'a>>> {
        let flat = |at: usize| Flat { words: &columns[at].1, base: base * at as u64, bytes: widths[at] };
        (0..columns.len()).map(|at| (at != 3).then(|| flat(at))).collect()
    }

    fn expect_rows(widths: [usize; 5]) {
        let (meter, guard) = (Meter::new(Arc::default()), &sync::pin());
        let made = |seed: u64| widths.iter().zip(seed..).map(|(width, seed)| column(seed, *width)).collect::<Vec<_>>();
        let (before, after) = (made(0), made(7));
        let rows = PointRows::build(&flat_of(&before, &widths, 7), 700, &meter).unwrap();
        let wide = widths.contains(&8);
        assert_eq!(meter.used().base_bytes, 700 * 5 * if wide { 8 } else { 4 });
        let expect = |rows: &PointRows, slot: usize, columns: &[Column]| {
            let row = rows.row(guard, slot, 0b10111).unwrap();
            for at in [0, 1, 2, 4] {
                // SAFETY: the row was asked for with these columns.
                let word = unsafe { row.word_unchecked(at) };
                assert_eq!(word, (7 * at as u64).wrapping_add(columns[at].0[slot]), "column {at} at {slot}");
            }
        };
        (0..700).for_each(|slot| expect(&rows, slot, &before));
        assert!(rows.row(guard, 700, 1).is_none() && rows.row(guard, 0, 0b1000).is_none());
        let patched = rows.patched(guard, &flat_of(&after, &widths, 7), [3, 699].into_iter()).unwrap();
        (0..700).for_each(|slot| expect(&patched, slot, if matches!(slot, 3 | 699) { &after } else { &before }));
        assert!(
            rows.patched(guard, &flat_of(&after, &widths, 8), [3].into_iter()).is_none(),
            "distances from other bases"
        );
    }

    #[test]
    fn rows_have_the_values_of_all_widths() {
        expect_rows([1, 4, 2, 1, 4]);
        expect_rows([1, 8, 2, 1, 4]);
    }

    #[test]
    fn rows_are_evicted_once_nobody_reads_them() {
        let (budget, guard) = (Arc::new(MemoryBudget::default()), &sync::pin());
        let meter = Meter::new(budget.clone());
        let flat = [Some(Flat { words: &[1; 80], base: 0, bytes: 8 }); 2];
        let rows = PointRows::build(&flat, 10, &meter).unwrap();
        assert!(rows.row(guard, 9, 3).is_some());
        assert_eq!(rows.try_evict(), Turn::Recent);
        assert_eq!(rows.try_evict(), Turn::Evicted(160));
        assert!(rows.row(guard, 9, 3).is_none() && rows.patched(guard, &flat, [1].into_iter()).is_none());
        assert_eq!(rows.try_evict(), Turn::Away);
        budget.set_limit_bytes(1 << 10);
        assert!(PointRows::build(&flat, 10, &meter).is_some());
        budget.set_limit_bytes(300);
        assert!(PointRows::build(&flat, 10, &meter).is_none(), "more than may be used for copies");
        assert!(PointRows::build(&flat[..1], 10, &meter).is_none(), "one column lies together as it is");
    }
}
