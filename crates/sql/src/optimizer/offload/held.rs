//! Groupings of tables whose columns stay on the device.
//!
//! ```text
//! scan at the statement's snapshot ─┬─ rows of base pages, as bits ──▶ the device, which has the pages ──▶ states
//!                                   └─ all others: updated since the last merge, or not merged at all ──▶ as any input
//! ```
//!
//! So rows that are being updated are as exact as in any plan, and what is brought to the device for a statement is a bit for each row. A
//! range goes the way of all others where it has NULL in a column, or decimals of more than 64 bits.
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::FilterBuilder;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use engine::{BasePage, BaseRowSet, TableScan};

use super::groups::GroupSection;
use super::learn::Course;
use super::numbers::{Codes, Numbers};
use crate::access::scan::{ScanExec, external};
use crate::coprocessor::residents::{Asked, Found, PageNumbers, RangeRows, TableColumns, TableKey};
use crate::coprocessor::{DeviceColumn, GroupTotals, ResidentKey, ResidentRows, ResidentValues};
use crate::interrupt;
use crate::values::stored::as_queried;

/// So many rows beside those that the device has grouped are no work for it.
const REST_FEW: usize = 1 << 16;

/// A grouping over a plain scan.
pub(super) struct HeldSection {
    scan: ScanExec,
    /// The table's columns that it is about.
    asked: Vec<Asked>,
    /// For each key, and then for each argument, its place among these.
    places: Vec<usize>,
    /// For each of the columns, the one of the plan's input.
    outputs: Vec<usize>,
}

/// What a statement sees of the table.
pub(super) struct SplitRows {
    scan: TableScan,
    ranges: Vec<RangeRows>,
    /// Rows beside those of base pages, in the same ranges.
    others: Vec<RecordBatch>,
    /// Ranges without base pages.
    whole: Vec<usize>,
}

/// What the device has answered, and which ranges it has answered for.
pub(super) struct Answer {
    pub(super) codes: Codes,
    pub(super) totals: GroupTotals,
    are_there: Vec<bool>,
}

impl HeldSection {
    /// The section over its input, if that is a scan of a table and all keys and arguments are its columns.
    pub(super) fn of(section: &GroupSection, input: &dyn ExecutionPlan) -> Option<HeldSection> {
        let scan = input.downcast_ref::<ScanExec>().filter(|scan| scan.reads_all() && !scan.options().with_rid)?;
        let mut held = HeldSection { scan: scan.again(), asked: Vec::new(), places: Vec::new(), outputs: Vec::new() };
        let keys = section.keys.iter().map(|(key, _)| key);
        for expr in keys.chain(section.columns.iter().map(|column| &column.argument)) {
            let output = expr.downcast_ref::<Column>()?.index();
            let column = scan.column(output)?.0;
            let name = scan.table().schema().columns()[column].name.as_str().into();
            let asked = Asked { column, name, page: scan.place(output)? };
            let place = held.asked.iter().position(|known| *known == asked).unwrap_or(held.asked.len());
            if place == held.asked.len() {
                held.asked.push(asked);
                held.outputs.push(output);
            }
            held.places.push(place);
        }
        Some(held)
    }

    /// The table that it is about.
    pub(super) fn table(&self) -> TableKey {
        let table = self.scan.table();
        TableKey { id: table.id(), name: engine::shown_name(table.name()) }
    }

    /// The columns that it is about, by their places in the table.
    pub(super) fn columns(&self) -> Vec<usize> {
        self.asked.iter().map(|asked| asked.column).collect()
    }

    /// The schema of the rows.
    pub(super) fn schema(&self) -> SchemaRef {
        self.scan.schema()
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> Vec<&str> {
        self.asked.iter().map(|asked| &*asked.name).collect()
    }

    /// How many ranges the table has.
    pub(super) fn ranges(&self) -> u64 {
        self.scan.table().stats().ranges
    }

    /// Looks at the table.
    pub(super) fn read(&self) -> Result<SplitRows> {
        let scan = self.scan.begin().map_err(external)?;
        let mut rows = SplitRows { scan, ranges: Vec::new(), others: Vec::new(), whole: Vec::new() };
        while let Some(split) = rows.scan.next_split() {
            interrupt::check_plan()?;
            let (range, split) = split.map_err(external)?;
            let Some(split) = split else {
                rows.whole.push(range);
                continue;
            };
            for batch in split.others {
                rows.others.push(self.scan.arranged(&batch)?);
            }
            rows.ranges.push(RangeRows { range, base: split.base });
        }
        Ok(rows)
    }

    /// Has the device group the rows of base pages; the error is why it does not.
    pub(super) fn group(
        &self,
        section: &GroupSection,
        rows: &SplitRows,
        course: &Course,
    ) -> std::result::Result<Option<Answer>, String> {
        if rows.ranges.is_empty() {
            return Ok(None);
        }
        let table = course.offload().residents().table(&self.table());
        let table = &mut *table.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let numbers = |column: usize, page: &BasePage| self.numbers(column, page);
        let found = course.bring(table, (&rows.ranges, &self.asked), &numbers)?;
        if found.count == 0 {
            return Ok(None);
        }
        let codes = Codes::between(&self.key_spans(section, &found), found.count)?;
        let totals = self.ask(section, table, (&found, &codes), course)?;
        Ok(Some(Answer { codes, totals, are_there: found.are_there }))
    }

    fn key_spans(&self, section: &GroupSection, found: &Found) -> Vec<(i64, i64)> {
        self.places[..section.keys.len()].iter().map(|place| found.spans[*place]).collect()
    }

    fn ask(
        &self,
        section: &GroupSection,
        table: &TableColumns,
        (found, codes): (&Found, &Codes),
        course: &Course,
    ) -> std::result::Result<GroupTotals, String> {
        let column = |place: usize| -> std::result::Result<&dyn DeviceColumn, String> {
            table.column(self.asked[place].column).ok_or_else(|| "a column that has gone".to_owned())
        };
        let (of_keys, of_columns) = self.places.split_at(section.keys.len());
        let keys = of_keys.iter().zip(codes.ranges());
        let keys = keys.map(|(place, (min, width))| Ok(ResidentKey { column: column(*place)?, min, width }));
        let keys = keys.collect::<std::result::Result<Vec<_>, String>>()?;
        let columns = of_columns.iter().zip(&section.columns).map(|(place, asked)| {
            let (min, max) = found.spans[*place];
            let largest = min.unsigned_abs().max(max.unsigned_abs());
            Ok(ResidentValues { column: column(*place)?, largest, sum: asked.sum, min: asked.min, max: asked.max })
        });
        let columns = columns.collect::<std::result::Result<Vec<_>, String>>()?;
        let rows = ResidentRows { rows: &found.bits, count: found.rows, keys: &keys, columns: &columns };
        let groups = u64::from(codes.group_count);
        let bytes = found.rows as u64 * 5 + groups * section.bytes_per_group();
        let totals = course.ask(bytes, |offload, room| offload.group_residents(&rows, room))?;
        let work = section.resident_work(found.rows as f64, groups as f64, found.brought as f64);
        course.answered(&work, 0.0, &totals.spent);
        Ok(totals)
    }

    /// The values of a page as a device takes them.
    fn numbers(&self, column: usize, page: &BasePage) -> std::result::Result<PageNumbers, String> {
        let schema = self.scan.schema();
        let values = page.values().map_err(|error| error.to_string())?;
        let mut numbers = Numbers::default();
        numbers.append(&as_queried(&values, schema.field(self.outputs[column]).data_type()))?;
        Ok((numbers.values, numbers.nulls))
    }

    /// Whether the rows that the device has not answered for are few: those of one range, which is being filled, and others.
    pub(super) fn are_few_left(&self, rows: &SplitRows, answer: &Answer) -> bool {
        let others = rows.others.iter().map(RecordBatch::num_rows).sum::<usize>();
        let left = rows.ranges.iter().zip(&answer.are_there).filter(|(_, is_there)| !**is_there);
        rows.whole.len() <= 1 && others + left.map(|(range, _)| range.base.slots).sum::<usize>() <= REST_FEW
    }

    /// The rows that the device has not answered for, as any input.
    pub(super) fn rest(
        &self,
        rows: SplitRows,
        answer: Option<&Answer>,
    ) -> impl Iterator<Item = Result<RecordBatch>> + Send + use<> {
        let is_there = |at: usize| answer.is_some_and(|answer| answer.are_there[at]);
        let left: Vec<bool> = (0..rows.ranges.len()).map(|at| !is_there(at)).collect();
        let SplitRows { scan, ranges, others, whole } = rows;
        let ranges = ranges.into_iter().zip(left).filter(|(_, is_left)| *is_left).map(|(range, _)| range);
        let (schema, arranging, arranging_too) = (scan.schema().clone(), self.scan.again(), self.scan.again());
        let base = move |RangeRows { base, .. }: RangeRows| -> Result<RecordBatch> {
            interrupt::check_plan()?;
            // Slots that hold no record may have NULL in any column.
            let chosen = FilterBuilder::new(&chosen(&base)).optimize().build();
            let values = base.pages.iter().map(|page| {
                let values = page.values().map_err(|error| DataFusionError::External(error.into()))?;
                Ok(chosen.filter(&values)?)
            });
            arranging.arranged(&RecordBatch::try_new(schema.clone(), values.collect::<Result<Vec<ArrayRef>>>()?)?)
        };
        let read = move |range: usize| -> Vec<Result<RecordBatch>> {
            match interrupt::check_plan().and_then(|()| scan.read(range).map_err(external)) {
                Ok(batches) => batches.iter().map(|batch| arranging_too.arranged(batch)).collect(),
                Err(error) => vec![Err(error)],
            }
        };
        others.into_iter().map(Ok).chain(ranges.map(base)).chain(whole.into_iter().flat_map(read))
    }
}

/// The rows of base pages that a statement sees.
fn chosen(base: &BaseRowSet) -> BooleanArray {
    (0..base.slots).map(|slot| Some(base.rows[slot / 64] >> (slot % 64) & 1 == 1)).collect()
}
