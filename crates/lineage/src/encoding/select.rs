//! Predicates on encoded columns: a test is translated once, then each block is judged by its zone, and looked into
//! only if that does not decide.
//!
//! The translation makes intervals of keys of the test, and of these intervals of whatever integers the column
//! stores: codes by a search in the dictionary, ALP's integers by a search along its decoding. Bytes kept raw are
//! asked row by row, those rows only that the mask still has.
use super::column::EncodedColumn;
use super::form::TranslatedTest;
use super::key_filter::KeyFilter;
use super::mask::{Mask, bits_of};
use super::predicate::{CellOrder, Test, Verdict};
use super::simd::{BLOCK, BLOCK_WORDS, Simd, each_block};
use super::zones::BlockZone;
use crate::value::cell::Cell;

impl EncodedColumn {
    /// Clears from `mask` those of the rows `from..from + mask.len()` that do not pass. NULL passes IS NULL only.
    pub fn select(&self, from: usize, test: &Test, mask: &mut Mask) {
        let to = from + mask.len();
        assert!(to <= self.len, "rows {from}..{to} of {}", self.len);
        match (test, self.form.has_slots_as_zone_keys(self.data_type)) {
            (Test::IsNull, _) => self.select_nulls(from, mask, true),
            (Test::IsNotNull, _) => self.select_nulls(from, mask, false),
            (Test::Among(filter), is_raw) => {
                debug_assert!(!is_raw, "keys are asked of {}", self.data_type);
                self.select_keys(from, filter, mask);
            }
            (_, true) => each_block(from, to, |block, rows, at| self.select_bytes(block, rows, at, test, mask)),
            (_, false) => {
                let simd = Simd::best();
                let test = self.form.translate(test, self.data_type);
                each_block(from, to, |block, rows, at| self.select_block(simd, block, rows, at, &test, mask));
            }
        }
    }

    fn select_nulls(&self, from: usize, mask: &mut Mask, wanted: bool) {
        let Some(nulls) = &self.nulls else {
            return if wanted {
                mask.clear_range(0, mask.len())
            };
        };
        for at in (0..mask.len()).step_by(BLOCK) {
            let len = BLOCK.min(mask.len() - at);
            let mut bits = bits_of(nulls.inner(), from + at, len);
            if wanted {
                bits.iter_mut().for_each(|word| *word = !*word);
            }
            mask.keep_only(at, len, &bits);
        }
    }

    /// The rows of one block, which are rows `at..` of the mask.
    fn select_block(
        &self,
        simd: Simd,
        block: usize,
        rows: (usize, usize),
        at: usize,
        test: &TranslatedTest,
        mask: &mut Mask,
    ) {
        let (len, zone) = (rows.1 - rows.0, &self.zones[block]);
        if !mask.has_any(at, len) {
            return;
        }
        match test.zone.verdict(zone.min, zone.max) {
            Verdict::None => return mask.clear_range(at, len),
            Verdict::All => {}
            Verdict::Some => {
                let mut bits = [0; BLOCK_WORDS];
                self.form.find(simd, block, rows, test, self.data_type, &mut bits);
                mask.keep_only(at, len, &bits);
            }
        }
        self.keep_valid(block, rows, at, zone, mask);
    }

    /// Clears rows with none of the keys that are known by now.
    fn select_keys(&self, from: usize, filter: &KeyFilter, mask: &mut Mask) {
        /// Of so few rows of a block the values are looked up one by one.
        const FEW: usize = 48;
        let Some(keys) = filter.keys() else { return };
        let (simd, seen) = (Simd::best(), mask.count());
        each_block(from, from + mask.len(), |block, rows, at| {
            let (len, zone) = (rows.1 - rows.0, &self.zones[block]);
            let kept = mask.part(at, len);
            let count: usize = kept.iter().map(|word| word.count_ones() as usize).sum();
            if count == 0 {
                return;
            }
            if !self.zone_has_values(zone) || !keys.may_have_any(zone.min, zone.max) {
                return mask.clear_range(at, len);
            }
            let mut bits = [0; BLOCK_WORDS];
            if count <= FEW {
                for row in (0..len).filter(|row| kept[row / 64] >> (row % 64) & 1 != 0) {
                    let Cell::Word(word) = self.cell(block * BLOCK + rows.0 + row) else { continue };
                    bits[row / 64] |= u64::from(keys.may_have(word as i64)) << (row % 64);
                }
                return mask.keep_only(at, len, &bits);
            }
            let mut numbers = [0; BLOCK];
            self.form.block_keys(simd, block, rows, self.data_type, &mut numbers);
            let numbers = &numbers[rows.0..rows.1];
            if count * 2 < len {
                keys.find_among(numbers, &kept, &mut bits);
            } else {
                keys.find(simd, numbers, &mut bits);
            }
            mask.keep_only(at, len, &bits);
            self.keep_valid(block, rows, at, zone, mask);
        });
        filter.note(seen, mask.count());
    }

    fn keep_valid(&self, block: usize, rows: (usize, usize), at: usize, zone: &BlockZone, mask: &mut Mask) {
        if let Some(nulls) = &self.nulls
            && zone.nulls > 0
        {
            let len = rows.1 - rows.0;
            mask.keep_only(at, len, &bits_of(nulls.inner(), block * BLOCK + rows.0, len));
        }
    }

    fn select_bytes(&self, block: usize, rows: (usize, usize), at: usize, test: &Test, mask: &mut Mask) {
        let (len, zone) = (rows.1 - rows.0, &self.zones[block]);
        match self.verdict_on_bytes(zone, test) {
            Verdict::None => return mask.clear_range(at, len),
            Verdict::All => {}
            Verdict::Some => {
                let kept = mask.part(at, len);
                let mut bits = kept;
                for row in (0..len).filter(|row| kept[row / 64] >> (row % 64) & 1 != 0) {
                    if !test.passes(self.cell(block * BLOCK + rows.0 + row), self.data_type) {
                        bits[row / 64] &= !(1 << (row % 64));
                    }
                }
                mask.keep_only(at, len, &bits);
            }
        }
        self.keep_valid(block, rows, at, zone, mask);
    }

    /// The verdict of the extremes of a block: they are a sorted list of two.
    fn verdict_on_bytes(&self, zone: &BlockZone, test: &Test) -> Verdict {
        if !self.zone_has_values(zone) {
            return Verdict::None;
        }
        let extremes = [self.zone_cell(zone.min), self.zone_cell(zone.max)];
        let order = CellOrder { data_type: self.data_type, len: 2, cell: |i: usize| extremes[i] };
        let ranges = test.ranges(&order);
        if ranges.contains(&(0, 2)) {
            Verdict::All
        } else if ranges.iter().any(|(from, to)| *from < 2 && *to > 0) {
            Verdict::Some
        } else {
            Verdict::None
        }
    }
}
