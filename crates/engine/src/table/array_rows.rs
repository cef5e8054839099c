//! Reading the rows of an array table, in batches shaped as those of other tables.
//!
//! The id of a row is its key. A leaf is read at a time: first the rows that pass the tests, then column by column.
use arrow_array::RecordBatch;
use lineage::{Cell, ColumnStatistics, TableStatistics, TableStats, Test, Totals};
use types::{DataType, Rid, Schema, Value};

use crate::error::Result;
use crate::state::array::data::ArrayData;
use crate::state::array::image::{ArrayRows, LeafRows};
use crate::state::array::leaf::{LEAF_KEYS, slots};
use crate::state::table_data::{ScanOptions, TableData};
use crate::table::read_view::Sight;
use crate::table::{Rows, Table};

/// Leaves that are read into one batch: 8,192 rows at most.
const BATCH_LEAVES: usize = 8_192 / LEAF_KEYS;
/// Leaves that one thread takes at a time.
const RANGE_LEAVES: usize = 8 * BATCH_LEAVES;

/// How many parts a scan has.
pub(super) fn range_count(rows: &ArrayRows) -> usize {
    rows.leaf_count().div_ceil(RANGE_LEAVES)
}

/// The batches of one part of a scan.
pub(super) fn batches(table: &Table, rows: &ArrayRows, options: &ScanOptions, range: usize) -> Vec<RecordBatch> {
    let (first, end) = (range * RANGE_LEAVES, rows.leaf_count().min((range + 1) * RANGE_LEAVES));
    debug_assert!(first < end, "part {range} of a scan has no leaves");
    let mut batches = Vec::new();
    for start in (first..end).step_by(BATCH_LEAVES) {
        let mut found = Rows::new(table, options);
        (start..end.min(start + BATCH_LEAVES)).for_each(|leaf| found.push_leaf(table.schema(), &rows.leaf(leaf)));
        if found.len() > 0 {
            batches.push(found.finish(table.data.projection(options).schema));
        }
    }
    batches
}

impl Rows<'_> {
    /// Takes the rows of a leaf that pass the tests.
    fn push_leaf(&mut self, schema: &Schema, leaf: &LeafRows<'_>) {
        let passing = passing(schema, leaf, &self.options.tests);
        if passing == 0 {
            return;
        }
        for (builder, column) in self.builders.iter_mut().zip(&self.options.columns) {
            slots(passing).for_each(|slot| builder.push(leaf.cell(*column, slot)));
        }
        self.rids.extend(slots(passing).map(|slot| leaf.key(slot)));
    }
}

/// The rows of a leaf that pass some tests, as bits.
fn passing(schema: &Schema, leaf: &LeafRows<'_>, tests: &[(usize, Test)]) -> u64 {
    let mut passing = leaf.present;
    for (column, test) in tests {
        let data_type = schema.columns()[*column].data_type;
        let fails = |slot: &usize| !test.passes(leaf.cell(*column, *slot), data_type);
        passing = slots(passing).filter(fails).fold(passing, |passing, slot| passing & !(1 << slot));
    }
    debug_assert_eq!(passing & !leaf.present, 0, "rows that are not there");
    passing
}

/// Sizes as the planner asks for them.
pub(super) fn stats(array: &ArrayData) -> TableStats {
    TableStats {
        records: array.rows(),
        ranges: array.leaf_count().div_ceil(RANGE_LEAVES) as u64,
        ..TableStats::default()
    }
}

/// What the planner knows of the values: that keys differ, and about where they lie.
pub(super) fn statistics(array: &ArrayData, schema: &Schema) -> TableStatistics {
    let rows = array.rows();
    let last = (array.leaf_count() * LEAF_KEYS).saturating_sub(1) as u64;
    let mut columns = vec![ColumnStatistics { nulls: 0, min: None, max: None, distinct: rows }; schema.columns().len()];
    let key = array.shape.key();
    let bound = |word| lineage::value_of_cell(Cell::Word(word), schema.columns()[key].data_type);
    if rows > 0 {
        (columns[key].min, columns[key].max) = (Some(bound(0)), Some(bound(last.min(rows.saturating_mul(4)))));
    }
    debug_assert_eq!(columns.len(), schema.columns().len(), "statistics of each column");
    TableStatistics { rows, rows_merged: rows, columns }
}

impl TableData {
    /// The place in an array that a key means; `None` for one that no row has.
    ///
    /// # Errors
    /// As [`key_of_values`](Self::key_of_values).
    pub(crate) fn array_key(&self, key: &[Value]) -> Result<Option<u64>> {
        self.key_of_values(key)?;
        let whole = match key {
            [Value::SmallInt(key)] => i64::from(*key),
            [Value::Integer(key)] => i64::from(*key),
            [Value::BigInt(key)] => *key,
            _ => return Ok(None),
        };
        Ok(u64::try_from(whole).ok())
    }
}

impl Table {
    pub(super) fn lookup_in_array(
        &self,
        sight: Sight<'_>,
        key: &[Value],
        options: &ScanOptions,
    ) -> Result<RecordBatch> {
        let key = self.data.array_key(key)?;
        self.lookup_rids_in_array(sight, key.as_slice(), options)
    }

    pub(super) fn lookup_values_in_array(
        &self,
        sight: Sight<'_>,
        key: &[Value],
        columns: &[usize],
    ) -> Result<Option<Vec<Value>>> {
        let Some(key) = self.data.array_key(key)? else { return Ok(None) };
        Ok(sight.array_rows(&self.data)?.read(key, columns, |cells| self.values_of(columns, cells)))
    }

    pub(super) fn lookup_rids_in_array(
        &self,
        sight: Sight<'_>,
        rids: &[u64],
        options: &ScanOptions,
    ) -> Result<RecordBatch> {
        let (seen, mut found) = (sight.array_rows(&self.data)?, Rows::new(self, options));
        let columns = found.columns.clone();
        for key in rids {
            debug_assert!(*key <= i64::MAX as u64, "{key} is no key");
            seen.read(*key, &columns, |cells| found.push(Rid::from_word(*key), cells));
        }
        Ok(found.finish(self.data.projection(options).schema))
    }

    /// As [`aggregate`](Self::aggregate).
    pub(super) fn aggregate_array(
        &self,
        sight: Sight<'_>,
        tests: &[(usize, Test)],
        columns: &[usize],
    ) -> Result<Totals> {
        let rows = sight.array_rows(&self.data)?;
        let data_type = |column: &usize| -> DataType { self.schema().columns()[*column].data_type };
        let mut totals = Totals::new(columns.iter().map(data_type));
        for leaf in (0..rows.leaf_count()).map(|number| rows.leaf(number)) {
            let passing = passing(self.schema(), &leaf, tests);
            totals.rows += u64::from(passing.count_ones());
            for (sum, column) in totals.columns.iter_mut().zip(columns) {
                slots(passing).for_each(|slot| sum.add(leaf.cell(*column, slot)));
            }
        }
        debug_assert_eq!(totals.columns.len(), columns.len(), "totals of each column");
        Ok(totals)
    }
}
