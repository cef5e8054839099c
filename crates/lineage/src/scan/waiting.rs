//! Pending rows that wait for the tests of their block.
//!
//! A version in the tail has values of a few columns. A test of one of these is decided at once. All others ask for values of
//! the base pages, and a block of these is judged many at a time, on the encoded form. So a pending row that fails none of its own
//! tests waits, and takes part in the tests of its block as the rows of the base pages do:
//!
//! ```text
//! rows of base pages ─┐
//!                     ├─▶ test 0 ─▶ and those that passed it by values of their own ─▶ test 1 ─▶ ... ─▶ rows taken
//! rows that wait ─────┘
//! ```
use crate::encoding::Mask;
use crate::page::interrupted::Interrupted;
use crate::record::view::Outcomes;
use crate::scan::block::{PendingRow, RangeView};
use crate::scan::fold::Hidden;
use crate::scan::request::BLOCK_ROWS;

/// The pending rows of a range that wait, by block.
pub(crate) struct Waiting<'g> {
    blocks: Vec<WaitingBlock<'g>>,
}

/// Those of one block.
pub(crate) struct WaitingBlock<'g> {
    /// how many rows the block has
    len: usize,
    /// with their places in the block
    rows: Vec<(u32, PendingRow<'g>)>,
    /// by test: rows that have passed it by values of their own; some of them may have failed another
    passed: Vec<Option<Mask>>,
}

impl<'g> Waiting<'g> {
    /// Each block with the slots where it begins and ends.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = ((usize, usize), &WaitingBlock<'g>)> {
        self.blocks.iter().enumerate().map(|(i, block)| ((i * BLOCK_ROWS, i * BLOCK_ROWS + block.len), block))
    }
}

impl<'g> WaitingBlock<'g> {
    /// One in which about so many rows will wait.
    fn new(len: usize, rows: usize, tests: usize) -> WaitingBlock<'g> {
        WaitingBlock { len, rows: Vec::with_capacity(rows.min(len)), passed: vec![None; tests] }
    }

    /// Adds the rows that wait to those of the base pages.
    pub(crate) fn join(&self, rows: &mut Mask) {
        self.rows.iter().for_each(|(at, _)| rows.set(*at as usize));
    }

    /// Those among `rows` that have passed a test by values of their own, if there may be any.
    pub(crate) fn passed(&self, test: usize, rows: &Mask) -> Option<Mask> {
        let mut passed = self.passed[test].clone()?;
        passed.keep(rows);
        Some(passed)
    }

    /// Those among `taken`, with their places in the block.
    pub(crate) fn among<'a>(&'a self, taken: &'a Mask) -> impl Iterator<Item = (usize, &'a PendingRow<'g>)> {
        self.rows.iter().map(|(at, row)| (*at as usize, row)).filter(|(at, _)| taken.get(*at))
    }

    fn note_passed(&mut self, test: usize, at: usize) {
        self.passed[test].get_or_insert_with(|| Mask::new_none(self.len)).set(at);
    }
}

impl<'g, O: Outcomes> RangeView<'_, 'g, O> {
    /// The pending rows of the first `len` slots that no value of their own excludes, and the slots whose base values do not count.
    pub(crate) fn waiting(&self, len: usize) -> Result<(Hidden, Waiting<'g>), Interrupted> {
        let (tests, count) = (self.tests.len(), len.div_ceil(BLOCK_ROWS).max(1));
        // Updates are spread over the blocks, more or less.
        let rows = self.unmerged() / count * 9 / 8;
        let block = |from| WaitingBlock::new(BLOCK_ROWS.min(len - from), rows, tests);
        let mut blocks: Vec<WaitingBlock<'g>> = (0..len).step_by(BLOCK_ROWS).map(block).collect();
        let all: Vec<usize> = (0..tests).collect();
        let (mut last, mut of_page) = (None, Vec::with_capacity(tests));
        let hidden = self.fold_without_base(len, |slot, row| {
            let (block, at) = (&mut blocks[slot / BLOCK_ROWS], slot % BLOCK_ROWS);
            match &row {
                // Most updates are of few columns: no version of a page may have a value that a test asks for.
                PendingRow::Digest(of_digest) => {
                    if !of_digest.is_beside(last) {
                        last = Some(*of_digest);
                        of_page.clear();
                        of_page.extend(all.iter().filter(|test| self.page_has(self.tests[**test].0, of_digest)));
                    }
                    self.wait(block, at, row, &of_page);
                }
                PendingRow::Tail(_) | PendingRow::Cells(_) => self.wait(block, at, row, &all),
            }
            Ok(())
        })?;
        Ok((hidden, Waiting { blocks }))
    }

    /// Has a pending row wait, unless a value of its own fails one of these tests, which are all that may ask for one.
    #[inline]
    fn wait(&self, block: &mut WaitingBlock<'g>, at: usize, row: PendingRow<'g>, tests: &[usize]) {
        for &test in tests {
            let (i, _, of_cell) = &self.tests[test];
            if let Some(cell) = self.explicit_cell(*i, &row) {
                if !of_cell.passes(cell) {
                    return;
                }
                block.note_passed(test, at);
            }
        }
        block.rows.push((at as u32, row));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::RecordBatch;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
    use types::Value;

    use crate::tests::mechanism::{Fixture, options};
    use crate::{Comparison, Projection, Request, Test};

    /// The rows of the first range that pass the tests, as their values in column 0, which are their slots, and what is counted of them.
    fn found(fixture: &Fixture, tests: &[(usize, Comparison, i64)]) -> (Vec<i64>, u64) {
        let tests = || {
            let test = |(column, comparison, number)| (column, Test::Compare(comparison, Value::BigInt(number)));
            tests.iter().copied().map(test).collect()
        };
        let schema = Arc::new(ArrowSchema::new(vec![Field::new("c0", ArrowType::Int64, true)]));
        let projection = Projection { request: Request { columns: vec![0], tests: tests() }, with_rid: false, schema };
        let batches = fixture.table.scan_range(0, fixture.view(9), &projection).unwrap();
        let values = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let request = Request { columns: vec![0], tests: tests() };
        let totals = fixture.table.aggregate_range(0, fixture.view(9), &request).unwrap();
        (batches.iter().flat_map(values).collect(), totals.rows)
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
