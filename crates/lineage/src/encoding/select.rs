//! Predicates on encoded columns: a test is translated once, then each block is judged by its zone, and looked into
//! only if that does not decide.
//!
//! The translation makes intervals of keys of the test, and of these intervals of whatever integers the column
//! stores: codes by a search in the dictionary, ALP's integers by a search along its decoding. Bytes kept raw are
//! asked row by row, those rows only that the mask still has.
use super::column::{EncodedColumn, Form, Meaning};
use super::mask::{Mask, bits_of};
use super::predicate::{CellOrder, Intervals, KeyOrder, Ranges, Test, Verdict};
use super::simd::{BLOCK, BLOCK_WORDS, Simd};
use super::zones::BlockZone;
use crate::value::cell::is_wide;

/// A test in terms of a column's integers.
struct TranslatedTest {
    /// what passes, in zone keys
    zone: Intervals,
    /// what passes, in the integers of the column
    integers: Intervals,
}

impl EncodedColumn {
    /// Clears from `mask` those of the rows `from..from + mask.len()` that do not pass. NULL passes IS NULL only.
    pub fn select(&self, from: usize, test: &Test, mask: &mut Mask) {
        let to = from + mask.len();
        assert!(to <= self.len, "rows {from}..{to} of {}", self.len);
        match (test, self.is_raw_bytes()) {
            (Test::IsNull, _) => self.select_nulls(from, mask, true),
            (Test::IsNotNull, _) => self.select_nulls(from, mask, false),
            (_, true) => self.each_block(from, to, |block, rows, at| self.select_bytes(block, rows, at, test, mask)),
            (_, false) => {
                let simd = Simd::best();
                let test = self.translate(test);
                self.each_block(from, to, |block, rows, at| self.select_block(simd, block, rows, at, &test, mask));
            }
        }
    }

    /// Whether the column keeps bytes raw, so that zone keys are slots.
    pub(super) fn is_raw_bytes(&self) -> bool {
        is_wide(self.data_type) && matches!(self.form, Form::Raw(_))
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

    fn translate(&self, test: &Test) -> TranslatedTest {
        if let Form::Encoded(_, Meaning::Entries(entries)) = &self.form {
            let codes = Intervals::of_ranges(&test.ranges(&entries.order(self.data_type)));
            return TranslatedTest { zone: codes.clone(), integers: codes };
        }
        let keys = Intervals::of_ranges(&test.ranges(&KeyOrder));
        let integers = match &self.form {
            Form::Encoded(_, Meaning::Lookup(values)) => {
                let codes = |(low, high): (i64, i64)| {
                    let below = values.partition_point(|value| *value < low) as i128;
                    (below, values.partition_point(|value| *value <= high) as i128)
                };
                Intervals::of_ranges(&keys.iter().map(codes).collect::<Ranges>())
            }
            Form::Encoded(_, Meaning::Float(alp)) => alp.integers_of(&keys),
            _ => keys.clone(),
        };
        TranslatedTest { zone: keys, integers }
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
                let start = block * BLOCK;
                let mut bits = [0; BLOCK_WORDS];
                match &self.form {
                    Form::Raw(raw) => raw.find(simd, (start + rows.0, start + rows.1), &test.zone, &mut bits),
                    Form::Encoded(integers, meaning) => {
                        integers.find(simd, block, rows, &test.integers, &mut bits);
                        if let Meaning::Float(alp) = meaning {
                            for (slot, key) in alp.exceptions(start + rows.0, start + rows.1) {
                                let row = slot - start - rows.0;
                                let bit = u64::from(test.zone.contains(key)) << (row % 64);
                                bits[row / 64] = bits[row / 64] & !(1 << (row % 64)) | bit;
                            }
                        }
                    }
                }
                mask.keep_only(at, len, &bits);
            }
        }
        self.keep_valid(block, rows, at, zone, mask);
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
