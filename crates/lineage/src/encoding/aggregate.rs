//! Aggregates on encoded columns: whole blocks by their zones, the rest on the integers as they are stored.
use super::aggregates::{Aggregates, Sum, integer_of};
use super::column::EncodedColumn;
use super::integers::KeyTotals;
use super::kernels::{sum_floats, sum_floats_kept};
use super::keys::is_summed;
use super::mask::{Mask, bits_of, count_bits};
use super::simd::{BLOCK, BlockBits, Simd, each_block};
use super::zones::BlockZone;
use crate::value::cell::is_wide;

/// The part of one block that is to be aggregated.
#[derive(Clone, Copy)]
struct Part<'a> {
    block: usize,
    /// rows within the block
    rows: (usize, usize),
    /// which of them; `None` = all, and none of them is NULL
    kept: Option<&'a BlockBits>,
    /// how many
    count: usize,
    /// whether these are all rows of the block that are not NULL
    is_whole: bool,
}

impl EncodedColumn {
    /// Count, sum, least and greatest of those of the rows `from..to` that `mask` keeps (all, where there is none) and
    /// that are not NULL. Bit 0 of the mask is row `from`.
    pub fn aggregate(&self, from: usize, to: usize, mask: Option<&Mask>) -> Aggregates {
        assert!(from <= to && to <= self.len, "rows {from}..{to} of {}", self.len);
        debug_assert!(mask.is_none_or(|mask| mask.len() == to - from));
        let simd = Simd::best();
        let mut result = Aggregates::new(self.data_type);
        let mut running = KeyTotals::NONE;
        each_block(from, to, |block, rows, at| {
            let len = rows.1 - rows.0;
            let zone = &self.zones[block];
            let mut kept = mask.map(|mask| mask.part(at, len));
            if let Some(nulls) = &self.nulls
                && zone.nulls > 0
            {
                let mut valid = bits_of(nulls.inner(), block * BLOCK + rows.0, len);
                if let Some(kept) = &kept {
                    valid.iter_mut().zip(kept).for_each(|(valid, kept)| *valid &= kept);
                }
                kept = Some(valid);
            }
            let count = kept.as_ref().map_or(len, |kept| count_bits(kept, 0, len));
            if count > 0 {
                let block_len = BLOCK.min(self.len - block * BLOCK);
                let is_whole = count == block_len - zone.nulls as usize;
                let kept = kept.as_ref().filter(|_| count < len);
                self.add_part(simd, Part { block, rows, kept, count, is_whole }, &mut running, &mut result);
            }
        });
        result.count = running.count as u64;
        if is_summed(self.data_type) {
            result.add_integer(running.sum);
        }
        if running.min <= running.max {
            result.min = Some(self.zone_value(running.min));
            result.max = Some(self.zone_value(running.max));
        }
        result
    }

    fn add_part(&self, simd: Simd, part: Part<'_>, running: &mut KeyTotals, result: &mut Aggregates) {
        match result.sum {
            Sum::Float(_) => result.add_float(self.part_float_sum(simd, part)),
            Sum::Integer(_) if is_wide(self.data_type) => {
                self.each_row(part, |slot| result.add_integer(integer_of(self.cell(slot))));
            }
            _ => {}
        }
        let zone = &self.zones[part.block];
        running.count += part.count;
        if self.form.has_slots_as_zone_keys(self.data_type) {
            if part.is_whole {
                result.add_extreme(self.zone_cell(zone.min));
                result.add_extreme(self.zone_cell(zone.max));
            } else {
                self.each_row(part, |slot| result.add_extreme(self.cell(slot)));
            }
            return;
        }
        if part.is_whole {
            running.sum += zone.sum;
            running.min = running.min.min(zone.min);
            running.max = running.max.max(zone.max);
        } else if may_move_extremes(zone, running) {
            let totals = self.part_totals::<true>(simd, part);
            running.sum += totals.sum;
            running.min = running.min.min(totals.min);
            running.max = running.max.max(totals.max);
        } else if is_summed(self.data_type) {
            running.sum += self.part_totals::<false>(simd, part).sum;
        }
    }

    fn each_row(&self, part: Part<'_>, mut action: impl FnMut(usize)) {
        let start = part.block * BLOCK;
        for row in part.rows.0..part.rows.1 {
            let bit = row - part.rows.0;
            if part.kept.is_none_or(|kept| kept[bit / 64] >> (bit % 64) & 1 != 0) {
                action(start + row);
            }
        }
    }

    /// Totals in zone keys.
    fn part_totals<const EXTREMES: bool>(&self, simd: Simd, part: Part<'_>) -> KeyTotals {
        self.form.totals::<EXTREMES>(simd, part.block, part.rows, self.data_type, part.kept)
    }

    fn part_float_sum(&self, simd: Simd, part: Part<'_>) -> f64 {
        let mut buffer = [0.0; BLOCK];
        let doubles = self.form.doubles(simd, part.block, part.rows, self.data_type, &mut buffer);
        match part.kept {
            None => sum_floats(simd, doubles),
            Some(kept) => sum_floats_kept(simd, doubles, kept),
        }
    }
}

/// Whether a block may have a value beyond the extremes found so far.
fn may_move_extremes(zone: &BlockZone, running: &KeyTotals) -> bool {
    zone.min < running.min || zone.max > running.max
}
