//! The outline of a column, without its values: its zones, and what follows from them. It stays in memory while the
//! column is evicted, so that a scan passes over blocks that have nothing for it, and whole blocks are added up,
//! without reading anything back.
use std::sync::Arc;

use types::{DataType, Value};

use super::aggregates::Aggregates;
use super::column::EncodedColumn;
use super::form::Encoding;
use super::integers::KeyTotals;
use super::keys::{is_float, is_summed, word_of_key};
use super::predicate::{CellOrder, Intervals, KeyOrder, Test, Verdict};
use super::simd::BLOCK;
use super::zones::BlockZone;
use super::zones::Zone;
use crate::value::cell::{Cell, Scratch, cell_of_value, is_wide, value_of_cell};

/// See the module.
#[derive(Clone)]
pub(crate) struct ColumnOutline {
    pub(crate) data_type: DataType,
    pub(crate) len: usize,
    pub(crate) encoding: Encoding,
    /// of all rows
    pub(crate) zone: Zone,
    /// of each block; the extremes are keys of values unless the type is wide
    pub(crate) zones: Arc<[BlockZone]>,
}

impl EncodedColumn {
    /// The outline of the column.
    pub(crate) fn outline(&self) -> ColumnOutline {
        ColumnOutline {
            data_type: self.data_type,
            len: self.len,
            encoding: self.encoding(),
            zone: self.zone(0, self.len),
            zones: self.zones.clone(),
        }
    }
}

impl ColumnOutline {
    /// The outline of a column with these zones. Of a column of wide values their keys do not tell the extremes.
    pub(crate) fn of_zones(
        (data_type, len): (DataType, usize),
        encoding: Encoding,
        zones: Arc<[BlockZone]>,
        wide_extremes: Option<(Value, Value)>,
    ) -> ColumnOutline {
        let null_count = zones.iter().map(|zone| zone.nulls as usize).sum();
        let (min, max) = match is_wide(data_type) {
            true => wide_extremes.unzip(),
            false => {
                let keys = zones.iter().filter(|zone| !zone.is_of_nothing()).map(|zone| (zone.min, zone.max));
                let mut extremes = Aggregates::new(data_type);
                let mut add = |key: i64| extremes.add_extreme(Cell::Word(word_of_key(key, data_type)));
                if is_float(data_type) {
                    // Keys of NaN are in another order than their values.
                    keys.for_each(|(least, greatest)| [least, greatest].into_iter().for_each(&mut add));
                } else {
                    let of_all = keys.reduce(|all, keys| (all.0.min(keys.0), all.1.max(keys.1)));
                    of_all.into_iter().flat_map(|(least, greatest)| [least, greatest]).for_each(&mut add);
                }
                (extremes.min, extremes.max)
            }
        };
        ColumnOutline { data_type, len, encoding, zone: Zone { min, max, null_count }, zones }
    }

    /// Whether it is certain that none of the rows `from..to` passes the test.
    pub(crate) fn passes_none(&self, from: usize, to: usize, test: &Test) -> bool {
        let blocks = from / BLOCK..to.div_ceil(BLOCK);
        let rows_of = |block: usize| BLOCK.min(self.len - block * BLOCK) as u32;
        let mut zones = self.zones[blocks.clone()].iter().zip(blocks);
        match test {
            Test::IsNull => zones.all(|(zone, _)| zone.nulls == 0),
            Test::IsNotNull => zones.all(|(zone, block)| zone.nulls == rows_of(block)),
            Test::Among(filter) => filter.keys_of_stretches().is_some_and(|keys| {
                zones.all(|(zone, _)| zone.min > zone.max || !keys.may_have_any(zone.min, zone.max))
            }),
            _ if is_wide(self.data_type) => self.column_passes_none(test),
            _ => {
                let keys = Intervals::of_ranges(&test.ranges(&KeyOrder));
                let has_values = |zone: &BlockZone| zone.min <= zone.max;
                zones.all(|(zone, _)| !has_values(zone) || matches!(keys.verdict(zone.min, zone.max), Verdict::None))
            }
        }
    }

    /// Whether it is certain that no row passes the test, by the extremes of all rows: they are a sorted list of
    /// two.
    fn column_passes_none(&self, test: &Test) -> bool {
        let (Some(min), Some(max)) = (&self.zone.min, &self.zone.max) else { return true };
        let (mut first, mut last) = (Scratch::default(), Scratch::default());
        let extremes = [cell_of_value(min, self.data_type, &mut first), cell_of_value(max, self.data_type, &mut last)];
        let order = CellOrder { data_type: self.data_type, len: 2, cell: |i: usize| extremes[i] };
        !test.ranges(&order).iter().any(|(from, to)| *from < 2 && *to > 0)
    }

    /// The aggregates of all rows `from..to`, where they follow from the zones.
    pub(crate) fn aggregate(&self, from: usize, to: usize) -> Option<Aggregates> {
        let is_aligned = from.is_multiple_of(BLOCK) && (to.is_multiple_of(BLOCK) || to == self.len);
        if !is_aligned || is_wide(self.data_type) || is_float(self.data_type) {
            return None;
        }
        let mut result = Aggregates::new(self.data_type);
        let mut running = KeyTotals::NONE;
        for zone in &self.zones[from / BLOCK..to.div_ceil(BLOCK)] {
            running.sum += zone.sum;
            running.min = running.min.min(zone.min);
            running.max = running.max.max(zone.max);
            result.count += u64::from(zone.nulls);
        }
        result.count = (to - from) as u64 - result.count;
        if is_summed(self.data_type) {
            result.add_integer(running.sum);
        }
        if running.min <= running.max {
            let value = |key| Some(value_of_cell(Cell::Word(word_of_key(key, self.data_type)), self.data_type));
            (result.min, result.max) = (value(running.min), value(running.max));
        }
        Some(result)
    }
}
