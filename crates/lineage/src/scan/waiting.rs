//! Pending rows that wait for the tests of their block.
//!
//! A version in the tail has values of a few columns. A test of one of these is decided at once. All others ask for values of
//! the base pages, and a block of these is judged many at a time, on the encoded form. So a pending row that fails none of its own
//! tests waits, and takes part in the tests of its block as the rows of the base pages do. The versions of a digest are taken a page at a
//! time, as sets of bits: those that count, less those that fail a test by a value of their own.
//!
//! ```text
//! rows of base pages ─┐
//!                     ├─▶ test 0 ─▶ and those that passed it by values of their own ─▶ test 1 ─▶ ... ─▶ rows taken
//! rows that wait ─────┘
//! ```
use crate::encoding::Mask;
use crate::memory::source::PageError;
use crate::page::interrupted::Interrupted;
use crate::page::tail::{DigestPart, VersionSet};
use crate::record::view::Outcomes;
use crate::scan::block::{PendingRow, RangeView, Soon};
use crate::scan::fold::{Pending, Take};
use crate::scan::request::BLOCK_ROWS;
use crate::value::slots::SlotSet;

/// The pending rows of a range that wait.
pub(crate) struct Waiting<'g> {
    len: usize,
    rows: SlotSet,
    /// by test: rows that have passed it by values of their own; some of them may have failed another
    passed: Vec<Option<SlotSet>>,
    /// the versions of digests that wait
    pages: Vec<(DigestPart<'g>, VersionSet)>,
    /// all others, with their slots
    others: Vec<(usize, PendingRow<'g>)>,
}

#[inline]
fn has(words: &[u64], slot: usize) -> bool {
    words[slot / 64] >> (slot % 64) & 1 != 0
}

impl<'g> Waiting<'g> {
    /// The slots where each block begins and ends.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let len = self.len;
        (0..len).step_by(BLOCK_ROWS).map(move |from| (from, len.min(from + BLOCK_ROWS)))
    }

    /// Those of the slots `from..to`, where `from` begins a word, a bit each.
    pub(crate) fn part(&self, from: usize, to: usize) -> &[u64] {
        self.rows.part(from, to)
    }

    /// Those among `rows`, the slots `from..to`, that have passed a test by values of their own, if there may be any.
    pub(crate) fn passed(&self, test: usize, (from, to): (usize, usize), rows: &Mask) -> Option<Mask> {
        Some(rows.and_words(self.passed[test].as_ref()?.part(from, to)))
    }

    /// How many there are among `taken`, which has a bit for each slot.
    pub(crate) fn count_among(&self, taken: &[u64]) -> usize {
        self.rows.count_among(taken)
    }

    /// The versions of each digest that are among `taken`, which has a bit for each slot.
    pub(crate) fn pages_among<'a>(
        &'a self,
        taken: &'a [u64],
    ) -> impl Iterator<Item = (DigestPart<'g>, VersionSet)> + 'a {
        let among = |(page, versions): &(DigestPart<'g>, VersionSet)| {
            (*page, versions.keep(|version| has(taken, page.slot(version))))
        };
        self.pages.iter().map(among).filter(|(_, versions)| !versions.is_empty())
    }

    /// The rows of no digest that are among `taken`, with their slots.
    pub(crate) fn others_among<'a>(
        &'a self,
        taken: &'a [u64],
    ) -> impl Iterator<Item = (usize, &'a PendingRow<'g>)> + 'a {
        self.others.iter().map(|(slot, row)| (*slot, row)).filter(|(slot, _)| has(taken, *slot))
    }

    /// Passes each row among `taken` on, with its slot.
    pub(crate) fn each_among(
        &self,
        taken: &[u64],
        mut take: impl FnMut(usize, &PendingRow<'g>) -> Result<(), PageError>,
    ) -> Result<(), PageError> {
        for (page, versions) in self.pages_among(taken) {
            for version in versions.each() {
                take(page.slot(version), &PendingRow::Digest(page.row(version)))?;
            }
        }
        self.others_among(taken).try_for_each(|(slot, row)| take(slot, row))
    }

    fn note_passed(&mut self, test: usize, slot: usize) {
        self.passed[test].get_or_insert_with(|| SlotSet::new(self.len)).insert(slot);
    }

    /// Has a pending row wait, unless a value of its own fails a test.
    fn add<O: Outcomes>(&mut self, seen: &RangeView<'_, 'g, O>, slot: usize, row: PendingRow<'g>) {
        for (test, (i, _, of_cell)) in seen.tests.iter().enumerate() {
            if let Some(cell) = seen.explicit_cell(*i, &row) {
                if !of_cell.passes(cell) {
                    return;
                }
                self.note_passed(test, slot);
            }
        }
        self.rows.insert(slot);
        self.others.push((slot, row));
    }
}

impl<'g, O: Outcomes> RangeView<'_, 'g, O> {
    /// The pending rows of the first `len` slots that no value of their own excludes, and the slots whose base values do not count.
    pub(crate) fn waiting(&self, len: usize) -> Result<(SlotSet, Waiting<'g>), Interrupted> {
        let passed = self.tests.iter().map(|_| None).collect();
        let waiting = Waiting { len, rows: SlotSet::new(len), passed, pages: Vec::new(), others: Vec::new() };
        let mut waits = Waits { seen: self, soon: Soon::default(), passed: Vec::new(), waiting };
        let hidden = self.fold_into(len, &mut waits)?;
        let Waits { soon, mut waiting, .. } = waits;
        for (slot, pending) in soon.rest() {
            self.take_pending(slot, pending, &mut |slot, row| {
                waiting.add(self, slot, row);
                Ok(())
            })?;
        }
        Ok((hidden, waiting))
    }
}

/// Has pending rows wait.
struct Waits<'v, 'a, 'g, O> {
    seen: &'v RangeView<'a, 'g, O>,
    soon: Soon<'g>,
    /// of the page at hand, by test: versions that have passed it
    passed: Vec<(usize, VersionSet)>,
    waiting: Waiting<'g>,
}

impl<'g, O: Outcomes> Take<'g> for Waits<'_, '_, 'g, O> {
    fn row(&mut self, slot: usize, pending: Pending<'g>) -> Result<(), Interrupted> {
        let (seen, waiting) = (self.seen, &mut self.waiting);
        seen.prefetch(slot, &pending);
        let before = self.soon.exchange(slot, pending);
        let add = &mut |slot, row| {
            waiting.add(seen, slot, row);
            Ok(())
        };
        before.map_or(Ok(()), |(slot, pending)| seen.take_pending(slot, pending, add))
    }

    fn page(&mut self, page: DigestPart<'g>, hidden: &mut SlotSet) -> Result<(), Interrupted> {
        let (seen, waiting) = (self.seen, &mut self.waiting);
        let mut versions = page.choose(|slot| hidden.insert_new(slot));
        if versions.is_empty() {
            return Ok(());
        }
        self.passed.clear();
        for (test, (i, _, of_cell)) in seen.tests.iter().enumerate() {
            if let Some((passed, failed)) = seen.tested(*i, page, of_cell) {
                versions = versions.without(&failed);
                self.passed.push((test, passed));
            }
        }
        versions.each().for_each(|version| waiting.rows.insert(page.slot(version)));
        for (test, passed) in &self.passed {
            versions.and(passed).each().for_each(|version| waiting.note_passed(*test, page.slot(version)));
        }
        waiting.pages.push((page, versions));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::RecordBatch;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
    use types::{Rid, Value};

    use crate::record::write::Change;
    use crate::tests::mechanism::{Fixture, options};
    use crate::{Comparison, Projection, Request, Sum, Test};

    /// A fixture of 4,096 rows in which so many updates, of columns and values by chance, are pending, and some deletes: with what each
    /// row has then.
    fn pending(updates: usize) -> (Fixture, Vec<Option<[i64; 3]>>) {
        let fixture = Fixture::filled(3, options(1 << 12, 1 << 12), 1 << 12);
        fixture.merge();
        let mut rows: Vec<Option<[i64; 3]>> =
            (0..1 << 12).map(|slot| Some([slot, 1_000 + slot, 2_000 + slot])).collect();
        let mut state = 7_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        for time in 5..5 + updates as u64 {
            let (slot, column, word) = (below(1 << 12) as usize, 1 + below(2) as usize, below(6_000));
            let Some(row) = &mut rows[slot] else { continue };
            if below(16) == 0 {
                fixture.table.append(fixture.view(time), time, Rid::base(0, slot), Change::Delete).unwrap();
                rows[slot] = None;
                continue;
            }
            let values = [(column, word), (3 - column, word / 2)];
            let values = &values[..1 + below(2) as usize];
            values.iter().for_each(|(column, word)| row[*column] = *word as i64);
            fixture.update(slot, time, values);
        }
        (fixture, rows)
    }

    #[test]
    fn pending_rows_are_found_as_a_model_says_whether_their_pages_have_digests_or_not() {
        use Comparison::{Eq, GreaterOrEqual, Less, NotEq};
        for updates in [100, 1_000, 3_000] {
            let (fixture, rows) = pending(updates);
            let at = 5 + updates as u64;
            for tests in [
                &[][..],
                &[(1, Less, 1_500)],
                &[(1, GreaterOrEqual, 900), (2, Less, 2_700)],
                &[(2, Less, 3_000), (0, GreaterOrEqual, 500), (1, NotEq, 1_600)],
                &[(0, Less, 700)],
                &[(1, Eq, 77), (2, GreaterOrEqual, 0)],
            ] {
                let passes = |row: &[i64; 3]| {
                    tests.iter().all(|(column, comparison, number)| match comparison {
                        Eq => row[*column] == *number,
                        NotEq => row[*column] != *number,
                        Less => row[*column] < *number,
                        GreaterOrEqual => row[*column] >= *number,
                        _ => unreachable!("no test of this one"),
                    })
                };
                let expected: Vec<[i64; 3]> = rows.iter().flatten().filter(|row| passes(row)).copied().collect();
                let slots = expected.iter().map(|row| row[0]).collect();
                assert_eq!(found_at(&fixture, tests, 0, at), (slots, expected.len() as u64), "{tests:?} of {updates}");
                for column in [1, 2] {
                    let values: Vec<i64> = expected.iter().map(|row| row[column]).collect();
                    assert_eq!(found_at(&fixture, tests, column, at).0, values, "{tests:?} of {updates}");
                }
            }
        }
    }

    /// The rows of the first range that pass the tests, as their values in column 0, which are their slots, and what is counted of them.
    fn found(fixture: &Fixture, tests: &[(usize, Comparison, i64)]) -> (Vec<i64>, u64) {
        found_at(fixture, tests, 0, 9)
    }

    /// As [`found`], with the values in another column, at some time.
    fn found_at(fixture: &Fixture, tests: &[(usize, Comparison, i64)], column: usize, at: u64) -> (Vec<i64>, u64) {
        let tests = || {
            let test = |(column, comparison, number)| (column, Test::Compare(comparison, Value::BigInt(number)));
            tests.iter().copied().map(test).collect()
        };
        let schema = Arc::new(ArrowSchema::new(vec![Field::new("c0", ArrowType::Int64, true)]));
        let projection =
            Projection { request: Request { columns: vec![column], tests: tests() }, with_rid: false, schema };
        let batches = fixture.table.scan_range(0, fixture.view(at), &projection).unwrap();
        let values = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let request = Request { columns: vec![column], tests: tests() };
        let totals = fixture.table.aggregate_range(0, fixture.view(at), &request).unwrap();
        let values: Vec<i64> = batches.iter().flat_map(values).collect();
        assert_eq!(totals.columns[0].sum, Sum::Integer(values.iter().map(|value| i128::from(*value)).sum()));
        (values, totals.rows)
    }

    #[test]
    fn a_test_asks_values_of_the_tail_where_there_are_some_and_base_values_where_not() {
        let fixture = Fixture::filled(3, options(1 << 12, 1 << 12), 1 << 12);
        fixture.merge();
        // Column 1 is 1000 + slot and column 2 is 2000 + slot, but for these.
        fixture.update(10, 5, &[(1, 7)]);
        fixture.update(11, 5, &[(1, 7)]);
        fixture.update(11, 6, &[(2, 8)]);
        fixture.update(12, 5, &[(2, 8)]);
        fixture.update(13, 5, &[(1, 1_010)]);
        let few = |rows: &[i64]| (rows.to_vec(), rows.len() as u64);
        use Comparison::{Eq, GreaterOrEqual, Less};
        assert_eq!(found(&fixture, &[(1, Eq, 7)]), few(&[10, 11]), "base values fail, values of the tail pass");
        assert_eq!(found(&fixture, &[(1, Eq, 1_010)]), few(&[13]), "the base value of 10 passes, and does not count");
        assert_eq!(
            found(&fixture, &[(1, Eq, 7), (2, Eq, 2_010)]),
            few(&[10]),
            "one value of the tail, one of the base"
        );
        assert_eq!(found(&fixture, &[(2, Eq, 2_010), (1, Eq, 7)]), few(&[10]), "in any order");
        assert_eq!(found(&fixture, &[(1, Eq, 7), (2, Eq, 8)]), few(&[11]), "both of the tail");
        assert_eq!(
            found(&fixture, &[(1, Eq, 7), (2, Less, 8)]),
            few(&[]),
            "the second one fails after the first has passed"
        );
        assert_eq!(
            found(&fixture, &[(1, Less, 1_003), (0, GreaterOrEqual, 2)]),
            few(&[2, 10, 11]),
            "with rows of the base pages"
        );
        assert_eq!(found(&fixture, &[(0, GreaterOrEqual, 10), (0, Less, 14), (2, GreaterOrEqual, 9)]), few(&[10, 13]));
    }
}
